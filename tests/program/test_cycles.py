"""The names of cycles: one record each, everywhere the same."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import lstmsim
from lstmsim.analysis.explanations.critical_path import HELD_BY
from lstmsim.analysis.explanations.slowest import SHARES, SPENT
from lstmsim.analysis.explanations.text import GLOSSARY
from lstmsim.analysis.stall_words import NAMED, PE_NAMES
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Memory
from lstmsim.program.stall_reasons import CAUSES, CYCLE_NAMES, CYCLES, SPAN_NAMES

PACKAGE = Path(lstmsim.__file__).parent
#: Where names of cycles may stand in a row: their records, and what they look like.
HOMES = {"program/stall_reasons.py", "analysis/stall_words.py"}
#: A machine says in its folder what it calls some of them; machines with an array share some of these words.
MACHINE_WORDS = re.compile(r"machines/([a-z_]+/(words|npu|device|product)|arrays)\.py")
#: Other facts that have such words among theirs: the kinds of segments of a critical path, and the names that
#: engines give by themselves.
OTHER_FACTS = {
    "analysis/explanations/critical_path.py": {"busy", "switch", "input"},
    # ways off the main unit, which some waits make
    "analysis/explanations/explanation.py": {"switch", "start", "weights"},
    # the waits of this machine, each with the words of its needs
    "machines/parallel/lowering/prototypes.py": {"memory", "barrier", "dependence", "start"},
    # a picture of one product, whose threads have a look for each of these
    "studies/gemm/picture.py": {"busy", "contention", "barrier"},
    # what a run for hardware may not have exercised, in the words of hardware
    "machines/column/rtl/events.py": {"backpressure", "hazard", "input", "switch"},
    "program/flatten.py": {"busy", "switch", "drain", "idle"},
}


def test_records_number_their_names_without_gaps() -> None:
    names = [each.name for each in CYCLES]
    assert len(set(names)) == len(names)
    assert sorted(each.span for each in CYCLES) == list(range(len(CYCLES)))
    waits = [each for each in CYCLES if each.kind == "wait"]
    assert sorted(each.cause for each in waits if each.cause is not None) == list(range(len(waits)))
    assert all(each.cause is None for each in CYCLES if each.kind != "wait")
    # what nothing else names comes last
    assert CYCLES[-1].name == "idle"
    assert CYCLES[0].name == "busy"


def test_the_orders_that_files_hold_stay() -> None:
    assert (
        " ".join(CYCLE_NAMES)
        == "busy switch hazard backpressure input dispatch reload weights memory contention barrier dependence start "
        "activation scan drain idle"
    )
    causes = (
        "dispatch hazard input backpressure reload weights memory contention barrier dependence start activation scan"
    )
    assert " ".join(CAUSES) == causes
    states = "busy switch hazard input backpressure dispatch drain idle ready reload weights"
    assert " ".join(SPAN_NAMES) == f"{states} memory barrier dependence start contention activation scan"


def test_every_name_has_its_look_and_all_its_words() -> None:
    assert set(NAMED) == {each.name for each in CYCLES} | set(PE_NAMES)
    for each in CYCLES:
        named = NAMED[each.name]
        assert named.meaning, each.name
        assert bool(named.glossary) == each.of_cores, each.name
        lacks = each.kind in ("wait", "switch")
        assert [bool(named.held_by), bool(named.next_wait)] == [lacks] * 2, each.name
        # of a request, issues and turns have names of their own, and there is no idle
        share = lacks or each.name == "drain"
        assert [bool(named.share), bool(named.spent)] == [share] * 2, each.name
        assert (named.dark is None) == (each.kind == "work"), each.name
    for name in PE_NAMES:
        assert NAMED[name].meaning, name
        assert NAMED[name].glossary, name


def test_explanations_know_every_name() -> None:
    assert set(CYCLE_NAMES) | set(PE_NAMES) <= set(GLOSSARY)
    assert set(CAUSES) <= set(SHARES)
    assert all(SHARES.values())
    assert all(SPENT.values())
    assert HELD_BY[: len(CAUSES)] == CAUSES


def words(node: ast.AST) -> set[str]:
    """The texts that stand directly in a tuple, list or set, or as keys of a dictionary."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        inner: list[ast.expr | None] = list(node.elts)
    elif isinstance(node, ast.Dict):
        inner = list(node.keys)
    else:
        return set()
    inner += [each for one in inner if isinstance(one, ast.Starred) for each in getattr(one.value, "elts", [])]
    return {one.value for one in inner if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def test_no_other_table_lists_names_of_cycles() -> None:
    names = {each.name for each in CYCLES}
    lists = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        home = path.relative_to(PACKAGE).as_posix()
        source = path.read_text(encoding="utf-8")
        # most files hold no three of the names: they need not be parsed
        for node in ast.walk(ast.parse(source if sum(f'"{each}"' in source for each in names) >= 3 else "")):
            listed = words(node) & names
            if len(listed) >= 3 and home not in HOMES and not MACHINE_WORDS.fullmatch(home):
                lists[home] = listed
    assert lists == OTHER_FACTS


def test_machines_name_those_that_not_all_have() -> None:
    column = ColumnNpu("c", 250, (ColumnCore(npe=64, ep=4, vp=16),), memory=Memory(gb_per_s=10.0))
    chips = (
        column,
        replace(column, memory=None),
        load_chip("brainwave-s10"),
        load_chip("v100"),
        load_chip("xeon-gold-5122"),
        load_chip("edgedrnn-8"),
    )
    known = {name for chip in chips for core in chip.core_figures for name in core.stalls}
    assert known == {each.name for each in CYCLES if each.of_cores and not each.everywhere}
    assert [len(chip.core_figures[0].stalls) for chip in chips] == [2, 0, 1, 4, 3, 3]
