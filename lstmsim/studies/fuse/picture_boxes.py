"""The boxes of a fused graph's picture: what stands in one, and how it looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from lstmsim.base.records import record
from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.operations import COMPUTE, INPUT
from lstmsim.model.fusion.plan import OUTPUT, REGISTER, SHARED, PlannedSubgraph, Stage
from lstmsim.report.figures_text import short_path
from lstmsim.report.looks import JOB_STYLES, Style
from lstmsim.report.pictures.styles import short
from lstmsim.studies.fuse.picture_layers import Point

__all__ = ["BARRIER", "Box", "Way", "boxes_of", "size_of", "way_of"]

_LETTER, _HEIGHT, _LOW = 0.056, 0.34, 0.2
#: The colour of grid barriers.
BARRIER = "#A00000"
#: The look of calls of a library.
_LIBRARY = Style("#4D4D4D", ink="#FFFFFF")


@record
class Way:
    """The look of a group.

    fill: of its candidates; pale: of what is inlined.
    ink: of text on `fill`.
    hatch: of the legend, where colours come again.
    tag: its short name.
    """

    fill: str
    pale: str
    ink: str
    hatch: str
    tag: str


def way_of(subgraph: int, number: int) -> Way:
    """The look of a group.

    subgraph: number of its sub-graph.
    number: of the group there.
    """
    # black is for calls of a library and for text
    known = [each for each in JOB_STYLES if each.fill != "#000000"]
    style = known[(subgraph * 3 + number) % len(known)]
    pale = "#" + "".join(f"{255 - (255 - int(style.fill[at : at + 2], 16)) // 4:02X}" for at in (1, 3, 5))
    return Way(style.fill, pale, style.ink, style.hatch, f"{subgraph}.{number}")


@record
class Box:
    """A node in the picture.

    title, text: its two lines; an input has one.
    fill, ink: its colours.
    edge: of its frame; `dotted`: whether this is dotted.
    strong: whether it is a candidate.
    badge: a letter for where its value lies, with its buffer.
    scheme: the same as a scheme; empty: it is no candidate.
    barrier: whether all blocks meet before it.
    round: whether it is an input.
    """

    title: str
    text: str
    fill: str
    ink: str
    edge: str = "#777777"
    dotted: bool = False
    strong: bool = False
    badge: str = ""
    scheme: str = ""
    barrier: bool = False
    round: bool = False

    def draw(self, axes: Axes, centre: Point, scale: float) -> None:
        """Draw it.

        axes: where.
        centre: its middle.
        scale: of letters and lines.
        """
        (x, y), (width, height) = centre, size_of(self)
        style = f"round,pad=0,rounding_size={0.09 if self.round else 0.035}"
        shape = FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle=style,
            facecolor=self.fill,
            edgecolor=self.edge,
            linewidth=(1.2 if self.strong else 0.5) * scale,
            linestyle=":" if self.dotted else "-",
            zorder=3,
        )
        axes.add_patch(shape)
        inner = x - _badge_width(self) / 2
        look: dict[str, Any] = {"ha": "center", "va": "center", "color": self.ink, "zorder": 5}
        if self.text:
            weight = "bold" if self.strong else "normal"
            axes.text(inner, y - 0.075, self.title, fontsize=6.5 * scale, weight=weight, **look)
            axes.text(inner, y + 0.08, self.text, fontsize=5.2 * scale, **look)
        else:
            axes.text(x, y, self.title, fontsize=5.6 * scale, **look)
        if self.badge:
            right = x + width / 2 - _badge_width(self) / 2
            box: dict[str, Any] = {
                "boxstyle": "round,pad=0.18",
                "facecolor": "#FFFFFF",
                "edgecolor": "#333333",
                "linewidth": 0.5,
            }
            axes.text(
                right, y, self.badge, fontsize=5.8 * scale, weight="bold", ha="center", va="center", bbox=box, zorder=6
            )
        if self.barrier:
            at = y - height / 2 - 0.045
            axes.plot([x - width / 2, x + width / 2], [at, at], color=BARRIER, linewidth=2.5 * scale, zorder=4)


def _badge_width(box: Box) -> float:
    return 0.12 + 0.06 * len(box.badge) if box.badge else 0.0


def size_of(box: Box) -> Point:
    """Width and height of a box in inches."""
    letters = max(len(box.title) * (1.12 if box.strong else 1.0), len(box.text) * 0.82)
    return max(0.34, 0.12 + _LETTER * letters) + _badge_width(box), _HEIGHT if box.text else _LOW


def boxes_of(
    graph: Graph, plan: PlannedSubgraph | None, nodes: Sequence[int], others: Set[int] = frozenset()
) -> Mapping[int, Box]:
    """The boxes of operations and of the inputs that they read.

    graph: the graph.
    plan: of the sub-graph; None: the operations are calls of a library.
    nodes: their numbers.
    others: those among them that come from elsewhere.
    """
    return {each: _read(graph.nodes[each]) if each in others else _box(graph, plan, each) for each in nodes}


def _read(node: Node) -> Box:
    """What comes from outside."""
    fill = "#ECECEC" if node.kind == INPUT else "#FFFFFF"
    return Box(f"{short_path(node.name, 24)}: {_shape(node)}", "", fill, "#333333", "#AAAAAA", round=True)


def _box(graph: Graph, plan: PlannedSubgraph | None, number: int) -> Box:
    node = graph.nodes[number]
    title = short_path(node.name, 24)
    if node.kind == INPUT:
        return _read(node)
    text = f"{short(node.op, 20)} {_shape(node)}"
    if plan is None or node.kind == COMPUTE:
        return Box(title, text, _LIBRARY.fill, _LIBRARY.ink, strong=True)
    stage = plan.kernel.stage_of.get(number)
    group = next((at for at, each in enumerate(plan.groups) if number in each.members), None)
    if group is None:
        return Box(title, text, "#FFFFFF", "#000000", "#999999", dotted=True)
    way = way_of(plan.kernel.subgraph, group)
    if stage is None:
        return Box(title, text, way.pale, "#000000", "#999999")
    return Box(
        title,
        text + (f" /{stage.partials}" if stage.partials else ""),
        way.fill,
        way.ink,
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
