"""A matrix product C = A B on threads: how it is partitioned, plans, and what runs came to.

A machine's planner chooses how a product is divided; its executor takes any division. Both are plain functions of the
module `gemm` in the machine's folder (`lstmsim.machines.registry.capability`); a machine without such threads has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import hashed_once, record
from lstmsim.base.wording import must_be

if TYPE_CHECKING:
    from lstmsim.program.program import Program


#: Kinds of cuts, each with what it cuts. Planners propose the first three; executors take all.
KINDS: Mapping[str, str] = {
    "MN": "rows and columns of C",
    "MK": "rows of C and K",
    "NK": "columns of C and K",
    "MNK": "rows and columns of C, and K",
}


@hashed_once
@record
class Product:
    """C = A B.

    m, n, k: rows of C, columns of C, length of the sums.
    """

    m: int
    n: int
    k: int

    @property
    def macs(self) -> int:
        """Useful multiply-accumulates."""
        return self.m * self.n * self.k


@hashed_once
@record
class Cut:
    """How a product is cut into one block for each thread.

    kind: a key of `KINDS`.
    p_m, p_n, p_k: into how many parts rows, columns and K are cut; their product is the number of threads.
    mb, nb, kb: size of a part; the last one may be smaller, and some threads may have none.

    >>> cut = Cut("MK", 2, 1, 2, 4, 8, 32)
    >>> cut.threads, cut.rank(3), cut.owned(3, Product(7, 8, 50))
    (4, (1, 0, 1), ((4, 7), (0, 8), (32, 50)))
    """

    kind: str
    p_m: int
    p_n: int
    p_k: int
    mb: int
    nb: int
    kb: int

    @property
    def short(self) -> str:
        """Its kind, and into how many parts rows, columns and K are cut, like `NK 1x16x4`."""
        return f"{self.kind} {self.p_m}x{self.p_n}x{self.p_k}"

    @property
    def threads(self) -> int:
        """How many threads it is for."""
        return self.p_m * self.p_n * self.p_k

    def rank(self, thread: int) -> tuple[int, int, int]:
        """Numbers of a thread's part of the rows, of the columns, and of K; the last is its rank in its K-group."""
        rest, part_k = divmod(thread, self.p_k)
        return (*divmod(rest, self.p_n), part_k)

    def owned(self, thread: int, product: Product) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """Rows, columns and K range of a thread, each as (first, end); an end that is not above the first: nothing."""
        parts = zip(self.rank(thread), (self.mb, self.nb, self.kb), (product.m, product.n, product.k), strict=True)
        rows, columns, ks = ((min(i * size, whole), min((i + 1) * size, whole)) for i, size, whole in parts)
        return rows, columns, ks


@hashed_once
@record
class SubBlocks:
    """How a thread's block of C is cut further: rows and columns of a sub-block, and how many a whole block has."""

    sm: int
    sn: int
    s_m: int
    s_n: int

    @property
    def count(self) -> int:
        """How many sub-blocks a whole block has."""
        return self.s_m * self.s_n


@hashed_once
@record
class Division:
    """Everything that an executor needs to know about one product.

    product, cut: the product, and the block of each thread.
    sub_blocks: how blocks of C are cut further; None: they are not.
    buffer: whether each thread sums up in a buffer of its own, and adds that into C at the end. Only if `p_k` > 1.
    packed: whether B was packed before (weights of a recurrent job).
    """

    product: Product
    cut: Cut
    sub_blocks: SubBlocks | None = None
    buffer: bool = False
    packed: bool = False


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
    """Sub-blocks that were considered, with conditions `count`, `padding`, `repack`; fitness: the normalised mean."""

    sub_blocks: SubBlocks
    raw: Mapping[str, float]
    normalised: Mapping[str, float]
    fitness: float


@record
class GemmPlan:
    """A plan, with all that led to it.

    blocks: `mc`, `nc`, `kc`: the blocks that fit the caches.
    ranked: the candidates, the best first.
    chosen: rank of the first of them that is accepted.
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
        """The division that an executor runs by this plan."""
        return Division(self.product, self.ranked[self.chosen].cut, self.sub_blocks, self.buffer, self.packed)


@record
class GemmTask:
    """A product that is asked for on so many cores, with one of `CACHES` and one of `PACKED`.

    settings: parameters of the planner by name; those that are left out have their defaults.
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

    counts: its traffic; of the second of two equal products if caches are warm.
    own: what the machine keeps for the figures.
    """

    division: Division
    program: Program
    counts: Counts
    own: Any = None


@record
class GemmFigures:
    """The figures of a run.

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
