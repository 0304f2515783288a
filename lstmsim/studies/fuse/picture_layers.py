"""Graphs in layers from top to bottom: where boxes and edges of a drawing lie. Edges go down only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

Edge = tuple[int, int]
Point = tuple[float, float]

#: Sweeps that order layers, and sweeps that set places within them.
_ORDERINGS, _PLACINGS = 16, 60


@dataclass(frozen=True, eq=False)
class Drawing:
    """Where everything lies; y grows downwards.

    routes: points that an edge comes past between its two boxes: where it enters a layer, and where it leaves it.
    width, height: of all together.
    """

    centres: Mapping[int, Point]  # of each box
    routes: Mapping[Edge, tuple[Point, ...]]
    width: float
    height: float


@dataclass(frozen=True, eq=False)
class _Layers:
    """Boxes and places where edges cross a layer. A box is (number, -1); a crossing (number of its source, layer)."""

    rows: list[list[Edge]]
    above: dict[Edge, list[Edge]]
    below: dict[Edge, list[Edge]]


def layered(
    sizes: Mapping[int, Point], edges: Sequence[Edge], gap: Point = (0.2, 0.3), first: Set[int] = frozenset()
) -> Drawing:
    """Lay out a graph without cycles."""
    if not sizes:
        return Drawing({}, {}, 0.0, 0.0)
    wanted = list(dict.fromkeys(edges))
    layer = _layer_of(sizes, wanted, first)
    layers = _with_crossings(sizes, wanted, layer)
    _order(layers)
    places = _places(layers, sizes, gap[0])
    tops = _tops(layers, sizes, gap[1])
    left = min(places[each] - _half(each, sizes) for row in layers.rows for each in row)
    right = max(places[each] + _half(each, sizes) for row in layers.rows for each in row)

    def across(each: Edge) -> tuple[Point, Point]:
        level = layer[each[0]] if each[1] < 0 else each[1]
        x = places[each] - left
        return (x, tops[level]), (x, tops[level + 1] - gap[1])

    ends = {number: across((number, -1)) for number in sizes}
    centres = {number: (x, (top + bottom) / 2) for number, ((x, top), (_, bottom)) in ends.items()}
    routes = {
        (start, end): tuple(point for level in range(layer[start] + 1, layer[end]) for point in across((start, level)))
        for start, end in wanted
    }
    return Drawing(centres, routes, right - left, tops[-1] - gap[1])


def _layer_of(sizes: Mapping[int, Point], edges: Sequence[Edge], first: Set[int]) -> dict[int, int]:
    """The layer of each box: as high as it can be; but what hangs on nothing, or on one such box, is low.

    So a parameter and what is made of it stand just above the first who reads them.
    """
    above: dict[int, list[int]] = {each: [] for each in sizes}
    below: dict[int, list[int]] = {each: [] for each in sizes}
    for start, end in edges:
        above[end].append(start)
        below[start].append(end)
    layer: dict[int, int] = {}
    left = {each: len(above[each]) for each in sizes}
    ready = [each for each in sizes if not left[each]]
    while ready:
        each = ready.pop()
        layer[each] = max((layer[one] + 1 for one in above[each]), default=0)
        for one in below[each]:
            left[one] -= 1
            if not left[one]:
                ready.append(one)
    order = sorted(sizes, key=layer.__getitem__)
    light: set[int] = set()
    for each in order:
        if each not in first and (not above[each] or (len(above[each]) == 1 and above[each][0] in light)):
            light.add(each)
    for each in reversed(order):
        if each in light and below[each]:
            layer[each] = min(layer[one] for one in below[each]) - 1
    top = min(layer.values())
    return {each: layer[each] - top for each in sizes}


def _with_crossings(sizes: Mapping[int, Point], edges: Sequence[Edge], layer: Mapping[int, int]) -> _Layers:
    """All edges of a box share what they cross, so that few lines go far."""
    rows: list[list[Edge]] = [[] for _ in range(max(layer.values()) + 1)]
    above: dict[Edge, list[Edge]] = {(each, -1): [] for each in sizes}
    below: dict[Edge, list[Edge]] = {(each, -1): [] for each in sizes}
    for each in sizes:
        rows[layer[each]].append((each, -1))
    for start, end in sorted(edges, key=lambda edge: layer[edge[1]]):
        last: Edge = (start, -1)
        for level in range(layer[start] + 1, layer[end]):
            here = (start, level)
            if here not in above:
                above[here], below[here] = [last], []
                below[last].append(here)
                rows[level].append(here)
            last = here
        above[end, -1].append(last)
        below[last].append((end, -1))
    return _Layers(rows, above, below)


def _order(layers: _Layers) -> None:
    """Sort each layer by the middle of its neighbours, down and up in turn; the order with fewest crossings stays."""
    best, fewest = [list(row) for row in layers.rows], _crossings(layers)
    for sweep in range(_ORDERINGS):
        down = sweep % 2 == 0
        near = layers.above if down else layers.below
        rows = layers.rows if down else layers.rows[::-1]
        for before, row in pairwise(rows):
            rank = {each: place for place, each in enumerate(before)}
            own = {each: float(place) for place, each in enumerate(row)}
            for each in row:
                ranks = [rank[one] for one in near[each] if one in rank]
                own[each] = sum(ranks) / len(ranks) if ranks else own[each]
            row.sort(key=own.__getitem__)
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(row) for row in layers.rows], crossings
    layers.rows[:] = best


def _crossings(layers: _Layers) -> int:
    crossings = 0
    for before, row in pairwise(layers.rows):
        rank = {each: place for place, each in enumerate(row)}
        seen: list[int] = []
        for each in before:
            ends = sorted(rank[one] for one in layers.below[each] if one in rank)
            crossings += sum(one > end for end in ends for one in seen)
            seen += ends
    return crossings


def _half(each: Edge, sizes: Mapping[int, Point]) -> float:
    return sizes[each[0]][0] / 2 if each[1] < 0 else 0.04


def _places(layers: _Layers, sizes: Mapping[int, Point], gap: float) -> dict[Edge, float]:
    """Places from left to right: each is drawn towards the mean of its neighbours, as far as its own row allows."""
    places: dict[Edge, float] = {}
    for row in layers.rows:
        at = 0.0
        for each in row:
            at += _half(each, sizes)
            places[each] = at
            at += _half(each, sizes) + gap
    for sweep in range(_PLACINGS):
        rows = layers.rows if sweep % 2 == 0 else layers.rows[::-1]
        for row in rows:
            wanted, weights = [], []
            for each in row:
                near = layers.above[each] + layers.below[each]
                # lines that go far are straight
                pulls = [1.0 if one[1] < 0 or each[1] < 0 else 8.0 for one in near]
                mean = sum(pull * places[one] for pull, one in zip(pulls, near, strict=True)) / max(1.0, sum(pulls))
                wanted.append(mean if near else places[each])
                weights.append(1.0 if each[1] < 0 else 2.0)
            distances = [0.0] + [_half(a, sizes) + _half(b, sizes) + gap for a, b in pairwise(row)]
            for each, place in zip(row, _apart(wanted, weights, distances), strict=True):
                places[each] = place
    return places


def _apart(wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]) -> list[float]:
    """Places in order that are at least so far apart, and as near as can be to what is wanted (by squares)."""
    offsets, at = [], 0.0
    for each in distances:
        at += each
        offsets.append(at)
    pools: list[list[float]] = []  # mean, weight, how many
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        pools.append([want - offset, weight, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, heavy, count = pools.pop()
            last = pools[-1]
            last[0] = (last[0] * last[1] + mean * heavy) / (last[1] + heavy)
            last[1] += heavy
            last[2] += count
    means = [mean for mean, _, count in pools for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _tops(layers: _Layers, sizes: Mapping[int, Point], gap: float) -> list[float]:
    """Where each layer begins, and where one more would."""
    tops = [0.0]
    for row in layers.rows:
        tops.append(tops[-1] + max((sizes[each[0]][1] for each in row if each[1] < 0), default=0.0) + gap)
    return tops
