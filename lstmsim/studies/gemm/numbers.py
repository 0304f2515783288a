"""The numbers of a threaded matrix product: computed in the order of the simulated steps, compared with numpy."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.machines.gemm import Division
from lstmsim.model.numerics.matrices import Matrix, digest, drawn_matrices, largest_error, same_integers
from lstmsim.studies.gemm.runs import Asked

__all__ = ["Computed", "computed"]

#: Most multiply-accumulates, and most numbers in A and B, of a product that is computed without being asked for: some
#: seconds, and half a GiB.
_MOST_MACS, _MOST_NUMBERS = 1 << 28, 1 << 24


@dataclass(frozen=True, eq=False)
class Computed:
    """What the threads of a division computed.

    integers_equal: whether the product of drawn integers is exactly numpy's.
    kind: numpy's name of the type of the other product.
    result: that product, of shape (m, n).
    error: its largest difference from the product in 64-bit floating point, relative to the sum of the products' sizes.
    """

    integers_equal: bool
    kind: str
    result: Matrix
    error: float

    @property
    def sha256(self) -> str:
        """Of the bytes of the result, row by row."""
        return digest(self.result)


def computed(asked: Asked, division: Division, wanted: bool | None, seed: int) -> Computed | None:
    """Compute C as the threads do, once of whole numbers and once in floating point.

    asked: where it runs.
    division: of the product.
    wanted: whether it is computed; None: if the product is not too large.
    seed: of the operands.
    """
    product = division.product
    small = product.macs <= _MOST_MACS and (product.m + product.n) * product.k <= _MOST_NUMBERS
    if wanted is False or (wanted is None and not small):
        return None
    kind = {2: "float16", 4: "float32", 8: "float64"}.get(asked.threads.element_bytes(asked.chip), "float32")

    def product_of(kind: str) -> tuple[Matrix, Matrix, Matrix]:
        a, b = drawn_matrices(product.m, product.n, product.k, kind, seed)
        return a, b, asked.threads.computed(asked.chip, division, a, b)

    # one after the other, because operands may be large
    equal = same_integers(*product_of("int64"))
    a, b, result = product_of(kind)
    return Computed(equal, kind, result, largest_error(a, b, result))
