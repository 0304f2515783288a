"""The bodies of many models on many cores at once, written by the library in `core/` without an object for each.

Sweeps ask for them: points that differ in their bodies alone share a program (`chip_form`, `job_form`). The rules are
those of `lstmsim.machines.column.passes` for jobs on one core. What depends on a cell and its latencies alone is worked
out there and here, and becomes words (`core/bodies.cpp` says what stands where).
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Hashable, Iterable, Sequence
from ctypes import POINTER, byref, c_char_p, c_int64, c_void_p
from functools import cache, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lstmsim.machines.assembly import MAX_STEP_OPERATIONS, kinds_of
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Latency
from lstmsim.machines.column.passes import wanted
from lstmsim.machines.column.shape import depths, issue_order
from lstmsim.model.cell import Cell, Stage, segment_of, segments_by_stage
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import DISPATCH, Job
from lstmsim.native.library import Library
from lstmsim.program.body_writer import NONE
from lstmsim.program.flat import BodyRows
from lstmsim.program.operations import CAUSE_NUMBERS, Ints

#: The library, and the version of what is passed.
OWN = Library(Path(__file__).with_name("core"), 1)
#: Room for a sentence of the library.
_ROOM = 400
#: Cells with latencies whose words are kept.
_MOST_KEPT = 1024
#: What a program has of a job, but for its model and its rank.
_OF_PROGRAMS = attrgetter(
    *("steps", "arrival", "frame_interval", "cores", "batch", "after"),
    *("preempts", "affinity", "queue_limit", "patience", "threads", "session", "move_cycles"),
)


def takes_chip(chip: ColumnNpu) -> bool:
    """Whether the library writes the bodies of jobs on this chip.

    There must be a library; all weights stay on the cores, and no column is skipped.
    """
    return OWN.absence is None and all(core.weight_kib is None and core.delta is None for core in chip.cores)


def takes_jobs(jobs: Sequence[Job]) -> bool:
    """Whether the library writes the bodies of these jobs: each runs on one core, and none in a batch."""
    return not any(job.split or job.batch > 1 or job.batching is not None for job in jobs)


def chip_form(chip: ColumnNpu) -> Hashable:
    """All that a program has of a chip, but for bodies."""
    kinds = kinds_of(chip.cores)
    each = [(core.threads, core.thread_policy, core.switch_cycles, core.accumulator_banks) for core in kinds.each]
    return kinds.of, tuple(each)


def job_form(jobs: Sequence[Job]) -> Hashable:
    """All that a program has of jobs, but for bodies: equal models have equal numbers."""
    numbers: dict[tuple[tuple[Layer, ...], str], int] = {}
    rows = []
    for job in jobs:
        number = numbers.setdefault((job.model.layers, job.model.layer_order), len(numbers))
        rows.append((number, DISPATCH[job.dispatch](job), *_OF_PROGRAMS(job)))
    structures = tuple([(order, tuple(map(_structure, layers))) for layers, order in numbers])
    return structures, tuple(rows)


def _structure(layer: Layer) -> Hashable:
    """All but the sizes of a layer."""
    return layer.cell, layer.bidirectional, layer.reverse


class Asked(NamedTuple):
    """Pairs of models and cores whose bodies are asked for: their words, and where in these each pair's begin."""

    words: Ints
    pairs: Ints


class PairWords:
    """The words of models, cores and cells, each written once. Whoever was asked for lives as long as this does."""

    def __init__(self) -> None:
        self._words = array("q", (CAUSE_NUMBERS["hazard"], MAX_STEP_OPERATIONS))
        #: By `id`: where its words begin, the number of what the words of cells need of it, and itself.
        self._models: dict[int, tuple[int, int, Model]] = {}
        self._cores: dict[int, tuple[int, int, ColumnCore]] = {}
        self._places: dict[Hashable, int] = {}
        self._cells: dict[tuple[Cell, ...], int] = {}
        self._times: dict[tuple[Latency, int], int] = {}

    def __len__(self) -> int:
        return len(self._words)

    def of_models(self, models: Iterable[Model]) -> Ints:
        """Where the words of each model begin, and the number of its cells; shape (models, 2)."""
        return _rows([(self._models.get(id(each)) or self._model(each))[:2] for each in models], 2)

    def of_cores(self, cores: Iterable[ColumnCore]) -> Ints:
        """Where the words of each core begin, and the number of its latencies; shape (cores, 2)."""
        return _rows([(self._cores.get(id(each)) or self._core(each))[:2] for each in cores], 2)

    def pairs(self, models: Ints, cores: Ints) -> tuple[Asked, Ints]:
        """The words as they are now for the pairs that occur in rows of models and cores; which pair each row is."""
        _, firsts, numbers = np.unique(models[:, 0] << 32 | cores[:, 0], return_index=True, return_inverse=True)
        models, cores = models[firsts], cores[firsts]
        timed, own = np.unique(models[:, 1] << 32 | cores[:, 1], return_inverse=True)
        cells, times = list(self._cells), list(self._times)
        places = []
        for each in timed.tolist():
            which = (cells[each >> 32], *times[each & 0xFFFFFFFF])
            # small numbers: latencies would be hashed for each pair
            places.append(self._places.get(each) or self._put(each, _cells_words(*which)))
        asked = np.stack([models[:, 0], cores[:, 0], np.array(places, np.int64)[own]], axis=1)
        return Asked(np.array(self._words, dtype=np.int64), asked), numbers

    def _model(self, model: Model) -> tuple[int, int, Model]:
        cells = tuple(dict.fromkeys([layer.cell for layer in model.layers]))
        shape = (model.layers, model.layer_order)
        place = self._places.get(shape) or self._put(shape, _model_words(model, cells))
        known = self._models[id(model)] = place, self._cells.setdefault(cells, len(self._cells)), model
        return known

    def _core(self, core: ColumnCore) -> tuple[int, int, ColumnCore]:
        place = self._places.get(core) or self._put(core, _core_words(core))
        own = (core.latency, core.tail_width)
        known = self._cores[id(core)] = place, self._times.setdefault(own, len(self._times)), core
        return known

    def _put(self, key: Hashable, words: Sequence[int]) -> int:
        place = self._places[key] = len(self._words)
        self._words.extend(words)
        return place


def _rows(rows: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def new_words() -> PairWords:
    """Words of nothing so far."""
    return PairWords()


def _core_words(core: ColumnCore) -> list[int]:
    single = core.thread_policy == "fine" and core.threads > 1
    by_column = core.block_order == "column"
    arrival = core.latency.mvm_cycles(core.ep)
    return [core.ep, core.vp, core.tail_width, by_column, core.accumulator_banks, arrival, single]


def _model_words(model: Model, cells: Sequence[Cell]) -> list[int]:
    """The passes of a model, in the order of `layer_phases` or `step_phases`."""
    by_layer = model.layer_order == "layer"
    passes: list[list[int]] = []
    #: Passes of the layer below, and whether each runs backward.
    below: list[tuple[int, bool]] = []
    for number, layer in enumerate(model.layers):
        done = []
        for direction in range(layer.directions):
            backward = layer.backward(direction)
            done.append((len(passes), backward))
            x_last = not by_layer and number > 0
            sources = [word for source, other in below for word in (source, by_layer and backward != other)]
            widths = [word for stage in layer.cell.stages for word in _widths(layer, stage)]
            own = [cells.index(layer.cell), x_last, len(below), *sources, *widths]
            passes.append([len(own) + 1, *own])
        below = done
    return [by_layer, len(passes), *(word for each in passes for word in each)]


def _widths(layer: Layer, stage: Stage) -> list[int]:
    return [layer.units(stage.rows), *(layer.width(vector) for vector in stage.vectors)]


@lru_cache(_MOST_KEPT)
def _cells_words(cells: Sequence[Cell], latency: Latency, tail_width: int) -> tuple[int, ...]:
    """Where the words of each cell begin, then these."""
    words = [0] * len(cells)
    for number, cell in enumerate(cells):
        words[number] = len(words)
        words += _cell_words(cell, latency, tail_width)
    return tuple(words)


def _cell_words(cell: Cell, latency: Latency, tail_width: int) -> list[int]:
    """What gives h, and the stages of a cell."""
    depth = depths(cell, vars(latency), tail_width)
    visible = {node: max(1, cycles + latency.writeback) for node, cycles in depth.items()}
    names = list(dict.fromkeys(vector for stage in cell.stages for vector in stage.vectors))
    head = [*segment_of(cell, cell.output), visible[cell.output], len(names), len(cell.stages)]
    begin, own = len(head) + 4 * len(cell.stages), list[int]()
    for stage, parts in zip(cell.stages, segments_by_stage(cell), strict=True):
        head += [len(stage.gates), len(stage.vectors), len(parts), begin + len(own)]
        own += [stage.vectors.index(each) for x_last in (False, True) for each in issue_order(stage, x_last)]
        for vector in stage.vectors:
            node = cell.output if vector == "h" else vector
            home = (NONE, 0, 0) if vector == "x" else (*segment_of(cell, node), visible[node])
            own += [names.index(vector), *home, vector == "h"]
        for part in parts:
            gives = any(node.name == cell.output for node in part.nodes)
            wants = wanted(cell, latency, tail_width, part.stage, part.index)
            own += [visible[cell.output] if gives else 1, len(wants)]
            own += [word for want in wants for word in (*want.home, want.cycles, want.lag, want.reduced)]
    return head + own


class _Made:
    """What the library has written, until nobody reads it any more."""

    def __init__(self, asked: Asked) -> None:
        self._own = c_void_p()
        self.tables, self.sizes = (c_void_p * 4)(), (c_int64 * 4)()
        message = ctypes.create_string_buffer(_ROOM)
        words, pairs = asked
        failed = _functions().lstmsim_bodies(
            *(words.ctypes.data, len(words), pairs.ctypes.data, len(pairs), byref(self._own)),
            *(self.tables, self.sizes, message, _ROOM),
        )
        if failed:
            raise RuntimeError(f"the library of points: {message.value.decode(errors='replace')}")

    def __del__(self) -> None:
        _functions().lstmsim_close(self._own)


@cache
def _functions() -> Any:
    """The functions of the library with the types of their arguments."""
    library = OWN.loaded()
    numbers: list[Any] = [c_void_p, c_int64]
    made: list[Any] = [POINTER(c_void_p), POINTER(c_void_p), POINTER(c_int64)]
    library.lstmsim_bodies.argtypes = [*numbers, *numbers, *made, c_char_p, c_int64]
    library.lstmsim_bodies.restype = c_int64
    library.lstmsim_close.argtypes, library.lstmsim_close.restype = [c_void_p], None
    return library


def write(asked: Asked) -> BodyRows:
    """The bodies of pairs, in their order. The interpreter is free meanwhile."""
    made = _Made(asked)
    addresses, sizes = [each or 0 for each in made.tables], list(made.sizes)
    pairs = np.array((c_int64 * (4 * sizes[3])).from_address(addresses[3]), dtype=np.int64).reshape(-1, 4)
    return BodyRows(tuple(addresses[:3]), tuple(sizes[:3]), pairs, made)
