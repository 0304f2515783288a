"""The stamp on a result: what its numbers were compared with, inside which sizes, and which keys are assumptions."""

from __future__ import annotations

from lstmsim.base.records import record

#: How the source of a clock begins that was given with the scenario, and not by the chip's file.
CLOCK_ASKED, CLOCK_BUILT, CLOCK_TOLD = "asked for", "built (", "predicted ("
NO_SILICON = "not compared with silicon"


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
    compared, silicon, outside: as of `machines.target.Evidence`.

    >>> stamp = Stamp("c", "column-npu", "", (), "the contract", "all sizes", ("latency.add",), compared="the contract")
    >>> stamp.line
    'Compared with: the contract; not compared with silicon.'
    >>> stamp.text
    'STAMP of c: the contract (all sizes). Not compared with silicon. Assumed keys: latency.add.'
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
    compared: str = ""
    silicon: bool = False
    outside: bool = False

    @property
    def line(self) -> str:
        """What the cycles were compared with, and a clock that was given."""
        clock = f" Clock: {self.clock}." if self.clock else ""
        return f"Compared with: {self.compared}{'' if self.silicon else f'; {NO_SILICON}'}.{clock}"

    @property
    def text(self) -> str:
        """All that the line does not say."""
        parts = [f"STAMP of {self.chip}: {self.against} ({self.inside})"]
        parts += [] if self.silicon else [NO_SILICON.capitalize()]
        parts += [f"Not the preset: {', '.join(self.changed)}"] if self.changed else []
        parts += [f"Assumed keys: {', '.join(self.assumed)}" if self.assumed else "No key is an assumption"]
        parts += [f"Fitted: {', '.join(self.fitted)}"] if self.fitted else []
        parts += [f"Of one point; varied: {', '.join(self.varied)}"] if self.varied else []
        return f"{'. '.join(parts)}."
