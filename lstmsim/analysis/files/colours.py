"""Colours in Perfetto: words for which Perfetto chooses the wanted colours.

Perfetto takes no colours from a trace. It hashes a slice's `correlation_id` (in its absence the name without digits)
to a hue and a lightness. This module looks for words with the right hashes: waits are pale, work is dark and has
different hues. A viewer with another hash shows other colours, but still one colour for each word.

Sources: google/perfetto (GitHub), ui/src/components/colorizer.ts and ui/src/base/hash.ts, version 52.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count

from lstmsim.analysis.timeline import STATES

__all__ = ["colour_of", "state_word", "work_word"]

#: Lightness in percent (Perfetto has 40 to 79): work has at most the first, waits have at least the second.
DARK, PALE = 58, 76
#: How many hues jobs have. Jobs with neighbouring numbers have hues that are far apart.
_HUES = 24
_STRIDE = 7
_NEAR_DEGREES = 6
#: Waits lie between blue and pink, where light colours are the least vivid.
_CALM_FROM, _CALM_DEGREES = 200, 160


def _hash(text: str, size: int) -> int:
    """Perfetto's hash of a text, below `size`."""
    value = 0x811C9DC5 & 0xFFFFFFF
    for letter in text:
        # As JavaScript does it: a product of doubles, which loses its last digits, then 32 bits with a sign.
        value = int(float(value ^ ord(letter)) * 16777619.0) & 0xFFFFFFFF
        value -= 2**32 if value >= 2**31 else 0
    return abs(value) % size


def colour_of(word: str) -> tuple[int, int]:
    """The hue in degrees and the lightness in percent (HSLuv) that Perfetto gives to a word as correlation id.

    >>> colour_of("busy")
    (116, 68)
    """
    return _hash(word, 360), _hash(f"{word}x", 40) + 40


@lru_cache(None)
def _word(stem: str, hue: int, low: int, high: int) -> str:
    """The first of `stem 0`, `stem 1` ... with a lightness from `low` to `high` and a hue near `hue`."""
    for number in count():
        word = f"{stem} {number}"
        own, lightness = colour_of(word)
        if low <= lightness <= high and abs((own - hue + 180) % 360 - 180) <= _NEAR_DEGREES:
            return word
    raise AssertionError  # `count` has no end.


def work_word(job: int) -> str:
    """The word for the work of the job with this number. It is dark; the first 24 jobs have hues of their own.

    >>> colour_of(work_word(0))[1] <= DARK, len({work_word(job) for job in range(100)})
    (True, 24)
    """
    place = job * _STRIDE % _HUES
    return _word("work", (210 + place * 360 // _HUES) % 360, 40, DARK)


def state_word(state: str) -> str:
    """The word for a state that is no work. It is pale, and each state has its own word.

    >>> min(colour_of(state_word(state))[1] for state in STATES) >= PALE
    True
    """
    return _word(state, _CALM_FROM + STATES.index(state) * _CALM_DEGREES // len(STATES), PALE, 79)
