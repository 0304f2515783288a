"""The verdict whether a chip fits a device, and the resource that stops it: multiplier blocks, memories, logic.

Multipliers and memories are counted; logic is an estimate. A number that the device's table lacks makes a resource
unknown, never zero, and the verdict names it. What is not counted, the machine says (`Hardware.not_counted`).

Fits on several FPGAs as one result: on which the chip fits, on which it does not and why, which are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.hardware import Demand, Hardware, Part, Stored
from lstmsim.model.model import Model, Precision
from lstmsim.model.scenario import Chip, Scenario
from lstmsim.report.results import Table
from lstmsim.report.tables import folded
from lstmsim.studies.fit.device import Device, Memory, Packing
from lstmsim.studies.fit.needs import BAND, PartNeed, TailNeed, hardware_of, part_needs, placed, tail_needs

if TYPE_CHECKING:
    from lstmsim.studies.fit.energy import Energy


#: Most decimals of a share: no device has so many blocks that one of them would need more to show.
_MOST_DECIMALS = 9


@dataclass(frozen=True)
class Resource:
    """One kind of resource.

    name: of the kind.
    need: how many the chip takes; None: unknown, or memories of several kinds share the work.
    available: how many the device has; None: unknown.
    share: need / available; above 1 the need is that many times too large. None: unknown.
    how: how the need came about, or what is missing.
    band: 0 for a count, 0.5 for an estimate of +-50 %.
    missing: what is missing in a few words, where that keeps the verdict open.
    at_least: whether a part of the need is unknown, so that only "too much" can be known.
    """

    name: str
    need: int | None
    available: int | None
    share: float | None
    how: str
    band: float = 0.0
    missing: str = ""
    at_least: bool = False

    @property
    def fits(self) -> bool | None:
        """Whether the device has enough; None if that is unknown, or the band is too wide to say."""
        if self.share is None:
            return None
        if self.share * (1 + self.band) <= 1:
            return None if self.at_least else True
        return False if self.share * (1 - self.band) > 1 else None

    @property
    def words(self) -> str:
        """How much of the device's resource the chip takes, or what is missing to tell."""
        if self.share is None or (self.fits is None and self.missing):
            return self.missing or f"{self.name}: not known"
        if self.fits is None and self.band:
            low, high = (100 * self.share * (1 + sign * self.band) for sign in (-1, 1))
            return f"{self.name} estimated at {low:.0f} to {high:.0f} % of what there is"
        qualifier = "about " if self.band else "at least " if self.at_least else ""
        if self.share <= 1:
            return f"{self.name} {'about ' if self.band else ''}{self.percent} used"
        if self.need is None or self.available is None or f"{self.share:.2f}" != "1.00":
            return f"{self.name} {qualifier}{_above(self.share, 1, 2)} times over"
        excess = self.need - self.available
        return f"{self.name} {qualifier}{excess:,} block{'s' * (excess != 1)} too many"

    @property
    def percent(self) -> str:
        """The share in %, `-` if it is unknown; a share above 100 % never reads as 100 %."""
        if self.share is None:
            return "-"
        if not self.at_least:
            return f"{_above(100 * self.share, 100, 0)} %"
        # The known part is rounded down, so that "at least" stays true.
        known = 100 * self.share
        return f"at least {_above(known if known > 100 else math.floor(known), 100, 0)} %"


def _above(value: float, limit: int, digits: int) -> str:
    """A number with so many decimals, or with more where it is above the limit and would be printed as the limit."""
    while value > limit and float(f"{value:.{digits}f}") <= limit and digits < _MOST_DECIMALS:
        digits += 1
    return f"{value:.{digits}f}"


Bound = Literal["capacity", "bandwidth", "ports"]


@dataclass(frozen=True)
class MemoryNeed:
    """Blocks of one kind that the chip's memories would take if all were made of that kind."""

    kind: str  # its name
    capacity: int  # blocks for what the memories hold
    bandwidth: int  # blocks for what is read in a cycle
    ports: int  # blocks for separate accesses
    total: int  # blocks for all three together: the largest of them for each memory
    available: int | None  # how many blocks the device has; None: unknown

    @property
    def bound(self) -> Bound:
        """Which of the three needs is the largest; capacity before the others if they are equal."""
        counts: dict[Bound, int] = {"capacity": self.capacity, "bandwidth": self.bandwidth, "ports": self.ports}
        return max(counts, key=lambda each: counts[each])


@dataclass(frozen=True)
class JobTable:
    """Jobs as a table that the host writes, and how much more of the device that takes than jobs as constants.

    jobs, steps: the most jobs, and the most steps of a job.
    registers, logic, memories: bits, elements of logic, memory blocks of the kind of which each memory takes the
        fewest; None without a packing.
    """

    jobs: int
    steps: int
    registers: int | None
    logic: int | None
    memories: int | None


@dataclass(frozen=True)
class Fit(Table, forms="lstmsim.studies.fit.report"):
    """A chip on a device.

    chip, device, models, precision: what is placed where.
    packings: of each core's array; None where no packing takes the widths.
    array_blocks: multiplier blocks of the array alone; None without a packing.
    tail_blocks: multiplier blocks of the tail; None: unknown.
    multipliers, memory, logic: the resources.
    memories: needs for each kind of memory block.
    tail: the multipliers of the tail, by kind and width.
    parts: logic, registers and block memories of each part, of all cores together; empty without a packing.
    table: what jobs cost as a table that the host writes; None: they are constants.
    """

    chip: str
    device: Device
    models: tuple[str, ...]
    precision: Precision
    packings: tuple[Packing | None, ...]
    array_blocks: int | None
    tail_blocks: int | None
    multipliers: Resource
    memory: Resource
    memories: tuple[MemoryNeed, ...]
    logic: Resource
    tail: tuple[TailNeed, ...] = ()
    parts: tuple[PartNeed, ...] = ()
    table: JobTable | None = None

    @property
    def registers(self) -> int | None:
        """Bits of registers; None without a packing."""
        return sum(each.registers for each in self.parts) if self.parts else None

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources: multipliers, memory, logic."""
        return (self.multipliers, self.memory, self.logic)

    @property
    def binds(self) -> Resource | None:
        """The resource with the largest share, an estimate counted at its middle; None if no share is known."""
        known = [each for each in self.resources if each.share is not None]
        return max(known, key=lambda each: each.share or 0.0, default=None)

    @property
    def fits(self) -> bool | None:
        """False if one resource is exceeded, True if all are known to suffice, otherwise None."""
        verdicts = [each.fits for each in self.resources]
        return False if False in verdicts else None if None in verdicts else True

    @property
    def verdict(self) -> str:
        """Whether the chip fits, and why not, or what is missing to tell: a few words without the device's name."""
        if self.fits:
            return f"fits: {self.binds.words if self.binds else ''}"
        if self.fits is False:
            return f"does not fit: {', '.join(each.words for each in self.resources if each.fits is False)}"
        return f"cannot tell: {'; '.join(each.words for each in self.resources if each.fits is None)}"


def fit(chip: Chip, models: Sequence[Model], precision: Precision, device: Device, stored: Stored | None = None) -> Fit:
    """Count what a chip with all those models resident takes of a device; of several linked devices it is one of them.

    chip, models: every core must be able to run every model.
    precision: the widths of all numbers.
    device: the FPGA.
    stored: what the jobs need in addition to the models; None: each has one step.
    `InputError` if there is no model, or a core cannot run one.

    >>> from lstmsim.studies.fit.device import Logic
    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> pair, ram = Packing("2 of 18x19", 2, (18, 19)), Memory("M20K", 100, 20480, 40)
    >>> device = Device("small", "DSP", 1200, (pair,), (ram,), Logic("ALM", 50_000, 2, 4))
    >>> chip = ColumnNpu("c", 250, (ColumnCore(npe=1024, ep=16, vp=64),))
    >>> answer = fit(chip, [Model("m", (Layer(cell("lstm"), 64, 64),))], Precision(), device)
    >>> answer.array_blocks, answer.memories[0].bound, answer.binds.name, round(answer.binds.share, 2), answer.fits
    (512, 'bandwidth', 'M20K', 9.03, False)
    >>> answer.verdict
    'does not fit: M20K 9.03 times over'
    """
    hardware, stored = hardware_of(chip), stored or Stored()
    chip = hardware.of_one_device(chip)
    if not models:
        raise InputError(Mistake("models", "at least one model is expected, got none"))
    for core in chip.cores:
        for model in models:
            reason = core.refusal(model)
            if reason:
                raise InputError(Mistake(f"chip {chip.name}: model {model.name}", reason))
    packings = tuple(_packing(hardware, core, precision, device) for core in chip.cores)
    array = _array_blocks(hardware, chip, packings)
    tails = tail_needs(chip, models, precision, device)
    tail = None if any(each.blocks is None for each in tails) else sum(each.blocks or 0 for each in tails)
    every = _parts(hardware, chip, models, precision, packings, stored)
    wanted = [each for own in every for part in own for each in part.memories]
    blocks = [each for each in wanted if placed(each, device).in_blocks]
    needs = tuple(_memory_need(kind, blocks) for kind in device.memories)
    left_out = hardware.not_counted(stored)
    parts = () if None in packings else part_needs(every, packings, hardware, chip, device, stored.parts)
    return Fit(
        chip=chip.name,
        device=device,
        models=tuple(model.name for model in models),
        precision=precision,
        packings=packings,
        array_blocks=array,
        tail_blocks=tail,
        multipliers=_multipliers(device, packings, array, tails, precision, left_out),
        memory=_memory(needs, _rate(wanted, chip)),
        memories=needs,
        logic=_logic(parts, left_out, device),
        tail=tails,
        parts=parts,
    )


def with_table(scenario: Scenario, table: tuple[int, int], stored: Stored, device: Device) -> Fit:
    """Fit a scenario's chip whose jobs are a table that the host writes.

    table: the most jobs and steps of a job.
    stored: what the chip needs with it, as `table_stored` of `needs.py` gives it.
    """
    models = tuple(dict.fromkeys(job.model for job in scenario.jobs))
    chip, precision = scenario.chip, scenario.precision
    own = fit(chip, models, precision, device, stored)
    constant = fit(chip, models, precision, device, Stored.of(scenario.jobs))
    more = (
        sum(getattr(each, key) for each in own.parts) - sum(getattr(each, key) for each in constant.parts)
        if own.parts
        else None
        for key in ("registers", "logic", "memories")
    )
    return replace(own, table=JobTable(*table, *more))


def _parts(
    hardware: Hardware,
    chip: Chip,
    models: Sequence[Model],
    precision: Precision,
    packings: Sequence[Packing | None],
    stored: Stored,
) -> list[tuple[Part, ...]]:
    """The parts of each core; without a packing as if blocks gave single products."""
    summed = [packing.summed if packing else 1 for packing in packings]
    pairs = zip(chip.cores, summed, strict=True)
    return [hardware.parts(core, models, precision, each, stored) for core, each in pairs]


def _packing(hardware: Hardware, core: Any, precision: Precision, device: Device) -> Packing | None:
    weight, vector = hardware.meets(core)
    return device.packing(precision.weight_bits, hardware.element_bits(core, precision), weight, vector)


def _array_blocks(hardware: Hardware, chip: Chip, packings: Sequence[Packing | None]) -> int | None:
    blocks = 0
    for core, packing in zip(chip.cores, packings, strict=True):
        if packing is None:
            return None
        blocks += -(-hardware.multipliers(core) // packing.products)
    return blocks


def _share(need: int, available: int | None) -> float | None:
    return need / available if available else None


def _multipliers(
    device: Device,
    packings: Sequence[Packing | None],
    array: int | None,
    tails: Sequence[TailNeed],
    precision: Precision,
    not_counted: str,
) -> Resource:
    names = ", ".join(dict.fromkeys(each.name for each in packings if each is not None))
    widths = f"{precision.weight_bits} x {precision.vector_bits} bits"
    name, there = device.multiplier, device.multipliers
    if array is None:
        how = f"no source for a packing of {widths} in a {name}"
        return Resource(name, None, there, None, how, missing=how)
    unpacked = any(each.blocks is None for each in tails)
    tail = sum(each.blocks or 0 for each in tails)
    lanes = ", ".join(each.sentence for each in tails)
    how = f"{array:,} of the array ({widths}: {names}), "
    how += "those of the tail not known" if unpacked else f"{tail:,} of the tail"
    how += f" (on each lane {lanes}); not counted: {not_counted}"
    missing = f"no source for independent products in a {name}, which the tail needs" if unpacked else ""
    need = array + tail
    if there is None:
        missing = f"no source for the number of {name}"
        how += "; no source for how many there are"
    elif need > there:
        how += "; multipliers built of logic instead are not in the estimate of the logic"
    elif unpacked:
        how += f"; {missing}"
    return Resource(name, need, there, _share(need, there), how, missing=missing, at_least=unpacked)


def _memory_need(kind: Memory, wanted: Sequence[Demand]) -> MemoryNeed:
    counts = []
    for each in wanted:
        # Each memory has blocks of its own.
        bits, width = -(-each.bits // each.memories), each.width
        causes = (-(-bits // kind.bits), -(-width // kind.read_bits), -(-(each.reads + each.writes) // kind.ports))
        total = max(*causes, kind.shaped(each.words, each.width, each.written))
        counts.append([each.memories * blocks for blocks in (*causes, total)])
    capacity, bandwidth, ports, total = (sum(column) for column in zip(*counts, strict=True)) if counts else (0,) * 4
    return MemoryNeed(kind.name, capacity, bandwidth, ports, total, kind.blocks)


def _rate(wanted: Sequence[Demand], chip: Chip) -> str:
    weights = sum(each.read_bits for each in wanted if each.name == "weights")
    terabytes = weights / 8 * chip.frequency_mhz / 1e6
    return f"{weights:,} bits of weights a cycle, {terabytes:.2g} TB/s at {chip.frequency_mhz:g} MHz"


def _memory(needs: Sequence[MemoryNeed], rate: str) -> Resource:
    """The memories together. Several kinds share the work: each takes as much of it as it has blocks for."""
    name = " + ".join(each.kind for each in needs)
    if not any(each.total for each in needs):
        how = f"none needed: each memory is so small that it is made of logic ({rate})"
        available = needs[0].available if len(needs) == 1 else None
        return Resource(name, 0, available, 0.0, how)
    if any(each.available is None for each in needs):
        missing = ", ".join(each.kind for each in needs if each.available is None)
        missing = f"no source for the number of {missing} blocks"
        how = f"bound by {needs[0].bound} ({rate}); {missing}"
        return Resource(name, needs[0].total if len(needs) == 1 else None, None, None, how, missing=missing)
    if len(needs) == 1:
        only = needs[0]
        return Resource(
            name, only.total, only.available, _share(only.total, only.available), f"bound by {only.bound} ({rate})"
        )
    merged = {each: joint_share(needs, each) for each in ("capacity", "bandwidth", "ports", "total")}
    bound = max(("capacity", "bandwidth", "ports"), key=lambda each: merged[each])
    return Resource(name, None, None, merged["total"], f"bound by {bound} ({rate}); spread over all kinds")


def joint_share(needs: Sequence[MemoryNeed], cause: str) -> float:
    """Give the share of all memory blocks that a cause takes, if each kind is filled to the same share.

    needs: of all kinds of memory blocks, with known numbers of blocks.
    cause: `capacity`, `bandwidth`, `ports` or `total`.
    The share is 0 where no block is needed: memories may be so small that they are made of logic.

    >>> joint_share([MemoryNeed("M20K", 0, 0, 0, 0, 100)], "capacity"), joint_share([], "total")
    (0.0, 0.0)
    """
    blocks = [(each.available or 0, int(getattr(each, cause))) for each in needs]
    return 1 / sum(there / need for there, need in blocks) if blocks and all(need for _, need in blocks) else 0.0


def _logic(parts: Sequence[PartNeed], left_out: str, device: Device) -> Resource:
    logic = device.logic
    if not parts:
        why = "no estimate without a packing"
        return Resource(logic.name, None, logic.elements, None, why, BAND, missing=f"{logic.name}: {why}")
    # Registers stand in these elements, too, and in multiplier blocks.
    need = sum(each.logic for each in parts)
    counted = ", ".join(each.name for each in parts if each.logic)
    how = f"estimate, +-{100 * BAND:.0f} %: {counted}; not counted: {left_out}"
    resource = Resource(logic.name, need, logic.elements, _share(need, logic.elements), how, BAND)
    missing = f"no source for the number of {logic.name}"
    return resource if logic.elements else replace(resource, how=f"{how}; {missing}", missing=missing)


class Fits(tuple["Fit", ...], Table, forms="lstmsim.studies.fit.report"):
    """A fit for each device, as a tuple."""

    energy: tuple[Energy, ...]  # of each distinct job, where energy was asked for

    def __new__(cls, fits: Iterable[Fit], energy: Iterable[Energy] = ()) -> Fits:
        made = super().__new__(cls, fits)
        made.energy = tuple(energy)
        return made


@dataclass(frozen=True)
class Summary:
    """The devices by verdict, with the reason (`Fit.verdict`).

    >>> print(Summary("c", (("big", "DSP 40 % used"),), (("small", "DSP 2.00 times over"),), ()).text)
    SUMMARY of c
    fits: big (DSP 40 % used)
    does not fit: small (DSP 2.00 times over)
    """

    chip: str
    fits: tuple[tuple[str, str], ...]
    does_not_fit: tuple[tuple[str, str], ...]
    cannot_tell: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """A heading and a paragraph for each verdict, of at most 100 columns; without a final newline."""
        return "\n".join(line for each in self.paragraphs for line in folded(each, 2))

    @property
    def paragraphs(self) -> list[str]:
        """The heading, and a sentence for each verdict."""
        parts = (("fits", self.fits), ("does not fit", self.does_not_fit), ("cannot tell", self.cannot_tell))
        named = [(verdict, ", ".join(f"{name} ({why})" for name, why in devices)) for verdict, devices in parts]
        sentences = [
            f"{verdict}: {names or 'none of these devices'}" for verdict, names in named if names or verdict == "fits"
        ]
        return [f"SUMMARY of {self.chip}", *sentences]

    @property
    def json(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`: for each verdict the reason by device."""
        return {
            each.name: dict(value) if isinstance(value := getattr(self, each.name), tuple) else value
            for each in fields(self)
        }


def fit_summary(fits: Sequence[Fit]) -> Summary:
    """Gather the verdicts on one chip, in the order of the devices; no fits give an empty summary.

    fits: what `lstmsim.fit` gives.

    >>> import lstmsim
    >>> job = {"model": "lstm-256", "steps": 1}
    >>> fit_summary(lstmsim.fit({"chip": "column-npu-16k", "jobs": [job]}, ["stratix-10-gx-2800"])).fits
    (('stratix-10-gx-2800', 'DSP 81 % used'),)
    """

    def those(verdict: bool | None) -> tuple[tuple[str, str], ...]:
        return tuple((each.device.name, each.verdict.partition(": ")[2]) for each in fits if each.fits is verdict)

    return Summary(fits[0].chip if fits else "", those(True), those(False), those(None))
