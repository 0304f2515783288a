"""The layer-normalised LSTM over hidden units and batch, and a plain LSTM beside it."""

from __future__ import annotations

from collections.abc import Sequence

import lstmsim
from experiments.fusion.study import BASELINES, CHIP, PASSES, Way, head, kilobytes, line, ratio, ways
from experiments.holds import as_it_is, held_paragraph
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary

__all__ = ["ABOUT", "BATCHES", "GRAPHS", "HIDDEN", "bytes_table", "cycles_table", "holds", "verdict"]

HIDDEN, BATCHES = (64, 256, 512, 1024, 2048), (1, 16, 64, 256)
#: The graphs: a layer-normalised step, and a plain one.
GRAPHS = ("ln-lstm", "lstm-tail")
ABOUT = {
    "cycles": (
        "Cycles of one time step's memory-intensive part on a V100, with a launch of 5,000 cycles before each kernel; "
        "the products are not in them. In brackets how many times as fast as the strongest baseline. A row of 4 x "
        "hidden sums that is longer than 1,024 is split over blocks by the published rule if there are fewer rows "
        "than blocks of a wave (160). Then each reduce becomes global: it costs a grid barrier, and whoever reads it "
        "loads its partials one after the other. `costed` splits only where the loads that a thread saves cost more "
        "than a grid barrier; it does not count the partials."
    ),
    "bytes": (
        "Kernels, kilobytes read and written beyond the chip, evaluations done twice (pass: published rule). Reads "
        "fall, for a row is read once. Writes hardly fall beside xla and tvm: these write the outputs and a few "
        "numbers a row."
    ),
    "plain": (
        "A plain LSTM has no reduce in its tail, so compilers have two kernels already. The pass saves one launch of a "
        "part that is small beside the product."
    ),
}


#: Sizes (hidden, batch) that are asked again with other latencies: where the published rule wins, and where it loses.
ASKED = ((64, 1), (1024, 1))


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """Whether the pass is faster than the strongest baseline, by each rule."""
    chip, answers = vary(lstmsim.load_chip(CHIP)), {}
    for hidden, batch in ASKED:
        of = ways(GRAPHS[0], {"hidden": hidden, "batch": batch}, chip=chip)
        for rule in PASSES:
            faster = "faster" if ratio(of[rule], of)[1] > 1 else "not faster"
            answers[f"the {rule} rule at hidden {hidden}, batch {batch}"] = faster
    return answers


def holds() -> str:
    """Whether the headline holds, as a paragraph."""
    return held_paragraph([lstmsim.load_chip(CHIP)], conclusions, said="Asked of two of the 20 sizes.")


def _cell(way: Way, all_ways: dict[str, Way]) -> str:
    return f"{way.cycles:,} ({ratio(way, all_ways)[1]:.2f})"


def cycles_table(graph: str, sizes: Sequence[tuple[int, int]]) -> list[str]:
    """A row for each (hidden, batch)."""
    lines = head(f"{graph}: hidden, batch", *BASELINES, "pass, paper", "barriers", "pass, costed", "barriers")
    for hidden, batch in sizes:
        of = ways(graph, {"hidden": hidden, "batch": batch})
        own = (each for rule in ("paper", "costed") for each in (_cell(of[rule], of), str(of[rule].barriers)))
        lines.append(line(f"{hidden}, {batch}", *(f"{of[each].cycles:,}" for each in BASELINES), *own))
    return lines


def bytes_table(graph: str, sizes: Sequence[tuple[int, int]]) -> list[str]:
    """The same for kernels and bytes."""
    names = (*BASELINES, "paper")
    lines = head(
        f"{graph}: hidden, batch", "kernels op/xla/tvm/pass", "read kB", "written kB", "evaluated anew xla/tvm/pass"
    )
    for hidden, batch in sizes:
        of = ways(graph, {"hidden": hidden, "batch": batch})
        lines.append(
            line(
                f"{hidden}, {batch}",
                " / ".join(str(of[each].kernels) for each in names),
                " / ".join(kilobytes(of[each].read) for each in names),
                " / ".join(kilobytes(of[each].written) for each in names),
                " / ".join(f"{of[each].recomputed:,}" for each in names[1:]),
            )
        )
    return lines


def verdict(sizes: Sequence[tuple[int, int]]) -> str:
    """Where the pass wins and where it loses, in sentences."""
    said = []
    for rule, words in (("paper", "the published rule for splits"), ("costed", "the costed one")):
        gains = {
            size: ratio((of := ways(GRAPHS[0], {"hidden": size[0], "batch": size[1]}))[rule], of)[1] for size in sizes
        }
        lost = [size for size, gain in gains.items() if gain < 1]
        best = max(gains, key=lambda each: gains[each])
        worst = min(gains, key=lambda each: gains[each])
        where = (
            f"it is slower than the strongest baseline in {len(lost)} of {len(sizes)} cases, at worst "
            f"{1 / gains[worst]:.2f} times as slow (hidden {worst[0]}, batch {worst[1]})"
            if lost
            else f"it is never slower than the strongest baseline, at least {gains[worst]:.2f} times as fast "
            f"(hidden {worst[0]}, batch {worst[1]})"
        )
        said.append(
            f"With {words} {where}, and at best {gains[best]:.2f} times as fast (hidden {best[0]}, batch {best[1]})."
        )
    return " ".join(said)
