"""The core of the fast engine against the reference: whole traces or the same deadlock, and totals."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from lstmsim.engines.fast import library, native
from lstmsim.engines.reference import run as reference
from lstmsim.errors import DeadlockError
from lstmsim.metrics.accounts import totals_of
from lstmsim.program.flat import FLAT_TABLES, FORMAT
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from tests.strategies import joint_programs, programs

#: 2,000 and more by LSTMSIM_EXAMPLES=2000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "40"))
CORE = Path(library.__file__).parent / "core"

pytestmark = pytest.mark.skipif(not library.available(), reason="the native core was not built")


def outcome(engine: object, program: Program) -> Trace | str:
    try:
        return engine.run(program)  # type: ignore[attr-defined, no-any-return]
    except DeadlockError as deadlock:
        return str(deadlock)


@settings(max_examples=3 * EXAMPLES)
@given(st.one_of(programs(), joint_programs(), joint_programs(wide=True)))
def test_random_programs_give_equal_traces_and_totals(program: Program) -> None:
    note(f"from lstmsim.program.program import *\nprogram = {program!r}")
    slow, quick = outcome(reference, program), outcome(native, program)
    assert type(slow) is type(quick)
    assert slow == quick
    if isinstance(slow, Trace):
        assert native.totals(program) == totals_of(program, slow)


def test_rows_of_the_core_are_those_of_the_format() -> None:
    source = (CORE / "flat.hpp").read_text()
    structures = dict(re.findall(r"struct (\w+) \{\s*i64 ([\w, \n]+);\s*\}", source))
    assert f"FORMAT = {FORMAT};" in source
    order = re.findall(r"Slice<const (\w+)> (\w+);", source)
    assert [name for _, name in order] == list(FLAT_TABLES)
    for structure, name in order:
        assert structures[structure].replace("\n", " ").split(", ") == list(FLAT_TABLES[name].columns)
