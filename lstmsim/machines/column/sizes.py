"""What the parts of a core of the column-wise NPU are as large as: rows, sums, turns, vectors, words of the control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain

from lstmsim.base.records import record
from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.rtl.layout import bits_of
from lstmsim.machines.column.shape import StageShape, outputs, pass_shapes
from lstmsim.machines.hardware import Stored, layers_of
from lstmsim.model.cell import Cell, Stage
from lstmsim.model.model import Layer, Model, Precision


def element_bits(core: ColumnCore, precision: Precision) -> int:
    """Bits of what the array of a core takes of a vector: an element, or its change, which has a bit more."""
    return precision.vector_bits + (core.delta is not None)


@record
class Sizes:
    """What the parts of a core are as large as."""

    core: ColumnCore
    models: tuple[Model, ...]  # all models that it runs
    precision: Precision  # the widths of all numbers
    stored: Stored  # what the jobs need in addition to the models

    @cached_property
    def layers(self) -> Sequence[Layer]:
        return layers_of(self.models)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(dict.fromkeys(layer.cell for layer in self.layers))

    @cached_property
    def stages(self) -> Sequence[tuple[Stage, int]]:
        """The stages of all kinds of cells, each with the units of a row block."""
        stages = [stage for cell in self.cells for stage in cell.stages]
        return [(stage, self.core.units_per_block(stage)) for stage in stages]

    @property
    def element_bits(self) -> int:
        """Bits of what the array takes of a vector: an element, or its change, which has a bit more."""
        return element_bits(self.core, self.precision)

    @property
    def places(self) -> int:
        """How many inferences have vectors and states of their own: those of each thread."""
        return self.core.threads * self.stored.inferences

    @cached_property
    def rows(self) -> int:
        """Rows of multipliers that are built: the most that a row block takes."""
        return max(units * len(stage.gates) for stage, units in self.stages)

    @cached_property
    def slots(self) -> int:
        """Sums that a row keeps apart."""
        return max(len(gate.sums) for stage, _ in self.stages for gate in stage.gates)

    @cached_property
    def sums(self) -> int:
        """Sums of a unit: the adapters of a lane."""
        return max(len(stage.sums) for stage, _ in self.stages)

    @cached_property
    def shapes(self) -> Sequence[Sequence[StageShape]]:
        """For each model the stages of all its passes."""
        passes = ([layer for layer in model.layers for _ in range(layer.directions)] for model in self.models)
        return [[shape for layer in own for shape in pass_shapes(layer, self.core)] for own in passes]

    @cached_property
    def turns(self) -> Sequence[int]:
        """For each model the turns of a step of all its passes; in sum the words of adapter constants."""
        width = self.core.tail_width
        return [sum(len(each.blocks) * -(-each.units_per_block // width) for each in own) for own in self.shapes]

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
            for node in outputs(layer.cell):
                every = by_layer and number < top and node == layer.cell.output
                elements = layer.width(node) * layer.directions * (steps if every else 2)
                total.setdefault((layer.cell, node), []).append(elements)
        # A layer's elements are free again when the layer above is through.
        return {
            key: max(map(sum, zip(own, [*own[1:], 0], strict=True))) if by_layer else sum(own)
            for key, own in total.items()
        }

    @cached_property
    def words(self) -> Mapping[str, int]:
        """Bits of what the control hands on, by name."""
        core, most = self.core, max(self.vectors.values(), default=1)
        shapes = list(chain(*self.shapes))
        widths = [each.layer.width(vector) for each in shapes for vector in each.stage.vectors]
        frames = sum(self.stored.frames.values()) * -(-max(layer.width("x") for layer in self.layers) // core.ep)
        weights = sum(len(each.blocks) * sum(map(each.groups, each.stage.vectors)) for each in shapes)
        return {
            "thread": bits_of(core.threads - 1),
            "job": bits_of(self.stored.jobs - 1),
            # a row of the control store is a stage of a pass
            "row": (len(shapes) - 1).bit_length(),
            "read": bits_of(sum(len(each.stage.vectors) for each in shapes) - 1),
            "step": bits_of(max([1, *self.stored.steps.values()])),
            "block": bits_of(max(len(each.blocks) for each in shapes)),
            "group": bits_of(max(each.groups(vector) for each in shapes for vector in each.stage.vectors)),
            "unit": bits_of(max([core.ep, *widths])),
            "bank": bits_of(core.threads * core.accumulator_banks - 1),
            "weight": bits_of(weights),
            "frame": bits_of(frames),
            "element": bits_of(self.places * most),
            "turn": bits_of(self.places * max(self.turns)),
            "constant": bits_of(sum(self.turns)),
        }

    @cached_property
    def kept(self) -> bool:
        """Whether all steps of some layer are kept for the layer above."""
        return any(model.layer_order == "layer" and len(model.layers) > 1 for model in self.models)
