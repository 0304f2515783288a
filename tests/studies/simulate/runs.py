"""Runs to make pages of: small and large, of both kinds of machine."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import lstmsim as api
from lstmsim.engines.fast.run import OWN

_SMALL = {"layers": [{"cell": "lstm", "hidden": 64, "input": 64}]}
_TINY = {"layers": [{"cell": "gru", "hidden": 16, "input": 16}]}
_CORE = {"npe": 1024, "ep": 8, "threads": 2}

SCENARIOS: dict[str, dict[str, Any]] = {
    "one job": {"chip": "column-npu-16k", "jobs": [{"model": _SMALL, "steps": 20}]},
    "one step": {"chip": "column-npu-16k", "jobs": [{"model": _TINY, "steps": 1}]},
    "row": {"chip": "intel-npu-rtl", "jobs": [{"model": _SMALL, "steps": 10, "batch": 6}]},
    "four cores": {
        "chip": "column-npu-4x16k",
        "jobs": [
            {"model": _SMALL, "steps": 20, "count": 30, "arrival": list(range(0, 3000, 100)), "deadline": 1000},
            {"model": _TINY, "steps": 5, "count": 11},
        ],
    },
    "many cores": {
        "chip": {"kind": "column-npu", "frequency_mhz": 250, "cores": [{**_CORE, "count": 48}]},
        "jobs": [{"model": _TINY, "steps": 3, "count": 70}],
    },
    "thousand jobs": {
        "chip": "column-npu-4x16k",
        "jobs": [{"model": _SMALL, "steps": 12, "count": 1000, "arrival": [at * at % 70_000 for at in range(1000)]}],
    },
    "million cycles": {
        "chip": {"kind": "column-npu", "frequency_mhz": 250, "cores": [{"npe": 64, "ep": 8}]},
        "jobs": [{"model": {"layers": [{"cell": "lstm", "hidden": 64, "input": 64}]}, "steps": 2000}],
    },
}


@cache
def run(name: str, engine: str = "fast") -> api.Run:
    """The run of one of `SCENARIOS`; without the native core the longest would take too long: its tests are skipped."""
    if name == "million cycles" and OWN.absence is not None:
        pytest.skip(f"needs the native core, which is missing: {OWN.absence}")
    return api.run(SCENARIOS[name], engine=engine)
