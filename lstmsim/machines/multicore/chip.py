"""The multi-core CPU: descriptions of the chip and of a core with its private caches; what its files may say.

Sources, as in `docs/multicore.md`, section 8: [K] the machine files of kerncraft; [B] the kernels of BLIS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

from lstmsim.base.bounds import MAX_LATENCY_CYCLES
from lstmsim.base.checks import checked
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key, keys_of, mistakes_of
from lstmsim.base.records import hashed_once, record
from lstmsim.machines.assembly import OperationClasses
from lstmsim.machines.multicore.words import ALL_CORES, LEFT_OUT, OF_JOBS, STALLS, UNIT, WARM, WORDS
from lstmsim.machines.target import PER_CYCLE, Clock, Entries, Fault, check_description
from lstmsim.model.cell import REDUCTIONS, Cell
from lstmsim.model.figures import CoreFigures
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, unused

#: What an operation of cells is to a core: an exponential and what is made of it, or one of all others.
_CLASSES = OperationClasses.grouped(
    "multicore",
    {
        "activation": "sigmoid tanh exp log_sigmoid rsqrt",
        "other": "relu multiply divide add subtract maximum minimum quantize",
    },
)


class CellWork(NamedTuple):
    """What follows the products in a time step of a cell: other states than h, and operations of a unit by class."""

    states: tuple[str, ...]
    activations: int
    others: int


@lru_cache(maxsize=256)
def cell_work(cell: Cell) -> CellWork:
    """What follows the products in a time step of a cell; the cell has no `refusal`."""
    activations = sum(_CLASSES.of_operation(node.operation) == "activation" for node in cell.nodes)
    return CellWork(tuple(name for name in cell.states if name != "h"), activations, len(cell.nodes) - activations)


def refusal(model: Model) -> str | None:
    """Why a multi-core CPU does not run a model, in a sentence; None if it does."""
    for layer in model.layers:
        reason = _refusal(layer.cell)
        if reason is not None:
            return f"cell {layer.cell.name!r} {reason}"
    if model.layer_order == "step":
        return "it runs layer after layer only"
    return None


@lru_cache(maxsize=256)
def _refusal(cell: Cell) -> str | None:
    if len(cell.stages) > 1:
        return f"multiplies in {len(cell.stages)} stages, and the cores have one barrier between products and cell"
    if any(node.operation in REDUCTIONS for node in cell.nodes):
        return "reduces over all units, for which the cores have no step"
    if cell.parameters:
        return f"has weights beside its products ({', '.join(cell.parameters)}), for which the cores have no array"
    return None


def up(number: int, by: int) -> int:
    """How many parts of a size hold a number."""
    return -(-number // by)


#: How a last-level cache finds the set of a line.
HASHES = ("bits", "xor")

_B = "BLIS, config/zen2/bli_cntx_init_zen2.c"
_GEMV = "numpy calls a BLAS's gemv for them; OpenBLAS, kernel/x86_64/sgemv_n_4.c, reads the matrix where it lies"
_PACKED = (
    "measured: OpenBLAS 0.3.31 on a two-core Zen 4, FP32: 2.0 to 2.4, and 0.6 where rows are a power of two apart "
    "(experiments/gemm_threads/this_machine.py); assumption, because no figure of a Zen 2 is known"
)
_VECTOR = "assumption, because a core loads and stores one vector a cycle"
_KERNEL = "assumption, because multiply-adds of 4 to 5 cycles fill and drain, and a tile in registers is added to C"
_SMALL = f"{_B}: kernels for small matrices are used below 500 rows, columns or products"
_EXP = "assumption, because a vectorised exponential is 15 to 25 instructions"
_ONE = "assumption, because it is one instruction"
#: Sets and ways of a cache that one core has alone.
_MOST_SETS, _MOST_WAYS = 1 << 16, 64


def _sets(level: str) -> Key:
    return Key(f"sets of {level}, which each core has alone", "", 1, _MOST_SETS, source=_K, vary=True)


def _ways(level: str) -> Key:
    return Key(f"lines of a set of {level}", "", 1, _MOST_WAYS, source=_K, vary=True)


def _rate(meaning: str, source: str) -> Key:
    return Key(meaning, PER_CYCLE, 1, 4096, source=source, vary=True)


@checked("core")
@hashed_once
@record
class CpuCore:
    """One core with its L1 and L2. Each field says its meaning, unit and source.

    The defaults are those of the preset `epyc-7742`.

    >>> core = CpuCore()
    >>> core.peak, core.mistakes()
    (16, [])
    """

    l1_sets: Annotated[int, _sets("L1")] = 64
    l1_ways: Annotated[int, _ways("L1")] = 8
    l2_sets: Annotated[int, _sets("L2")] = 1024
    l2_ways: Annotated[int, _ways("L2")] = 8
    overlap: Annotated[
        bool, Key("whether transfers between levels and computing overlap each other", source=f"{_K}: for Zen 2, true")
    ] = True
    l2_cycles_per_line: Annotated[int, _cycles("a line between L1 and L2", f"{_K}: 32 bytes a cycle")] = 2
    llc_cycles_per_line: Annotated[
        int, _cycles("a line between L2 and the last-level cache", f"{_K}: 24 bytes a cycle, 2.67 cycles")
    ] = 3
    core_memory_cycles_per_line: Annotated[
        int, _cycles("a line that one core draws from memory", f"{_K}: load on one core 21.77 GB/s, 6.6 cycles")
    ] = 7
    macs_per_cycle: Annotated[int, _rate("multiply-accumulates", f"{_K}: 32 FP32 operations a cycle")] = 16
    lanes: Annotated[int, _rate("elements of a vector", f"{_K}: vectors of 32 bytes")] = 8
    mr: Annotated[int, _rate("rows of a micro-tile", f"{_B}: sgemm 6 x 16")] = 6
    nr: Annotated[int, _rate("columns of a micro-tile", f"{_B}: sgemm 6 x 16")] = 16
    kernel_cycles: Annotated[int, _cycles("of each call of the micro-kernel", _KERNEL)] = 16
    exact_rows: Annotated[bool, Key("whether a tile of fewer rows takes less time", source=_SMALL)] = True
    gemv: Annotated[
        bool, Key("whether products with one row (M = 1) have a kernel that packs neither A nor B", source=_GEMV)
    ] = True
    pack_per_cycle: Annotated[int, _rate("elements packed", _PACKED)] = 2
    update_per_cycle: Annotated[int, _rate("elements of a buffer added to C", _VECTOR)] = 8
    activation_cycles: Annotated[int, _cycles("an activation of one vector", _EXP)] = 20
    elementwise_cycles: Annotated[int, _cycles("any other operation on one vector", _ONE)] = 1

    @property
    def peak(self) -> int:
        """Multiply-accumulates a cycle."""
        return self.macs_per_cycle

    def rows(self, rows: int) -> int:
        """Rows for which a tile, or some tiles, of `rows` rows take time."""
        return rows if self.exact_rows else up(rows, self.mr) * self.mr

    def packs_nothing(self, rows: int) -> bool:
        """Whether a product with so many rows is multiplied by the kernel that packs nothing."""
        return self.gemv and rows == 1

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs."""
        return mistakes_of(self)

    def refusal(self, model: Model) -> str | None:
        """Why this core cannot run the model, in a sentence; None if it can."""
        return refusal(model)


#: Most cores of a CPU: the largest have some hundred. A program has a thread of each memory for each core of a job.
MAX_CPU_CORES = 256
#: Most lines of all caches of a CPU together: each takes some 16 bytes while products are traced.
MAX_LINES = 1 << 25

_K = "kerncraft, examples/machine-files/Zen2_EPYC-7452.yml (the 7742 has the same core and caches)"
_A = "AnandTech, AMD Rome 2nd gen EPYC, memory subsystem"
_PATENT = "assumption, because US patent 11,989,257 gives no number"
_HALF = f"{_PATENT}: half of a cache leaves the rest to others"
_HANDOVER = "assumption, because a line passes from core to core in about a memory latency across last-level caches"


def _count(meaning: str, source: str, high: int = MAX_CPU_CORES) -> Key:
    return Key(meaning, "", 1, high, source=source, vary=True)


def _bytes(meaning: str, source: str, low: int, high: int) -> Key:
    return Key(meaning, "bytes", low, high, source=source)


def _cycles(meaning: str, source: str, low: int = 0) -> Key:
    return Key(meaning, "cycles", low, MAX_LATENCY_CYCLES, source=source, vary=True)


def _part(meaning: str) -> Key:
    return Key(f"{meaning}, as numerator and denominator", low=1, high=1000, source=_HALF)


@checked("chip")
@hashed_once
@record
class MulticoreCpu:
    """A chip: equal cores, last-level caches of neighbouring cores, memories of neighbouring cores (NUMA domains).

    Each field says its meaning, unit and source. The defaults are those of the preset `epyc-7742`.

    `InputError` if it cannot be built.

    >>> chip = MulticoreCpu("epyc", 2250, (CpuCore(),) * 64)
    >>> chip.domains, chip.groups, chip.l2_bytes, chip.core_figures[0].peak
    (4, 16, 524288, 16)
    """

    name: str
    frequency_mhz: Clock
    cores: tuple[CpuCore, ...]
    cores_per_llc: Annotated[int, _count("neighbouring cores that share a last-level cache", _K)] = 4
    cores_per_domain: Annotated[
        int, _count("neighbouring cores that share a memory", f"{_K}: four NUMA domains of a socket (NPS4)")
    ] = 16
    line: Annotated[int, _bytes("a line of every cache", _K, 1, 4096)] = 64
    page: Annotated[
        int, _bytes("a page, which lies in one memory", "assumption, because the usual page of x86-64", 1, 1 << 30)
    ] = 4096
    llc_sets: Annotated[int, _count("sets of a last-level cache", f"{_K}: 16 MiB", 1 << 20)] = 16384
    llc_ways: Annotated[int, _count("lines of a set of it", f"{_K}: 16 ways", 64)] = 16
    llc_hash: Annotated[
        str,
        Key(
            "how it finds the set of a line: bits, the line's number mod the sets; xor, XORs of many bits of it",
            choices=HASHES,
            source="assumption, because hashes are published for slices (Intel: J. D. McCalpin, TACC TR-2021-03), not "
            "for the sets in them",
        ),
    ] = "xor"
    memory_cycles_per_line: Annotated[
        int, _cycles("of one memory, for a line", f"{_K}: load on all cores of a domain 35.3 GB/s, 4.1 cycles", 1)
    ] = 4
    memory_latency: Annotated[int, _cycles("until a line is there", f"{_A}: 113 ns (NPS4)")] = 254
    remote_latency: Annotated[
        int, _cycles("more, from the memory of other cores", f"{_A}: 122 ns (NPS1), 9 ns more")
    ] = 20
    remote_cycles_per_line: Annotated[
        int, _cycles("more of the core, for a line of another memory", "assumption, because all is one socket")
    ] = 0
    handover_cycles: Annotated[int, _cycles("until a piece of C has passed from core to core", _HANDOVER)] = 250
    barrier_cycles: Annotated[
        int, _cycles("of a barrier, for each level of a binary tree", "assumption, because a level is a handover")
    ] = 250
    element_bytes: Annotated[
        int,
        Key(
            "a number, 1, 2, 4 or 8",
            "bytes",
            1,
            8,
            source="assumption, because networks are run in FP32",
            rule=lambda value: "" if value in (1, 2, 4, 8) else "must be 1, 2, 4 or 8",
        ),
    ] = 4
    k_unit: Annotated[
        int, _count("the planner's blocks of K are multiples of it", f"{_PATENT}: a reconstruction of ours", 4096)
    ] = 8
    fill: Annotated[tuple[int, int], _part("the part of a cache for the planner's blocks")] = (1, 2)
    buffer_fill: Annotated[tuple[int, int], _part("the part of L2 for a thread's buffer")] = (1, 2)
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "multicore"

    def __post_init__(self) -> None:
        check_description(self)
        wrong = [*faults_of_cores(self.cores), *joint_mistakes(vars(self), self.cores)]
        if wrong:
            raise InputError([Mistake(f"chip {self.name}: {key}", text) for key, text in wrong])

    @property
    def core(self) -> CpuCore:
        """The core that all cores are like."""
        return self.cores[0]

    @cached_property
    def bare(self) -> MulticoreCpu:
        """The chip without its name and clock: chips that differ in these alone share plans and traces."""
        return replace(self, name="", frequency_mhz=1000)

    @property
    def l1_bytes(self) -> int:
        """Bytes of the first cache of a core."""
        return self.core.l1_sets * self.core.l1_ways * self.line

    @property
    def l2_bytes(self) -> int:
        """Bytes of the second cache of a core."""
        return self.core.l2_sets * self.core.l2_ways * self.line

    @property
    def llc_bytes(self) -> int:
        """Bytes of the last-level cache of a group."""
        return self.llc_sets * self.llc_ways * self.line

    @property
    def domains(self) -> int:
        """How many memories there are."""
        return up(len(self.cores), self.cores_per_domain)

    @property
    def groups(self) -> int:
        """How many last-level caches there are."""
        return up(len(self.cores), self.cores_per_llc)

    def domain(self, core: int) -> int:
        """The memory of a core."""
        return core // self.cores_per_domain

    def group(self, core: int) -> int:
        """The last-level cache of a core."""
        return core // self.cores_per_llc

    def barrier(self, threads: int) -> int:
        """Cycles of a barrier of so many threads."""
        return self.barrier_cycles * (threads - 1).bit_length()

    @cached_property
    def core_figures(self) -> tuple[CoreFigures, ...]:
        """The cores as the accounts see them; equal cores are one object."""
        core = self.core
        columns = {"macs": core.macs_per_cycle, "lanes": core.lanes}
        settings = {"L1": self.l1_bytes, "L2": self.l2_bytes, "mr": core.mr, "nr": core.nr}
        return (CoreFigures(core.peak, core.peak, columns, settings, STALLS, WORDS, UNIT, spreads=True),) * len(
            self.cores
        )

    def remarks(self, job: Job) -> tuple[str, ...]:
        """What the simulation leaves out, and that a job without `threads` takes all cores."""
        of_jobs = (WARM, *OF_JOBS[1:]) if job.weights == "warm" else OF_JOBS
        reported = (f"left out: {'; '.join(LEFT_OUT)}", "; ".join(of_jobs))
        threads = () if job.threads is not None or len(self.cores) == 1 else (ALL_CORES,)
        return (*reported, *threads, *unused(job, "density"))


class Blocks(NamedTuple):
    """Rows of A in the second cache, columns of B in the last-level cache, length of the sums in the first cache."""

    mc: int
    nc: int
    kc: int


@lru_cache(maxsize=256)
def blocks_of(chip: MulticoreCpu) -> Blocks:
    """The blocks that fill the caches as far as the chip says (section 2.1), in whole micro-tiles, one at least."""
    part, whole = chip.fill
    core, size = chip.core, chip.element_bytes

    def multiple(number: int, unit: int) -> int:
        return max(unit, number // unit * unit)

    kc = multiple(chip.l1_bytes * part // whole // ((core.mr + core.nr) * size), chip.k_unit)
    mc = multiple(chip.l2_bytes * part // whole // (kc * size), core.mr)
    nc = multiple(chip.llc_bytes * part // whole // chip.cores_per_llc // (kc * size), core.nr)
    return Blocks(mc, nc, kc)


def faults_of_cores(cores: Sequence[CpuCore]) -> Iterator[tuple[str, str]]:
    """What is wrong with all cores together, as (key, sentence) pairs."""
    if len(set(cores)) > 1:
        yield "cores", "must be equal: all cores of a multi-core CPU are alike"
    if len(cores) > MAX_CPU_CORES:
        yield "cores", f"must be at most {MAX_CPU_CORES} cores, counts included, got {len(cores)}"


def joint_mistakes(chip: Mapping[str, Any], cores: Sequence[CpuCore]) -> Iterator[tuple[str, str]]:
    """What is wrong with numbers of a chip that are right one by one, as (key, sentence) pairs."""
    for key in ("fill", "buffer_fill"):
        part, whole = chip[key]
        if part > whole:
            yield key, f"must be at most a whole cache, got {part}/{whole}"
    line, page, size = chip["line"], chip["page"], chip["element_bytes"]
    if line % size:
        yield "line", f"must be a multiple of a number's {size} bytes (element_bytes), got {line}"
    if page % line:
        yield "page", f"must be a multiple of a line's {line} bytes, got {page}"
    groups = up(len(cores), chip["cores_per_llc"])
    lines = groups * chip["llc_sets"] * chip["llc_ways"]
    lines += sum(core.l1_sets * core.l1_ways + core.l2_sets * core.l2_ways for core in cores)
    if lines > MAX_LINES:
        yield "llc_sets", f"the caches of all cores have {lines:,} lines together, at most {MAX_LINES:,}"


class MulticoreEntries(Entries):
    """Entries of multi-core CPUs: one entry of `cores` with a `count`, for all cores are equal."""

    kind: ClassVar[str] = "multicore"
    title: ClassVar[str] = "multi-core CPU"
    chip: ClassVar[type] = MulticoreCpu
    core: ClassVar[type] = CpuCore
    batches: ClassVar[bool] = True
    threads: ClassVar[bool] = True

    def faults_of_all(self, cores: Sequence[CpuCore]) -> Sequence[str]:
        """Faults if the cores are not equal, or are too many."""
        return tuple(text for _, text in faults_of_cores(cores))

    def chip_faults(self, entry: Mapping[str, Any], cores: Sequence[CpuCore]) -> Sequence[Fault]:
        """What is wrong with numbers that are right one by one: parts of caches, lines in pages, sizes of caches."""
        numbers = {name: entry.get(name, each.default) for name, each in keys_of(MulticoreCpu).items()}
        return tuple(Fault.at(key, text) for key, text in joint_mistakes(numbers, cores))

    def check(self, chip: MulticoreCpu, job: Job) -> None:
        """`InputError` if the CPU cannot run a job, or the job asks for what it does not have."""
        self.check_job(chip.cores, job)
        refuse(Mistake(f"job {job.name}: {key}", text) for key, text in _mistakes(job))


def _mistakes(job: Job) -> list[tuple[str, str]]:
    wrong = []
    if job.cores is not None:
        text = "a multi-core CPU chooses the cores of a job: leave it out, and say with `threads` how many they are"
        wrong.append(("cores", text))
    if job.preempts:
        wrong.append(("preempts", "a multi-core CPU runs each job to its end: leave `preemption` out"))
    return wrong
