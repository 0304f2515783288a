"""`tools/compile_engine.py`: after it, no run compiles anything any more."""

from __future__ import annotations

import pytest

from lstmsim import load_scenario, targets
from lstmsim.engines.fast import compiled, run
from tools import compile_engine


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
def test_nothing_is_left_to_compile() -> None:
    compiled.compiled.cache_clear()  # what other tests of this process have loaded
    compile_engine.main()
    functions = compiled.compiled()
    ready = [list(each.signatures) for each in functions]  # type: ignore[attr-defined]
    assert all(len(each) == 1 for each in ready)
    jobs = [{"model": "lstm-512", "steps": 5, "count": 3, "split": "auto"}, {"model": "gru-1024", "steps": 2}]
    scenario = load_scenario({"chip": "column-npu-4x16k", "jobs": jobs})
    program = targets.lower(scenario.chip, scenario.jobs)
    assert run.totals(program, budget=1).makespan_cycles == run.run(program, budget=1).makespan_cycles
    assert [list(each.signatures) for each in functions] == ready  # type: ignore[attr-defined]
