"""The graph of a fusion, by a name, a file or itself, its sizes, the modes, and where it runs."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import given_twice, listed, must_be, nearest, show
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.graph_rules import checked_graph
from lstmsim.model.fusion.library import GRAPHS, named_graph
from lstmsim.model.fusion.plan import MODES, FusionDevice
from lstmsim.studies.shared.request import Path
from lstmsim.studies.simulate.run import expect

if TYPE_CHECKING:
    from lstmsim.model.scenario import Chip

#: The mode of the pass itself; the others are what it is compared with.
STITCH = "stitch"
_NUMBER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_ONNX = ".onnx"
#: Most elements of all operations of a graph whose kernels are executed, or simulated, without being asked for: a few
#: seconds each.
MOST_EXECUTED, MOST_SIMULATED = 8_000_000, 4_000_000


@dataclass(frozen=True, eq=False)
class Asked:
    """A graph, where it runs, and what is wanted of each way to cut it; None: if the graph is not too large."""

    graph: Graph
    fused: ModuleType
    chip: Chip
    device: FusionDevice
    engine: str
    cycles: bool | None = None
    numbers: bool | None = None
    seed: int = 0

    @cached_property
    def elements(self) -> int:
        """Elements of all memory-intensive operations: how long all takes follows from it."""
        return sum(each.size for each in self.graph.nodes if each.intensive)

    @property
    def simulates(self) -> bool:
        """Whether kernels are simulated."""
        return self.elements <= MOST_SIMULATED if self.cycles is None else self.cycles

    @property
    def executes(self) -> bool:
        """Whether kernels are executed on numbers."""
        return self.elements <= MOST_EXECUTED if self.numbers is None else self.numbers

    @property
    def not_simulated(self) -> str:
        """The remark that nothing was simulated because the graph is large; empty: it was, or nobody wanted it."""
        if self.cycles is not None or self.simulates:
            return ""
        return f"nothing was simulated: {self._size} {MOST_SIMULATED:,}; ask for cycles (--cycles)"

    @property
    def not_executed(self) -> str:
        """The remark that nothing was executed because the graph is large; empty: it was, or nobody wanted it."""
        if self.numbers is not None or self.executes:
            return ""
        return f"nothing was executed on numbers: {self._size} {MOST_EXECUTED:,}; ask for numbers (--numbers)"

    @property
    def _size(self) -> str:
        return f"the graph has {self.elements:,} elements in all, more than"


def graph_of(source: object, sizes: Mapping[str, int]) -> tuple[Graph, str]:
    """The graph, and where it is from."""
    from lstmsim.files.graphs import is_graph_file, read_graph

    if isinstance(source, Graph):
        _no_sizes(sizes, "a graph in memory")
        return checked_graph(source), "a graph in memory"
    if not isinstance(source, str | os.PathLike):
        text = f"must be a name like 'ln-lstm', a file or a Graph, got {show(source)}"
        raise InputError(Mistake("graph", text))
    name = os.fspath(source)
    if name in GRAPHS:
        return named_graph(name, sizes), f"{name}, which comes with lstmsim"
    if name.lower().endswith(_ONNX):
        from lstmsim.importers.onnx.operations import graph_of_onnx

        return graph_of_onnx(name, sizes), name
    if is_graph_file(name):
        _no_sizes(sizes, "a graph file, which has them")
        return read_graph(name), name
    if os.path.exists(name):
        raise InputError(Mistake(name, "expected a graph file (.yaml, .yml, .json) or an ONNX file (.onnx)"))
    hint = nearest(name, GRAPHS) or f"; there are {listed(GRAPHS, 'and')}, and files (.yaml, .json, .onnx)"
    raise InputError(f"no graph called {show(name)}{hint}")


def _no_sizes(sizes: Mapping[str, int], what: str) -> None:
    if sizes:
        text = "is for graphs that come with lstmsim and for open axes of ONNX files; this is"
        raise InputError([Mistake(f"size {each}", f"{text} {what}") for each in sizes])


def sizes_from(given: Collection[str] | Mapping[str, int]) -> dict[str, int]:
    """Read sizes of a graph.

    >>> sizes_from(["hidden=512", "batch=8"])
    {'hidden': 512, 'batch': 8}
    """
    if isinstance(given, Mapping):
        refuse(Mistake("size", f"must have a name, got {show(each)}") for each in given if not isinstance(each, str))
        return dict(given)
    if isinstance(given, str) or not isinstance(given, Collection):
        raise InputError(Mistake("sizes", f"must be a list of texts like 'hidden=512', got {show(given)}"))
    sizes: dict[str, int] = {}
    mistakes = []
    for each in given:
        name, equals, value = str(each).partition("=")
        name = name.strip()
        if not equals or not name or not _NUMBER.fullmatch(value.strip()):
            mistakes.append(Mistake("size", f"expected NAME=NUMBER, like hidden=512, got {show(each)}"))
        elif name in sizes:
            mistakes.append(Mistake(f"size {name}", given_twice(sizes[name], int(value))))
        else:
            sizes[name] = int(value)
    refuse(mistakes)
    return sizes


def load_graph(source: Path, sizes: Collection[str] | Mapping[str, int] = ()) -> Graph:
    """Give the graph that `lstmsim fuse` means by a name or file.

    >>> from lstmsim import load_graph
    >>> load_graph("softmax").outputs
    ('y',)
    """
    return graph_of(source, sizes_from(sizes))[0]


def save_graph(graph: Graph, path: Path) -> None:
    """Write a graph as a graph file, which `lstmsim fuse` reads.

    graph: the graph.
    path: a file that ends in .yaml, .yml or .json.

    >>> import tempfile
    >>> from lstmsim import load_graph, save_graph
    >>> path = f"{tempfile.mkdtemp()}/softmax.yaml"
    >>> save_graph(load_graph("softmax"), path)
    >>> load_graph(path) == load_graph("softmax")
    True
    """
    from lstmsim.base.files import refuse_if_read
    from lstmsim.files.graphs import write_graph

    expect(graph, (Graph,), "save_graph", "a Graph, as the graph of what run_fusion gives")
    refuse_if_read(os.fspath(path))
    write_graph(path, graph)


def modes_asked(modes: Sequence[str], mode: str | None) -> tuple[tuple[str, ...], str]:
    """The modes in their order, and the one that is reported in full."""
    wrong = [Mistake("modes", must_be(each, MODES)) for each in modes if each not in MODES]
    refuse(wrong, [] if modes else [Mistake("modes", f"must be some of {listed(MODES)}, got none")])
    wanted = tuple(each for each in MODES if each in modes)
    if mode is None:
        return wanted, STITCH if STITCH in wanted else wanted[0]
    if mode not in wanted:
        raise InputError(Mistake("mode", must_be(mode, wanted)))
    return wanted, mode
