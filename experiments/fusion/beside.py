"""What stands beside the grid: the mechanisms one after the other, published counts, graphs that show one rule each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import lstmsim
from experiments.fusion.study import BASELINES, CHIP, PASSES, head, kilobytes, line, ratio, steps, ways
from lstmsim.files.published import fusion

__all__ = [
    "ABLATED",
    "ABOUT",
    "KINDS",
    "ablation_table",
    "ablation_verdict",
    "kinds_table",
    "published_table",
    "refused",
]

ABOUT = {
    "ablation": (
        "The pass switched on part by part, in the order of the paper: kernels of xla; the same with threads chosen by "
        "shape (mapped); one kernel that stores its candidates, each with threads of its own (stored); candidates that "
        "an index connects share threads (stitch). In brackets kernels and grid barriers. The paper has 23.95, 21.98, "
        "20.45 and 17.64 ms for CRNN, each step faster than the one before."
    ),
    "kinds": (
        "Other parts of recurrent networks, each of which shows a rule. In brackets how many times as fast as the "
        "strongest baseline; below 1 the pass loses. Attention loses by no split of a row: its 40 scores of a batch "
        "lie in 40 blocks, so each reduce over them has partials and a grid barrier, which no rule for splits governs. "
        "The paper's large fall of writes (63.8 to 16.3 million transactions for CRNN) does not come out here, nor for "
        "its figure 7 in kind: a large tensor is written where it is an output, by compilers and by the pass."
    ),
    "published": (
        "Memory-intensive kernels of whole networks (AStitch, ASPLOS'22) under XLA and under AStitch, beside kernels "
        "of one time step here. The networks are others, and ours are single steps, so that only the kind can be "
        "compared."
    ),
}
#: What is ablated: a graph, its sizes, the rule for splits.
ABLATED: Sequence[tuple[str, Mapping[str, int], str]] = (
    ("ln-lstm", {"hidden": 256, "batch": 16}, "paper"),
    ("ln-lstm", {"hidden": 512, "batch": 1}, "paper"),
    ("ln-lstm", {"hidden": 512, "batch": 1}, "costed"),
    ("ln-lstm", {"hidden": 512, "batch": 256}, "paper"),
    ("attention", {"batch": 1, "steps": 40, "features": 356}, "paper"),
    ("figure-7", {"repeats": 32, "rows": 64, "length": 256}, "paper"),
)
#: Graphs and what each shows.
KINDS: Sequence[tuple[str, Mapping[str, int], str]] = (
    ("lstm-layernorm", {"hidden": 512, "batch": 1}, "norms of x and h apart (Ba et al.)"),
    ("slstm", {"hidden": 512, "batch": 1}, "exponential gates, no reduce"),
    ("gru", {"hidden": 512, "batch": 1}, "no reduce"),
    ("attention", {"batch": 1, "steps": 40, "features": 356}, "softmax over time; the last reduce splits"),
    ("log-softmax", {"rows": 1, "length": 465}, "an output layer"),
    ("l2-norm", {"rows": 1, "length": 256}, "the head of a speaker encoder"),
    ("quantisation", {"rows": 1, "length": 256}, "two sub-graphs around an integer product"),
    ("bias-gradient", {"rows": 100, "units": 96}, "columns, in training"),
    ("figure-7", {"repeats": 32, "rows": 64, "length": 256}, "figure 7 of the paper, in kind"),
)


def _named(name: str, sizes: Mapping[str, int]) -> str:
    return f"{name} ({', '.join(f'{key} {size}' for key, size in sizes.items())})"


def ablation_table(cases: Sequence[tuple[str, Mapping[str, int], str]]) -> list[str]:
    """A row for each case: cycles, and grid barriers in brackets."""
    lines: list[str] = []
    for name, sizes, rule in cases:
        rows = steps(name, sizes, rule)
        lines = lines or head("cycles (kernels, grid barriers)", *rows)
        cells = (f"{each.cycles:,} ({each.kernels}, {each.barriers})" for each in rows.values())
        lines.append(line(f"{_named(name, sizes)}, {rule}", *cells))
    return lines


def ablation_verdict(cases: Sequence[tuple[str, Mapping[str, int], str]]) -> str:
    """How often a step is slower than the one before, in a sentence."""
    rows = [list(steps(*case).values()) for case in cases]
    names = list(steps(*cases[0]))
    said = []
    for place, name in enumerate(names[1:], 1):
        slower = [
            row[place].cycles / row[place - 1].cycles for row in rows if row[place].cycles > row[place - 1].cycles
        ]
        worst = f", at worst {max(slower):.2f} times as slow" if slower else ""
        said.append(f"{name} in {len(slower)} of {len(rows)} cases{worst}")
    return (
        f"A step is slower here than the one before: {'; '.join(said)}. What the layer-normalised LSTM gains comes "
        "from one kernel in place of eight (stored)."
    )


def kinds_table(cases: Sequence[tuple[str, Mapping[str, int], str]]) -> list[str]:
    """A row for each graph."""
    counts = ("kernels op/xla/tvm/pass", "written kB xla/pass")
    lines = head("graph", "what it shows", *counts, "strongest baseline", "pass, paper", "pass, costed")
    for name, sizes, shows in cases:
        of = ways(name, sizes)
        kernels = " / ".join(str(of[each].kernels) for each in (*BASELINES, "paper"))
        best, _ = ratio(of["paper"], of)
        written = " / ".join(kilobytes(of[each].written) for each in ("xla", "paper"))
        cells = (f"{of[rule].cycles:,} ({ratio(of[rule], of)[1]:.2f})" for rule in PASSES)
        lines.append(line(_named(name, sizes), shows, kernels, written, f"{best} {of[best].cycles:,}", *cells))
    return lines


def published_table() -> list[str]:
    """Published counts of kernels, and ours."""
    lines = head("network", "XLA-like", "pass", "fewer")
    for row in fusion():
        xla, own = row.kernels_xla, row.kernels_fused
        lines.append(line(f"{row.network}, whole network (published)", f"{xla:,}", f"{own:,}", f"{1 - own / xla:.0%}"))
    for name in ("ln-lstm", "lstm-tail"):
        of = ways(name, {"hidden": 256, "batch": 16})
        xla, own = of["xla"].kernels, of["paper"].kernels
        lines.append(line(f"{name}, one step (here)", str(xla), str(own), f"{1 - own / xla:.0%}"))
    return lines


def refused() -> list[str]:
    """What the pass says of an edge that it refuses, and of shared memory that is too small."""
    cycle = lstmsim.run_fusion("cycle", chip=CHIP, cycles=False)
    names = cycle.graph.nodes
    edges = ", ".join(f"({names[each.operand].name}, {names[each.reader].name})" for each in cycle.plan.refused)
    path = ", ".join(names[number].name for each in cycle.plan.refused for number in each.path)
    lines = [
        f"* `lstmsim fuse cycle`: {len(cycle.plan.subgraphs)} sub-graphs; the edge {edges} is refused, for it would "
        f"close a cycle over {path}."
    ]
    for limit in (49152, 2048):
        report = lstmsim.run_fusion("overflow", chip=CHIP, settings={"shared_limit": limit})
        plan, stitch = report.plan.subgraphs[0], report.stitched
        assert stitch is not None
        assert stitch.cycles is not None
        gone = ", ".join(report.graph.nodes[number].name for number in plan.overflowed)
        lines.append(
            f"* `lstmsim fuse overflow --set shared_limit={limit}`: {plan.kernel.shared_bytes:,} bytes of shared "
            f"memory, grid barriers: {plan.kernel.grid_barriers}, {stitch.cycles:,} cycles; "
            + (f"{gone} did not fit and lies in global memory." if gone else "all values fit.")
        )
    return lines
