"""An explanation as people and programs read it: a document with a glossary, plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from lstmsim.analysis.explanations.answer import advice, answer, reasons, slowest_answer, who
from lstmsim.analysis.explanations.explanation import Explanation, Leg, Share, Step, Window, leg_words
from lstmsim.analysis.explanations.slowest import Slowest
from lstmsim.analysis.explanations.what_if import Alternative, WhatIf
from lstmsim.analysis.stall_words import NAMED, PE_NAMES
from lstmsim.base.wording import counted
from lstmsim.model.figures import Words
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.report.document import Column, Document, Grid, Part, Section, Text, facts, grid
from lstmsim.report.figures_text import percent, short_name
from lstmsim.report.renderings import text as rendered
from lstmsim.report.results import Forms, picked

SCHEMA = "lstmsim/explanation/2"

_LONGEST_NAME, _LISTED_NAME = 16, 20
#: Slow requests in the text. Pairs in it: so many that save most cycles, and so many that use the multipliers best.
_MOST_LISTED, _MOST_PAIRS = 5, 3

#: Word -> sentence, for words that mean the same on every machine; a machine adds its own
#: (`lstmsim.model.figures.Words`). A word in capitals must occur in capitals, any other word may have small or
#: capital letters.
GLOSSARY: Mapping[str, str] = {
    "critical path": "the chain of operations and waits, each of which began when the one before it was over, that "
    "ends with the last result: only what shortens it shortens the run",
    "makespan": "the cycle at which the last job has finished",
    "utilization": "useful multiply-accumulates / (peak x makespan): the share of what the multipliers could have done",
    "TOPS": "10^12 operations a second, where a multiply-accumulate counts as two",
    "latency": "of a job: from its arrival to its last result; of a pipeline: from its input to its output",
    **{name: NAMED[name].glossary for name in (*PE_NAMES, *CYCLE_NAMES)},
    "queue": "jobs that have come and have no thread yet",
    "paused": "a job has given up its thread to a more urgent one and waits to go on",
    "thread": "a context of a core: holds what one job needs while it runs; threads take turns on the core's main unit",
    "turn": "the time in which a unit works for one thread while the others that could go on wait",
    "step": "one time step of a recurrent network: one x in, one h out",
    "h": "the output of a recurrent layer, which its next step reads",
    "arrival": "the cycle at which a job may start",
    "frame": "the x of one time step",
    "batch": "inferences of one job that run together",
    "p95": "95 % of the jobs were faster (p50, p99 likewise; interpolated between ranks)",
}


def words_in(text: str, own: Mapping[str, Words] = MappingProxyType({})) -> dict[str, str]:
    """The words of the glossary that occur in a text (also with a plural s), in the order of the glossary."""
    words = {}
    for word, sentence in _with(own).items():
        flags = 0 if word.isupper() or len(word) == 1 else re.IGNORECASE
        # decode_mvu holds mvu, tail_width holds tail
        if re.search(rf"(?<![a-zA-Z0-9])(?:{re.escape(word)})s?(?![a-zA-Z0-9])", text, flags):
            words[word] = sentence
    return words


def _with(own: Mapping[str, Words]) -> dict[str, str]:
    """The glossary of a machine: each word that it adds comes after the word that it names, or at the end."""
    others = {name for name, named in NAMED.items() if named.everyday and name not in own}
    entries = {word: sentence for word, sentence in GLOSSARY.items() if word not in others}
    for word, mine in own.items():
        if mine.glossary and (word in entries or mine.behind not in entries):
            entries[word] = mine.glossary
        elif mine.glossary:
            pairs = list(entries.items())
            at = list(entries).index(mine.behind) + 1
            entries = dict([*pairs[:at], (word, mine.glossary), *pairs[at:]])
    return entries


def glossary(text: str, own: Mapping[str, Words] = MappingProxyType({})) -> str:
    """The words of a text that the glossary knows, one sentence for each word; empty if it knows none.

    own: words of a machine, which replace the usual ones or are added.
    """
    words = words_in(text, own)
    if not words:
        return ""
    known = facts(*words.items(), width=max(map(len, words)) + 2)
    return rendered(Document.of("", Section.of(known, title="GLOSSARY")))


def document(explanation: Explanation) -> Document:
    """The explanation for people: why the run is not 100 % useful, what would help, where both are read off."""
    window, tried = explanation.window, explanation.what_if
    return Document.of(
        explanation.misfit,
        None if window is None else _window(explanation, window),
        Section.of(*reasons(explanation), title=f"WHY NOT 100 %: utilization is {100 * explanation.utilization:.1f} %"),
        *_what_if(tried, explanation.utilization, advice(explanation)),
        *([] if explanation.slowest is None else _slowest(explanation.slowest, tried)),
        _shares(explanation),
        _legs(explanation),
        _heart(explanation),
    )


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


def _what_if(tried: WhatIf, utilization: float, first: list[str]) -> Iterator[Section]:
    """What helps most, then tables of single changes and of pairs; nothing if nothing was tried."""
    known = [each for each in tried.by_worth if each.cycles is not None]
    parts: list[Part] = []
    if known:
        rows = [["as it is", "", tried.base_cycles, "", "", percent(utilization, 1)]]
        rows += [[each.name, each.detail, *_saved(each, tried.base_cycles)] for each in known]
        parts.append(grid(["<change", "<", "cycles", "saved", "", "utilization"], rows))
    notes = [
        f"{each.name}: {each.work:.3g} times the work, {each.cycles / each.work:,.0f} cycles for what the run did"
        for each in known
        if each.work != 1 and each.cycles is not None
    ]
    notes += [
        f"not possible: {each.name} ({each.detail}): {each.refused}"
        for each in tried.alternatives
        if each.cycles is None
    ]
    if tried.left_out:
        notes.append(f"not tried, because the run is long: {', '.join(tried.left_out)}")
    parts += [Text(each, hang=2) for each in notes]
    if not parts:
        return
    count = counted(len(known), "change") + " alone"
    if tried.pairs:
        count += f" and {counted(len(tried.pairs), 'pair')} of them"
    pairs = list(_pairs(tried, utilization))
    title = f"WHAT WOULD SHORTEN IT: {count}, each simulated"
    yield Section.of(*first, *parts, *([] if tried.pairs else pairs), title=title)
    if tried.pairs:
        yield Section.of(*pairs)


def _saved(each: Alternative, base: int) -> list[int | str | None]:
    """Cycles, cycles saved, their share, utilization."""
    saved = f"{each.saved_cycles:,}" if each.saved_cycles else "no effect"
    saved_share = 100 * each.saved_cycles / base if base else 0.0
    share = f"{saved_share:.{1 if abs(saved_share) >= 0.05 else 2}f} %" if each.saved_cycles else ""
    return [each.cycles, saved, share, percent(each.utilization, 1)]


def _pairs(tried: WhatIf, utilization: float) -> Iterator[Part]:
    """The pairs that do most, of those that do more than each of their changes alone, and how many were simulated."""
    alone = {each.name: each for each in tried.alternatives}

    def best(pair: Alternative, of: str, otherwise: float) -> float:
        return max(getattr(alone[name], of) if name in alone else otherwise for name in pair.pair or ())

    saving = [each for each in tried.pairs if each.saved_cycles > max(0, best(each, "saved_cycles", 0))]
    filling = [
        each for each in tried.pairs if each.utilization > max(utilization, best(each, "utilization", utilization))
    ]
    filling.sort(key=lambda each: -each.utilization)
    chosen = [*saving[:_MOST_PAIRS], *filling[:_MOST_PAIRS]]
    rows = [[each.name, *_saved(each, tried.base_cycles)] for each in tried.pairs if each in chosen]
    if rows:
        yield grid(["<pair that does more than each change alone", "cycles", "saved", "", "utilization"], rows)
    elif tried.pairs:
        yield Text("no pair that was simulated does more than each of its changes alone")
    if tried.pairs_left_out is None:
        yield Text("pairs of changes were not tried, because the run is long")
    elif tried.pairs_left_out:
        count = len(tried.pairs)
        of = f"{count:,} of {count + tried.pairs_left_out:,} pairs of which a change helps alone were simulated"
        yield Text(f"{of}, the most promising first", hang=2)


def _slowest(slow: Slowest, what_if: WhatIf) -> Iterator[Section]:
    """What held the slowest requests up, where their time went compared with all, and what would help them."""
    yield Section.of(*slowest_answer(slow, what_if), title=f"WHAT HELD THE SLOWEST UP: {who(slow)}")
    whole, mean = slow.latency.slowest, slow.latency.mean
    rows = []
    for each in slow.shares:
        shares = [f"{each.slowest:,.0f}", percent(each.slowest, whole), f"{each.all:,.0f}", percent(each.all, mean)]
        rows.append([each.name, *shares, slow.described(each.name)[0]])
    rows.append(["latency", f"{whole:,.0f}", "", f"{mean:,.0f}", "", "the sum"])
    yield Section.of(grid(["<cycles of a request, on average", "slowest", "", "all", "", "<"], rows))
    listed = []
    for one in slow.listed[:_MOST_LISTED]:
        name = max(one.cycles, key=lambda each: one.cycles[each], default=slow.unit)
        most = f"{name} {percent(one.cycles.get(name, 0), one.latency_cycles)}"
        listed.append([short_name(one.job, _LISTED_NAME), one.arrival, one.latency_cycles, most])
    yield Section.of(grid(["<job", "arrival", "latency", "<most of it"], listed))
    known = [(each, each.latency) for each in what_if.alternatives if each.latency is not None]
    if known:
        rows = [["as it is", "", f"{mean:,.0f}", f"{whole:,.0f}", ""]]
        for tried, latency in sorted(known, key=lambda one: one[1].slowest):
            less = 100 * (whole - latency.slowest) / whole
            shown = f"{less:.1f} %" if abs(less) >= 0.05 else "no effect" if not less else "<0.1 %"
            rows.append([tried.name, tried.detail, f"{latency.mean:,.0f}", f"{latency.slowest:,.0f}", shown])
        title = "WHAT WOULD HELP THE SLOWEST: the same requests, one change at a time, each simulated; cycles"
        yield Section.of(grid(["<change", "<", "mean latency", "of the slowest", "less"], rows, title))


def _shares(explanation: Explanation) -> Section:
    total, words = explanation.makespan_cycles, explanation.words
    rows = [
        (each.name, each.cycles, percent(each.cycles, total), each.cycles / total, _meaning(each, words))
        for each in explanation.shares
    ]
    title = f"THE CRITICAL PATH: what its {total:,} cycles are (they add up to the makespan)"
    causes = ", ".join(
        f"{held_words(name, words)} {percent(count, total)}" for name, count in explanation.causes.items()
    )
    columns: list[str | Column] = ["<name", "cycles", "share", Column("", left=True, bar=20), "<meaning"]
    note = Text(f"by what the path waited for: {causes}", hang=2)
    return Section.of(grid(columns, rows, headed=False), note, title=title)


#: Names of `HELD_BY` that are no names of cycles -> what the path waited for, and what its next step waits for.
_OTHERS = {
    "order": ("the issue before on the same unit", "unit"),
    "turn": ("another thread's turn", "turn"),
    "thread": ("a free thread", "free thread"),
    "after": ("the end of the job before", "job before"),
    "behind": ("the tasks that it follows", "tasks before"),
    "company": ("company in its pool", "company"),
    "arrival": ("the job's arrival", "job"),
    "result": ("the last results", "(end)"),
}


def held_words(name: str, own: Mapping[str, Words]) -> str:
    """Say what the next operation of the path waited for, one of `critical_path.HELD_BY`."""
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
        "behind": "tasks that follow others have not been released yet",
        "company": "requests are kept waiting for others to run with them",
    }[share.kind]


def _legs(explanation: Explanation) -> Grid | None:
    if not explanation.legs:
        return None
    array, words = explanation.array, explanation.words
    rows = []
    for leg in explanation.legs:
        mean = f"{leg.cycles / leg.times:,.1f}".removesuffix(".0")
        share = percent(leg.cycles, explanation.makespan_cycles)
        rows.append(
            [_called(leg, words), leg.times, leg.cycles, share, mean, leg_words(leg.name, words, array).meaning]
        )
    title = f"OFF THE {array.upper()}: where the path leaves the {array}, and how long it stays away"
    return grid(["<way", "times", "cycles", "share", "each", "<"], rows, title)


def _heart(explanation: Explanation) -> Grid | None:
    if not explanation.heart:
        return None
    rows = []
    for each in explanation.heart:
        where = ["-" if value is None else str(value) for value in (each.layer, each.step)]
        core = [str(each.core)] if explanation.cores > 1 else []
        job = short_name(explanation.jobs[each.task], _LONGEST_NAME)
        waits_for = _next_wait(each.held_by, explanation.words)
        times = [each.start, each.end, each.end - each.start]
        rows.append([*times, each.what, job, *core, str(each.thread), *where, waits_for])
    core = ["core"] if explanation.cores > 1 else []
    title = f"AT ITS HEART: {len(explanation.heart):,} of the {explanation.path_steps:,} steps of the path"
    head = ["from", "to", "cycles", "<what", "<job", *core, "thread", "layer", "step", "<next waits for"]
    return grid(head, rows, title)


def _slowest_json(slow: Slowest, what_if: WhatIf) -> dict[str, Any]:
    """The slowest requests as plain data. Times are in cycles, shares go from 0 to 1."""
    whole, mean = slow.latency.slowest, slow.latency.mean
    return {
        **picked(slow, "requests slowest=count from_cycles rejected"),
        "mean_latency_cycles": {"slowest": whole, "all": mean},
        "answer": slowest_answer(slow, what_if),
        "shares": [
            {
                "name": each.name,
                "meaning": slow.described(each.name)[0],
                "slowest": {"cycles": each.slowest, "share": each.slowest / whole if whole else 0.0},
                "all": {"cycles": each.all, "share": each.all / mean if mean else 0.0},
            }
            for each in slow.shares
        ],
        **picked(slow, "listed arriving=way split"),
    }


def explain_json(explanation: Explanation) -> dict[str, Any]:
    """The explanation as plain data of schema `lstmsim/explanation/2`, ready for `json.dumps`; shares are 0 to 1."""
    total = explanation.makespan_cycles

    def shared(cycles: int) -> dict[str, Any]:
        return {"cycles": cycles, "share": cycles / total if total else 0.0}

    words = explanation.words
    return {
        "schema": SCHEMA,
        **picked(explanation, "scenario chip window makespan_cycles utilization array array_cycles array_useful"),
        "answer": answer(explanation),
        "slowest": None if explanation.slowest is None else _slowest_json(explanation.slowest, explanation.what_if),
        "shares": [{**picked(each, "name kind unit"), **shared(each.cycles)} for each in explanation.shares],
        "causes": {name: shared(count) for name, count in explanation.causes.items()},
        **picked(explanation, "parts"),
        "legs": [
            {
                "name": _called(each, words),
                "meaning": leg_words(each.name, words, explanation.unit).meaning,
                "times": each.times,
                **shared(each.cycles),
                "parts": dict(each.parts),
            }
            for each in explanation.legs
        ],
        **picked(explanation, "requests"),
        "handovers": explanation.handovers,
        "heart": [_step_json(explanation, each) for each in explanation.heart],
        "path_steps": explanation.path_steps,
        "path": [_step_json(explanation, each) for each in explanation.path],
        "what_if": picked(explanation.what_if, "base_cycles alternatives left_out pairs pairs_left_out"),
        "glossary": words_in(explanation.to_text(), words),
    }


def _step_json(explanation: Explanation, step: Step) -> dict[str, Any]:
    job = explanation.jobs[step.task]
    return {**picked(step, "start end"), "job": job, **picked(step, "what core thread layer step held_by")}


FORMS = Forms(explain_json, document, lambda explanation: explain_json(explanation)["shares"])
