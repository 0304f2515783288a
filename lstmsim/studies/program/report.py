"""A program that was run, as people and programs read it: a document, plain data, records."""

from __future__ import annotations

from typing import Any

from lstmsim.program.stall_reasons import CYCLE_NAMES, MACHINE_NAMES, names_of
from lstmsim.report.document import Document, Grid, Section, grid
from lstmsim.report.figures_text import short_name
from lstmsim.report.results import Forms
from lstmsim.studies.program.run import ProgramRun, operations_of

#: Most tasks, and most cores, in the text; the JSON has all.
_SHOWN = 20
_LONGEST_NAME = 36


def _data(run: ProgramRun) -> dict[str, Any]:
    """Give the run as plain data of schema `lstmsim/program/1`."""
    names, totals = run.saved.names, run.totals
    cores = zip(run.saved.flat.column("cores", "contexts").tolist(), totals.cycles.tolist(), strict=True)
    return {
        "schema": "lstmsim/program/1",
        "chip": names.chip,
        "frequency_mhz": names.frequency_mhz,
        "engine": run.engine,
        "counts": _counts(run),
        "makespan_cycles": run.makespan_cycles,
        "cores": [
            {
                "index": index,
                "contexts": contexts,
                "cycles": dict(zip(CYCLE_NAMES, cycles, strict=True)),
                "macs": int(totals.work[index]),
                "issues": int(totals.issues[index]),
            }
            for index, (contexts, cycles) in enumerate(cores)
        ],
        "tasks": _tasks(run),
    }


def _counts(run: ProgramRun) -> dict[str, int]:
    """What is in the program: rows of its tables, and what all tasks together run."""
    flat = run.saved.flat
    rows = {name: len(flat.table(name)) for name in ("cores", "units", "tasks", "bodies")}
    return {**rows, "operations": operations_of(flat), "issues": int(run.totals.issues.sum())}


def _tasks(run: ProgramRun) -> list[dict[str, Any]]:
    """A row for each task; one that was turned away has neither core nor finish."""
    columns = (run.totals.task(name).tolist() for name in ("core", "context", "arrived", "admitted", "finish"))
    return [
        {
            "name": name,
            "core": core if core >= 0 else None,
            "thread": context if core >= 0 else None,
            "arrival": arrived,
            "start": admitted if core >= 0 else None,
            "finish": finish if core >= 0 else None,
        }
        for name, core, context, arrived, admitted, finish in zip(run.saved.names.tasks, *columns, strict=True)
    ]


def _document(run: ProgramRun) -> Document:
    """What is in the program, where the cycles of its cores went, and when its first tasks finished."""
    names, counts = run.saved.names, _counts(run)
    chip = f"{short_name(names.chip, _LONGEST_NAME)} at {names.frequency_mhz:g} MHz, engine {run.engine}"
    inside = ", ".join(f"{each} {counts[each]:,}" for each in ("cores", "units", "tasks", "bodies", "operations"))
    heads = ["core", "thread", "arrival", "start", "finish"]
    rows = [[short_name(task["name"], _LONGEST_NAME), *(task[key] for key in heads)] for task in _tasks(run)]
    tasks = grid(["<task", *heads], rows, "TASKS: times in cycles", limit=_SHOWN, more="tasks; --json FILE has them")
    summary = f"makespan {run.makespan_cycles:,} cycles, {counts['issues']:,} issues"
    return Document.of(summary, Section.of(chip, f"PROGRAM: {inside}"), _cores(run), tasks)


def _cores(run: ProgramRun) -> Grid:
    cycles = run.totals.cycles
    used = cycles.sum(axis=0) > 0
    # a machine with names of its own may lack others: then only what occurs has a column
    special = used[[name not in MACHINE_NAMES for name in CYCLE_NAMES]].any()
    always = names_of("work", "rest") if special else MACHINE_NAMES
    shown = [at for at, name in enumerate(CYCLE_NAMES) if used[at] or name in always]
    contexts = run.saved.flat.column("cores", "contexts").tolist()
    rows = [(str(core), contexts[core], *counts) for core, counts in enumerate(cycles[:, shown].tolist())]
    heads = ["core", "contexts", *(CYCLE_NAMES[at] for at in shown)]
    return grid(heads, rows, "CORES: where the cycles went", limit=_SHOWN, more="cores; --json FILE has them")


FORMS = Forms(_data, _document, _tasks)
