"""The cores on which a job entry can run: they exist, can run its model, and it can be split over them."""

from __future__ import annotations

from collections.abc import Hashable

from lstmsim.base.wording import show
from lstmsim.files.scenario.chip_entries import Cores
from lstmsim.files.scenario.schema import JobEntry
from lstmsim.files.yaml.document import DataPath, Document
from lstmsim.machines.assembly import AnyCore
from lstmsim.model.model import Model

__all__ = ["Runnable", "check_cores", "named_cores"]


def named_cores(entry: JobEntry) -> tuple[int, ...] | None:
    """Give the cores that an entry names; None: all cores of the chip."""
    if entry.cores is not None:
        return tuple(entry.cores)
    return None if entry.core is None else (entry.core,)


def check_cores(document: Document, path: DataPath, entry: JobEntry, cores: Cores) -> None:
    """Note cores that do not exist, cores that are named twice, and keys that say the same.

    path: path of the entry.
    cores: the cores of the chip.
    """
    key = "core" if entry.cores is None else "cores"
    if entry.core is not None and entry.cores is not None:
        document.blame((*path, "core"), "says the same as `cores`: give one of them")
    for position, each in enumerate(named_cores(entry) or ()):
        if cores.known and each >= len(cores.cores):
            last = len(cores.cores) - 1
            text = "must be 0, the chip's only core" if last == 0 else f"must be one of the chip's cores 0 to {last}"
            place = (*path, key) if entry.cores is None else (*path, key, position)
            document.blame(place, f"{text}, got {each}")
    named = named_cores(entry) or ()
    twice = [each for each in named if named.count(each) > 1]
    if twice and entry.split != "layers":
        why = "only a job split into layers takes several threads of a core"
        document.blame((*path, "cores"), f"names core {twice[0]} twice; {why}")


class Runnable:
    """The cores of a chip that can run the jobs of a document. The answer for like entries is computed once.

    document: the document, in which mistakes are noted.
    cores: the cores of the chip.
    """

    def __init__(self, document: Document, cores: Cores) -> None:
        self.document, self.of_chip = document, cores
        self._allowed: dict[tuple[int, ...] | None, dict[AnyCore, int] | None] = {}
        self._refusals: dict[tuple[AnyCore, int], str | None] = {}
        self._known: dict[Hashable, list[AnyCore]] = {}

    def cores(self, path: DataPath, entry: JobEntry, model: Model) -> list[AnyCore]:
        """Give the distinct cores that can run the jobs of an entry. If there is no such core, a mistake is noted.

        path: path of the entry.
        model: model of the entry; equal models must be one object.
        """
        key = (named_cores(entry), entry.split, id(model))
        if key in self._known:
            return self._known[key]
        before = len(self.document.mistakes)
        able = self._able(path, entry, model)
        if len(self.document.mistakes) == before:
            self._known[key] = able
        return able

    def _able(self, path: DataPath, entry: JobEntry, model: Model) -> list[AnyCore]:
        named = named_cores(entry)
        if named not in self._allowed:
            self._allowed[named] = self._first_of_each(named)
        allowed = self._allowed[named]
        if allowed is None:
            return []
        members = len(self.of_chip.cores if named is None else named)
        if entry.split is not None and members > 1:
            split = self._split_cores(path, entry, model, list(allowed), members)
            if entry.split != "auto" or not split:
                return split
        refusals = {core: self._refusal(core, model) for core in allowed}
        runnable = [core for core in allowed if not refusals[core]]
        if not runnable:
            where = "any core" if named is None else f"core {', '.join(map(str, named))}"
            reasons = _reasons({index: refusals[core] or "" for core, index in allowed.items()})
            place = path if named is None else (*path, "core" if entry.cores is None else "cores")
            self.document.blame(place, f"job {show(entry.name or model.name)} cannot run on {where}: {reasons}")
        return runnable

    def _first_of_each(self, named: tuple[int, ...] | None) -> dict[AnyCore, int] | None:
        """Give the distinct cores among these, each with its first place; None if one of them is wrong."""
        cores = self.of_chip.cores
        indexes = range(len(cores)) if named is None else named
        if not self.of_chip.known or any(each >= len(cores) or cores[each] is None for each in indexes):
            return None
        return {core: index for index in reversed(indexes) if (core := cores[index]) is not None}

    def _refusal(self, core: AnyCore, model: Model) -> str | None:
        key = (core, id(model))
        if key not in self._refusals:
            chip, target = self.document.data.get("chip"), self.of_chip.target
            refused = target.model_refusal(chip, model) if target is not None and isinstance(chip, dict) else None
            self._refusals[key] = refused or core.refusal(model)
        return self._refusals[key]

    def _split_cores(
        self, path: DataPath, entry: JobEntry, model: Model, cores: list[AnyCore], members: int
    ) -> list[AnyCore]:
        """Give the one kind of core over which a job is split. Reasons against a split are noted as mistakes."""
        target, split = self.of_chip.target, entry.split or ""
        if target is None or split not in target.splits:
            return []
        place = (*path, "split")
        if len(cores) > 1:
            text = "the cores of a job that is split must be equal: name some that are (`cores`)"
            self.document.blame(place, text)
            return []
        refusal = target.split_refusal(cores[0], model, split, members)
        if refusal is not None:
            self.document.blame(place, f"job {show(entry.name or model.name)} cannot be split: {refusal}")
            return []
        return [cores[0]]


def _reasons(by_core: dict[int, str]) -> str:
    """Give each reason once, with its first core. If all cores have the same reason, no core is named."""
    first = {text: index for index, text in sorted(by_core.items(), reverse=True)}
    if len(first) == 1:
        return next(iter(first))
    texts = [f"core {index}: {text}" for text, index in sorted(first.items(), key=lambda pair: pair[1])]
    return "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more" if len(texts) > 3 else "")
