"""Both engines choose a thread alike: the functions of `POLICIES`, and the core's own `choose`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.engines.fast.run import choose
from lstmsim.program.policy import POLICIES

NOW = 1000
READY = st.lists(st.one_of(st.none(), st.integers(0, NOW)), min_size=1, max_size=9)

pytestmark = pytest.mark.needs_core


@given(st.sampled_from(sorted(POLICIES)), READY, st.integers(0, 8), st.booleans())
def test_the_core_chooses_as_the_policies_do(policy: str, ready: list[int | None], active: int, fresh: bool) -> None:
    active %= len(ready)
    cycles = np.array([NOW + 1 if cycle is None else cycle for cycle in ready])
    number = tuple(POLICIES).index(policy)
    may = {thread: cycle for thread, cycle in enumerate(ready) if cycle is not None}
    assert choose(number, active, fresh, cycles, NOW) == POLICIES[policy](active, fresh, may)
