"""The part of the contract for files: how an entry becomes a chip, which keys depend on each other, what a job may ask.

The keys with their types, defaults and bounds are read off the descriptions (`lstmsim.base.keys`). This module has the
rules that no single key can say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from lstmsim.base.bounds import MAX_FREQUENCY_MHZ, MIN_FREQUENCY_MHZ
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key, described, keys_of, mistakes_of, values_of
from lstmsim.base.records import record
from lstmsim.machines.assembly import check_cores
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job

__all__ = ["COMMON", "Clock", "Entries", "Fault", "check_description"]

#: The keys that a chip of any kind has.
COMMON = ("name", "frequency_mhz", "cores", "sources", "kind")

#: The clock of a chip: whole cycles of every machine become seconds by it.
Clock = Annotated[float, Key("the clock in MHz", "MHz", MIN_FREQUENCY_MHZ, MAX_FREQUENCY_MHZ, above=0)]

Path = tuple[str | int, ...]


@record
class Fault:
    """A mistake in an entry whose keys are right one by one.

    keys: paths below the entry of the keys that may be wrong; the first one names the place.
    sentence: what is wrong, without the place.
    known: names that could stand there, if a name is wrong; else empty.

    >>> Fault.at("latency.add", "must be at least 1, got 0").keys
    (('latency', 'add'),)
    """

    keys: tuple[Path, ...]
    sentence: str
    known: Sequence[str] = ()

    @classmethod
    def at(cls, key: str, sentence: str, *others: str) -> Fault:
        """The fault of a key. Levels of a key are separated by dots. Keys in `others` may also be the wrong ones."""
        return cls(tuple(tuple(each.split(".")) for each in (key, *others)), sentence)


def check_description(chip: Any) -> None:
    """`InputError` with every mistake of a chip and of its cores; every chip calls it when it is made.

    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=32),))
    Traceback (most recent call last):
    lstmsim.InputError: chip c: cores.0.vp: ep * vp must not exceed npe: 4 * 32 = 128 > 64
    """
    cores = enumerate(chip.cores)
    mistakes = [(f"cores.{index}.{key}", text) for index, core in cores for key, text in core.mistakes()]
    mistakes += mistakes_of(chip)
    if mistakes:
        raise InputError([Mistake(f"chip {chip.name}: {key}", text) for key, text in mistakes])


class Entries:
    """The description of a machine in files. The defaults fit a machine with independent numbers and plain jobs.

    kind: the machine's word in the file of a chip.
    title: its name for people.
    chip, core: classes of the frozen descriptions.
    together: keys of a core that are judged together; if one of them is wrong, nothing is said about the others.
    batches: whether the inferences of a batch run together; else each inference is a job of its own in comparisons.
    threads: whether a job may say on how many cores its threads run.
    splits: how a job may run on several cores at once, keys of `lstmsim.model.scenario.SPLITS`.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    chip: ClassVar[type]
    core: ClassVar[type]
    together: ClassVar[frozenset[str]] = frozenset()
    batches: ClassVar[bool] = False
    threads: ClassVar[bool] = False
    splits: ClassVar[tuple[str, ...]] = ()

    def core_of(self, entry: Mapping[str, Any]) -> Any | Fault:
        """The core of an entry, or the fault because of which it cannot be described.

        entry: the keys that the file gives; each is right by itself.
        """
        return described(self.core, entry)

    def core_faults(self, core: Any) -> Sequence[Fault]:
        """What is wrong with a core's numbers, alone and taken together."""
        return tuple(Fault.at(key, text) for key, text in core.mistakes())

    def chip_of(self, entry: Mapping[str, Any], cores: Sequence[Any]) -> Any:
        """The chip of an entry without mistakes.

        entry: every key of the file, with `name` and `sources`, but without the keys of cores.
        cores: the cores.
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

    def chip_faults(self, entry: Mapping[str, Any], cores: Sequence[Any]) -> Sequence[Fault]:
        """What is wrong with the numbers of a chip taken together.

        entry: the entry of the chip; each of its own keys is right by itself.
        cores: the cores of the chip.
        """
        return ()

    def without_effect(self, entry: Mapping[str, Any]) -> Sequence[Fault]:
        """Faults for keys of a chip's entry that change nothing. The entry may hold mistakes of other kinds."""
        return ()

    def weight_width(self, entry: Mapping[str, Any]) -> tuple[str, int] | None:
        """The key of a core's entry that gives the width of its weights, and the width in bits; None if no key does."""
        return None

    def with_weight_bits(self, chip: Any, bits: int) -> Any:
        """The chip with memories for weights of `bits` bits. A machine that counts words returns the same chip."""
        return chip

    def job_faults(
        self, batch: int, split: str | None, threads: int | None = None, cores: int | None = None
    ) -> Sequence[Fault]:
        """Faults for keys of a job that this machine does not have: batches, splits and threads.

        batch, split, threads: as in `lstmsim.model.scenario.Job`.
        cores: how many cores the chip has; None: that is not known.
        """
        faults = []
        if batch != 1 and not self.batches:
            text = f"a {self.title} runs no batches: leave it out and use `count`, got {batch}"
            faults.append(Fault.at("batch", text))
        if split and not self.splits:
            text = f"a {self.title} spreads a job over threads: leave it out, and say how many they are (`threads`)"
            alone = f"a {self.title} runs a job on one core: leave it out"
            faults.append(Fault.at("split", text if self.threads else alone))
        if threads is not None and not self.threads:
            text = f"a {self.title} has no number of threads for each job: leave it out, got {threads}"
            faults.append(Fault.at("threads", text))
        elif threads is not None and cores is not None and threads > cores:
            faults.append(Fault.at("threads", f"must be at most the chip's {cores} cores, got {threads}"))
        return tuple(faults)

    def check_job(self, cores: Sequence[Any], job: Job) -> None:
        """`InputError` if the machine lacks batches, splits or threads that a job asks for, or no core can run it."""
        faults = self.job_faults(job.batch, job.split, job.threads, len(cores))
        if faults:
            raise InputError([Mistake(f"job {job.name}: {each.keys[0][0]}", each.sentence) for each in faults])
        check_cores(cores, job)

    def model_refusal(self, entry: Mapping[str, Any], model: Model) -> str | None:
        """Why a chip cannot run a model, whatever its cores, in a sentence; None if it can.

        entry: the entry of the chip; it may hold mistakes.
        model: the network.
        """
        return None

    def split_refusal(self, core: Any, model: Model, split: str, members: int) -> str | None:
        """Why a job cannot be split over `members` cores like this one, in a sentence; None if it can."""
        return None

    def varies(self, chip: Any) -> bool:
        """Whether a sweep may change the numbers of the chip's cores without reading the file anew."""
        return True
