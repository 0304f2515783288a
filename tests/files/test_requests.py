"""Requests of many entries in one order: as if they were merged one by one."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.requests import _merged, load_requests

arrivals = st.lists(st.integers(0, 12), max_size=20).map(sorted)


@given(st.lists(st.tuples(arrivals, st.integers(1, 7)), min_size=1, max_size=4), st.integers(1, 60))
def test_arrays_are_merged_by_arrival_then_by_entry(entries: list[tuple[list[int], int]], count: int) -> None:
    """The second row of each array is the number of its entry, the third one the place within it."""
    streams, lists = [], []
    for number, (cycles, chunk) in enumerate(entries):
        whole = np.array([cycles, [number] * len(cycles), range(len(cycles)), [0] * len(cycles)], dtype=np.int64)
        streams.append(iter([whole[:, first : first + chunk] for first in range(0, len(cycles), chunk)]))
        lists.append(list(zip(*whole[:3].tolist(), strict=True)))
    expected = list(islice(merge(*lists, key=lambda each: each[:2]), count))
    batches = _merged(streams, count)
    assert [each for batch in batches for each in zip(*map(np.ndarray.tolist, batch[:3]), strict=True)] == expected


def test_no_more_is_drawn_than_is_asked_for() -> None:
    def stream() -> Iterator[NDArray[np.int64]]:
        yield np.zeros((4, 5), dtype=np.int64)
        raise AssertionError

    assert [len(batch.arrival) for batch in _merged([stream()], 5)] == [5]


def test_more_requests_than_a_file_has_are_refused_by_the_name_of_the_option() -> None:
    jobs = [{"model": "lstm-256", "steps": 2, "count": 2, "arrival": [0, 10]}]
    with pytest.raises(InputError) as caught:
        load_requests({"chip": "column-npu-16k", "jobs": jobs}, (), 100)
    text = "the scenario's arrivals end after 2 requests, and no arrival process goes on: leave it out, got 100"
    assert str(caught.value) == f"requests: {text}"
