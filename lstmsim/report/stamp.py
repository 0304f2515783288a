"""The stamp on a result: what its numbers are exact against, inside which sizes, and which keys are assumptions."""

from __future__ import annotations

from collections import Counter

from lstmsim.base.records import record

#: Most keys that people are shown, and of one part; programs get all.
_MOST_KEYS, _MOST_OF_PART = 8, 3
#: How the source of a clock begins that was given with the scenario, and not by the chip's file.
CLOCK_ASKED, CLOCK_BUILT, CLOCK_TOLD = "asked for", "built (", "predicted ("


@record
class Stamp:
    """How far to trust the cycles of one chip.

    chip: its name.
    machine: its kind, as files name it.
    preset: the preset that it is, but for `changed`; empty: it is none.
    changed: paths of the keys in which it differs from that preset.
    against: what its cycles are exact against.
    inside: where that was shown, or why no hardware stands behind these numbers.
    assumed: paths of the keys whose values no source gives.
    fitted: paths of the keys that were fitted to published figures.
    varied: paths that a sweep or search varies: the stamp is of one of its points.
    clock: the clock, where it was asked for, built or predicted, and how; empty: it is a key like others.

    >>> Stamp("c", "column-npu", "", (), "the contract", "all sizes", ("latency.add", "latency.read", "npe")).text
    'STAMP of c: the contract (all sizes). Assumed keys: latency.add, latency.read, npe.'
    """

    chip: str
    machine: str
    preset: str
    changed: tuple[str, ...]
    against: str
    inside: str
    assumed: tuple[str, ...]
    fitted: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    clock: str = ""

    @property
    def text(self) -> str:
        """The stamp on one line."""
        parts = [f"STAMP of {self.chip}: {self.against} ({self.inside})"]
        parts += [f"Not the preset: {_some(self.changed)}"] if self.changed else []
        parts += [f"Clock: {self.clock}"] if self.clock else []
        parts += [f"Assumed keys: {_some(self.assumed)}" if self.assumed else "No key is an assumption"]
        parts += [f"Fitted: {_some(self.fitted)}"] if self.fitted else []
        parts += [f"Of one point; varied: {_some(self.varied)}"] if self.varied else []
        return f"{'. '.join(parts)}."


def _some(keys: tuple[str, ...]) -> str:
    """The first keys without the word before them; many keys of one part as one."""
    short = [each.removeprefix("cores.") for each in keys]
    parts = Counter(each.partition(".")[0] for each in short)
    named = dict.fromkeys(
        f"{part} ({parts[part]} keys)" if parts[part] > _MOST_OF_PART else each
        for each, part in ((each, each.partition(".")[0]) for each in short)
    )
    # what stands for many keys says most
    shown, more = sorted(named, key=lambda each: not each.endswith(" keys)"))[:_MOST_KEYS], len(named) - _MOST_KEYS
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
