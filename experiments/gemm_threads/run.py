"""Where do threads along K pay for the matrix products of an RNN on a multi-core CPU, and how good is the planner?

Products of LSTMs on 1 to 64 cores of an EPYC 7742: the step of a layer, the projection of a sequence, the gradient of
weights. K threading stands beside the pair of M/N threads that BLIS's rule takes, which is the usual baseline, and
beside the best pair, which is the strong one. Plans are measured against every cut on random products that had no part
in choosing the planner's parameters.

Run `python experiments/gemm_threads/run.py` (some minutes); `--write` refreshes expected.md; pictures.py draws.
`this_machine.py` sets predictions beside what numpy's BLAS takes on the machine at hand.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from experiments.gemm_threads import baselines, layers, measured, planners, sweep
from experiments.gemm_threads.baselines import Machines
from experiments.gemm_threads.drawn import CHOOSE, DRAWS, HELD_OUT, RNN, drawn, drawn_of_rnns
from experiments.gemm_threads.regret import Searched, searched
from experiments.gemm_threads.study import Ran, all_ran

#: Random cases of each set, and weights that are tried on the sets for choosing.
CASES, TRIES = {CHOOSE: 150, HELD_OUT: 300}, 4000
#: Products of random layers; none of them had a part in choosing.
OF_RNNS = 60


@dataclass(frozen=True)
class Results:
    """The whole study.

    sweep: every cut of the shapes, by shape and threads.
    sets: every cut of random cases, by draw and name of the set.
    searched: the best weights of the six conditions of section 2, by the pairs among the candidates.
    reliefs: makespans and waits, by case and relief.
    machines: one LSTM on several machines.
    measured: one thread, predicted and measured.
    """

    sweep: dict[str, dict[int, Ran]]
    sets: dict[tuple[str, str], list[Ran]]
    searched: dict[str, Searched]
    reliefs: dict[str, dict[str, tuple[int, int, int]]]
    machines: Machines
    measured: list[measured.Row]


def results(small: bool = False) -> Results:
    """Everything; `small`: one shape, a few random cases, one relief, one LSTM."""
    shapes = list(sweep.SHAPES)[1:2] if small else list(sweep.SHAPES)
    sets = {
        (draw, name): all_ran(drawn(draw, 12 if small else CASES[name], name))
        for draw in (["log"] if small else DRAWS)
        for name in CASES
    }
    sets[RNN, HELD_OUT] = all_ran(drawn_of_rnns(3 if small else OF_RNNS, HELD_OUT))
    choosing = [row for (_, name), rows in sets.items() if name == CHOOSE for row in rows]
    return Results(
        sweep.swept(shapes),
        sets,
        {mn: searched(choosing, 100 if small else TRIES, mn) for mn in ("blis", "all")},
        baselines.reliefs(small),
        baselines.machines(small),
        measured.recorded(),
    )


def summary(of: Results) -> str:
    """Tables and what they say, as Markdown."""
    sections = [
        ("Warm caches", sweep.ABOUT["warm"], sweep.grid(of.sweep, "warm")),
        ("Cold caches", sweep.ABOUT["cold"], sweep.grid(of.sweep, "cold")),
        ("64 threads in cycles", sweep.ABOUT["cycles"], sweep.cycles(of.sweep)),
        ("The fall-through at work", sweep.ABOUT["ranks"], sweep.ranks(of.sweep)),
        ("Regret of planners", planners.about(of.sets, of.searched), planners.table(of.sets, of.searched)),
        ("Reliefs", baselines.ABOUT_RELIEFS, baselines.relief_table(of.reliefs)),
        ("One LSTM on three kinds of machines", baselines.ABOUT_MACHINES, baselines.machine_table(of.machines)),
        ("Beside a real machine", measured.ABOUT, measured.table(of.measured, "least", "10 %")),
        ("LSTM layers beside ONNX Runtime", layers.ABOUT, layers.table(*layers.recorded())),
    ]
    lines = ["# Threads along K for the products of an RNN", "", *textwrap.wrap(verdict(of), 120)]
    for title, about, table in sections:
        lines += ["", f"## {title}", "", *textwrap.wrap(about, 120, break_on_hyphens=False), "", *table]
    return "\n".join([*lines, ""])


def verdict(of: Results) -> str:
    """What comes out."""
    wins = sweep.wins(of.sweep)
    return f"{wins} {planners.verdict(of.sets)}"


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    outcome = results(small)
    return summary(outcome) + ("" if small else sweep.holds(outcome.sweep))


if __name__ == "__main__":
    from experiments.run import main

    main("gemm_threads")
