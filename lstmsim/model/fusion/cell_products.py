"""The matrix products of one time step of a layer, as few as its vectors allow.

All that is known before the step begins (x, h) goes into one product: a sum that reads only one of them has zeros
under the other. So a later sum's part over x needs no product of its own. Each vector that a step itself makes is
a product of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.base.records import record
from lstmsim.model.cell import Sum
from lstmsim.model.model import Layer

__all__ = ["StepProduct", "products_of"]


@record
class StepProduct:
    """A product: some vectors side by side, times a matrix.

    vectors: names of the vectors, in the order of the columns.
    columns: elements of each vector.
    sums: names of the sums that it gives or a part of which it gives, in the order of the rows.
    rows: of each sum.
    fresh: of each sum whether this is its first part, which also brings the bias.
    sections: neighbouring rows that read the same columns: how many, the first column and the one behind the last.

    >>> from lstmsim.model.cells import cell
    >>> products_of(Layer(cell("gru"), hidden=8, input=5))[0].sections
    ((16, 0, 13), (8, 0, 5), (8, 5, 13))
    """

    vectors: tuple[str, ...]
    columns: tuple[int, ...]
    sums: tuple[str, ...]
    rows: tuple[int, ...]
    fresh: tuple[bool, ...]
    sections: tuple[tuple[int, int, int], ...]

    @property
    def tag(self) -> str:
        """What the names of its nodes begin with."""
        return ".".join(self.vectors)

    @property
    def product(self) -> str:
        """Name of the node of the product."""
        return f"{self.tag}.p"

    def start(self, name: str) -> int:
        """The first row of a sum."""
        return sum(self.rows[: self.sums.index(name)])

    def offset(self, vector: str) -> int:
        """The first column of a vector."""
        return sum(self.columns[: self.vectors.index(vector)])


def products_of(layer: Layer) -> tuple[StepProduct, ...]:
    """The products of a time step: that of x and h, then those of vectors that the step makes, as they are first read.

    layer: any layer.

    >>> from lstmsim.model.cells import cell
    >>> [(each.product, each.sums) for each in products_of(Layer(cell("gru-lbr0"), hidden=8, input=5))]
    [('x.h.p', ('r', 'z', 'n')), ('rh.p', ('n',))]
    """
    sums = [(each, layer.units(stage.rows)) for stage in layer.cell.stages for each in stage.sums]
    read = dict.fromkeys(vector for each, _ in sums for vector in each.vectors)
    outside = tuple(vector for vector in ("x", "h") if vector in read)
    groups: list[tuple[str, ...]] = [outside] if outside else []
    groups += [(vector,) for vector in read if vector not in outside]
    known: set[str] = set()
    made = []
    for vectors in groups:
        own = [(each, rows) for each, rows in sums if set(each.vectors) & set(vectors)]
        made.append(_product(layer, vectors, own, known))
        known.update(each.name for each, _ in own)
    return tuple(made)


def _product(layer: Layer, vectors: tuple[str, ...], sums: Sequence[tuple[Sum, int]], known: set[str]) -> StepProduct:
    columns = tuple(layer.width(vector) for vector in vectors)
    groups: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for each, rows in sums:
        # sums that read the same columns lie side by side
        groups.setdefault(tuple(v for v in vectors if v in each.vectors), []).append((each.name, rows))
    sections = []
    for some, members in groups.items():
        places = [vectors.index(vector) for vector in some]
        bounds = sum(columns[: min(places)]), sum(columns[: max(places) + 1])
        sections.append((sum(rows for _, rows in members), *bounds))
    every = [member for members in groups.values() for member in members]
    names = tuple(name for name, _ in every)
    fresh = tuple(name not in known for name in names)
    return StepProduct(vectors, columns, names, tuple(rows for _, rows in every), fresh, tuple(sections))
