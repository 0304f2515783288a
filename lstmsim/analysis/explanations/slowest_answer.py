"""What held the slowest requests up, in a few sentences; the first one answers the question."""

from __future__ import annotations

from lstmsim.analysis.explanations.slowest import LatencyShare, Slowest
from lstmsim.analysis.explanations.what_if import WhatIf

__all__ = ["slowest_answer", "who"]

#: A share is named if it is at least this large. At most so many shares are named; the largest one always is.
_NAMED_FROM, _MOST_NAMED = 0.05, 3


def who(slow: Slowest) -> str:
    """The slowest requests, as the subject of a sentence: `the slowest 1 % (3 of 300 requests)`."""
    if slow.count == 1:
        return f"the slowest of {slow.requests:,} requests"
    share = 100 * slow.count / slow.requests
    return f"the slowest {share:.2g} % ({slow.count:,} of {slow.requests:,} requests)"


def slowest_answer(slow: Slowest, what_if: WhatIf) -> list[str]:
    """Answer in sentences: where the time of the slowest requests went, why they are slower, what would help them.

    slow: the slowest requests of a run.
    what_if: the changes that were tried.
    """
    sentences = [_spent(slow), _longer(slow), *_help(slow, what_if)]
    if slow.requests < 100:
        sentences.append(f"{slow.requests:,} requests are few: with another seed other requests may be the slowest.")
    if slow.turned_away:
        sentences.append(f"{slow.turned_away:,} more requests were turned away, and are not counted here.")
    return sentences


def _share(part: float, whole: float) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share in (0, 100) or 1 <= share < 99.5 else f"{share:.1f} %"


def _listed(shares: list[tuple[str, str]], slow: Slowest) -> str:
    texts = [f"{share} {slow.described(name)[1]}" for name, share in shares]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _spent(slow: Slowest) -> str:
    subject, whole = who(slow), slow.latency.slowest
    cycles = f"{slow.from_cycles:,} cycles" + (" or more" if slow.count > 1 else "")
    named = [each for each in slow.shares if each.slowest >= _NAMED_FROM * whole][:_MOST_NAMED] or slow.shares[:1]
    texts = _listed([(each.name, _share(each.slowest, whole)) for each in named], slow)
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
            return ["Nothing of what was tried shortens the slowest."] if tried else []
        return [f"{beside}{'; none of the rest shortens the slowest' if len(tried) > others else ''}."]
    saved = slow.latency.slowest - best.latency.slowest
    change = f"{best.name} ({best.detail})" if best.detail else best.name
    return [
        f"Of single changes tried with the same requests, this shortens the slowest most: {change}, "
        f"from {slow.latency.slowest:,.0f} cycles on average to {best.latency.slowest:,.0f} "
        f"({_share(saved, slow.latency.slowest)} less).",
        *([f"Of pairs: {pair.name}, to {pair.latency.slowest:,.0f}."] if pair and pair.latency else []),
        *([f"{beside}."] if others else []),
    ]
