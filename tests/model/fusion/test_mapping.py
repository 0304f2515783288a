"""Which threads compute a group: worked examples, limits of each rule, owners one by one; docs/fusion.md, section 5."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from lstmsim.model.fusion.graph import Graph, Sketch
from lstmsim.model.fusion.mapping import grouped, mapped, mapping_decision, owners_by_rule
from lstmsim.model.fusion.plan import FusionDevice, Group, ThreadMapping, up
from lstmsim.model.fusion.planner import clusters
from tests.model.fusion.golden import cases, device_of, graph_of

V100 = FusionDevice()
COSTED = FusionDevice(split_rule="costed")


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_the_golden_cases(case: dict[str, Any]) -> None:
    """None of them has a smaller wave than the first."""
    graph, device = graph_of(case), device_of(case)
    for nodes, plan in zip(clusters(graph)[0], case["expect"]["plans"], strict=True):
        for group, wanted in zip(grouped(graph, nodes).groups, plan["groups"], strict=True):
            mapping = mapped(group, device, device.wave(1024, 0))
            if wanted["mapping"]["kind"] != "adapted":
                assert {name: getattr(mapping, name) for name in wanted["mapping"]} == wanted["mapping"]


def _reduced(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Graph, Group]:
    draw = Sketch()
    graph = draw.graph("g", (draw.reduce("reduce_sum", "s", draw.input("x", shape), axes),))
    return graph, grouped(graph, [1]).groups[0]


def _row(rows: int, length: int, device: FusionDevice = V100, wave: int = 160) -> ThreadMapping:
    return mapped(Group((1,), 1, (), "row", rows, length), device, wave)


def _column(rows: int, length: int, device: FusionDevice = V100, wave: int = 160) -> ThreadMapping:
    return mapped(Group((1,), 1, (), "column", rows, length), device, wave)


def _numbers(mapping: ThreadMapping) -> tuple[str, int, int, int, int, int, int, int]:
    return (
        mapping.kind,
        mapping.blocks,
        mapping.threads,
        mapping.lanes,
        mapping.per_block,
        mapping.tasks,
        mapping.pieces,
        mapping.piece,
    )


@pytest.mark.parametrize(
    ("rows", "length", "wave", "wanted"),
    [
        # the published examples
        (4, 2048, 16, ("split", 16, 512, 512, 1, 1, 4, 512)),
        (750000, 32, 160, ("pack", 160, 1024, 32, 32, 147, 1, 32)),
        (64, 30000, 160, ("split", 128, 1024, 1024, 1, 1, 2, 15008)),
        # a row that one block takes: just short enough, or just enough rows
        (1, 1024, 160, ("pack", 1, 1024, 1024, 1, 1, 1, 1024)),
        (1, 1025, 160, ("split", 33, 32, 32, 1, 1, 33, 32)),
        (160, 2048, 160, ("pack", 160, 1024, 1024, 1, 1, 1, 2048)),
        (159, 2048, 160, ("pack", 159, 1024, 1024, 1, 1, 1, 2048)),
        # pieces are whole warps, so fewer than there are blocks
        (3, 1056, 75, ("split", 51, 64, 64, 1, 1, 17, 64)),
        # no more rows in a block than bring the grid into one wave
        (8, 64, 160, ("pack", 8, 64, 64, 1, 1, 1, 64)),
        (161, 64, 160, ("pack", 81, 128, 64, 2, 1, 1, 64)),
        # tiles are spread evenly: 161 of them in twos are 81 blocks, not 160
        (161 * 16, 64, 160, ("pack", 81, 1024, 64, 16, 2, 1, 64)),
        (10, 40, 1, ("pack", 1, 640, 64, 10, 1, 1, 40)),
    ],
)
def test_rows(rows: int, length: int, wave: int, wanted: tuple[Any, ...]) -> None:
    assert _numbers(_row(rows, length, wave=wave)) == wanted


@pytest.mark.parametrize(
    ("rows", "length", "wave", "wanted"),
    [
        (30, 4, 160, ("column", 1, 128, 32, 1, 1, 1, 4)),
        # as many tiles as blocks, or more: nothing is split, however long
        (160 * 32, 5000, 160, ("column", 160, 1024, 32, 1, 1, 1, 5000)),
        (161 * 32 - 31, 5000, 160, ("column", 81, 1024, 32, 1, 2, 1, 5000)),
        (500 * 32, 3, 160, ("column", 125, 96, 32, 1, 4, 1, 3)),
        # fewer: split, but a block has 32 elements of a column at least
        (32, 33, 160, ("column", 2, 544, 32, 1, 1, 2, 17)),
        (64, 320, 160, ("column", 20, 1024, 32, 1, 1, 10, 32)),
        (64, 320, 7, ("column", 6, 1024, 32, 1, 1, 3, 107)),
        # up(10, 4) = 3, and that is 4 pieces; up(9, 4) = 3 is only 3
        (32, 9 * 32, 160, ("column", 9, 1024, 32, 1, 1, 9, 32)),
        (32, 257, 4, ("column", 4, 1024, 32, 1, 1, 4, 65)),
        (32, 162, 160, ("column", 6, 864, 32, 1, 1, 6, 27)),
    ],
)
def test_columns(rows: int, length: int, wave: int, wanted: tuple[Any, ...]) -> None:
    assert _numbers(_column(rows, length, wave=wave)) == wanted


@pytest.mark.parametrize(
    ("size", "wave", "wanted"),
    [
        (1, 160, ("element", 1, 32, 32, 1, 1, 1, 1)),
        (256, 160, ("element", 1, 256, 256, 1, 1, 1, 256)),
        (257, 160, ("element", 2, 256, 256, 1, 1, 1, 257)),
        (256 * 161, 160, ("element", 81, 256, 256, 1, 2, 1, 256 * 161)),
    ],
)
def test_elements(size: int, wave: int, wanted: tuple[Any, ...]) -> None:
    assert _numbers(mapped(Group((1,), 1, (), "element", size, 1), V100, wave)) == wanted


def test_costed_splits_only_what_is_worth_a_grid_barrier() -> None:
    """A turn costs 400 cycles and a barrier 3830: nine turns of a block cost less, ten cost more."""
    assert _row(1, 9 * 1024).kind == "split"
    assert _row(1, 9 * 1024, COSTED).kind == "pack"
    assert _row(1, 9 * 1024 + 1, COSTED) == _row(1, 9 * 1024 + 1)
    assert _column(32, 9 * 32).pieces == 9
    assert _column(32, 9 * 32, COSTED).pieces == 1
    assert _column(32, 9 * 32 + 1, COSTED) == _column(32, 9 * 32 + 1)
    # equal costs: no split
    even = FusionDevice(split_rule="costed", turn_cycles=383)
    assert _row(1, 10 * 1024, even).kind == "pack"
    assert _column(32, 10 * 32, even).pieces == 1


def test_a_small_block_changes_lanes_and_pieces() -> None:
    small = FusionDevice(block_threads=64, split_length=16)
    assert _numbers(_row(1, 500, small, 4)) == ("split", 4, 64, 64, 1, 1, 4, 128)
    assert _numbers(_row(9, 500, small, 4)) == ("pack", 3, 64, 64, 1, 3, 1, 500)
    assert _numbers(_column(32, 8, small, 4)) == ("column", 4, 64, 32, 1, 1, 4, 2)


def _expected(group: Group, mapping: ThreadMapping, result: int, position: int) -> tuple[int, int]:
    """The block and thread of one element, as sections 5.1 and 5.2 have them."""
    if group.kind == "row" and mapping.kind == "split":
        return (result * mapping.pieces + position // mapping.piece, position % mapping.piece % mapping.threads)
    if group.kind == "row":
        tile = result // mapping.per_block
        return tile // mapping.tasks, result % mapping.per_block * mapping.lanes + position % mapping.lanes
    high = mapping.threads // 32
    if mapping.pieces > 1:
        block = result // 32 * mapping.pieces + position // mapping.piece
        return block, position % mapping.piece % high * 32 + result % 32
    return result // 32 // mapping.tasks, position % high * 32 + result % 32


@pytest.mark.parametrize(
    ("shape", "axes", "wave", "kind"),
    [
        ((3, 40, 50), (1, 2), 9, "split"),
        # a piece of 5024 elements is no multiple of a block's 1024 threads
        ((1, 10020), (1,), 2, "split"),
        ((37, 5, 9), (2,), 3, "pack"),
        ((7, 70), (1,), 2, "pack"),
        ((100, 40), (0,), 9, "column"),
        ((9, 33, 5), (1,), 1, "column"),
        ((9, 5, 11, 4), (0, 2), 2, "column"),
    ],
)
def test_every_element_has_its_owner(shape: tuple[int, ...], axes: tuple[int, ...], wave: int, kind: str) -> None:
    graph, group = _reduced(shape, axes)
    mapping = mapped(group, V100, wave)
    assert mapping.kind == kind
    owners = owners_by_rule(graph, group, mapping, V100)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    for flat, place in enumerate(product(*map(range, shape))):
        result = int(np.ravel_multi_index([place[each] for each in kept], [shape[each] for each in kept]))
        position = int(np.ravel_multi_index([place[each] for each in axes], [shape[each] for each in axes]))
        assert (owners.block[flat], owners.thread[flat]) == _expected(group, mapping, result, position), place
    assert owners.block.max() == mapping.blocks - 1
    assert owners.thread.max() < mapping.threads


def test_elements_go_to_tiles_and_tiles_to_blocks() -> None:
    draw = Sketch()
    graph = draw.graph("g", (draw.element("tanh", "y", draw.input("x", (1000,))),))
    (group,) = grouped(graph, [1]).groups
    mapping = mapped(group, V100, 2)
    owners = owners_by_rule(graph, group, mapping, V100)
    assert mapping.tasks == 2
    assert owners.block.tolist() == [each // 512 for each in range(1000)]
    assert owners.thread.tolist() == [each % 256 for each in range(1000)]


@pytest.mark.parametrize(
    ("shape", "axes", "device", "wave", "because"),
    [
        ((64, 30000), (1,), V100, 160, "64 rows of 30,000 elements, longer than 1,024, would fill only 64 of 160"),
        (
            (1, 512),
            (1,),
            V100,
            160,
            "no row is longer than 1,024 elements; 1 row of 512 elements: 1 tile for 160 blocks of 1,024 "
            "threads that are on the device at once",
        ),
        ((200, 2048), (1,), V100, 160, "200 rows are enough for 160 blocks; 200 rows of 2,048 elements: 200 tiles"),
        ((2, 2048), (1,), V100, 3, "3 blocks are too few to give each row two"),
        ((1, 2048), (1,), COSTED, 160, "2 turns of 400 cycles in one block cost no more than a grid barrier of 3,830"),
        ((4, 5120), (0,), V100, 160, "5,120 columns of 4 elements: 160 tiles for 160 blocks of 1,024 threads"),
        ((4, 5120), (0,), V100, 150, "160 tiles for 150 blocks, as planned anew"),
        ((320, 32), (0,), V100, 160, "32 columns of 320 elements would fill only 1 of 160 blocks"),
        ((64, 32), (0,), COSTED, 160, "2 turns of 400 cycles in one block cost no more than a grid barrier of 3,830"),
        ((4, 32), (0,), V100, 160, "a block is done in 1 turn; 32 columns of 4 elements: 1 tile"),
    ],
)
def test_a_mapping_says_why(
    shape: tuple[int, ...], axes: tuple[int, ...], device: FusionDevice, wave: int, because: str
) -> None:
    graph, group = _reduced(shape, axes)
    reported = mapping_decision(graph, group, mapped(group, device, wave), device, wave)
    assert because in reported.because
    assert str(mapped(group, device, wave).blocks) in reported.chosen


def test_rounding_up() -> None:
    assert [up(each, 4) for each in (0, 1, 4, 5)] == [0, 1, 1, 2]
