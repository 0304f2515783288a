"""The matrix products of a layer: gates that read the same vectors are one product."""

from __future__ import annotations

from lstmsim.base.records import record
from lstmsim.model.cell import Stage
from lstmsim.model.model import Layer

__all__ = ["LayerProduct", "input_projection", "step_products"]


@record
class LayerProduct:
    """A product of a layer, for one inference and one time step.

    sums: names of the sums that it gives, in order.
    rows: how many numbers it gives, all sums together.
    vectors: names of the vectors that it reads, in the order of its columns.
    columns: how many elements these have.

    >>> LayerProduct(("nx",), 8, ("x",), 5).label
    'nx x [x]'
    """

    sums: tuple[str, ...]
    rows: int
    vectors: tuple[str, ...]
    columns: int

    @property
    def label(self) -> str:
        """Sums and vectors for people."""
        return f"{','.join(self.sums)} x [{'|'.join(self.vectors)}]"


def step_products(layer: Layer) -> tuple[LayerProduct, ...]:
    """The products of a time step, in the order in which the cell first needs their vectors.

    layer: any layer.

    >>> from lstmsim.model.cells import cell
    >>> [(each.label, each.rows, each.columns) for each in step_products(Layer(cell("gru"), hidden=8, input=5))]
    [('r,z x [x|h]', 16, 13), ('nx x [x]', 8, 5), ('nh x [h]', 8, 8)]
    """
    return tuple(
        LayerProduct(names, len(names) * layer.units(stage.rows), vectors, sum(map(layer.width, vectors)))
        for stage in layer.cell.stages
        for vectors, names in _sums_by_vectors(stage).items()
    )


def _sums_by_vectors(stage: Stage) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The sums of a stage that read the same vectors, in whatever order they name them; vectors as columns stand."""
    groups: dict[tuple[str, ...], tuple[str, ...]] = {}
    for each in stage.sums:
        vectors = tuple(name for name in stage.vectors if name in each.vectors)
        groups[vectors] = (*groups.get(vectors, ()), each.name)
    return groups


def input_projection(layer: Layer) -> LayerProduct:
    """The products of all sums with x, which can be taken for all time steps at once.

    layer: any layer of a model; some gate of its cell reads x.

    >>> from lstmsim.model.cells import cell
    >>> input_projection(Layer(cell("gru"), hidden=8, input=5)).label
    'r,z,nx x [x]'
    """
    sums = [(stage, each) for stage in layer.cell.stages for each in stage.sums if "x" in each.vectors]
    rows = sum(layer.units(stage.rows) for stage, _ in sums)
    return LayerProduct(tuple(each.name for _, each in sums), rows, ("x",), layer.input)
