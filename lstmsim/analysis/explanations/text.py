"""An explanation in the forms that people and scripts read: text for the terminal, JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from lstmsim.analysis.cycle_names import NAMED
from lstmsim.analysis.explanations.answer import advice, answer, reasons
from lstmsim.analysis.explanations.explanation import Explanation, Window
from lstmsim.analysis.explanations.glossary import words_in
from lstmsim.analysis.explanations.shares import Leg, Share, Step, leg_words
from lstmsim.analysis.explanations.slowest_answer import slowest_answer
from lstmsim.analysis.explanations.slowest_text import heading, latencies_what_if, slowest_json, slowest_tables
from lstmsim.analysis.explanations.what_if_text import filled, what_if_lines
from lstmsim.model.figures import Words
from lstmsim.report.figures_text import percent, short_name
from lstmsim.report.results import Forms
from lstmsim.report.tables import table

__all__ = ["FORMS", "SCHEMA", "explain_json", "explain_text", "glossary"]

SCHEMA = "lstmsim/explanation/1"

_WIDTH = 100
_BAR = 20
_LONGEST_NAME = 16


def glossary(text: str, own: Mapping[str, Words] = MappingProxyType({})) -> str:
    """The words of a text that the glossary knows, one sentence for each word; empty if it knows none.

    own: words of a machine, which replace the usual ones or are added.

    >>> print(glossary("utilization 76.9 %"))
    GLOSSARY
    utilization  useful multiply-accumulates / (peak x makespan): the share of what the multipliers
                 could have done
    """
    words = words_in(text, own)
    if not words:
        return ""
    width = max(map(len, words)) + 2
    lines = [
        textwrap.fill(sentence, _WIDTH, initial_indent=word.ljust(width), subsequent_indent=" " * width)
        for word, sentence in words.items()
    ]
    return "\n".join(["GLOSSARY", *lines])


def explain_text(explanation: Explanation) -> str:
    """The explanation for the terminal, at most 100 columns wide, without a final newline.

    It says why the run is not 100 % useful, then what would help, then where both are read off.
    """
    parts = [] if explanation.window is None else [filled(_window(explanation, explanation.window), "")]
    useful = f"{100 * explanation.utilization:.1f} %"
    title = f"WHY NOT 100 %: utilization is {useful}"
    parts.append("\n".join([title, *(filled(each, "") for each in reasons(explanation))]))
    parts.append("\n".join(what_if_lines(explanation.what_if, explanation.utilization, advice(explanation))))
    parts += [*_slowest(explanation), _shares(explanation), _legs(explanation), _heart(explanation)]
    return "\n\n".join(part for part in parts if part)


def _window(explanation: Explanation, window: Window) -> str:
    """Which part of a run is explained, and how its cycles compare with those of the whole."""
    steps = "time step" if window.steps == 1 else f"{window.steps:,} time steps"
    cold = ", so nothing was used before" if window.steps == 1 else ""
    counts = (explanation.makespan_cycles, window.steps), (window.whole_cycles, window.whole_steps)
    each = [f" ({cycles / number:,.0f} a step)" if window.alike else "" for cycles, number in counts]
    return (
        f"A WINDOW IS EXPLAINED, not the whole run: the first {steps} of at most {window.whole_steps:,} of each job, "
        f"simulated alone{cold}. All figures below are those of the window: {explanation.makespan_cycles:,} "
        f"cycles{each[0]}; the whole run takes {window.whole_cycles:,}{each[1]}. A trace of its "
        f"{window.whole_operations:,} operations is too long to keep, at most {window.most_operations:,} are recorded."
    )


def _slowest(explanation: Explanation) -> list[str]:
    """What held the slowest requests up, where requests come over time."""
    if explanation.slowest is None:
        return []
    sentences = [filled(each, "") for each in slowest_answer(explanation.slowest, explanation.what_if)]
    parts = ["\n".join([heading(explanation.slowest), *sentences]), "\n".join(slowest_tables(explanation.slowest))]
    return [*parts, "\n".join(latencies_what_if(explanation.slowest, explanation.what_if))]


def _shares(explanation: Explanation) -> str:
    total = explanation.makespan_cycles
    rows = []
    for each in explanation.shares:
        bar = "#" * round(_BAR * each.cycles / total)
        rows.append(
            [each.name, f"{each.cycles:,}", percent(each.cycles, total), bar, _meaning(each, explanation.words)]
        )
    title = f"THE CRITICAL PATH: what its {total:,} cycles are (they add up to the makespan)"
    causes = ", ".join(
        f"{_held_by(name, explanation.words)} {percent(count, total)}" for name, count in explanation.causes.items()
    )
    note = filled(f"by what the chain waited for: {causes}")
    return "\n".join([title, *table(rows, left=(0, 3, 4)), note])


#: Names of `HELD_BY` that are no names of cycles -> what the path waited for, and what its next step waits for.
_OTHERS = {
    "order": ("the issue before on the same unit", "unit"),
    "turn": ("another thread's turn", "turn"),
    "thread": ("a free thread", "free thread"),
    "after": ("the end of the job before", "job before"),
    "behind": ("the tasks that it comes behind", "tasks before"),
    "arrival": ("the job's arrival", "job"),
    "result": ("the last results", "(end)"),
}


def _held_by(name: str, own: Mapping[str, Words]) -> str:
    usual = _OTHERS[name][0] if name in _OTHERS else NAMED[name].held_by
    return own.get(name, Words()).held_by or usual


def _next_wait(name: str, own: Mapping[str, Words]) -> str:
    usual = _OTHERS[name][1] if name in _OTHERS else NAMED[name].next_wait
    return own.get(name, Words()).next_wait or usual


def _called(leg: Leg, own: Mapping[str, Words]) -> str:
    return own.get(leg.name, Words()).called or leg.name


def _meaning(share: Share, own: Mapping[str, Words]) -> str:
    unit = share.unit
    if own.get(share.kind, Words()).share and not unit:
        return own[share.kind].share
    if share.kind == "busy":
        if share.array:
            return f"the {unit} issues"
        return "instructions are sent one by one" if unit == "fetch" else f"the {unit} is at work"
    if share.kind == "turn":
        return f"the {unit} serves another thread first"
    if share.kind == "latency":
        return "results are on their way"
    return {
        "switch": "the unit changes threads",
        "input": "the frame has not come yet",
        "arrival": "the job has not come yet",
        "behind": "tasks that come behind others have not come yet",
    }[share.kind]


def _legs(explanation: Explanation) -> str:
    if not explanation.legs:
        return ""
    rows = [["way", "times", "cycles", "share", "each", ""]]
    for leg in explanation.legs:
        each = f"{leg.cycles / leg.times:,.1f}".removesuffix(".0")
        share = percent(leg.cycles, explanation.makespan_cycles)
        meaning = leg_words(leg.name, explanation.words, explanation.array).meaning
        rows.append([_called(leg, explanation.words), f"{leg.times:,}", f"{leg.cycles:,}", share, each, meaning])
    array = explanation.array
    title = f"OFF THE {array.upper()}: where the path leaves the {array}, and how long it stays away"
    return "\n".join([title, *table(rows, (0, 5))])


def _heart(explanation: Explanation) -> str:
    if not explanation.heart:
        return ""
    rows = [["from", "to", "cycles", "what", "job", "core", "thread", "layer", "step", "next waits for"]]
    for each in explanation.heart:
        where = ["-" if value is None else str(value) for value in (each.layer, each.step)]
        times = [f"{each.start:,}", f"{each.end:,}", f"{each.end - each.start:,}"]
        job = short_name(explanation.jobs[each.task], _LONGEST_NAME)
        waits_for = _next_wait(each.held_by, explanation.words)
        rows.append([*times, each.what, job, str(each.core), str(each.thread), *where, waits_for])
    if explanation.cores == 1:
        rows = [[*row[:5], *row[6:]] for row in rows]
    title = f"AT ITS HEART: {len(explanation.heart):,} of the {explanation.path_steps:,} steps of the path"
    return "\n".join([title, *table(rows, (3, 4, len(rows[0]) - 1))])


def explain_json(explanation: Explanation) -> dict[str, Any]:
    """The explanation as plain data of schema `lstmsim/explanation/1`, ready for `json.dumps`; shares are 0 to 1.

    `path` holds the first steps of the path. `path_steps` says how many steps there are.
    """
    total = explanation.makespan_cycles

    def shared(cycles: int) -> dict[str, Any]:
        return {"cycles": cycles, "share": cycles / total if total else 0.0}

    return {
        "schema": SCHEMA,
        "scenario": explanation.scenario,
        "chip": explanation.chip,
        "window": None if explanation.window is None else asdict(explanation.window),
        "makespan_cycles": total,
        "utilization": explanation.utilization,
        "array": explanation.array,
        "array_cycles": explanation.array_cycles,
        "array_useful": explanation.array_useful,
        "answer": answer(explanation),
        "slowest": None if explanation.slowest is None else slowest_json(explanation.slowest, explanation.what_if),
        "shares": [
            {"name": each.name, "kind": each.kind, "unit": each.unit} | shared(each.cycles)
            for each in explanation.shares
        ],
        "causes": {name: shared(count) for name, count in explanation.causes.items()},
        "legs": [
            {
                "name": _called(each, explanation.words),
                "meaning": leg_words(each.name, explanation.words, explanation.unit).meaning,
                "times": each.times,
            }
            | shared(each.cycles)
            | {"parts": dict(each.parts)}
            for each in explanation.legs
        ],
        "handovers": explanation.handovers,
        "heart": [_step_json(explanation, each) for each in explanation.heart],
        "path_steps": explanation.path_steps,
        "path": [_step_json(explanation, each) for each in explanation.path],
        "what_if": {
            "base_cycles": explanation.what_if.base_cycles,
            "alternatives": [asdict(each) for each in explanation.what_if.alternatives],
            "left_out": list(explanation.what_if.left_out),
            "pairs": [asdict(each) for each in explanation.what_if.pairs],
            "pairs_left_out": explanation.what_if.pairs_left_out,
        },
        "glossary": words_in(explain_text(explanation), explanation.words),
    }


def _step_json(explanation: Explanation, step: Step) -> dict[str, Any]:
    data = asdict(step)
    del data["task"]
    return {"start": data.pop("start"), "end": data.pop("end"), "job": explanation.jobs[step.task]} | data


FORMS = Forms(explain_json, explain_text, lambda explanation: explain_json(explanation)["shares"])
