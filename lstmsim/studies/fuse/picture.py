"""A fused graph as a picture: operations in layers from top to bottom, groups in colour, where each value lies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, PathPatch
from matplotlib.path import Path as Outline

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.model.fusion.graph import COMPUTE, CONSTANT, INPUT, Graph, Node
from lstmsim.model.fusion.plan import GLOBAL, OUTPUT, REGISTER, SHARED, FusionPlan, Group, PlannedSubgraph, Stage
from lstmsim.report.figures_text import short_path
from lstmsim.report.pictures.figures import Picture, drawn, short
from lstmsim.report.styles import JOB_STYLES, SCREEN, Look, Style

Edge = tuple[int, int]
Point = tuple[float, float]

#: Sweeps that order layers, and sweeps that set places within them.
_ORDERINGS, _PLACINGS = 16, 60


@dataclass(frozen=True, eq=False)
class Drawing:
    """Where everything lies; y grows downwards."""

    centres: Mapping[int, Point]  # of each box
    # points that an edge comes past between its two boxes: where it enters a layer, and where it leaves it
    routes: Mapping[Edge, tuple[Point, ...]]
    width: float  # width, height: of all together
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


#: Most nodes of a graph that is drawn.
_MOST_NODES = 600
#: Largest side of a picture in inches; a larger one is drawn smaller.
_MOST_INCHES = 60.0
_MARGIN, _LABEL, _LEGEND = 0.14, 0.26, 0.17
#: Colour and width of the lines from a value, by where it lies.
LINES: Mapping[str, tuple[str, float]] = {
    "": ("#8A8A8A", 0.7),
    REGISTER: ("#009E73", 1.1),
    SHARED: ("#0072B2", 1.5),
    GLOBAL: ("#D55E00", 2.0),
    OUTPUT: ("#000000", 0.9),
}
_SCHEMES = {
    REGISTER: "R: register, of one thread",
    SHARED: "S: shared memory of a block (S0, S1: its buffer)",
    GLOBAL: "G: global memory, behind a grid barrier",
    OUTPUT: "O: output that no stage reads (+O: output too)",
}
_LETTER, _HEIGHT, _LOW = 0.056, 0.34, 0.2
#: The colour of grid barriers.
BARRIER = "#A00000"
#: The look of calls of a library.
_LIBRARY = Style("#4D4D4D", ink="#FFFFFF")


def refuse_large(plan: FusionPlan) -> None:
    """Raise `InputError` for a graph of more nodes than one can look at."""
    nodes = len(plan.graph.nodes)
    if nodes > _MOST_NODES:
        raise InputError(Mistake("picture", f"{nodes:,} nodes; at most {_MOST_NODES} are drawn"))


def plot(
    plan: FusionPlan, path: str | os.PathLike[str] | None = None, *, title: str = "", look: Look = SCREEN
) -> Picture:
    """Draw a graph with its plan.

    plan: the plan.
    path: a file that ends in `.png`, `.svg` or `.pdf`; None: no file.
    title: of the picture.
    look: how wide it is, and what it is made for; all is so large that it fits.

    `InputError` for a graph of more nodes than one can look at.
    """
    refuse_large(plan)
    # a dollar in a name is a dollar, and no formula
    with drawn(path, look=look, layout=None) as figure, rc_context({"text.parse_math": False}):
        page = _page(plan)
        legend = _legend(plan)
        columns = max(1, min(3, int(page.between.width // 3.4)))
        below = _LEGEND * (-(-len(legend) // columns) + 1)
        across, down = page.between.width, page.between.height
        width, height = max(across, 3.6) + 2 * _MARGIN, down + 0.35 + below + 2 * _MARGIN
        scale = look.inches / width if look.inches else min(1.0, _MOST_INCHES / max(width, height))
        figure.set_size_inches(width * scale, height * scale)
        axes = figure.add_axes((0, 0, 1, 1))
        aside = max(0.0, (3.6 - across) / 2)
        axes.set_xlim(-_MARGIN - aside, across + _MARGIN + aside)
        axes.set_ylim(down + below + _MARGIN, -0.35 - _MARGIN)
        axes.axis("off")
        _draw(axes, plan, page, scale)
        figure.caption = title
        if look.style != "paper":
            axes.text(0, -0.2, short(title, int(14 * width)), fontsize=9 * scale, weight="bold", va="center")
        plain: dict[str, Any] = {"fontsize": 6.5 * scale, "frameon": False, "handlelength": 2.2}
        axes.legend(handles=legend, loc="lower left", ncols=columns, **plain)
    return figure


@dataclass(frozen=True, eq=False)
class _Unit:
    """What stands together: the operations of a sub-graph, or a call of a library, with the inputs that they read."""

    subgraph: int
    boxes: Mapping[int, _Box]
    drawing: Drawing


@dataclass(frozen=True, eq=False)
class _Page:
    """Where everything lies."""

    units: list[_Unit]
    # of each unit: left, top, width and height; corners: where its drawing begins
    frames: list[tuple[float, float, float, float]]
    corners: list[Point]
    between: Drawing  # the drawing of units as boxes
    edges: Mapping[Edge, Edge]  # from a node of one unit to one of another: the numbers of these units


def _page(plan: FusionPlan) -> _Page:
    """Place the units, and in each of them its boxes."""
    graph, home = plan.graph, _homes(plan)
    units = [_unit(plan, number, home) for number in dict.fromkeys(home.values())]
    place = {number: at for at, number in enumerate(dict.fromkeys(home.values()))}
    edges = {
        (operand, reader): (place[home[operand]], place[home[reader]])
        for reader, operands in enumerate(graph.operands)
        for operand in operands
        if operand != CONSTANT and operand in home and home[operand] != home[reader]
    }
    frames = [_framed(plan, each) for each in units]
    between = layered(dict(enumerate(frames)), list(edges.values()), (0.35, 0.35))
    tops = [(x, y - frames[at][1] / 2) for at, (x, y) in between.centres.items()]
    # what is narrower than its frame stands in its middle
    corners = [(x - each.drawing.width / 2, y + _LABEL) for each, (x, y) in zip(units, tops, strict=True)]
    places = [(x - width / 2, y, width, height) for (x, y), (width, height) in zip(tops, frames, strict=True)]
    return _Page(units, places, corners, between, edges)


def _homes(plan: FusionPlan) -> dict[int, int]:
    """The unit of each operation: the number of its sub-graph, or below 0 for a call of a library."""
    home = {node: number for number, each in enumerate(plan.subgraphs) for node in each.nodes}
    for number, node in enumerate(plan.graph.nodes):
        if node.kind != INPUT and number not in home:
            home[number] = -1 - number
    return home


def _unit(plan: FusionPlan, unit: int, home: Mapping[int, int]) -> _Unit:
    """Lay out what stands together. What is read of others has a box at the top."""
    graph = plan.graph
    inside = {node for node, each in home.items() if each == unit}
    edges = [
        (operand, reader) for reader in sorted(inside) for operand in graph.operands[reader] if operand != CONSTANT
    ]
    known = inside | {operand for operand, _ in edges}
    others = {each for each in known - inside if graph.nodes[each].kind != INPUT}
    planned = plan.subgraphs[unit] if unit >= 0 else None
    boxes = {each: _read(graph.nodes[each]) if each in others else _box(graph, planned, each) for each in sorted(known)}
    sizes = {each: _size_of(box) for each, box in boxes.items()}
    return _Unit(unit, boxes, layered(sizes, edges, (0.16, 0.22), others))


def _framed(plan: FusionPlan, unit: _Unit) -> Point:
    """Width and height of a unit with its frame."""
    label = 0.063 * len(_label(plan, unit.subgraph)) if unit.subgraph >= 0 else 0.0
    return max(unit.drawing.width, label) + 2 * _MARGIN, unit.drawing.height + _LABEL + _MARGIN


def _draw(axes: Axes, plan: FusionPlan, page: _Page, scale: float) -> None:
    for unit, (left, top, width, height) in zip(page.units, page.frames, strict=True):
        if unit.subgraph >= 0:
            frame = _boxed((left + width / 2, top + height / 2), (width, height), 0.08)
            axes.add_patch(frame(facecolor="#F7F7F5", edgecolor="#555555", linewidth=0.9 * scale, zorder=0))
            # lines that come in from above stay under the words
            under = {"facecolor": "#F7F7F5", "edgecolor": "none", "pad": 0.6}
            look: dict[str, Any] = {"fontsize": 6.5 * scale, "va": "center", "weight": "bold", "zorder": 4}
            axes.text(left + 0.08, top + 0.12, _label(plan, unit.subgraph), bbox=under, **look)
            if plan.subgraphs[unit.subgraph].kernel.end_barrier:
                at, ends = top + height - 0.07, (left + 0.1, left + width - 0.1)
                axes.plot(ends, (at, at), color=BARRIER, linewidth=2.5 * scale, linestyle=":", zorder=4)
    for source, points in _lines(page):
        _line(axes, points, source, scale)
    for unit, corner in zip(page.units, page.corners, strict=True):
        for number, box in unit.boxes.items():
            x, y = unit.drawing.centres[number]
            _draw_box(axes, box, (x + corner[0], y + corner[1]), scale)


def _lines(page: _Page) -> Iterator[tuple[_Box, list[Point]]]:
    """The box that each line comes from, and its points."""
    for unit, corner in zip(page.units, page.corners, strict=True):
        for (start, end), route in unit.drawing.routes.items():
            middle = ((x + corner[0], y + corner[1]) for x, y in route)
            yield unit.boxes[start], [_from(unit, start, corner), *middle, _to(unit, end, corner)]
    for (start, _), (first, last) in page.edges.items():
        source, target = page.units[first], page.units[last]
        # who reads has a box of its own for what comes from others
        begins, ends = _from(source, start, page.corners[first]), _to(target, start, page.corners[last])
        yield source.boxes[start], [begins, *page.between.routes[first, last], ends]


def _from(unit: _Unit, node: int, corner: Point, side: float = 1.0) -> Point:
    (x, y), (_, height) = unit.drawing.centres[node], _size_of(unit.boxes[node])
    return x + corner[0], y + corner[1] + side * height / 2


def _to(unit: _Unit, node: int, corner: Point) -> Point:
    return _from(unit, node, corner, -1.0)


def _line(axes: Axes, points: list[Point], source: _Box, scale: float) -> None:
    """A smooth line that leaves and comes in upright."""
    colour, width = LINES[source.scheme]
    corners: list[Point] = [points[0]]
    codes: list[int] = [int(Outline.MOVETO)]
    for (x, y), (u, v) in pairwise(points):
        corners += [(x, y + 0.45 * (v - y)), (u, v - 0.45 * (v - y)), (u, v)]
        codes += [int(Outline.CURVE4)] * 3
    look: dict[str, Any] = {"fill": False, "linewidth": width * scale, "alpha": 0.85, "zorder": 2}
    axes.add_patch(PathPatch(Outline(corners, codes), edgecolor=colour, **look))


def _boxed(centre: Point, size: Point, rounding: float) -> Callable[..., FancyBboxPatch]:
    """A box with round corners, as a function of its look."""
    corner = (centre[0] - size[0] / 2, centre[1] - size[1] / 2)
    return partial(FancyBboxPatch, corner, *size, boxstyle=f"round,pad=0,rounding_size={rounding}")


def _label(plan: FusionPlan, subgraph: int) -> str:
    kernel = plan.subgraphs[subgraph].kernel
    blocks = "1 block" if kernel.blocks == 1 else f"{kernel.blocks:,} blocks"
    shared = f", {kernel.shared_bytes:,} bytes shared" if kernel.shared_bytes else ""
    return f"sub-graph {subgraph}: {blocks} of {kernel.threads:,} threads{shared}"


def _legend(plan: FusionPlan) -> list[Patch | Line2D]:
    """What colours, lines and letters mean, as far as they occur."""
    handles: list[Patch | Line2D] = []
    several = len(plan.subgraphs) > 1
    for number, each in enumerate(plan.subgraphs):
        for at, group in enumerate(each.groups):
            style, _, tag = _look_of(number, at)
            text = f"{tag}: {f'sub-graph {number}, ' if several else ''}{_group(plan.graph, group)}"
            handles.append(Patch(facecolor=style.fill, edgecolor="#333333", hatch=style.hatch, label=text))
    stages = [stage for each in plan.subgraphs for stage in each.kernel.stages]
    used = {each.scheme for each in stages}
    for scheme, text in _SCHEMES.items():
        if scheme in used:
            colour, width = LINES[scheme]
            handles.append(Line2D([], [], color=colour, linewidth=width, label=text))
    handles += list(_marks(plan, stages))
    return handles


def _marks(plan: FusionPlan, stages: list[Stage]) -> Iterator[Patch | Line2D]:
    # the pale colour of the first group that has any
    pale = next((_look_of(at, 0)[1] for at, each in enumerate(plan.subgraphs) if each.groups), "#FFFFFF")
    yield Patch(facecolor=pale, edgecolor="#999999", linewidth=0.5, label="pale: inlined where it is read")
    if any(each.grid_barrier for each in stages):
        yield Line2D([], [], color=BARRIER, linewidth=2.5, label="above a box: all blocks meet before it")
    if any(each.kernel.end_barrier for each in plan.subgraphs):
        yield Line2D([], [], color=BARRIER, linewidth=2.5, linestyle=":", label="below: all blocks meet at the end")
    if any(each.partials for each in stages):
        yield Line2D([], [], linestyle="", label="/4: in 4 pieces, each of another block")
    if any(each.free for each in plan.subgraphs):
        yield Patch(facecolor="#FFFFFF", edgecolor="#999999", linestyle=":", label="dotted: free, of no group")


def _group(graph: Graph, group: Group) -> str:
    mapping = group.mapping
    blocks = "" if mapping is None else f", {mapping.kind}: {mapping.blocks:,} x {mapping.threads:,} threads"
    return short(f"{group.kind} group, backbone {graph.nodes[group.backbone].name}{blocks}", 62)


def _look_of(subgraph: int, number: int) -> tuple[Style, str, str]:
    """The look of a group, the pale fill of what is inlined, and its short name."""
    # black is for calls of a library and for text
    known = [each for each in JOB_STYLES if each.fill != "#000000"]
    style = known[(subgraph * 3 + number) % len(known)]
    pale = "#" + "".join(f"{255 - (255 - int(style.fill[at : at + 2], 16)) // 4:02X}" for at in (1, 3, 5))
    return style, pale, f"{subgraph}.{number}"


@record
class _Box:
    """A node in the picture."""

    title: str  # title, text: its two lines; an input has one
    text: str
    fill: str  # fill, ink: its colours
    ink: str
    edge: str = "#777777"  # of its frame; `dotted`: whether this is dotted
    dotted: bool = False
    strong: bool = False  # whether it is a candidate
    badge: str = ""  # a letter for where its value lies, with its buffer
    scheme: str = ""  # the same as a scheme; empty: it is no candidate
    barrier: bool = False  # whether all blocks meet before it
    round: bool = False  # whether it is an input


def _draw_box(axes: Axes, box: _Box, centre: Point, scale: float) -> None:
    (x, y), (width, height) = centre, _size_of(box)
    shape = _boxed(centre, (width, height), 0.09 if box.round else 0.035)
    line: dict[str, Any] = {
        "linewidth": (1.2 if box.strong else 0.5) * scale,
        "linestyle": ":" if box.dotted else "-",
        "zorder": 3,
    }
    axes.add_patch(shape(facecolor=box.fill, edgecolor=box.edge, **line))
    inner = x - _badge_width(box) / 2
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    look = {**middle, "color": box.ink, "zorder": 5}
    if box.text:
        weight = "bold" if box.strong else "normal"
        axes.text(inner, y - 0.075, box.title, fontsize=6.5 * scale, weight=weight, **look)
        axes.text(inner, y + 0.08, box.text, fontsize=5.2 * scale, **look)
    else:
        axes.text(x, y, box.title, fontsize=5.6 * scale, **look)
    if box.badge:
        frame = {"boxstyle": "round,pad=0.18", "facecolor": "#FFFFFF", "edgecolor": "#333333", "linewidth": 0.5}
        right = x + width / 2 - _badge_width(box) / 2
        axes.text(right, y, box.badge, fontsize=5.8 * scale, weight="bold", bbox=frame, zorder=6, **middle)
    if box.barrier:
        at = y - height / 2 - 0.045
        axes.plot([x - width / 2, x + width / 2], [at, at], color=BARRIER, linewidth=2.5 * scale, zorder=4)


def _badge_width(box: _Box) -> float:
    return 0.12 + 0.06 * len(box.badge) if box.badge else 0.0


def _size_of(box: _Box) -> Point:
    """Width and height of a box in inches."""
    letters = max(len(box.title) * (1.12 if box.strong else 1.0), len(box.text) * 0.82)
    return max(0.34, 0.12 + _LETTER * letters) + _badge_width(box), _HEIGHT if box.text else _LOW


def _read(node: Node) -> _Box:
    """What comes from outside."""
    fill = "#ECECEC" if node.kind == INPUT else "#FFFFFF"
    return _Box(f"{short_path(node.name, 24)}: {_shape(node)}", "", fill, "#333333", "#AAAAAA", round=True)


def _box(graph: Graph, plan: PlannedSubgraph | None, number: int) -> _Box:
    node = graph.nodes[number]
    title = short_path(node.name, 24)
    if node.kind == INPUT:
        return _read(node)
    text = f"{short(node.op, 20)} {_shape(node)}"
    if plan is None or node.kind == COMPUTE:
        return _Box(title, text, _LIBRARY.fill, _LIBRARY.ink, strong=True)
    stage = plan.kernel.stage_of.get(number)
    group = next((at for at, each in enumerate(plan.groups) if number in each.members), None)
    if group is None:
        return _Box(title, text, "#FFFFFF", "#000000", "#999999", dotted=True)
    style, pale, _ = _look_of(plan.kernel.subgraph, group)
    if stage is None:
        return _Box(title, text, pale, "#000000", "#999999")
    return _Box(
        title,
        text + (f" /{stage.partials}" if stage.partials else ""),
        style.fill,
        style.ink,
        "#000000",
        strong=True,
        badge=_badge(stage, number in graph.output_numbers),
        scheme=stage.scheme,
        barrier=stage.grid_barrier,
    )


def _shape(node: Node) -> str:
    return " x ".join(map(str, node.shape)) or "1"


def _badge(stage: Stage, output: bool) -> str:
    """Where a value lies: a letter with its buffer, and whether it is an output too."""
    letter = {REGISTER: "R", OUTPUT: "O", SHARED: f"S{stage.buffer}"}.get(stage.scheme, "G")
    wanted = stage.written if stage.scheme in (REGISTER, SHARED) else output and stage.scheme != OUTPUT
    return f"{letter}+O" if wanted else letter
