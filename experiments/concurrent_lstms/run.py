"""What do three LSTMs of 2, 3 and 2 steps gain from running together instead of one after another?

The column-wise LSTM patent draws it twice: in its figure 1b the three run one after another, with an idle slot between
consecutive steps (1, 2 and 1 of them); in figure 1f each has a thread of its own, and the idle slots of one hold steps
of the others. Size of the LSTMs (256, input 256) and of the array (65536 multipliers, ep 32, vp 2048) are an
assumption, because the patent gives none with these figures: a small LSTM on a large array waits longest.

Run `python experiments/concurrent_lstms/run.py`; `--write` refreshes expected.md beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.holds import as_it_is, held_paragraph
from lstmsim import ColumnCore, ColumnNpu, Job, Layer, Model, Report, Run, Scenario, Timeline, cell, run
from lstmsim.analysis.timeline import STATES
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary

STEPS = (2, 3, 2)
NAMES = ("lstm-a", "lstm-b", "lstm-c")


@dataclass(frozen=True)
class Setting:
    """A way in which the three LSTMs share the core."""

    title: str
    threads: int
    policy: str = "coarse"
    switch_cycles: int = 0


SETTINGS = (
    Setting("one after another (figure 1b)", 1),
    Setting("three threads, coarse (figure 1f)", 3),
    Setting("three threads, coarse, 4 cycles a switch", 3, switch_cycles=4),
    Setting("three threads, fine", 3, "fine"),
    Setting("three threads, fine, 4 cycles a switch", 3, "fine", 4),
)


def chip(setting: Setting) -> ColumnNpu:
    """One core that is shared in that way."""
    core = ColumnCore(
        npe=65536,
        ep=32,
        vp=2048,
        threads=setting.threads,
        thread_policy=setting.policy,
        switch_cycles=setting.switch_cycles,
    )
    return ColumnNpu("array", 260, (core,))


def simulated(setting: Setting, hidden: int = 256, vary: Vary = as_it_is) -> Run:
    """Run the three LSTMs, all there at cycle 0, on one core."""
    model = Model("lstm", (Layer(cell("lstm"), hidden, hidden),))
    jobs = tuple(Job(name, model, steps) for name, steps in zip(NAMES, STEPS, strict=True))
    return run(Scenario(vary(chip(setting)), jobs))


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """The settings from the least makespan to the largest."""
    cycles = {each.title: simulated(each, vary=vary).report.makespan_cycles for each in SETTINGS}
    first = SETTINGS[0].title
    answers = {
        f"{title}, or {first}": "shorter" if own < cycles[first] else "not shorter"
        for title, own in cycles.items()
        if title != first
    }
    least = min(cycles.values())
    return {"shortest": ", ".join(title for title, own in cycles.items() if own == least), **answers}


def holds() -> str:
    """Whether these conclusions hold, as a paragraph; the cost of a switch is what the settings vary."""
    return held_paragraph([chip(SETTINGS[0])], conclusions, ["cores.switch_cycles"])


def results(small: bool = False) -> dict[Setting, Run]:
    """All settings; `small`: the first two."""
    return {setting: simulated(setting) for setting in SETTINGS[: 2 if small else None]}


def gaps(timeline: Timeline, job: int) -> list[tuple[int, int]]:
    """Give (start, end) of each idle slot of a job: a stretch in which the job waits for its own results."""
    kinds = [row.kind == "thread" for row in timeline.rows]
    waits = np.array(kinds)[timeline.row] & (timeline.job == job) & (timeline.state == STATES.index("hazard"))
    return list(zip(timeline.start[waits].tolist(), timeline.end[waits].tolist(), strict=True))


def filled(timeline: Timeline, job: int) -> list[set[str]]:
    """Give, for each idle slot of a job, the other jobs whose tiles the array took in that slot."""
    rows = [row.kind == "array" for row in timeline.rows]
    busy = np.array(rows)[timeline.row] & (timeline.state == STATES.index("busy"))
    fillings = []
    for start, end in gaps(timeline, job):
        inside = busy & (timeline.start < end) & (timeline.end > start)
        fillings.append({timeline.jobs[other] for other in timeline.job[inside].tolist() if other != job})
    return fillings


def picture(timeline: Timeline, width: int = 96) -> str:
    """Draw one line a thread: a letter for a job's tiles, `.` for waiting for its results, `-` for waiting for its
    turn."""
    marks = {"hazard": ".", "ready": "-", "drain": "~"}
    lines = []
    for number, row in enumerate(timeline.rows):
        if row.kind != "thread":
            continue
        cells = [" "] * width
        for span in np.flatnonzero(timeline.row == number):
            state = STATES[timeline.state[span]]
            mark = timeline.jobs[timeline.job[span]][-1].upper() if state == "busy" else marks.get(state, "?")
            scale = width / timeline.makespan_cycles
            first, last = int(timeline.start[span] * scale), int(timeline.end[span] * scale)
            cells[first : max(last, first + 1)] = mark * (max(last, first + 1) - first)
        lines.append(f"{row.name:>15} |{''.join(cells[:width])}|")
    return "\n".join(lines)


def _row(title: str, report: Report) -> str:
    cycles = report.cores[0].cycles
    finish = " / ".join(str(job.finish) for job in report.jobs)
    shares = f"{cycles['busy']} | {cycles['switch']} | {cycles['hazard']} | {cycles['drain']}"
    return f"| {title} | {report.makespan_cycles} | {shares} | {100 * report.utilization:.1f} | {finish} |"


def summary(runs: dict[Setting, Run]) -> str:
    """Give table, idle slots and schedules as Markdown."""
    lines = [
        "# Three LSTMs of 2, 3 and 2 steps",
        "",
        "LSTM 256, input 256, on 65536 multipliers (ep 32, vp 2048); cycles.",
        "",
    ]
    lines += ["| setting | makespan | busy | switch | hazard | drain | utilization % | finish a / b / c |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    lines += [_row(setting.title, each.report) for setting, each in runs.items()]
    for setting, each in runs.items():
        slots = [filled(each.timeline, job) for job in range(3)]
        lines += ["", f"## {setting.title}", "", "```", picture(each.timeline), "```", ""]
        counts = ", ".join(str(len(job)) for job in slots)
        used = sum(bool(slot) for job in slots for slot in job)
        lines.append(f"Idle slots of a, b, c: {counts}; {used} of {sum(map(len, slots))} hold tiles of another LSTM.")
    lines += [
        "",
        "A letter: tiles of that LSTM; `.` it waits for its own h; `-` for its turn; `~` for its last results.",
        "",
    ]
    return "\n".join(lines)


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(results(small)) + ("" if small else holds())


if __name__ == "__main__":
    from experiments.run import main

    main("concurrent_lstms")
