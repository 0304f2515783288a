"""Requests of many entries are drawn a few at a time: memory does not grow with the number of entries."""

from __future__ import annotations

import tracemalloc

import pytest

from lstmsim.files.scenario.requests import load_requests


@pytest.mark.slow
def test_of_many_entries_few_requests_each_are_drawn_ahead() -> None:
    arrival = {"kind": "poisson", "rate_per_second": 300}
    jobs = [{"name": f"e{at}", "model": "lstm-256", "steps": 1, "arrival": arrival} for at in range(300)]
    asked = load_requests({"chip": "column-npu-16k", "jobs": jobs}, requests=10_000)
    tracemalloc.start()
    try:
        came = sum(len(batch.arrival) for batch in asked.coming)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert came == 10_000
    # 4,096 of each entry would take 180 MB
    assert peak < 120e6
