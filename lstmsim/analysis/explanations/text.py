"""An explanation in the forms that people and scripts read: text for the terminal, JSON.

One sentence for each word that the tables use.

What changes would have made of a run, as text: what helps most, then tables of single changes and of pairs.

The slowest requests in the forms that people and scripts read: text for the terminal, JSON.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from lstmsim.analysis.explanations.answer import advice, answer, reasons, slowest_answer, who
from lstmsim.analysis.explanations.explanation import Explanation, Window
from lstmsim.analysis.explanations.shares import Leg, Share, Step, leg_words
from lstmsim.analysis.explanations.slowest import Slowest
from lstmsim.analysis.explanations.what_if import Alternative, WhatIf
from lstmsim.analysis.stall_words import NAMED, PE_NAMES
from lstmsim.base.wording import counted
from lstmsim.model.figures import Words
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.report.figures_text import percent, short_name
from lstmsim.report.results import Forms
from lstmsim.report.tables import table

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
    """The words of the glossary that occur in a text (also with a plural s), in the order of the glossary.

    own: words of a machine, whose sentences replace the usual ones or are added.

    >>> list(words_in("The makespan has 3 steps; H 4. A tops."))
    ['makespan', 'step']
    >>> words_in("a makespan of the ALU", {"alu": Words(glossary="computes", behind="critical path")})["alu"]
    'computes'
    """
    words = {}
    for word, sentence in _with(own).items():
        flags = 0 if word.isupper() or len(word) == 1 else re.IGNORECASE
        # decode_mvu holds mvu, tail_width holds tail
        if re.search(rf"(?<![a-zA-Z0-9])(?:{re.escape(word)})s?(?![a-zA-Z0-9])", text, flags):
            words[word] = sentence
    return words


def _with(own: Mapping[str, Words]) -> dict[str, str]:
    """The glossary of a machine: each word that it adds stands behind the word that it names, or at the end."""
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


#: Pairs in the text: so many that save most cycles, and so many that use the multipliers best.
_MOST_PAIRS = 3


def what_if_lines(tried: WhatIf, utilization: float, advice: list[str]) -> list[str]:
    """The section as lines; no lines if nothing was tried.

    utilization: of the run without a change. advice: sentences that stand first.
    """
    known = [each for each in tried.alternatives if each.cycles is not None]
    refused = [each for each in tried.alternatives if each.cycles is None]
    lines = []
    if known:
        rows = [["change", "", "cycles", "saved", "", "utilization"]]
        rows.append(["as it is", "", f"{tried.base_cycles:,}", "", "", percent(utilization, 1)])
        rows += [_row(each, tried.base_cycles) for each in known]
        lines += table(rows, (0, 1))
    for each in known:
        if each.work != 1 and each.cycles is not None:
            per = each.cycles / each.work
            lines.append(filled(f"{each.name}: {each.work:.3g} times the work, {per:,.0f} cycles for what the run did"))
    lines += [filled(f"not possible: {each.name} ({each.detail}): {each.refused}") for each in refused]
    if tried.left_out:
        lines.append(filled(f"not tried, because the run is long: {', '.join(tried.left_out)}"))
    if not lines:
        return []
    count = counted(len(known), "change") + " alone"
    if tried.pairs:
        count += f" and {counted(len(tried.pairs), 'pair')} of them"
    return [
        f"WHAT WOULD SHORTEN IT: {count}, each simulated",
        *(filled(each, "") for each in advice),
        *lines,
        *_pairs(tried, utilization),
    ]


def _row(each: Alternative, base: int) -> list[str]:
    saved = f"{each.saved_cycles:,}" if each.saved_cycles else "no effect"
    saved_share = 100 * each.saved_cycles / base if base else 0.0
    share = f"{saved_share:.{1 if abs(saved_share) >= 0.05 else 2}f} %" if each.saved_cycles else ""
    return [each.name, each.detail, f"{each.cycles:,}", saved, share, percent(each.utilization, 1)]


def _pairs(tried: WhatIf, utilization: float) -> list[str]:
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
    shown = [each for each in tried.pairs if each in chosen]
    lines = [""] if tried.pairs else []
    if shown:
        rows = [["pair that does more than each change alone", "cycles", "saved", "", "utilization"]]
        for each in shown:
            name, _, *cells = _row(each, tried.base_cycles)
            rows.append([name, *cells])
        lines += table(rows, (0,))
    elif tried.pairs:
        lines.append("no pair that was simulated does more than each of its changes alone")
    if tried.pairs_left_out is None:
        lines.append("pairs of changes were not tried, because the run is long")
    elif tried.pairs_left_out:
        count = len(tried.pairs)
        told = (
            f"{count:,} of {count + tried.pairs_left_out:,} pairs of which a change helps alone were simulated, the "
            "most promising first"
        )
        lines.append(filled(told))
    return lines


def filled(text: str, indent: str = "  ") -> str:
    """A sentence in lines of at most 100 columns; a percent sign stays with its number.

    text: the sentence. indent: what lines but the first begin with.
    """
    return textwrap.fill(text.replace(" %", "\xa0%"), _WIDTH, subsequent_indent=indent).replace("\xa0", " ")


_LISTED = 5
_LISTED_NAME = 20


def slowest_tables(slow: Slowest) -> list[str]:
    """Two tables as lines: the time of the slowest requests beside the time of all, and some slow requests in full."""
    rows = [["cycles of a request, on average", "slowest", "", "all", "", ""]]
    whole, mean = slow.latency.slowest, slow.latency.mean
    for each in slow.shares:
        shares = [f"{each.slowest:,.0f}", percent(each.slowest, whole), f"{each.all:,.0f}", percent(each.all, mean)]
        rows.append([each.name, *shares, slow.described(each.name)[0]])
    rows.append(["latency", f"{whole:,.0f}", "", f"{mean:,.0f}", "", "the sum"])
    lines = table(rows, left=(0, 5))
    rows = [["job", "arrival", "latency", "most of it"]]
    for one in slow.listed[:_LISTED]:
        name = max(one.cycles, key=lambda each: one.cycles[each], default=slow.unit)
        most = f"{name} {percent(one.cycles.get(name, 0), one.latency_cycles)}"
        rows.append([short_name(one.job, _LISTED_NAME), f"{one.arrival:,}", f"{one.latency_cycles:,}", most])
    return [*lines, "", *table(rows, left=(0, 3))]


def latencies_what_if(slow: Slowest, what_if: WhatIf) -> list[str]:
    """A table as lines: the latency of all requests and of the slowest with each change; no lines if none was tried."""
    known = [each for each in what_if.alternatives if each.latency is not None]
    if not known:
        return []
    rows = [["change", "", "mean latency", "of the slowest", "less"]]
    rows.append(["as it is", "", f"{slow.latency.mean:,.0f}", f"{slow.latency.slowest:,.0f}", ""])
    for each in sorted(known, key=lambda one: one.latency.slowest if one.latency else 0.0):
        assert each.latency is not None
        less = 100 * (slow.latency.slowest - each.latency.slowest) / slow.latency.slowest
        shown = f"{less:.1f} %" if abs(less) >= 0.05 else "no effect" if not less else "<0.1 %"
        rows.append([each.name, each.detail, f"{each.latency.mean:,.0f}", f"{each.latency.slowest:,.0f}", shown])
    title = "WHAT WOULD HELP THE SLOWEST: the same requests, one change at a time, each simulated; cycles"
    return [title, *table(rows, left=(0, 1))]


def slowest_json(slow: Slowest, what_if: WhatIf) -> dict[str, Any]:
    """The slowest requests as plain data. Times are in cycles, shares go from 0 to 1."""
    whole, mean = slow.latency.slowest, slow.latency.mean
    return {
        "requests": slow.requests,
        "slowest": slow.count,
        "from_cycles": slow.from_cycles,
        "turned_away": slow.turned_away,
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
        "listed": [asdict(each) for each in slow.listed],
        "arriving": slow.way,
        "split": slow.split,
    }


def heading(slow: Slowest) -> str:
    """The title of the section on the slowest requests."""
    return f"WHAT HELD THE SLOWEST UP: {who(slow)}"


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
