"""Cells whose segments wait for values in all ways that the contract knows."""

from __future__ import annotations

from lstmsim.model.cell import Cell, Stage, stage_of
from lstmsim.model.cells import graph


def _cell(name: str, stages: tuple[Stage, ...], nodes: str, states: str) -> Cell:
    return Cell(name, stages, graph(nodes), dict(pair.split("=") for pair in states.split()), (), "for tests")


#: The second stage reads frames alone, so its sums often come before the slow values of the first stage are there; its
#: row blocks hold fewer units.
CROSSED = _cell(
    "crossed",
    (stage_of("z[x h]"), stage_of("n[x] k[x] l[x]")),
    """zt sigmoid z; ze add zt 1.5; zd divide zt ze; nt tanh n; kt sigmoid k; nk multiply nt kt; nl add nk l
    hf multiply nl zd; h' quantize hf""",
    "h=h'",
)

#: As `crossed`, but with more units in the row blocks of the second stage.
COARSER = _cell(
    "coarser",
    (stage_of("a[x h] b[x h] c[x h] d[x h]"), stage_of("n[x]")),
    "ab divide a b; cd divide c d; nt tanh n; s multiply ab cd; hf multiply s nt; h' quantize hf",
    "h=h'",
)

#: No product reads h: every block waits for states of the step before, in two stages, and for a mean of this step.
STATES = _cell(
    "states",
    (stage_of("z[x] y[x]"), stage_of("n[x]")),
    """zs add z s; zt sigmoid zs; mz mean zt; yc subtract y mz; ys multiply yc s; nt tanh n; nu multiply nt u
    s' divide ys nu; u' add s' nt; hf add u' zt; h' quantize hf""",
    "h=h' s=s' u=u'",
)

#: h is there before the last segment, whose end is that of the job.
AFTER_H = _cell(
    "after-h",
    (stage_of("a[x h] b[x h]"),),
    """ta tanh a; hf add ta s; h' quantize hf; mb mean_square b; bc subtract b mb; bd divide bc hf; be divide bd bc
    s' add be s""",
    "h=h' s=s'",
)

OWN_CELLS = (CROSSED, COARSER, STATES, AFTER_H)
