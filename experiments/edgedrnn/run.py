"""EdgeDRNN's published speed, and delta columns on the column-wise NPU beside it.

The abstracts say: two GRU layers of 768, 5 million parameters, about 0.5 ms a step, 20.2 GOp/s effective. The memory of
that system is not known: both ends of a band are simulated. Then a GRU of 128 units with 128 inputs at drawn densities,
on 32 lanes of EdgeDRNN and on 32 multipliers of the column-wise NPU at EP 1, dense and with delta columns.

Run `python experiments/edgedrnn/run.py`; `--write` refreshes expected.md beside it; pictures.py draws.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from experiments.holds import as_it_is, held_paragraph
from lstmsim import engines, machines
from lstmsim.files.scenario.scenario_file import load_chip, load_scenario
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary

STEPS, SEEDS = 6, (0, 1, 2)
DENSITIES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.0)
ENDS = {"edgedrnn-8": "ideal memory", "edgedrnn-8-slow": "latency 40, one command"}
#: Gao et al., JETCAS 2020 (arXiv:2012.13600), abstract: mean effective throughput, and "about 0.5 ms".
PUBLISHED_GOPS = 20.2
LARGE = {"layers": [{"cell": "gru", "hidden": 768, "input": 40}, {"cell": "gru", "hidden": 768, "input": 768}]}
SMALL = {"layers": [{"cell": "gru", "hidden": 128, "input": 128}]}
#: Multiply-accumulates of a step of the large network, without biases.
MACS = 3 * 768 * (40 + 768) + 3 * 768 * (768 + 768)
COLUMN: dict[str, Any] = {"kind": "column-npu", "name": "column", "frequency_mhz": 125}
CORE = {"npe": 32, "ep": 1, "vp": 32}
#: Said of the tables as a whole; the test of this experiment holds it to be true.
ANSWER = [
    "**Answer.** The published 20.2 GOp/s come out where 9 to 10 % of the elements change, at both ends of the band:",
    "an inference from one number, for neither the changes of the published runs nor their memory is known. On 32",
    "multipliers each, both ways of skipping columns are within 8 % of each other down to a density of 0.1, EdgeDRNN",
    "ahead. Below, its walk over every element takes longer than its columns, and the column-wise NPU is ahead.",
]


@cache
def step_cycles(chip: str, density: float, vary: Vary = as_it_is) -> float:
    """Mean cycles of a step of the large network after the first one, over some seeds."""
    total = 0
    for seed in SEEDS:
        last = [_cycles(vary(load_chip(chip)), LARGE, steps, density, seed) for steps in (1, STEPS)]
        total += last[1] - last[0]
    return total / len(SEEDS) / (STEPS - 1)


def _cycles(chip: Any, model: dict[str, Any], steps: int, density: float | None, seed: int = 0) -> int:
    job: dict[str, Any] = {"model": {**model, "layer_order": "step"}, "steps": steps}
    if density is not None:
        job["density"] = {"x": density, "h": density, "seed": seed}
    scenario = load_scenario({"chip": "edgedrnn-8", "jobs": [job]})
    return engines.totals(machines.lower(chip, scenario.jobs)).makespan_cycles


def gops(cycles: float) -> float:
    """Effective operations: those of the dense network in these cycles at 125 MHz."""
    return 2 * MACS * 125e6 / cycles / 1e9


@cache
def density_of(chip: str) -> float:
    """The density at which the published throughput comes out, to a thousandth."""
    low, high = 0.05, 0.2
    while high - low > 0.001:
        middle = (low + high) / 2
        low, high = (middle, high) if gops(step_cycles(chip, middle)) > PUBLISHED_GOPS else (low, middle)
    return (low + high) / 2


def column(delta: bool) -> Any:
    core = {**CORE, **({"delta": {}} if delta else {})}
    job = {"model": SMALL, "steps": 1, "density": {"x": 1, "h": 1}}
    return load_scenario({"chip": {**COLUMN, "cores": [core]}, "jobs": [job]}).chip


def wide() -> Any:
    chip: Any = load_chip("edgedrnn-8")
    return replace(chip, cores=(replace(chip.cores[0], pe=32),))


def beside(density: float) -> tuple[int, int]:
    """Cycles of 20 steps of the small network: EdgeDRNN with an ideal memory, the column-wise NPU that skips."""
    return (_cycles(wide(), SMALL, 20, density), _cycles(column(delta=True), SMALL, 20, density))


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """How near each end of the band is to the published throughput where a tenth of the elements change."""
    near = {name: gops(step_cycles(chip, 0.1, vary)) / PUBLISHED_GOPS for chip, name in ENDS.items()}
    return {name: "within 15 %" if abs(ratio - 1) < 0.15 else "further off" for name, ratio in near.items()}


def summary(densities: tuple[float, ...] = DENSITIES) -> str:
    """The tables as Markdown."""
    lines = [
        "# EdgeDRNN and delta columns",
        "",
        "Two GRU layers of 768 with 40 inputs, 8 lanes, 125 MHz: milliseconds of a step and effective GOp/s (those of",
        "the dense network), mean of three draws of independent changes; the first step, with its bias, is left out.",
        f"Published: about 0.5 ms and {PUBLISHED_GOPS} GOp/s (abstracts of arXiv:2012.13600 and 1912.12193); lanes,",
        "clock and network are from memory, not verified.",
        "",
        f"| density | {' | '.join(f'{name}, ms | GOp/s' for name in ENDS.values())} |",
        "| ---: " * (1 + 2 * len(ENDS)) + "|",
    ]
    for density in densities:
        cells = []
        for chip in ENDS:
            cycles = step_cycles(chip, density)
            cells += [f"{cycles / 125e3:.4f}", f"{gops(cycles):.1f}"]
        lines.append(f"| {density:g} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def further() -> str:
    """The density that fits, and the small network on both machines."""
    fits = ", ".join(f"{100 * density_of(chip):.1f} % ({name})" for chip, name in ENDS.items())
    dense = _cycles(column(delta=False), SMALL, 20, None)
    lines = [
        "",
        f"The published {PUBLISHED_GOPS} GOp/s come out at a density of {fits}.",
        f"The floor, with nothing to send, is {step_cycles('edgedrnn-8', 0.0):,.0f} cycles a step.",
        "",
        "## A GRU of 128 units, 128 inputs, 20 steps, on 32 multipliers each",
        "",
        f"The dense column-wise NPU (EP 1, VP 32, of which a GRU's three gates use 30) takes {dense:,} cycles.",
        "",
        "| density | EdgeDRNN, ideal memory | column-wise NPU with delta columns | of dense |",
        "| ---: " * 4 + "|",
    ]
    for density in DENSITIES:
        edge, own = beside(density)
        lines.append(f"| {density:g} | {edge:,} | {own:,} | {own / dense:.3f} |")
    return "\n".join([*lines, ""])


def holds() -> str:
    """Whether the conclusions hold, as a paragraph."""
    return held_paragraph([load_chip("edgedrnn-8-slow")], conclusions)


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    if small:
        return summary((0.0,))
    return summary() + "\n".join(["", *ANSWER, ""]) + further() + holds()


if __name__ == "__main__":
    from experiments.run import main

    main("edgedrnn")
