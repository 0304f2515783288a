"""Steps of a job on the parallel device that come again: 25 steps against 3, and against all 25 of them run.

Run as `python benchmarks/steady.py`. Seconds are those of the core, of the processor, the least of some runs; each row
has its two programs run in turn, so that others on the machine count little in the ratio.
"""

from __future__ import annotations

from measures import cpu_seconds, measured_package, table

from lstmsim import load_scenario, machines
from lstmsim.engines.fast.run import Machine
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import flat_of

STEPS, FEW, TIMES = 25, 3, 3


def program(hidden: int, steps: int) -> FlatProgram:
    """An LSTM on the preset `v100`, a kernel for the product and one for the cell in each step."""
    layer = {"cell": "lstm", "input": hidden, "hidden": hidden}
    scenario = load_scenario({"chip": "v100", "jobs": [{"model": {"layers": [layer]}, "steps": steps}]})
    return flat_of(machines.lower(scenario.chip, scenario.jobs))


def row(hidden: int, *, keep: bool) -> list[str]:
    """Seconds of few steps, of many, and of many that are all run; what many take against each of the others."""
    few, many = program(hidden, FEW), program(hidden, STEPS)

    def seconds(flat: FlatProgram, *, each: bool = False) -> float:
        return cpu_seconds(lambda: Machine(flat, keep=keep, each=each).finish(), 1)

    runs = [(seconds(few), seconds(many), seconds(many, each=True)) for _ in range(TIMES)]
    least = [min(times) for times in zip(*runs, strict=True)]
    ratios = [f"{least[1] / least[0]:.2f}", f"{least[2] / least[1]:.1f}"]
    return [f"LSTM-{hidden}", "trace" if keep else "totals", *(f"{each:.2f}" for each in least), *ratios]


if __name__ == "__main__":
    measured_package()
    head = ["job", "what", f"{FEW} steps: s", f"{STEPS} steps: s", "all run: s", f"{STEPS} / {FEW}", "all / these"]
    print(table(head, [row(hidden, keep=keep) for hidden in (256, 1024) for keep in (False, True)]))
