"""What does a second or fourth thread buy, and what four cores of a quarter of the size, on the DeepBench LSTMs?

Published: a dual-threaded NPU is 27 % faster than the single-threaded one (Que et al., FPT 2020, doi
10.1109/ICFPT51103.2020.00012, abstract); a dual-threaded quad-core one is 2.91 times as fast as the single-threaded one
(Remarn, Que et al., TRETS 2022, doi 10.1145/3534969, abstract). Their mix of jobs is not public. So this experiment
runs several mixes and states which ones lie below and above the published figures; it does not look for one that hits
them. That the four cores share the multipliers of the one is an assumption, because the abstract does not say it.

Cores are those of the presets: 65536 multipliers as (ep 32, vp 2048), 16384 as (ep 16, vp 1024); eight jobs of each mix
are there at cycle 0, so with four cores more than two threads have nothing to do.

Run `python experiments/threads_and_cores/run.py`; `--write` refreshes expected.md beside it.
"""

from __future__ import annotations

from experiments.holds import as_it_is, held_paragraph
from experiments.room import room_paragraph
from lstmsim import ColumnCore, ColumnNpu, Job, Layer, Model, Scenario, cell, simulate
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary

#: (hidden = input, steps) of the DeepBench LSTM inference tasks (Zhao et al. 2019, arXiv:1909.13654, Table 6).
TASKS = {"256": (256, 150), "512": (512, 25), "1024": (1024, 25), "1536": (1536, 50), "2048": (2048, 25)}

#: Eight jobs each, by task. Equal jobs stand together, so that four cores get equal loads: a job goes to the core
#: with the fewest jobs, whatever their size.
MIXES = {
    **{f"8 x LSTM {name}": (name,) * 8 for name in TASKS},
    "4 x 256, 4 x 512": ("256",) * 4 + ("512",) * 4,
    "4 x 512, 4 x 1024": ("512",) * 4 + ("1024",) * 4,
    "4 x 256, 4 x 1024": ("256",) * 4 + ("1024",) * 4,
    "4 x 256, 4 x 2048": ("256",) * 4 + ("2048",) * 4,
}

PUBLISHED = {"1 core, 2 threads": 1.27, "4 cores, 2 threads": 2.91}
THREADS = (1, 2, 4)


def chip(cores: int, threads: int) -> ColumnNpu:
    """One core of 65536 multipliers or four of 16384."""
    core = ColumnCore(npe=65536, ep=32, vp=2048, threads=threads)
    if cores == 4:
        core = ColumnCore(npe=16384, ep=16, vp=1024, threads=threads)
    return ColumnNpu(f"{cores} cores", 260, (core,) * cores)


def jobs(mix: tuple[str, ...]) -> tuple[Job, ...]:
    """The jobs of a mix, all there at cycle 0."""
    together = []
    for number, name in enumerate(mix):
        hidden, steps = TASKS[name]
        together.append(Job(f"{name}-{number}", Model(name, (Layer(cell("lstm"), hidden, hidden),)), steps))
    return tuple(together)


def results(small: bool = False, vary: Vary = as_it_is) -> dict[str, dict[str, tuple[int, float]]]:
    """(makespan, utilization) by mix and machine; `small`: the first two mixes; vary: changes every chip."""
    rows: dict[str, dict[str, tuple[int, float]]] = {}
    for name, mix in list(MIXES.items())[: 2 if small else None]:
        rows[name] = {}
        for cores in (1, 4):
            for threads in THREADS:
                report = simulate(Scenario(vary(chip(cores, threads)), jobs(mix)))
                machine = f"{cores} core{'s' * (cores > 1)}, {threads} thread{'s' * (threads > 1)}"
                rows[name][machine] = (report.makespan_cycles, report.utilization)
    return rows


def speedup(row: dict[str, tuple[int, float]], machine: str) -> float:
    """Times as fast as one single-threaded core of all multipliers."""
    return row["1 core, 1 thread"][0] / row[machine][0]


def bracket(rows: dict[str, dict[str, tuple[int, float]]], machine: str) -> tuple[list[str], list[str]]:
    """The mixes below and those at or above the published figure of a machine, each with its speed-up."""
    at = sorted((speedup(row, machine), mix) for mix, row in rows.items())
    texts = [(value, f"{mix} ({value:.3f})") for value, mix in at]
    figure = PUBLISHED[machine]
    return [text for value, text in texts if value < figure], [text for value, text in texts if value >= figure]


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """On which side of a published figure each mix lies."""
    rows = results(vary=vary)
    return {
        f"{machine} on {mix}": f"{'below' if speedup(row, machine) < figure else 'at or above'} {figure}"
        for machine, figure in PUBLISHED.items()
        for mix, row in rows.items()
    }


def holds() -> str:
    """Whether these conclusions hold, as a paragraph."""
    return held_paragraph([chip(1, 1), chip(4, 1)], conclusions)


def summary(rows: dict[str, dict[str, tuple[int, float]]]) -> str:
    """The table and the published figures beside it, as Markdown."""
    machines = list(next(iter(rows.values())))
    lines = ["# Threads and cores on the DeepBench LSTMs", ""]
    lines += ["Times as fast as one single-threaded core of 65536 multipliers (in brackets: utilization in %).", ""]
    lines += [
        "| jobs | cycles on 1 core, 1 thread | " + " | ".join(machines[1:]) + " |",
        "| --- |" + " ---: |" * len(machines),
    ]
    for mix, row in rows.items():
        first = row[machines[0]]
        cells = [f"{speedup(row, each):.2f} ({100 * row[each][1]:.1f})" for each in machines[1:]]
        lines.append(f"| {mix} | {first[0]} ({100 * first[1]:.1f}) | " + " | ".join(cells) + " |")
    lines += [
        "",
        "A job goes to the core with the fewest jobs, whatever their size; equal jobs are listed together, so",
    ]
    lines += ["that four cores get equal loads. Lists that alternate sizes do worse on four cores.", ""]
    lines += ["## Beside the published figures", ""]
    for machine, figure in PUBLISHED.items():
        below, above = bracket(rows, machine)
        texts = ("; ".join(each) or "none" for each in (below, above))
        lines.append("* {}: published {}. Below: {}. At or above: {}.".format(machine, figure, *texts))
    lines += ["", *room_paragraph("column-npu-64k", "the published chips")]
    return "\n".join([*lines, ""])


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(results(small)) + ("" if small else holds())


if __name__ == "__main__":
    from experiments.run import main

    main("threads_and_cores")
