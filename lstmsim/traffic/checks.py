"""Checks that the times of requests can be true."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.traffic.arrivals import MAX_CYCLE

__all__ = ["check_times"]

Ints = NDArray[np.int64]


def check_times(number: Ints, arrival: Ints, start: Ints, finish: Ints, before: tuple[int, int]) -> None:
    """Raise `InputError` for the first request whose times cannot be true.

    number: places of the requests in the order of arrivals, shape [requests].
    arrival, start, finish: cycles, shape [requests] each, in the order of finishes.
    before: the least number that has not come yet, and the last finish so far.
    """
    following, last_finish = before
    earlier = np.concatenate([[last_finish], finish[:-1]])
    for wrong, sentence in (
        ((number < following), "comes twice (or has a number below 0)"),
        ((arrival < 0) | (finish > MAX_CYCLE), f"must lie between cycles 0 and {MAX_CYCLE}"),
        (start < arrival, "starts before it arrives"),
        (finish < start, "finishes before it starts"),
        (finish < earlier, "finishes before the one that came before it; they must come in the order of finishes"),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            cycles = f"arrival {arrival[at]}, start {start[at]}, finish {finish[at]}"
            raise InputError(Mistake(f"request {number[at]}", f"{sentence}; {cycles}"))
