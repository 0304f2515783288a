"""What held the slowest requests up, in a few sentences; the first one answers the question."""

from __future__ import annotations

from lstmsim.explanations.latency_shares import SPENT
from lstmsim.explanations.slowest import LatencyShare, Slowest
from lstmsim.explanations.what_if import WhatIf

__all__ = ["slowest_answer", "who"]

#: Shares from this on are named, at most so many of them, and the largest in any case.
_NAMED_FROM, _MOST_NAMED = 0.05, 3


def who(found: Slowest) -> str:
    """The slowest requests, as the subject of a sentence: `the slowest 1 % (3 of 300 requests)`."""
    if found.count == 1:
        return f"the slowest of {found.requests:,} requests"
    share = 100 * found.count / found.requests
    return f"the slowest {share:.2g} % ({found.count:,} of {found.requests:,} requests)"


def slowest_answer(found: Slowest, what_if: WhatIf) -> list[str]:
    """Sentences: where their time went, what makes them slower than the mean request, what would help them."""
    sentences = [_spent(found), _longer(found), *_help(found, what_if)]
    if found.requests < 100:
        sentences.append(f"{found.requests:,} requests are few: with another seed other requests may be the slowest.")
    if found.turned_away:
        sentences.append(f"{found.turned_away:,} more requests were turned away, and are not counted here.")
    return sentences


def _share(part: float, whole: float) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share in (0, 100) or 1 <= share < 99.5 else f"{share:.1f} %"


def _listed(shares: list[tuple[str, str]]) -> str:
    texts = [f"{share} {SPENT[name]}" for name, share in shares]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _spent(found: Slowest) -> str:
    subject, whole = who(found), found.latency.slowest
    cycles = f"{found.from_cycles:,} cycles" + (" or more" if found.count > 1 else "")
    named = [each for each in found.shares if each.slowest >= _NAMED_FROM * whole][:_MOST_NAMED] or found.shares[:1]
    texts = _listed([(each.name, _share(each.slowest, whole)) for each in named])
    first, rest = texts.split(" %", 1)
    whose = "its" if found.count == 1 else "their"
    return f"{subject[0].upper()}{subject[1:]}, with {cycles}, spent {first} % of {whose} time{rest}."


def _longer(found: Slowest) -> str:
    """How much longer than the mean request, and on what."""
    more = found.latency.slowest - found.latency.mean
    if more <= 0:
        return "All requests took equally long."
    mean = f"the mean request ({found.latency.mean:,.0f} cycles)"
    excess = sorted(found.shares, key=lambda each: _excess(each), reverse=True)
    named = [each for each in excess if _excess(each) >= _NAMED_FROM * more][:_MOST_NAMED]
    parts = ", ".join(f"{each.name} {_excess(each):+,.0f}" for each in named)
    they = "It" if found.count == 1 else "They"
    return f"{they} took {more:,.0f} cycles longer than {mean}: {parts}."


def _excess(each: LatencyShare) -> float:
    return each.slowest - each.all


def _help(found: Slowest, what_if: WhatIf) -> list[str]:
    best = what_if.best_for_slowest
    tried = [each for each in what_if.alternatives if each.cycles is not None]
    others = sum(each.latency is None for each in tried)
    beside = f"{others} of {len(tried)} changes serve other requests than this run, and are not compared"
    if best is None or best.latency is None:
        if not others:
            return ["Nothing of what was tried shortens the slowest."] if tried else []
        return [f"{beside}{'; none of the rest shortens the slowest' if len(tried) > others else ''}."]
    saved = found.latency.slowest - best.latency.slowest
    change = f"{best.name} ({best.detail})" if best.detail else best.name
    return [
        f"Of what was tried with the same requests, this shortens the slowest most: {change}, "
        f"from {found.latency.slowest:,.0f} cycles on average to {best.latency.slowest:,.0f} "
        f"({_share(saved, found.latency.slowest)} less).",
        *([f"{beside}."] if others else []),
    ]
