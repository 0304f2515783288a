"""Compile the loop of the fast engine, once, before several processes need it at the same time.

Numba keeps what it compiled beside the sources: the processes that come later load it. Without numba nothing is done.
Run `python tools/compile_engine.py`; it takes about 20 s of processor time, and a second where it is compiled already.
"""

from __future__ import annotations

from lstmsim import load_scenario, targets
from lstmsim.engines.fast import compiled, run


def main() -> None:
    """Run a small program compiled: its trace with one of the two compiled functions, its totals with both."""
    if compiled.available():
        scenario = load_scenario({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2}]})
        program = targets.lower(scenario.chip, scenario.jobs)
        run.run(program, budget=1)
        run.totals(program, budget=1)


if __name__ == "__main__":
    main()
