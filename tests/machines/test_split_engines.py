"""Random split jobs on both engines; the names of their cycles against the cycle-stepped model of section 9."""

from __future__ import annotations

import os

from hypothesis import given, settings

from lstmsim import engines
from lstmsim.engines.reference import run as reference
from lstmsim.machines import lower
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Exchange
from lstmsim.model.scenario import Job
from lstmsim.program.accounts import named_cycles, totals_of
from tests.oracle import split as oracle
from tests.splits import splits

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))


@settings(max_examples=EXAMPLES, deadline=None)
@given(splits())
def test_both_engines_agree_and_every_cycle_has_the_name_that_section_9_gives_it(
    case: tuple[ColumnCore, Exchange, Job, tuple[int, ...]],
) -> None:
    core, exchange, job, place = case
    program = lower(ColumnNpu("c", 260, (core,) * (max(place) + 1), None, exchange), [job])
    trace = reference.run(program)
    assert engines.run(program) == trace
    assert engines.totals(program) == totals_of(program, trace)
    _, cores = oracle.simulate_split(job, core, place, exchange)
    for on in set(place):
        names = {name: cycles for name, cycles in named_cycles(program, trace, on).totals().items() if cycles}
        expected = cores[on].names
        if job.arrival:
            expected["idle"] = expected.get("idle", 0) + job.arrival
        assert names == expected
