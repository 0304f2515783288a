"""Which conclusions of a result hold, whatever the values of the latencies and bandwidths that no source gives."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, inf

from lstmsim.base.records import record
from lstmsim.base.wording import counted
from lstmsim.report.document import Section, Text

#: A question, and its answer on certain chips.
Conclusions = Mapping[str, str]
#: Most flips in the text, and most questions that flip in a sentence.
_MOST_SHOWN, _MOST_NAMED = 12, 4
#: What products of fractions may be off.
_ROUNDING = 1e-9


def percents(end: float) -> list[float]:
    """Give the shares to an end in steps of 1 %, the end last."""
    sign, whole = (1 if end > 0 else -1), ceil(abs(end) * 100 - _ROUNDING)
    return [*(sign * step / 100 for step in range(1, whole)), end]


@record
class Assumption:
    """A latency or a bandwidth that no source gives.

    kind: of the machine.
    path: of the key, as in `cores.latency.add`.
    values: its values on the chips in question, each once.
    unit: of the values.
    whole: whether values are whole numbers.
    low, high: bounds of the key; None: none.
    """

    kind: str
    path: str
    values: tuple[float, ...]
    unit: str
    whole: bool
    low: float | None
    high: float | None

    def at(self, value: float, share: float) -> float:
        """Give a value moved by a share of it, to the nearest whole number (a half outwards), within the key's bounds.

        >>> each = Assumption("k", "latency", (3,), "cycles", True, 1, 9)
        >>> each.at(3, 0.5), each.at(3, -0.5), each.at(3, -0.9), each.at(3, 5), each.at(3, 0.1)
        (5, 1, 1, 9, 3)
        """
        moved = value * (1 + share)
        if self.whole:
            moved = floor(moved + 0.5 + _ROUNDING) if share > 0 else ceil(moved - 0.5 - _ROUNDING)
        return max(min(moved, inf if self.high is None else self.high), -inf if self.low is None else self.low)

    def levels(self, share: float) -> list[float]:
        """Give the shares by which it is moved step by step to the end `share`: whole values, else whole percents."""
        first = self.values[0]
        if len(self.values) == 1 and self.whole and first:
            last = int(self.at(first, share))
            steps = range(int(first) + 1, last + 1) if share > 0 else range(int(first) - 1, last - 1, -1)
            return [step / first - 1 for step in steps]
        return percents(share)

    def moves(self, share: float) -> bool:
        """Whether any of its values is another at that share: 0 is 0 of any share, and bounds may bind."""
        return any(self.at(value, share) != value for value in self.values)

    def words(self, share: float) -> str:
        """Its value at a share, with the value that it has."""
        name = self.path.removeprefix("cores.")
        if len(self.values) > 1:
            return f"{self.kind} {name} is {100 * share:+.0f} %"
        before, after = (f"{each:,g}" for each in (self.values[0], self.at(self.values[0], share)))
        return f"{self.kind} {name} is {after} {self.unit} (assumed: {before})"


@record
class Flip:
    """A conclusion that does not hold.

    question: what was asked.
    answer: the answer with the assumed values.
    other: the answer from `at` on.
    keys: paths of the keys that were moved; several: all together.
    share: how far they were moved where the answer flips first, by steps of 1 % or of a whole number; all together
        they are so much slower (negative: faster), so latencies longer and bandwidths lower.
    at: the same in words.
    """

    question: str
    answer: str
    other: str
    keys: tuple[str, ...]
    share: float
    at: str


@record
class Stability:
    """Which conclusions hold whatever the values of the latencies and bandwidths that no source gives.

    share: how far each was moved.
    tested: the assumptions that were moved.
    unmoved: paths of those that the share does not move: they are 0, at a bound, or half a cycle is more.
    conclusions: each question and its answer.
    flips: what does not hold, by key; the first value at which it flips was found by halving.
    refused: moves with which no answer could be drawn, and why.
    left_out: what was not asked again, in a sentence; empty: nothing.
    """

    share: float
    tested: tuple[Assumption, ...]
    unmoved: tuple[str, ...]
    conclusions: Conclusions
    flips: tuple[Flip, ...]
    refused: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def flipping(self) -> tuple[str, ...]:
        """The questions whose answer flips."""
        return tuple(dict.fromkeys(each.question for each in self.flips))

    @property
    def headline(self) -> str:
        """The answer in a sentence.

        >>> Stability(0.5, (), (), {"fastest": "a"}, ()).headline
        'STABILITY: 0 assumptions (latencies, bandwidths) 50 % lower and higher, singly and together; 1 conclusion, ...'
        """
        flipping, moved = len(self.flipping), counted(len(self.tested), "assumption")
        moves = f"{moved} (latencies, bandwidths) {100 * self.share:g} % lower and higher, singly and together"
        what = f"of which {flipping:,} flip{'s' * (flipping == 1)}" if flipping else "none flips"
        unsure = ", as far as it could be asked" * bool(self.refused)
        return f"STABILITY: {moves}; {counted(len(self.conclusions), 'conclusion')}, {what}{unsure}"

    @property
    def sentence(self) -> str:
        """The headline, and for each question that flips the least change that flips it, of one key if there is one."""
        first = [min((each for each in self.flips if each.question == one), key=_moved) for one in self.flipping]
        texts = [f"{each.question} ({each.answer}) is {each.other} where {each.at}" for each in first[:_MOST_NAMED]]
        more = len(first) - len(texts)
        return "; ".join([self.headline, *texts, *([f"and {more} more"] if more else [])])

    @property
    def section(self) -> Section:
        """The answer, each flip with its value, and what could not be asked."""
        lines = [
            f"{each.question}: {each.answer}, but {each.other} where {each.at}" for each in self.flips[:_MOST_SHOWN]
        ]
        more = len(self.flips) - _MOST_SHOWN
        lines += [f"... and {more:,} more flips"] if more > 0 else []
        lines += [f"not asked: {each}" for each in self.refused[:_MOST_SHOWN]]
        still = "not moved, for they are 0, at a bound, or move by less than half of 1"
        lines += [f"{still}: {', '.join(self.unmoved)}"] if self.unmoved else []
        lines += [self.left_out] if self.left_out else []
        return Section.of(Text(self.headline, hang=2), *(Text(f"* {each}", hang=4) for each in lines))


def _moved(each: Flip) -> tuple[bool, float]:
    """The order in which flips are named: one assumption alone says more than many together."""
    return len(each.keys) > 1, abs(each.share)
