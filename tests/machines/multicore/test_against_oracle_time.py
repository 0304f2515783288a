"""Random products in time, on both engines, against the model of `tests/oracle` that knows no Program."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import engines
from lstmsim.machines.gemm import CACHES, Division, GemmFigures
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.product import figures_of, lowered
from tests.machines.multicore.chips import flat
from tests.machines.multicore.random_work import divisions, machines, modelled
from tests.oracle.multicore import run

#: 1,000 and more by LSTMSIM_EXAMPLES=1000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))


@st.composite
def divided(draw: st.DrawFn) -> tuple[MulticoreCpu, Division]:
    machine = draw(machines())
    return machine, draw(divisions(machine))


def shown(figures: GemmFigures) -> dict[str, Any]:
    counts = asdict(figures.counts)
    counts["memory"] = {str(place): lines for place, lines in enumerate(counts["memory"]) if lines}
    named = {name: getattr(figures, name) for name in ("makespan", "compute", "buffer_bytes")}
    return {**named, "finish": list(figures.finish), "waits": dict(figures.waits), "counts": counts}


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(divided(), st.sampled_from(CACHES))
def test_a_product_in_time(case: tuple[MulticoreCpu, Division], caches: str) -> None:
    machine, division = case
    work = lowered(machine, division, caches)
    expected = run(flat(machine), modelled(division), caches)
    for engine in engines.ENGINES:
        assert shown(figures_of(machine, work, engines.run(work.program, engine))) == expected
