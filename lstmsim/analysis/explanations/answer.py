"""Explanations in a few sentences, of a run and of its slowest requests; the first sentence answers the question."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.analysis.explanations.explanation import Explanation, Leg, leg_words
from lstmsim.analysis.explanations.slowest import LatencyShare, Slowest
from lstmsim.analysis.explanations.what_if import WORTH_FROM, Alternative, WhatIf
from lstmsim.model.figures import Words

#: A share that is shown as 100.0 %.
_WHOLE = 0.9995
_NO_FREE = f"Without more multipliers no change of a known price saves {100 * WORTH_FROM:g} % or more."
_USEFUL = "While the {array} issues, {useful} of its multipliers do useful work; the others are padding or unmapped"


def answer(explanation: Explanation) -> list[str]:
    """Answer in sentences: what fixed the makespan, what the main unit did besides, what would shorten the run most."""
    return [*reasons(explanation), *advice(explanation)]


def reasons(explanation: Explanation) -> list[str]:
    """What fixed the makespan, and what the main unit did besides."""
    if not explanation.makespan_cycles:
        return ["Nothing ran."]
    sentences = [_main(explanation)]
    beside = _beside(explanation)
    if beside:
        sentences.append(beside)
    if explanation.array_useful < _WHOLE:
        useful = f"{100 * explanation.array_useful:.1f} %"
        own = explanation.words.get("padding", Words()).useful or _USEFUL
        sentences.append(own.format(array=explanation.array, useful=useful) + ".")
    if explanation.handovers:
        times = "once" if explanation.handovers == 1 else f"{explanation.handovers:,} times"
        sentences.append(f"The path waits {times} for a job to end, so that the next one gets its thread.")
    return sentences


def advice(explanation: Explanation) -> list[str]:
    """What would shorten the run most; nothing where it waits for its requests: there the latencies say what helps."""
    groups = _groups(explanation)
    late = max(groups, key=lambda each: groups[each]) == "arrival"
    if not explanation.makespan_cycles or (late and explanation.slowest is not None):
        return []
    return _advice(explanation)


def _groups(explanation: Explanation) -> dict[str, int]:
    """Cycles of the path in groups: issues of the array, latency of pipelines, and each other name by itself."""
    groups = {"array": 0, "latency": 0}
    for each in explanation.shares:
        if each.array and each.kind in ("busy", "turn"):
            groups["array"] += each.cycles
        elif each.kind == "latency":
            groups["latency"] += each.cycles
        else:
            key = each.unit if each.kind in ("busy", "turn") else each.kind
            groups[key] = groups.get(key, 0) + each.cycles
    return groups


def _share(part: int, explanation: Explanation) -> str:
    share = 100 * part / explanation.makespan_cycles
    # 99.6 % is not 100 %, 0.4 % is not 0 %
    return f"{share:.0f} %" if 1 <= share < 99 or part in (0, explanation.makespan_cycles) else f"{share:.1f} %"


def _main(explanation: Explanation) -> str:
    groups = _groups(explanation)
    name = max(groups, key=lambda each: groups[each])
    if name == "arrival":
        return _late(groups[name], explanation)
    cycles, total = groups[name], explanation.makespan_cycles
    if name == "latency" and explanation.legs:
        leg = max(explanation.legs, key=_latency)
        if _latency(leg) * 2 > cycles:
            text = f"{_share(leg.cycles, explanation)} of the makespan ({leg.cycles:,} of {total:,} cycles)"
            return f"{text} is the way {leg_words(leg.name, explanation.words, explanation.array).way}: {_each(leg)}."
    start = f"{_share(cycles, explanation)} of the makespan ({cycles:,} of {total:,} cycles) is"
    texts = {
        "array": f"{start} work of the {explanation.array}: the critical path goes from issue to issue"
        f"{_turns(explanation)}.",
        "latency": f"{start} latency of pipelines: results are on their way, and the operations that need them wait.",
        "fetch": f"{start} the sending of instructions: every instruction waits for the one before it, however fast "
        f"the {explanation.array} is.",
        "switch": f"{start} thread switches.",
        "behind": f"{start} "
        f"{explanation.words.get('behind', Words()).spent or 'waiting for the release of tasks that follow others'}.",
        "company": f"{start} waiting for company: requests are kept until their pool is full or the first has waited "
        "as long as it may (max_wait_cycles).",
        "input": f"{start} over before the input frame arrives on which the last result depends: frames come more "
        "slowly than the chip could take them.",
    }
    return texts.get(
        name,
        f"{start} work of the {name}: the critical path goes through this unit most, not through the "
        f"{explanation.array}.",
    )


def _late(arrival: int, explanation: Explanation) -> str:
    """The sentence for a run that mostly waited for its last job: its makespan says nothing about the chip."""
    start = (
        f"{_share(arrival, explanation)} of the makespan is over before the job arrives on which the last result "
        "depends"
    )
    rest = explanation.makespan_cycles - arrival
    text = f"{start}, at cycle {arrival:,}: nothing on the chip shortens that"
    groups = {name: cycles for name, cycles in _groups(explanation).items() if name != "arrival"}
    name = max(groups, key=lambda each: groups[each])
    what = {"array": f"work of the {explanation.array}", "latency": "latency of pipelines"}
    what |= {
        "switch": "thread switches",
        "input": "waits for frames",
        "behind": "waits for the release of tasks that follow others",
        "company": "waits for company",
    }
    most = f"most of them ({groups[name]:,}) are {what.get(name, f'work of the {name}')}"
    return f"{text}. Only the {rest:,} cycles after it count; {most}."


def _latency(leg: Leg) -> int:
    return sum(cycles for name, cycles in leg.parts if name.endswith("pipeline"))


def _each(leg: Leg) -> str:
    """`19 times 54 cycles (tail pipeline 35, MVM pipeline 18, tail busy 1)`."""

    def mean(cycles: int) -> str:
        return f"{cycles / leg.times:,.1f}".removesuffix(".0")

    parts = ", ".join(f"{name} {mean(cycles)}" for name, cycles in leg.parts)
    about = "" if leg.cycles % leg.times == 0 else "about "
    times = "once" if leg.times == 1 else f"{leg.times:,} times"
    return f"{times} {about}{mean(leg.cycles)} cycles ({parts})"


def _turns(explanation: Explanation) -> str:
    turns = sum(each.cycles for each in explanation.shares if each.array and each.kind == "turn")
    return f"; {_share(turns, explanation)} of the makespan are turns of other threads" if turns else ""


def _beside(explanation: Explanation) -> str:
    """The work of the array that is not on the path. Only for one core, because a path runs on one core at a time."""
    on_path = sum(each.cycles for each in explanation.shares if each.array and each.kind in ("busy", "turn"))
    if explanation.cores != 1 or explanation.array_cycles == on_path:
        return ""
    if explanation.instances > 1:
        share = 100 * explanation.array_cycles / (explanation.makespan_cycles * explanation.instances)
        return (
            f"The {explanation.instances} {explanation.units} issue in {explanation.array_cycles:,} cycles together "
            f"({share:.1f} % of the cycles of all), of which {on_path:,} are on this path; the others run in "
            "parallel to it."
        )
    return (
        f"The {explanation.array} issues in {explanation.array_cycles:,} cycles "
        f"({_share(explanation.array_cycles, explanation)}), of which "
        f"{on_path:,} are on this path; in the others the path waits."
    )


def _advice(explanation: Explanation) -> list[str]:
    """Which change and which pair shorten the run most, and which ones use the multipliers best if these are others."""
    tried = [each for each in explanation.what_if.alternatives if each.cycles is not None]
    best, worth = explanation.what_if.best, explanation.what_if.worth_most
    more = worth is not None and worth.price is not None and worth.price.multipliers > 0
    sentences = [_NO_FREE] if more else []
    if best is None:
        sentences += ["No single change that was tried shortens it." if tried else "No change was tried."]
    elif worth is best:
        text = "Of single changes, this is worth most for its price, and shortens it most"
        sentences.append(f"{text}: {_change(best)}, {_to(explanation, best)}{_price(best)}.")
    else:
        sentences += [_worth(explanation, worth)] if best.price is not None else []
        text = f"Of single changes, this shortens it most: {_change(best)}, {_to(explanation, best)}"
        sentences.append(f"{text}{_price(best)}.")
    pair = explanation.what_if.best_pair
    if pair is not None:
        sentences.append(f"Of pairs, this shortens it most: {_change(pair)}, {_to(explanation, pair)}{_price(pair)}.")
    fullest, fuller = _fullest(tried), _fullest(explanation.what_if.pairs)
    useful = explanation.utilization
    if fullest is not None and fullest is not best and fullest.utilization > useful:
        then = f"{100 * useful:.1f} % to {100 * fullest.utilization:.1f} %"
        sentences.append(
            f"Utilization gains most by: {_change(fullest)}, from {then}, at {fullest.cycles:,} cycles{_work(fullest)}"
            f"{_price(fullest)}."
        )
    alone = max(useful, 0.0 if fullest is None else fullest.utilization)
    if fuller is not None and fuller is not pair and fuller.utilization > alone:
        then = f"{100 * useful:.1f} % to {100 * fuller.utilization:.1f} %"
        sentences.append(
            f"Of pairs, utilization gains most by: {_change(fuller)}, from {then}, at {fuller.cycles:,} "
            f"cycles{_work(fuller)}{_price(fuller)}."
        )
    return sentences


def _worth(explanation: Explanation, worth: Alternative | None) -> str:
    """What saves most for its price."""
    if worth is None:
        return f"No change of a known price that fits saves {100 * WORTH_FROM:g} % or more."
    return f"Worth most for its price: {_change(worth)}, {_to(explanation, worth)}{_price(worth)}."


def _price(each: Alternative) -> str:
    return "" if each.price is None else f"; price: {each.price.text}"


def _fullest(tried: Sequence[Alternative]) -> Alternative | None:
    return max(tried, key=lambda each: each.utilization, default=None)


def _work(each: Alternative) -> str:
    return "" if each.work == 1 else f" for {each.work:.3g} times the work"


def _change(each: Alternative) -> str:
    return f"{each.name} ({each.detail})" if each.detail else each.name


def _to(explanation: Explanation, best: Alternative) -> str:
    return (
        f"to {best.cycles:,} cycles ({100 * best.saved_cycles / explanation.makespan_cycles:.1f} % less; utilization "
        f"{100 * best.utilization:.1f} %)"
    )


#: A share is named if it is at least this large. At most so many shares are named; the largest one always is.
_NAMED_FROM, _MOST_NAMED = 0.05, 3


def who(slow: Slowest) -> str:
    """The slowest requests, as the subject of a sentence: `the slowest 1 % (3 of 300 requests)`."""
    if slow.count == 1:
        return f"the slowest of {slow.requests:,} requests"
    share = 100 * slow.count / slow.requests
    return f"the slowest {share:.2g} % ({slow.count:,} of {slow.requests:,} requests)"


def slowest_answer(slow: Slowest, what_if: WhatIf) -> list[str]:
    """Answer in sentences: where the time of the slowest requests went, why they are slower, what would help them."""
    sentences = [_spent(slow), _longer(slow), *_help(slow, what_if)]
    if slow.requests < 100:
        sentences.append(f"{slow.requests:,} requests are few: with another seed other requests may be the slowest.")
    if slow.rejected:
        sentences.append(f"{slow.rejected:,} more requests were rejected, and are not counted here.")
    return sentences


def _share_slowest_answer(part: float, whole: float) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share in (0, 100) or 1 <= share < 99.5 else f"{share:.1f} %"


def _listed(shares: list[tuple[str, str]], slow: Slowest) -> str:
    texts = [f"{share} {slow.described(name)[1]}" for name, share in shares]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _spent(slow: Slowest) -> str:
    subject, whole = who(slow), slow.latency.slowest
    cycles = f"{slow.from_cycles:,} cycles" + (" or more" if slow.count > 1 else "")
    named = [each for each in slow.shares if each.slowest >= _NAMED_FROM * whole][:_MOST_NAMED] or slow.shares[:1]
    texts = _listed([(each.name, _share_slowest_answer(each.slowest, whole)) for each in named], slow)
    first, rest = texts.split(" %", 1)
    whose = "its" if slow.count == 1 else "their"
    return f"{subject[0].upper()}{subject[1:]}, with {cycles}, spent {first} % of {whose} time{rest}."


def _longer(slow: Slowest) -> str:
    """How much longer the slowest requests took than the mean request, and what they spent the difference on."""
    more = slow.latency.slowest - slow.latency.mean
    if more <= 0:
        return "All requests took equally long."
    mean = f"the mean request ({slow.latency.mean:,.0f} cycles)"
    excess = sorted(slow.shares, key=lambda each: _excess(each), reverse=True)
    named = [each for each in excess if _excess(each) >= _NAMED_FROM * more][:_MOST_NAMED]
    parts = ", ".join(f"{each.name} {_excess(each):+,.0f}" for each in named)
    they = "It" if slow.count == 1 else "They"
    return f"{they} took {more:,.0f} cycles longer than {mean}: {parts}."


def _excess(each: LatencyShare) -> float:
    return each.slowest - each.all


def _help(slow: Slowest, what_if: WhatIf) -> list[str]:
    best, pair = what_if.best_for_slowest, what_if.best_pair_for_slowest
    tried = [each for each in what_if.alternatives if each.cycles is not None]
    others = sum(each.latency is None for each in tried)
    beside = f"{others} of {len(tried)} changes serve other requests than this run, and are not compared"
    if best is None or best.latency is None:
        if not others:
            return ["No change that was tried shortens the slowest."] if tried else []
        return [f"{beside}{'; none of the rest shortens the slowest' if len(tried) > others else ''}."]
    saved = slow.latency.slowest - best.latency.slowest
    return [
        f"Of single changes tried with the same requests, this shortens the slowest most: {_change(best)}, "
        f"from {slow.latency.slowest:,.0f} cycles on average to {best.latency.slowest:,.0f} "
        f"({_share_slowest_answer(saved, slow.latency.slowest)} less{_price(best)}).",
        *([f"Of pairs: {pair.name}, to {pair.latency.slowest:,.0f}{_price(pair)}."] if pair and pair.latency else []),
        *([f"{beside}."] if others else []),
    ]
