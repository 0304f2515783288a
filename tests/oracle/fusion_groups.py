"""Sections 2 and 3 of docs/fusion.md: sub-graphs, candidates, groups."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle.fusion_graph import HEAVY, Graph


def subgraphs(graph: Graph) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Section 2, with the edges that were refused."""
    cluster = {v: v for v in range(len(graph.nodes)) if graph.ops[v] != "input"}

    def beyond(start: int, goal: int) -> bool:
        """Whether a path leads from a cluster to another one over at least one more."""
        reached, pending = set(), [start]
        while pending:
            at = pending.pop()
            for v, c in cluster.items():
                for u in graph.known(v):
                    if u in cluster and cluster[u] == at and c != at:
                        if c == goal and at != start:
                            return True
                        if c not in reached and c != goal:
                            reached.add(c)
                            pending.append(c)
        return False

    while True:
        joined, refused = False, []
        for v in range(len(graph.nodes)):
            for u in graph.known(v) if graph.light(v) else []:
                if not graph.light(u) or cluster[u] == cluster[v]:
                    continue
                a, b = sorted((cluster[u], cluster[v]))
                if beyond(a, b) or beyond(b, a):
                    if (u, v) not in refused:
                        refused.append((u, v))
                    continue
                cluster = {each: a if c == b else c for each, c in cluster.items()}
                joined = True
        if not joined:
            break
    made: dict[int, list[int]] = {}
    for v in sorted(cluster):
        if graph.light(v):
            made.setdefault(cluster[v], []).append(v)
    return [made[c] for c in sorted(made)], refused


def outputs_of(graph: Graph, nodes: list[int]) -> set[int]:
    return {
        v
        for v in nodes
        if v in graph.outputs or not graph.readers[v] or any(reader not in nodes for reader in graph.readers[v])
    }


def candidates_of(graph: Graph, nodes: list[int]) -> list[int]:
    """Section 3.1."""
    wanted = outputs_of(graph, nodes)
    for v in nodes:
        if graph.reduces(v):
            wanted.add(v)
        if graph.ops[v] in HEAVY and any(graph.ops[r] == "broadcast" and r in nodes for r in graph.readers[v]):
            wanted.add(v)
    return sorted(wanted)


@dataclass
class Group:
    members: list[int]
    backbone: int
    subs: list[int]
    kind: str
    rows: int
    length: int
    mapping: dict[str, object] = field(default_factory=dict)


def kind_of(graph: Graph, v: int) -> str:
    if not graph.reduces(v):
        return "element"
    rank, axes = len(graph.shapes[graph.known(v)[0]]), graph.nodes[v]["axes"]
    return "row" if sorted(axes) == list(range(rank - len(axes), rank)) else "column"


def edges_of(graph: Graph, nodes: list[int], cut: set[int], apart: bool = False) -> list[tuple[int, int]]:
    """Section 3.2: (operand, reader). `apart`: candidates have no edges (section 9, third row of the ablation)."""
    alone = set(candidates_of(graph, nodes)) if apart else set()
    return [
        (u, v)
        for v in nodes
        if graph.ops[v] != "broadcast" and v not in cut and v not in alone
        for u in graph.known(v)
        if u not in alone
    ]


def groups_of(graph: Graph, nodes: list[int], apart: bool = False) -> tuple[list[Group], list[int], set[int]]:
    """Sections 3.2 to 3.4: groups, free ops, reduces that lost their edge."""
    candidates, cut = candidates_of(graph, nodes), set[int]()
    while True:
        part = {v: v for v in nodes} | {u: u for v in nodes for u in graph.known(v)}
        for u, v in edges_of(graph, nodes, cut, apart):
            low, high = sorted((part[u], part[v]))
            part = {each: low if p == high else p for each, p in part.items()}
        groups, free = [], []
        for p in {part[v]: None for v in nodes}:
            members = [v for v in nodes if part[v] == p]
            own = [v for v in members if v in candidates]
            if not own:
                free += members
                continue
            reduces = [v for v in own if graph.reduces(v)]
            if reduces:
                backbone = max(reduces, key=lambda v: (graph.sizes[graph.known(v)[0]], -v))
                rows = graph.sizes[backbone]
                length = len(graph.parts(backbone)[0])
            else:
                backbone = max(own, key=lambda v: (graph.sizes[v], -v))
                rows, length = graph.sizes[backbone], 1
            subs = [v for v in own if v != backbone]
            groups.append(Group(members, backbone, subs, kind_of(graph, backbone), rows, length))
        before = len(cut)
        for group in groups:
            cut |= {v for v in group.members if graph.reduces(v) and kind_of(graph, v) != group.kind}
        if len(cut) == before:
            return sorted(groups, key=lambda group: group.members[0]), sorted(free), cut
