"""Which graphs are cells: each rule broken once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim.model.cell import Cell, Gate, Node, Stage, Sum, segments, stage_of
from lstmsim.model.cell_rules import MAX_GATES, MAX_MISTAKES, MAX_NODES, in_order, mistakes
from lstmsim.model.cells import CELLS, graph

PROJECTED = (stage_of("i[x h]"), stage_of("p[m]", "projection"))


def made(nodes: str, stages: tuple[Stage, ...] | str = "a[x h]", states: str = "h=h'", parameters: str = "") -> Cell:
    pairs = dict(pair.split("=") for pair in states.split())
    whole = (stage_of(stages),) if isinstance(stages, str) else stages
    return Cell("c", whole, graph(nodes), pairs, tuple(parameters.split()))


@pytest.mark.parametrize("name", CELLS)
def test_built_in_cells_keep_the_rules(name: str) -> None:
    assert not mistakes(CELLS[name])


BROKEN = {
    "operation": (made("t tahn a; h' quantize t"), "nodes.t", "unknown operation 'tahn'; did you mean 'tanh'?"),
    "strange operation": (made("t q7 a; h' quantize t"), "nodes.t", "unknown operation 'q7'; there are: sigmoid"),
    "too few inputs": (made("t add a; h' quantize t"), "nodes.t", "add takes 2 inputs, got 1"),
    "too many inputs": (made("t tanh a a; h' quantize t"), "nodes.t", "tanh takes 1 input, got 2"),
    "empty reduction": (made("m mean; t add a m; h' quantize t"), "nodes.m", "takes at least 1 input, got 0"),
    "input": (made("tt tanh a; h' quantize ttt"), "nodes.h'", "unknown input 'ttt'; did you mean 'tt'?"),
    "x as input": (made("t multiply a x; h' quantize t"), "nodes.t", "reads x, which only the products"),
    "gate as input": (made("t add n nx; u add t nh; h' quantize u", "n{nx[x] nh[h]}"), "nodes.t", "gate 'n', whose"),
    "node twice": (made("t tanh a; t sigmoid a; h' quantize t"), "nodes.t", "'t' is taken by a node"),
    "node like a sum": (made("a tanh a; h' quantize a"), "nodes.a", "'a' is taken by a gate"),
    "node like a state": (
        made("c tanh a; h' quantize c", states="h=h' c=c"),
        "nodes.c",
        """'c' is taken by a state: call the node "c'\"""",
    ),
    "state like a sum": (made("t tanh a; h' quantize t", states="h=h' a=t"), "states.a", "taken by a gate"),
    "parameter like a node": (
        made("t multiply a p; p tanh t; h' quantize p", parameters="p"),
        "nodes.p",
        "taken by a parameter",
    ),
    "x as name": (made("x tanh a; h' quantize x"), "nodes.x", "'x' is taken by the input"),
    "sum twice": (
        made("t add nx m; h' quantize t", "n{nx[x] nh[h]} m{nx[x] mh[h]}"),
        "stages.0.gates.m.nx",
        "'nx' is taken by a sum",
    ),
    "sum like another gate": (
        made("t add n m; h' quantize t", "n[x] m{n[x]}"),
        "stages.0.gates.m.n",
        "'n' is taken by a gate",
    ),
    "name": (made("t.1 tanh a; h' quantize t.1"), "nodes.t.1", "'t.1' is no name"),
    "quote first": (made("'t tanh a; h' quantize 't"), "nodes.'t", "is no name"),
    "circle": (
        made("t add a w; u tanh t; v tanh u; w tanh v; h' quantize w"),
        "nodes.t",
        "reads itself by t -> w -> v -> u -> t;",
    ),
    "circle of one": (made("t add a t; h' quantize t"), "nodes.t", "by t -> t;"),
    "stage-mates": (
        made("t add a b; h' quantize t", "a[x h] b[x]"),
        "stages.0.gates.b",
        "reads 'x', but gate 'a' 'x' and 'h'",
    ),
    "no vector": (made("t tanh a; h' quantize t", "a[x hh]"), "stages.0.gates.a", "'hh' is no vector"),
    "vector not quantized": (
        made("t tanh a; h' quantize b", (stage_of("a[x h]"), stage_of("b[t]"))),
        "stages.1.gates.b",
        "comes from a quantize node",
    ),
    "vector of the same stage": (
        made("q quantize a; h' quantize q", "a[x q]"),
        "stages.0.gates.a",
        "'q', which is known only after this stage",
    ),
    "vector of a later stage": (
        made("q quantize b; h' quantize a", (stage_of("a[x q]"), stage_of("b[x h]"))),
        "stages.0.gates.a",
        "'q', which is known only after stage 1",
    ),
    "vector twice": (made("h' quantize a", "a[x x]"), "stages.0.gates.a", "reads 'x' 2 times"),
    "vector in two parts": (
        made("t add n1 n2; h' quantize t", "n{n1[x] n2[x]}"),
        "stages.0.gates.n",
        "reads 'x' 2 times",
    ),
    "scalar vector": (
        made("m mean a; q quantize m; h' quantize b", (stage_of("a[x h]"), stage_of("b[q]"))),
        "stages.1.gates.b",
        "'q' is one number for all units, no vector",
    ),
    "no gates": (made("h' quantize a", (stage_of("a[x h]"), Stage(()))), "stages.1.gates", "at least one gate"),
    "no stages": (made("h' quantize h", ()), "stages", "at least one stage"),
    "no sums": (made("h' quantize a", (Stage((Gate("a", ()),)),)), "stages.0.gates.a", "at least one sum"),
    "no vectors": (
        made("h' quantize a", (Stage((Gate("a", (Sum("a", ()),)),)),)),
        "stages.0.gates.a",
        "at least one vector",
    ),
    "rows": (made("h' quantize a", (stage_of("a[x h]", "hiden"),)), "stages.0.rows", "must be hidden or projection"),
    "x unread": (made("h' quantize a", "a[h]"), "stages", "no gate reads x"),
    "no h": (made("h' quantize a", states="c=h'"), "states", "there must be a state h"),
    "h not quantized": (made("t tanh a", states="h=t"), "states.h", "must come from a quantize node, 't' is 'tanh'"),
    "state of nothing": (made("h' quantize c", states="h=h' c=cc"), "states.c", "got 'cc'"),
    "state of a sum": (made("h' quantize c", states="h=h' c=a"), "states.c", "must name the node"),
    "scalar state": (
        made("m mean a; t add a s; h' quantize t", states="h=h' s=m"),
        "states.s",
        "node 'm' is one for all units",
    ),
    "reduction of a reduction": (
        made("m mean a; n mean m; t add a n; h' quantize t"),
        "nodes.n",
        "'m' is one number for all of them",
    ),
    "reduction of a number": (made("m mean a 1; t add a m; h' quantize t"), "nodes.m", "it reads no numbers"),
    "mixed rows": (
        made("m quantize i; t add i p; h' quantize t", PROJECTED),
        "nodes.t",
        "mixes rows hidden (i) and rows projection (p)",
    ),
    "mixed reduction": (
        made("m quantize i; r mean i p; t add p r; h' quantize t", PROJECTED),
        "nodes.r",
        "mixes rows hidden (i) and rows projection (p)",
    ),
    "parameter of both rows": (
        made("t multiply i w; m quantize t; u multiply p w; h' quantize u", PROJECTED, parameters="w"),
        "nodes.u",
        "mixes rows hidden (w) and rows projection (p)",
    ),
    "state of two rows": (
        made("t add i c; u add t d; m quantize u; v tanh d; c' tanh v; h' quantize p", PROJECTED, "h=h' c=h' d=c'"),
        "nodes.t",
        "mixes rows hidden (i) and rows projection (c)",
    ),
    "hidden h of a projection": (
        made("m quantize i; t mean p; u add i t; h' quantize u", PROJECTED),
        "states.h",
        "the cell has a projection",
    ),
    "hidden rows behind a projection": (
        made("m quantize i; t mean p; c' add i t; u mean c'; w add p u; h' quantize w", PROJECTED),
        "nodes.c'",
        "has rows hidden, but follows stage 1",
    ),
    "only a projection": (made("h' quantize a", (stage_of("a[x h]", "projection"),)), "stages", "nothing to project"),
    "unused parameter": (made("h' quantize a", parameters="p"), "parameters.0", "parameter 'p' feeds nothing"),
    "unused node": (made("t tanh a; h' quantize a"), "nodes.t", "node 't' feeds nothing"),
    "unused sum": (made("h' quantize a", "a[x h] b[x h]"), "stages.0.gates.b", "sum 'b' feeds nothing"),
    "unused part": (made("h' quantize nx", "n{nx[x] nh[h]}"), "stages.0.gates.n.nh", "sum 'nh' feeds nothing"),
    "state for itself": (
        made("t tanh s; h' quantize a", states="h=h' s=t"),
        "states.s",
        "state 's' feeds nothing that leads to h",
    ),
    "infinite number": (made("t multiply a 1e999; h' quantize t"), "nodes.t", "must be finite, got inf"),
    "huge number": (made("t multiply a 1e13; h' quantize t"), "nodes.t", "at most 1e+12, got 1e+13"),
    "only numbers": (made("t add 1 2; u add a t; h' quantize u"), "nodes.t", "make its result a parameter"),
    "only a parameter": (made("t exp p; u add a t; h' quantize u", parameters="p"), "nodes.t", "which never change"),
    "parameter and scalar": (
        made("m mean a; t multiply m p; u add a t; h' quantize u", parameters="p"),
        "nodes.t",
        "combine it with a vector",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_has_its_place_and_sentence(name: str) -> None:
    cell, place, words = BROKEN[name]
    assert [text for where, text in mistakes(cell) if where == place and words in text], mistakes(cell)


def test_all_mistakes_of_a_group_come_at_once() -> None:
    cell = made("t tahn a; u add t; h' quantize v", "a[x k]", states="h=h' c=w")
    assert [place for place, _ in mistakes(cell)] == ["stages.0.gates.a", "nodes.t", "nodes.u", "nodes.h'", "states.c"]


@pytest.mark.parametrize(
    "cell",
    [
        made("t add nx nh; h' quantize t", "n{nx[x] nh[h]}"),
        made("t add n nh; h' quantize t", "n{n[x] nh[h]}"),
        made("t add a h; h' quantize t"),
        made("t add a 0.5; h' quantize t"),
        made("q quantize a; h' quantize b", (stage_of("a[x h]"), stage_of("b[q]"))),
        made("m mean a; t subtract m 1; u add a t; h' quantize u"),
    ],
)
def test_what_is_legal_stays_legal(cell: Cell) -> None:
    assert not mistakes(cell)


def test_there_are_bounds() -> None:
    many = " ".join(f"g{n}[x]" for n in range(MAX_GATES + 1))
    assert mistakes(made("h' quantize g0", many))[0][0] == "stages"
    chain = tuple(Node(f"n{n}", "tanh", (f"n{n - 1}" if n else "a",)) for n in range(MAX_NODES + 1))
    assert mistakes(replace(made("h' quantize a"), nodes=chain))[0][0] == "nodes"
    (mistake,) = mistakes(made("t tanh a; h' quantize t", f"a[x h] {'b' * 101}[x h]"))
    assert len(mistake[1]) < 200
    assert "is no name: at most 100 letters" in mistake[1]
    wrong = tuple(Node(f"n{n}", "tanh", ("nope",)) for n in range(MAX_NODES))
    assert len(mistakes(replace(made("h' quantize a"), nodes=wrong))) == MAX_MISTAKES


def test_a_long_chain_listed_backwards_is_judged() -> None:
    chain = [Node("n0", "tanh", ("a",)), *(Node(f"n{n}", "tanh", (f"n{n - 1}",)) for n in range(1, MAX_NODES - 1))]
    cell = replace(made(""), nodes=(Node("h'", "quantize", (chain[-1].name,)), *reversed(chain)))
    assert not mistakes(cell)
    assert len(segments(in_order(cell))[0].nodes) == MAX_NODES
