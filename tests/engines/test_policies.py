"""Both engines choose a thread alike: the functions of `POLICIES`, and the fast engine's own `choose`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lstmsim.engines.fast import layout as at
from lstmsim.engines.fast.issuing import choose
from lstmsim.engines.fast.run import FastRun
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import Body, Core, Operation, Phase, Program, Task, Unit

NOW = 1000
READY = st.lists(st.one_of(st.none(), st.integers(0, NOW)), min_size=1, max_size=6)


def fast_choice(policy: str, active: int, fresh: bool, ready: list[int | None]) -> int | None:
    """What the fast engine chooses on its own state, in which the second unit's threads are made ready as asked."""
    task = Task("t", variants=((0, (Phase(Body((Operation(0),)), 1),)),), buffers=(), cores=(0,))
    units = (Unit("first", "coarse"), Unit("second", policy))
    run = FastRun(Program((Core(0, units, contexts=len(ready)),), (task,)), keep=False, skipping=False, budget=at.NEVER)
    tables, state = run.tables, run.state
    unit = state[at.S_UNIT] + at.S_UNIT_SIZE
    state[unit + at.ACTIVE], state[unit + at.FRESH] = active, int(fresh)
    for thread, cycle in enumerate(ready):
        stream = state[at.S_STREAM] + (thread * tables[at.N_UNITS] + 1) * at.S_STREAM_SIZE
        state[stream + at.READY] = NOW + 1 if cycle is None else cycle
    chosen = choose(tables, state, 0, 1, NOW)
    return None if chosen < 0 else chosen


@given(st.sampled_from(sorted(POLICIES)), READY, st.integers(0, 5), st.booleans())
def test_the_fast_engine_chooses_as_the_policies_do(
    policy: str, ready: list[int | None], active: int, fresh: bool
) -> None:
    active %= len(ready)
    assert fast_choice(policy, active, fresh, ready) == POLICIES[policy](active, fresh, ready)


def test_every_policy_has_a_number() -> None:
    assert tuple(range(len(POLICIES))) == (at.COARSE, at.FINE, at.FIFO)
