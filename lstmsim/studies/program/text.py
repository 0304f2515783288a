"""A program that was run, in words and as plain data."""

from __future__ import annotations

from typing import Any

from lstmsim.program.stall_reasons import CYCLE_NAMES, MACHINE_NAMES, names_of
from lstmsim.report.figures_text import short_name
from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.program.run import ProgramRun, operations_of

__all__ = ["FORMS", "program_json", "program_text"]

#: Most tasks, and most cores, in the text; the JSON has all.
_SHOWN = 20
_LONGEST_NAME = 36


def program_json(run: ProgramRun) -> dict[str, Any]:
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


def program_text(run: ProgramRun) -> str:
    """Give what is in the program, where the cycles of its cores went, and when its first tasks finished."""
    names = run.saved.names
    chip = f"{short_name(names.chip, _LONGEST_NAME)} at {names.frequency_mhz:g} MHz, engine {run.engine}"
    counts = _counts(run)
    inside = ", ".join(f"{each} {counts[each]:,}" for each in ("cores", "units", "tasks", "bodies", "operations"))
    summary = f"makespan {run.makespan_cycles:,} cycles, {counts['issues']:,} issues"
    return "\n\n".join([chip, f"PROGRAM: {inside}", _cores_text(run), _tasks_text(run), summary])


def _cores_text(run: ProgramRun) -> str:
    cycles = run.totals.cycles
    # a machine with names of its own may lack others: then only what occurs has a column
    own = cycles.sum(axis=0)[[name not in MACHINE_NAMES for name in CYCLE_NAMES]].any()
    always = names_of("work", "rest") if own else MACHINE_NAMES
    shown = [
        name for name, used in zip(CYCLE_NAMES, cycles.sum(axis=0).tolist(), strict=True) if used or name in always
    ]
    rows = [["core", "contexts", *shown]]
    contexts_of = run.saved.flat.column("cores", "contexts").tolist()
    for index, contexts in enumerate(contexts_of[:_SHOWN]):
        counts = dict(zip(CYCLE_NAMES, cycles[index].tolist(), strict=True))
        rows.append([str(index), f"{contexts:,}", *(f"{counts[name]:,}" for name in shown)])
    more = len(contexts_of) - _SHOWN
    note = [f"... and {more:,} more; --json FILE has every core"] if more > 0 else []
    return "\n".join(["CORES: where the cycles went", *table(rows), *note])


def _tasks_text(run: ProgramRun) -> str:
    tasks = _tasks(run)
    rows = [["task", "core", "thread", "arrival", "start", "finish"]]
    for task in tasks[:_SHOWN]:
        numbers = ("-" if task[key] is None else f"{task[key]:,}" for key in rows[0][1:])
        rows.append([short_name(task["name"], _LONGEST_NAME), *numbers])
    more = len(tasks) - _SHOWN
    note = [f"... and {more:,} more; --json FILE has every task"] if more > 0 else []
    return "\n".join(["TASKS: times in cycles", *table(rows, left=(0,)), *note])


FORMS = Forms(program_json, program_text, _tasks)
