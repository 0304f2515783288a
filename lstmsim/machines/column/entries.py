"""The column-wise NPU in files: rules on several numbers together, and on what its jobs may ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from lstmsim.base.bounds import MAX_CONTEXTS
from lstmsim.base.keys import described
from lstmsim.machines.column.core import ColumnCore, with_vp
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.split import split_refusal
from lstmsim.machines.entries import Entries, Fault
from lstmsim.model.model import Model
from lstmsim.model.scenario import SPLITS

__all__ = ["ColumnEntries"]

#: Further keys that a mistake of a key may be due to.
_JUDGED_WITH = {"vp": ("ep", "npe"), "ep": ("tree_inputs", "cat"), "tree_inputs": ("npe",)}


class ColumnEntries(Entries):
    """Entries of column-wise NPUs: `vp` left out is `npe // ep`."""

    kind: ClassVar[str] = "column-npu"
    title: ClassVar[str] = "column-wise NPU"
    chip: ClassVar[type] = ColumnNpu
    core: ClassVar[type] = ColumnCore
    together: ClassVar[frozenset[str]] = frozenset({"npe", "ep", "vp", "tree_inputs", "cat"})
    splits: ClassVar[tuple[str, ...]] = tuple(SPLITS)

    def core_of(self, entry: Mapping[str, Any]) -> ColumnCore | Fault:
        """The core of an entry, or why it cannot be described."""
        whole = dict(entry)
        sentence = with_vp(whole)
        if sentence:
            return Fault.at("ep", sentence, "npe")
        return described(ColumnCore, whole)

    def core_faults(self, core: ColumnCore) -> Sequence[Fault]:
        """What is wrong with a core's numbers, alone and taken together."""
        return tuple(Fault.at(key, text, *_JUDGED_WITH.get(key, ())) for key, text in core.mistakes())

    def faults_of_all(self, cores: Sequence[ColumnCore]) -> Sequence[str]:
        """A fault if the cores have more threads than engines keep apart."""
        threads = sum(core.threads for core in cores)
        return (f"must have at most {MAX_CONTEXTS} threads in all, got {threads}",) if threads > MAX_CONTEXTS else ()

    def without_effect(self, entry: Mapping[str, Any]) -> Sequence[Fault]:
        """A fault for a memory beside cores that hold all weights."""
        cores = entry.get("cores")
        rooms = [each for each in (cores if isinstance(cores, list) else []) if isinstance(each, dict)]
        if entry.get("memory") is None or not rooms or any(each.get("weight_kib") is not None for each in rooms):
            return ()
        return (Fault.at("memory", "has no effect: no core has weight_kib, so all weights stay on the chip"),)

    def weight_width(self, entry: Mapping[str, Any]) -> tuple[str, int] | None:
        """`weight_bits`, if a core has a memory for weights."""
        bits = entry.get("weight_bits")
        return ("weight_bits", bits) if entry.get("weight_kib") is not None and isinstance(bits, int) else None

    def with_weight_bits(self, chip: ColumnNpu, bits: int) -> ColumnNpu:
        """The chip with memories for weights of `bits` bits."""
        if all(core.weight_kib is None for core in chip.cores):
            return chip
        return replace(chip, cores=tuple(replace(core, weight_bits=bits) for core in chip.cores))

    def split_refusal(self, core: ColumnCore, model: Model, split: str, members: int) -> str | None:
        """Why a job cannot be split over `members` cores like this one, in a sentence; None if it can."""
        return split_refusal(model, core, split, members)

    def varies(self, chip: ColumnNpu) -> bool:
        """Not if a core has a memory for weights: these are checked for all jobs together."""
        return all(core.weight_kib is None for core in chip.cores)
