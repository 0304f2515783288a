"""How a matrix product is divided: into one block for each thread, and these into sub-blocks.

A product C = A B, with A of m x k and B of k x n, is spread over threads by a `Cut`.
"""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.base.records import hashed_once, record

__all__ = ["KINDS", "Cut", "Division", "Product", "SubBlocks"]


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
    >>> cut.threads, cut.place(3), cut.owned(3, Product(7, 8, 50))
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
        """Its kind, and into how many parts rows, columns and K are cut.

        >>> Cut("NK", 1, 16, 4, 8, 32, 128).short
        'NK 1x16x4'
        """
        return f"{self.kind} {self.p_m}x{self.p_n}x{self.p_k}"

    @property
    def threads(self) -> int:
        """How many threads it is for."""
        return self.p_m * self.p_n * self.p_k

    def place(self, thread: int) -> tuple[int, int, int]:
        """Numbers of a thread's part of the rows, of the columns, and of K; the last is its place in its K-group."""
        rest, part_k = divmod(thread, self.p_k)
        return (*divmod(rest, self.p_n), part_k)

    def owned(self, thread: int, product: Product) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """Rows, columns and K range of a thread, each as (first, end); an end that is not above the first: nothing."""
        parts = zip(self.place(thread), (self.mb, self.nb, self.kb), (product.m, product.n, product.k), strict=True)
        rows, columns, ks = ((min(i * size, whole), min((i + 1) * size, whole)) for i, size, whole in parts)
        return rows, columns, ks


@hashed_once
@record
class SubBlocks:
    """How a thread's block of C is cut further.

    sm, sn: rows and columns of a sub-block.
    s_m, s_n: how many sub-blocks there are along the rows and along the columns of a whole block.
    """

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
