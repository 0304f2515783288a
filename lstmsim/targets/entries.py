"""What files need of a machine: how an entry becomes a chip, what must hold together, what a job may ask for.

Which keys there are, with their types, defaults and bounds, is read off the descriptions (`lstmsim.keys`). Here stands
what no single key can say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from lstmsim.bounds import MAX_FREQUENCY_MHZ, MIN_FREQUENCY_MHZ
from lstmsim.keys import Key, described, keys_of, values_of
from lstmsim.records import record
from lstmsim.workload.model import Model

__all__ = ["COMMON", "Clock", "Entries", "Fault"]

#: What every chip has, whatever its kind.
COMMON = ("name", "frequency_mhz", "cores", "sources", "kind")

#: The clock of a chip: whole cycles of every machine become seconds by it.
Clock = Annotated[float, Key("the clock in MHz", "MHz", MIN_FREQUENCY_MHZ, MAX_FREQUENCY_MHZ, above=0)]

Path = tuple[str | int, ...]


@record
class Fault:
    """What is wrong with an entry whose keys are right one by one.

    keys: the paths below the entry that it may be due to, the one that names it first.
    sentence: what is wrong, without the place.
    known: the names that could stand there; not empty where a name is the mistake.

    >>> Fault.at("latency.add", "must be at least 1, got 0").keys
    (('latency', 'add'),)
    """

    keys: tuple[Path, ...]
    sentence: str
    known: Sequence[str] = ()

    @classmethod
    def at(cls, key: str, sentence: str, *others: str) -> Fault:
        """A fault of a key, with a dot for each level, that may be due to others as well."""
        return cls(tuple(tuple(each.split(".")) for each in (key, *others)), sentence)


class Entries:
    """How a machine stands in files; what a machine leaves out is the case of independent numbers and plain jobs.

    chip, core: the frozen descriptions.
    together: keys of a core that are judged together: with one of them wrong, nothing can be said about the others.
    batches: whether the inferences of a batch run together; a machine that does not batch is compared with them as
    jobs of their own.
    splits: how a job may run on several cores at once, of `lstmsim.workload.scenario.SPLITS`.
    """

    kind: ClassVar[str]
    chip: ClassVar[type]
    core: ClassVar[type]
    together: ClassVar[frozenset[str]] = frozenset()
    batches: ClassVar[bool] = False
    splits: ClassVar[tuple[str, ...]] = ()

    def core_of(self, entry: Mapping[str, Any]) -> Any | Fault:
        """The core of an entry, or why it cannot be described; `core_faults` says what is wrong with it then.

        entry: the keys that the file gives, each right by itself.
        """
        return described(self.core, entry)

    def core_faults(self, core: Any) -> Sequence[Fault]:
        """What is wrong with a core's numbers, alone and taken together."""
        return tuple(Fault.at(key, text) for key, text in core.mistakes())

    def chip_of(self, entry: Mapping[str, Any], cores: Sequence[Any]) -> Any:
        """The chip of an entry without mistakes, with these cores.

        entry: every key of the file but those that the cores are made of, `name` and `sources` among them.
        """
        clock = float(entry["frequency_mhz"])
        # 260 in a file is 260 in a report, not 260.0
        frequency = int(clock) if clock.is_integer() else clock
        own = {key: entry[key] for key in keys_of(self.chip) if key in entry and key not in COMMON}
        return self.chip(
            **values_of(self.chip, own),
            name=entry["name"],
            frequency_mhz=frequency,
            cores=tuple(cores),
            sources=dict(entry.get("sources", {})),
        )

    def faults_of_all(self, cores: Sequence[Any]) -> Sequence[str]:
        """What is wrong with all cores of a chip together, in sentences about the key `cores`."""
        return ()

    def without_effect(self, entry: Mapping[str, Any]) -> Sequence[Fault]:
        """Keys of a chip's entry that change nothing; the entry may hold mistakes of other kinds."""
        return ()

    def weight_width(self, entry: Mapping[str, Any]) -> tuple[str, int] | None:
        """The key of a core's entry that says how wide its weights are, and how many bits; None: nothing says it."""
        return None

    def with_weight_bits(self, chip: Any, bits: int) -> Any:
        """The chip whose memories hold weights of so many bits; a machine that counts words has no use for it."""
        return chip

    def job_faults(self, batch: int, split: str | None) -> Sequence[Fault]:
        """What the entry of a job says that no job of this machine may say: batches and splits, where it has none."""
        faults = []
        if batch != 1 and not self.batches:
            faults.append(
                Fault.at("batch", f"a {self.kind} runs no batches: leave it out and use `count`, got {batch}")
            )
        if split is not None and not self.splits:
            faults.append(Fault.at("split", f"a {self.kind} runs a job on one core: leave it out"))
        return tuple(faults)

    def split_refusal(self, core: Any, model: Model, split: str, members: int) -> str | None:
        """Why a job cannot be split so over so many cores like this one, in a sentence; None if it can."""
        return None

    def varies(self, chip: Any) -> bool:
        """Whether a sweep may change the numbers of the chip's cores without reading the file anew."""
        return True
