"""Sizes that the parts of a core share: rows, sums, turns, vectors, for all models that it can run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from lstmsim.base.records import record
from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.shape import StageShape, pass_shapes
from lstmsim.machines.hardware import Stored, layers_of
from lstmsim.model.cell import Cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.precision import Precision

__all__ = ["Sizes", "bits_of", "chosen"]


def bits_of(largest: int) -> int:
    """Bits of a number up to `largest`, at least one."""
    return max(1, largest.bit_length())


def chosen(bits: int, inputs: int) -> int:
    """Functions of four inputs that choose one of several words.

    >>> chosen(8, 1), chosen(8, 2), chosen(8, 3), chosen(8, 8)
    (0, 8, 16, 64)
    """
    return bits * (inputs - 1 if inputs < 4 else inputs)


@record
class Sizes:
    """What the parts of a core are as large as.

    core: the core.
    models: all models that it runs.
    precision: the widths of all numbers.
    stored: what the jobs need beside the models.
    """

    core: ColumnCore
    models: tuple[Model, ...]
    precision: Precision
    stored: Stored

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The kinds of cells, each once."""
        return tuple(dict.fromkeys(layer.cell for layer in self.layers))

    @cached_property
    def layers(self) -> Sequence[Layer]:
        """The layers of all models."""
        return layers_of(self.models)

    @cached_property
    def rows(self) -> int:
        """Rows of multipliers that are built: the most that a row block takes."""
        stages = (stage for cell in self.cells for stage in cell.stages)
        return max(self.core.units_per_block(stage) * len(stage.gates) for stage in stages)

    @cached_property
    def slots(self) -> int:
        """Sums that a row keeps apart."""
        return max(len(gate.sums) for cell in self.cells for gate in cell.gates)

    @cached_property
    def sums(self) -> int:
        """Sums of a unit: the adapters of a lane."""
        return max(len(stage.sums) for cell in self.cells for stage in cell.stages)

    @cached_property
    def accumulators(self) -> int:
        """Sums of all rows that are used: a gate's row keeps as many apart as the gate has."""
        stages = (stage for cell in self.cells for stage in cell.stages)
        return max(self.core.units_per_block(stage) * len(stage.sums) for stage in stages)

    @cached_property
    def block_turns(self) -> int:
        """The most turns of a row block."""
        stages = (stage for cell in self.cells for stage in cell.stages)
        return max(-(-self.core.units_per_block(stage) // self.core.tail_width) for stage in stages)

    def shapes(self, model: Model) -> Iterator[tuple[Layer, StageShape]]:
        """Yield the stages of all passes of a model."""
        for layer in model.layers:
            for _ in range(layer.directions):
                for shape in pass_shapes(layer, self.core):
                    yield layer, shape

    def turns(self, model: Model) -> int:
        """Turns of a step of all passes of a model."""
        width = self.core.tail_width
        return sum(len(shape.blocks) * -(-shape.units_per_block // width) for _, shape in self.shapes(model))

    @cached_property
    def most_turns(self) -> int:
        """Turns of the largest model: words of a thread in a state memory."""
        return max(map(self.turns, self.models))

    @cached_property
    def constant_words(self) -> int:
        """Words of adapter constants: turns of all models."""
        return sum(map(self.turns, self.models))

    @cached_property
    def vectors(self) -> Mapping[tuple[Cell, str], int]:
        """Elements of a thread in each vector memory: one for each kind of cell and vector that it writes.

        Two steps of a vector are kept, all steps of one that a layer above reads when its own layer is through.
        """
        most: dict[tuple[Cell, str], int] = {}
        for model in self.models:
            for key, elements in self._vectors(model).items():
                most[key] = max(most.get(key, 0), elements)
        return most

    def _vectors(self, model: Model) -> Mapping[tuple[Cell, str], int]:
        by_layer, top = model.layer_order == "layer", len(model.layers) - 1
        steps = max(1, self.stored.steps.get(model.name, 1))
        total: dict[tuple[Cell, str], list[int]] = {}
        for number, layer in enumerate(model.layers):
            for node in written(layer.cell):
                every = by_layer and number < top and node == layer.cell.output
                elements = layer.width(node) * layer.directions * (steps if every else 2)
                total.setdefault((layer.cell, node), []).append(elements)
        # A layer's elements are free again when the layer above is through.
        return {
            key: max(map(sum, zip(own, [*own[1:], 0], strict=True))) if by_layer else sum(own)
            for key, own in total.items()
        }

    @cached_property
    def unit_bits(self) -> int:
        """Bits of a number of units or elements."""
        widths = (layer.width(each) for layer in self.layers for stage in layer.cell.stages for each in stage.vectors)
        return bits_of(max([self.core.ep, *widths]))

    @cached_property
    def stage_rows(self) -> int:
        """Stages of all passes of all models: rows of the control store."""
        return sum(layer.directions * len(layer.cell.stages) for layer in self.layers)

    @cached_property
    def words(self) -> Mapping[str, int]:
        """Bits of what the control hands on, by name."""
        core, most = self.core, max(self.vectors.values(), default=1)
        shapes = [shape for model in self.models for _, shape in self.shapes(model)]
        layers = self.layers
        steps = max([1, *self.stored.steps.values()])
        frames = sum(self.stored.frames.values()) * -(-max(layer.width("x") for layer in layers) // core.ep)
        weights = sum(len(each.blocks) * sum(map(each.groups, each.stage.vectors)) for each in shapes)
        return {
            "thread": bits_of(core.threads - 1),
            "job": bits_of(self.stored.jobs - 1),
            "row": (self.stage_rows - 1).bit_length(),
            "read": bits_of(sum(len(each.stage.vectors) for each in shapes) - 1),
            "step": bits_of(steps),
            "block": bits_of(max(len(each.blocks) for each in shapes)),
            "group": bits_of(max(each.groups(vector) for each in shapes for vector in each.stage.vectors)),
            "unit": self.unit_bits,
            "bank": bits_of(core.threads * core.accumulator_banks - 1),
            "weight": bits_of(weights),
            "frame": bits_of(frames),
            "element": bits_of(core.threads * most),
            "turn": bits_of(core.threads * self.most_turns),
            "constant": bits_of(self.constant_words),
        }

    @cached_property
    def kept(self) -> bool:
        """Whether all steps of some layer are kept for the layer above."""
        return any(model.layer_order == "layer" and len(model.layers) > 1 for model in self.models)

    @cached_property
    def passes(self) -> Mapping[Cell, int]:
        """Passes of all models that run on each kind of cell."""
        return {cell: sum(each.directions for each in self.layers if each.cell == cell) for cell in self.cells}


def written(cell: Cell) -> tuple[str, ...]:
    """Name the nodes that are written as vectors: h, and what later stages read."""
    read = (vector for stage in cell.stages for vector in stage.vectors if vector not in ("x", "h"))
    return tuple(dict.fromkeys((cell.output, *read)))
