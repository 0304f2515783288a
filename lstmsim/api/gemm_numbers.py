"""The numbers of a threaded matrix product: computed in the order of the simulated steps, compared with numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lstmsim.api.gemm_runs import Asked
from lstmsim.numerics.matrices import Matrix, digest, drawn_matrices, largest_error, same_integers
from lstmsim.targets.gemm import Division

__all__ = ["Computed", "computed"]

#: Most multiply-accumulates of a product that is computed without being asked for.
_MOST_COMPUTED = 1 << 28


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
    if wanted is False or (wanted is None and product.macs > _MOST_COMPUTED):
        return None
    kind = {2: "float16", 4: "float32", 8: "float64"}.get(asked.threads.element_bytes(asked.chip), "float32")

    def drawn(kind: str) -> tuple[Any, Any]:
        return drawn_matrices(product.m, product.n, product.k, kind, seed)

    whole, real = drawn("int64"), drawn(kind)
    integers = asked.threads.computed(asked.chip, division, *whole)
    result = asked.threads.computed(asked.chip, division, *real)
    return Computed(same_integers(*whole, integers), kind, result, largest_error(*real, result))
