"""Where the keys of a chip have their values from, and the stamp that every result carries because of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from functools import cache
from typing import Any

from lstmsim.base.keys import Described, keys_of
from lstmsim.base.records import record
from lstmsim.files.catalog import chip_files
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.registry import target_of
from lstmsim.machines.target import COMMON, RATES, TIMES
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.report.stamp import CLOCK_ASKED, CLOCK_BUILT, CLOCK_TOLD, Stamp

#: Words of a source that says that a value is not known.
_ASSUMED, _FITTED = "assumption", "fitted"


@record
class KeyValue:
    """A key of a chip, or of its cores, with its values.

    path: as in `latency.add`; keys of cores begin with `cores.`.
    described: its type, bounds, unit and the source of its default.
    values: its value, of each core.
    source: where the values come from; empty: nothing says it.
    """

    path: str
    described: Described
    values: tuple[Any, ...]
    source: str = ""

    @property
    def assumed(self) -> bool:
        """Whether no source gives the value, or its source calls it an assumption."""
        return not self.source or _ASSUMED in self.source

    @property
    def is_speed(self) -> bool:
        """Whether it is a latency or a bandwidth: a number of cycles, or of what is done in a time."""
        return self.described.key.unit in (*TIMES, *RATES)

    @property
    def is_time(self) -> bool:
        """Whether it is a latency, or a bandwidth of a memory: nothing on the chip that could be counted.

        So is a list of parts that have latencies, like those of each cell.
        """
        units = {self.described.key.unit}
        if self.described.several and is_dataclass(self.described.kind):
            part: Any = self.described.kind
            units = {each.key.unit for each in keys_of(part).values()}
        return not units.isdisjoint((*TIMES, "GB/s"))

    @property
    def fitted(self) -> bool:
        """Whether the value was fitted to published figures."""
        return not self.assumed and self.source.startswith(_FITTED)


def key_values(chip: Chip) -> tuple[KeyValue, ...]:
    """Give every number and word of a chip, with where it comes from.

    A key in which a chip differs from the preset of its name has no source, whatever the preset says of it.

    >>> [each.path for each in key_values(load_chip("column-npu-64k")) if each.described.key.unit == "GB/s"]
    []
    """
    return _from_sources(chip, preset_of(chip)[1])


def _from_sources(chip: Chip, changed: Collection[str]) -> tuple[KeyValue, ...]:
    return tuple(
        KeyValue(each.path, each.described, each.values, "" if each.path in changed else _source(each, chip))
        for each in _leaves(chip)
    )


def _leaves(chip: Any) -> list[KeyValue]:
    """Every key without parts; of those in which cores differ, the values of all."""
    target = target_of(chip.kind)
    found = [KeyValue("frequency_mhz", keys_of(target.chip)["frequency_mhz"], (chip.frequency_mhz,))]
    found += _below([chip], target.chip, "", COMMON)
    return [*found, *_below(chip.cores, target.core, "cores.")]


def _below(things: Sequence[Any], kind: type, at: str, left_out: Sequence[str] = ()) -> Iterator[KeyValue]:
    for name, each in keys_of(kind).items():
        if name in left_out:
            continue
        values = [getattr(thing, name) for thing in things]
        part: Any = each.kind
        if isinstance(part, type) and is_dataclass(part) and not each.several:
            there = [value for value in values if value is not None]
            yield from _below(there, part, f"{at}{name}.") if there else ()
        elif any(value != () for value in values):
            yield KeyValue(f"{at}{name}", each, tuple(values))


def _source(each: KeyValue, chip: Any) -> str:
    """What the chip's file says of a key, or else of the part that it stands in; of a default, what its class says."""
    said: Mapping[str, str] = chip.sources
    path = each.path.removeprefix("cores.")
    while path:
        if path in said:
            return said[path]
        path = path.rpartition(".")[0]
    own, default = each.described, each.described.default
    return own.key.source if default is not MISSING and all(value == default for value in each.values) else ""


@cache
def _preset(name: str) -> Chip:
    return load_chip(name)


def preset_of(chip: Chip) -> tuple[str, tuple[str, ...]]:
    """Give the preset by a chip's name ("": there is none of its kind), and the paths in which the chip differs.

    >>> preset_of(load_chip("edge"))
    ('edge', ())
    """
    if chip.name not in chip_files() or type(_preset(chip.name)) is not type(chip):
        return "", ()
    preset = _preset(chip.name)
    before: defaultdict[str, tuple[Any, ...]] = defaultdict(tuple)
    before.update({each.path: each.values for each in _leaves(preset)})
    count = () if len(chip.cores) == len(preset.cores) else ("count",)
    after = {each.path: each.values for each in _leaves(chip)}
    different = (path for path, values in after.items() if not _alike(values, before[path], not count))
    return chip.name, (*count, *different, *(path for path in before if path not in after))


def _alike(one: tuple[Any, ...], other: tuple[Any, ...], by_place: bool) -> bool:
    return one == other if by_place else set(one) == set(other)


def keys_at(paths: Iterable[str]) -> set[str]:
    """Give the keys of a chip that stand at paths of a scenario, as `KeyValue.path` has them.

    >>> keys_at(["chip.cores.0.ep", "jobs.0.steps"])
    {'cores.ep'}
    """
    own = (each.removeprefix("chip.").split(".") for each in paths if each.startswith("chip."))
    return {".".join(part for part in parts if not part.isdigit()) for parts in own}


def stamp_of(chip: Chip, jobs: Sequence[Job] = (), *, bits: bool = False, varied: Sequence[str] = ()) -> Stamp:
    """Say what the cycles of jobs on a chip are exact against, and which of its keys are assumptions.

    jobs: what it runs; none: products or kernels that no job asks for.
    bits: whether numbers of fixed point are asked for.
    varied: paths of what a study varies, where the chip is one of several.

    >>> stamp = stamp_of(load_chip("column-npu-64k"))
    >>> stamp.against, stamp.changed, "cores.latency.add" in stamp.assumed
    ('every cycle equal to generated RTL', (), True)
    """
    preset, changed = preset_of(chip)
    said = str(chip.sources.get("frequency_mhz", ""))
    clock = said if said.startswith((CLOCK_ASKED, CLOCK_BUILT, CLOCK_TOLD)) else ""
    values = _from_sources(chip, [each for each in changed if each != "frequency_mhz" or not clock])
    evidence = target_of(chip.kind).evidence(chip, jobs, bits=bits, preset=preset, changed=changed)
    return Stamp(
        chip.name,
        chip.kind,
        preset,
        changed,
        evidence.against,
        evidence.inside,
        tuple(each.path for each in values if each.assumed and each.path not in keys_at(varied)),
        tuple(each.path for each in values if each.fitted),
        tuple(varied),
        f"{chip.frequency_mhz:g} MHz, {clock}" if clock else "",
        compared=evidence.compared,
        silicon=evidence.silicon,
        outside=evidence.outside,
    )


def stamp_of_scenario(scenario: Scenario, varied: Sequence[str] = ()) -> Stamp:
    """Give the stamp of a scenario's chip with its jobs."""
    return stamp_of(scenario.chip, scenario.jobs, bits=bool(scenario.precision_given), varied=varied)
