"""What papers claim of kernels on a V100, simulated on the preset: sparse products, and fused kernels.

Their matrices and networks are not here: only the claim on the graph that a paper draws is judged.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

from lstmsim import engines
from lstmsim.files.published import Claim
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.machines.kernels import SparseTask
from lstmsim.machines.registry import capability
from lstmsim.model.fusion.baselines import ablation, kernels_of
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.plan import PlannedKernel
from lstmsim.model.fusion.planner import planned
from lstmsim.model.fusion.schemes import counted
from lstmsim.model.scenario import Chip
from lstmsim.model.sparse.made import drawn_dense, drawn_lengths, drawn_rows
from lstmsim.program.unflatten import tabled
from lstmsim.studies.validate.column_claims import whole_numbers
from lstmsim.studies.validate.groups import V100, layer
from lstmsim.studies.validate.rows import Finding, Verdict

#: Rows and columns of a sixteenth of the recurrent weights of an LSTM of 2,048 units, entries of a row on average (a
#: quarter), columns of the dense operand, deviation of the rows' lengths over their mean.
_SPARSE = (512, 2048, 512, 128, 0.3)
_SIXTEENTH = ("chip.cores.0.count=5", "chip.partitions=2")
#: A step that has reduces, and its sizes.
_STEP, _SIZES = "ln-lstm", {"hidden": 512, "batch": 16}
_NOT_PUBLIC = "the paper's matrices are not here"


class Kernels:
    """Simulates kernels of sparse products and fused ones on the preset; each once.

    engine: of the runs.
    sparse: rows, columns, entries of a row, columns of the dense operand, deviation; as of `_SPARSE`.
    sizes: of the fused step.
    """

    def __init__(self, engine: str = "fast", sparse: tuple[int, int, int, int, float] = _SPARSE) -> None:
        self.engine, self.sparse, self.sizes = engine, sparse, _SIZES
        self.product = cache(self._product)
        self.mechanisms = cache(self._mechanisms)

    def peak_share(self, claim: Claim) -> Finding:
        """Show the share of the peak of a product whose rows are equally long."""
        _, share = self.product(even=True, order="plain")
        return Finding(self._condition("equally long rows"), f"{100 * share:.1f} % of the peak", "not judged")

    def row_swizzle(self, claim: Claim) -> Finding:
        """Show the throughput of rows of unlike lengths, sorted and plain, over that of equally long ones."""
        even, _ = self.product(even=True, order="plain")
        parts = [f"{order} {100 * even / self.product(even=False, order=order)[0]:.1f} %" for order in _ORDERS]
        unlike = (
            f"lengths of rows that deviate by {100 * self.sparse[4]:.0f} % of their mean, against equally long ones"
        )
        return Finding(self._condition(unlike), ", ".join(parts), "not judged")

    def drawn_graph(self, claim: Claim) -> Finding:
        """Judge the numbers of kernels of the paper's figure, drawn in kind."""
        graph = named_graph("figure-7")
        device = _fused().numbers(_chip(), {})
        plan = planned(graph, device)
        found = [len(kernels_of(graph, plan, device, mode)) for mode in ("xla", "tvm", "stitch")]
        verdict: Verdict = "holds" if found == whole_numbers(claim) else "fails"
        return Finding("graph figure-7 on v100, in kind", ", ".join(map(str, found)), verdict)

    def fewer_kernels(self, claim: Claim) -> Finding:
        """Show how many kernels the pass saves against those of XLA."""
        steps = self.mechanisms()
        many, few = (len(steps[name][0]) for name in ("xla", "stitch"))
        text = f"{many} to {few}, {100 * (1 - few / many):.0f} % fewer"
        return Finding(f"{self._step}; the paper's are of whole networks", text, "not judged")

    def one_after_the_other(self, claim: Claim) -> Finding:
        """Show the cycles of the mechanisms one after the other, and where they rise."""
        cycles = {name: each[1] for name, each in self.mechanisms().items()}
        rising = [
            f"{own} takes {cycles[own] - cycles[before]:,} more than {before}"
            for before, own in pairwise(cycles)
            if cycles[own] > cycles[before]
        ]
        text = ", ".join(f"{name} {each:,}" for name, each in cycles.items())
        fall = f"it does not fall at every step: {'; '.join(rising)}" if rising else "it falls at every step"
        return Finding(f"{self._step}, cycles; the paper's is CRNN", f"{text}; {fall}", "not judged")

    def written(self, claim: Claim) -> Finding:
        """Show the bytes that kernels write, of XLA and of the pass."""
        steps = self.mechanisms()
        before, after = (counted(self._graph, steps[name][0]).written for name in ("xla", "stitch"))
        text = f"{before:,} to {after:,} bytes: {'a fall' if after < 0.9 * before else 'no fall to speak of'}"
        return Finding(f"{self._step}; the paper's is CRNN", text, "not judged")

    def speed(self, claim: Claim) -> Finding:
        """Show how much faster the pass is than kernels of XLA."""
        steps = self.mechanisms()
        ratio = steps["xla"][1] / steps["stitch"][1]
        text = f"{ratio:.2f} x"
        return Finding(f"{self._step}, without its products; the paper's are of whole networks", text, "not judged")

    @property
    def _graph(self) -> Graph:
        return named_graph(_STEP, self.sizes)

    @property
    def _step(self) -> str:
        sizes = ", ".join(f"{name} {size}" for name, size in self.sizes.items())
        return f"one step of {_STEP} ({sizes}) on v100, split_rule paper"

    def _condition(self, rows: str) -> str:
        high, wide, mean, columns, _ = self.sparse
        zeros = f"{100 * (1 - mean / wide):.0f} % zeros"
        what = f"csr product, {high} x {wide}, {zeros}, {columns} columns, {rows}"
        return f"{what}; 5 SMs and 2 partitions of v100; {_NOT_PUBLIC}"

    def _product(self, even: bool, order: str) -> tuple[int, float]:
        """Cycles without launches, and the share of the peak."""
        chip = _chip(_SIXTEENTH)
        kernels = capability(chip.kind, "sparse")
        assert kernels is not None
        rows, columns, mean, wide, deviation = self.sparse
        # without a deviation all rows have the mean
        lengths = drawn_lengths(rows, columns, mean, 0.0 if even else deviation, seed=2)
        matrix = drawn_rows(lengths, columns, seed=1)
        task = SparseTask("spmm", "csr", matrix, (drawn_dense(columns, wide, 1),), {"order": order})
        work = kernels.lower(chip, task)
        totals = engines.totals(tabled(work.flat, work.names), self.engine, check=False)
        figures = kernels.figures(chip, task, work, totals)
        return figures.span, figures.macs / (figures.peak * figures.span)

    def _mechanisms(self) -> dict[str, tuple[tuple[PlannedKernel, ...], int]]:
        """The kernels after each mechanism, and their cycles."""
        chip, graph, fused = _chip(), self._graph, _fused()
        device = fused.numbers(chip, {})
        found = {}
        for step in ablation(graph, planned(graph, device), device):
            work = fused.lower(chip, graph, step.kernels, step.name)
            totals = engines.totals(tabled(work.flat, work.names), self.engine, check=False)
            found[step.name] = step.kernels, fused.figures(chip, work, totals).makespan
        return found


_ORDERS = ("sorted", "plain")


def _chip(overrides: tuple[str, ...] = ()) -> Chip:
    job = {"model": {"layers": [layer("lstm", 8, 8)]}, "steps": 1}
    return load_scenario({"chip": V100, "jobs": [job]}, overrides).chip


def _fused() -> Any:
    fused = capability(_chip().kind, "fusion")
    assert fused is not None
    return fused
