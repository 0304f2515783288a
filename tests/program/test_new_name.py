"""A new name of cycles is one record and one entry of words: then every part of the package knows it."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Loads the two tables with one line more each before anything else, and looks at who knows the name then.
SCRIPT = """
import sys
from importlib.util import find_spec
from types import ModuleType


def load_with(name, before, line):
    spec = find_spec(name)
    source = open(spec.origin, encoding="utf-8").read()
    assert source.count(before) == 1, before
    module = sys.modules[name] = ModuleType(name)
    exec(compile(source.replace(before, line + before), spec.origin, "exec"), module.__dict__)


words = ", ".join(
    f'{key}="refresh {key}"'
    for key in ("meaning", "glossary", "legend", "held_by", "next_wait", "share", "spent")
)
load_with(
    "lstmsim.program.stall_reasons",
    '    CycleName("drain", "rest", 6),\\n',
    '    CycleName("refresh", "wait", 18, cause=13, everywhere=False),\\n',
)
load_with(
    "lstmsim.analysis.stall_words",
    '        "drain": Named(\\n',
    f'        "refresh": Named(Style("#CCCCCC", "++", "#444444"), ("#222222", "#AAAAAA"), {words}),\\n',
)

from lstmsim import engines
from lstmsim.analysis.explanations.text import GLOSSARY
from lstmsim.analysis.explanations.slowest import SHARES, SPENT, latency_shares
from lstmsim.analysis.explanations.text import held_words, _next_wait
from lstmsim.analysis.files.perfetto import PALE, colour_of, state_word
from lstmsim.analysis.files.perfetto import wait_names
from lstmsim.studies.simulate.page.looks import look_rules, patterns
from lstmsim.program.accounts import totals_of
from lstmsim.analysis.report import ACCOUNTS
from lstmsim.analysis.timeline import build_timeline
from lstmsim.analysis.timeline import STATES
from lstmsim.studies.simulate.picture import plot
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit

body = Body((Operation(0), Operation(0, needs=(Dependence(0, 5, "refresh"),))))
task = Task("t", variants=((0, (Phase(body, 3),)),), buffers=(), cores=(0,))
program = Program((Core(0, (Unit("array", "coarse"),)),), (task,))
trace = engines.run(program, "reference")
assert engines.run(program, "fast") == trace
assert trace.issue("refresh_until").max() > 0
totals = engines.totals(program)
assert totals == totals_of(program, trace)
assert totals.cycles[0, CYCLE_NAMES.index("refresh")] == 12
assert latency_shares(program, trace)[0, list(SHARES).index("refresh")] == 12

assert "refresh" not in ACCOUNTS and STATES[-1] == "refresh"
assert (SHARES["refresh"], SPENT["refresh"]) == ("refresh share", "refresh spent")
assert (GLOSSARY["refresh"], held_words("refresh", {}), _next_wait("refresh", {})) == (
    "refresh glossary", "refresh held_by", "refresh next_wait"
)
assert "stall: refresh" in wait_names() and colour_of(state_word("refresh"))[1] >= PALE
assert "--w-refresh:light-dark(#CCCCCC,#222222)" in look_rules()
assert "--w-refresh-ink:light-dark(#444444,#AAAAAA)" in look_rules()
assert 'id="p-w-refresh"' in patterns()
timeline = build_timeline(program, trace, ["t"], "chip", 250.0)
(legend,) = plot(timeline).legends
assert "refresh legend" in [text.get_text() for text in legend.get_texts()]
print("known")
"""


@pytest.mark.slow
def test_a_record_and_its_words_are_all_that_a_new_name_takes() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("known\n", 0), done.stderr
