"""What a machine answers about threads for a matrix product: plans, what runs, what a run came to.

A machine's planner chooses how a product is divided; its executor takes any division. A machine without such threads
has no answer (`Target.gemm_threads` is None).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import must_be
from lstmsim.machines.division import Cut, Division, Product, SubBlocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lstmsim.program.program import Program
    from lstmsim.program.trace import Trace

__all__ = [
    "CACHES",
    "CONDITIONS",
    "PACKED",
    "RELIEFS",
    "Candidate",
    "Counts",
    "GemmFigures",
    "GemmPlan",
    "GemmTask",
    "GemmThreads",
    "GemmWork",
    "SubCandidate",
    "check_word",
]

#: What lies in the caches when a product begins: nothing, or what the same product left there.
CACHES = ("cold", "warm")

#: When B is packed for the micro-kernels: before, as the weights of a recurrent job are, or by each product anew.
PACKED = ("once", "each")

#: How threads that add into the same block of C keep out of each other's way: not, by sub-blocks that they visit in
#: rotated order, by a buffer of each thread, or by both. `plan`: as the planner says.
RELIEFS = ("plan", "none", "sub", "buffer", "both")

#: The conditions of a candidate in the order in which they are added up.
CONDITIONS = ("k_fit", "mn_fit", "padding", "balance", "contention", "traffic", "cycles")


def check_word(place: str, word: object, known: Sequence[str]) -> None:
    """Raise `InputError` unless a word is one of those that are known.

    >>> check_word("caches", "warn", ("cold", "warm"))
    Traceback (most recent call last):
    lstmsim.InputError: caches: must be cold or warm, got 'warn'; did you mean 'warm'?
    """
    if word not in known:
        raise InputError(Mistake(place, must_be(word, known)))


@record
class Candidate:
    """A cut that was considered.

    cut: the cut.
    raw, normalised: its conditions by name (`CONDITIONS`), as they are and from 0 to 1 (best).
    fitness: what they add up to.
    why_not: which conditions of acceptance it fails; empty: it is accepted.
    """

    cut: Cut
    raw: Mapping[str, float]
    normalised: Mapping[str, float]
    fitness: float
    why_not: tuple[str, ...] = ()


@record
class SubCandidate:
    """Sub-blocks that were considered.

    sub_blocks: the sub-blocks.
    raw, normalised: their conditions by name: `count`, `padding`, `repack`.
    fitness: the mean of the normalised ones.
    """

    sub_blocks: SubBlocks
    raw: Mapping[str, float]
    normalised: Mapping[str, float]
    fitness: float


@record
class GemmPlan:
    """A plan, with all that led to it.

    product: the product.
    blocks: `mc`, `nc`, `kc`: the blocks that fit the caches.
    ranked: the candidates, the best first.
    chosen: place of the first of them that is accepted.
    idle: cuts that were dropped, because threads would have had nothing to do.
    sub_blocks: sub-blocks of the chosen one; None: there are none.
    sub_ranked: sub-blocks that were considered, the best first.
    buffer: whether a buffer is recommended.
    packed: whether B was packed before.
    """

    product: Product
    blocks: Mapping[str, int]
    ranked: tuple[Candidate, ...]
    chosen: int
    idle: tuple[Cut, ...]
    sub_blocks: SubBlocks | None
    sub_ranked: tuple[SubCandidate, ...]
    buffer: bool
    packed: bool = False

    @property
    def division(self) -> Division:
        """What the plan tells an executor."""
        return Division(self.product, self.ranked[self.chosen].cut, self.sub_blocks, self.buffer, self.packed)


@record
class GemmTask:
    """A product that is asked for.

    product: the product.
    threads: on how many cores.
    caches: one of `CACHES`.
    settings: parameters of the planner by name; those that are left out have their defaults.
    packed: one of `PACKED`.
    """

    product: Product
    threads: int
    caches: str = "warm"
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    packed: str = "once"


@record
class Counts:
    """Traffic of a product, over all cores.

    l1, l1_hit, l2, l2_hit, llc, llc_hit: accesses of lines at each level, and how many found the line.
    l1_l2, l2_llc: lines that moved between levels, both ways.
    memory_read, memory_write: lines from and to memory.
    remote: of them, those of a memory that is not the nearest of the core.
    transfers: lines that went from core to core because another core had written them.
    memory: lines from and to each memory.
    """

    l1: int
    l1_hit: int
    l2: int
    l2_hit: int
    llc: int
    llc_hit: int
    l1_l2: int
    l2_llc: int
    memory_read: int
    memory_write: int
    remote: int
    transfers: int
    memory: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class GemmWork:
    """A division that is ready to run.

    division: the division.
    program: the program.
    counts: its traffic; of the second of two equal products if caches are warm.
    own: what the machine keeps for the figures.
    """

    division: Division
    program: Program
    counts: Counts
    own: Any = None


@record
class GemmFigures:
    """What a run came to.

    makespan: cycles, with the barrier at the end.
    finish: of each thread, the end of its last step; 0: it has none.
    waits: cycles of all threads by cause: `contention` (for a piece of C), `barrier`, `memory`.
    counts: traffic.
    compute: cycles of arithmetic, packing and adding up, over all steps.
    of_memory: cycles that cores have only because of lines from and to memory, over all steps.
    buffer_bytes: of all buffers.
    """

    makespan: int
    finish: tuple[int, ...]
    waits: Mapping[str, int]
    counts: Counts
    compute: int
    of_memory: int
    buffer_bytes: int


class GemmThreads(Protocol):
    """The threads of a machine for matrix products.

    left_out: sentences on what is not modelled.
    parameters: of the planner, by name with their defaults.
    by_shapes: parameters of the planner for plans that follow from sizes alone, as far as they are no defaults.
    meanings: a sentence on each parameter, on each condition, and on `by_shapes`.
    """

    left_out: Sequence[str]
    parameters: Mapping[str, Any]
    by_shapes: Mapping[str, Any]
    meanings: Mapping[str, str]

    def line_bytes(self, chip: Any) -> int:
        """Bytes of a line, the unit of `Counts`."""

    def element_bytes(self, chip: Any) -> int:
        """Bytes of a number of A, B and C."""

    def packing(self, chip: Any, task: GemmTask) -> str:
        """In a sentence, what of A and B is packed when, and what that takes."""

    def plan(self, chip: Any, task: GemmTask) -> GemmPlan:
        """The planner: a plan for the product; `InputError` for settings that are wrong."""

    def division(self, chip: Any, task: GemmTask, cut: Cut, relief: str = "plan") -> Division:
        """What a cut becomes with the sub-blocks and the buffer that the planner gives it, or with a relief."""

    def mn_cuts(self, chip: Any, task: GemmTask) -> Sequence[Cut]:
        """Every cut of rows and columns alone; the first one is that of BLIS's rule."""

    def cut(
        self, chip: Any, task: GemmTask, kind: str, parts: Sequence[int], sizes: Sequence[int] | None = None
    ) -> Cut:
        """The cut into so many parts, whether a planner proposes it or not; `InputError` if its blocks do not fit.

        kind: a key of `lstmsim.machines.division.KINDS`.
        parts, sizes: of rows, columns and K: how many parts, and the size of each; None: as the planner cuts.
        """

    def lower(self, chip: Any, task: GemmTask, division: Division) -> GemmWork:
        """The executor in time: the traffic of a division, and its program."""

    def figures(self, chip: Any, work: GemmWork, trace: Trace) -> GemmFigures:
        """What the run of a program came to."""

    def computed(self, chip: Any, division: Division, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """The executor in numbers: C of shape (m, n), summed up in the order of the division's steps."""
