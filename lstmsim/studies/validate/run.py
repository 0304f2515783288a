"""The validation as a whole: published figures are simulated again; every claim is judged, shown, or left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any

from lstmsim import engines
from lstmsim.base.errors import Mistake, refuse
from lstmsim.base.wording import nearest
from lstmsim.engines import ENGINES
from lstmsim.files import published
from lstmsim.files.published import Claim, IntelWorkload, Measurement
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
from lstmsim.studies.validate import groups as tables
from lstmsim.studies.validate.column_claims import Arrays, Speeds, whole_numbers
from lstmsim.studies.validate.rows import TOPICS, ClaimRow, Finding, Group, Validation, Verdict

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
    job = {"model": {"layers": [tables.layer("lstm", 8, 8)]}, "steps": 1}
    return load_scenario({"chip": tables.V100, "jobs": [job]}, overrides).chip


def _fused() -> Any:
    fused = capability(_chip().kind, "fusion")
    assert fused is not None
    return fused


Judge = Callable[[Claim], Finding]

_PATENT, _SPEED, _OTHERS, _KERNELS, _REST = TOPICS

#: Claims that nothing here can say anything about, by the reason.
_REASONS = {
    "names devices, no figure of theirs": "que-fccm2020-devices",
    "area and logic are not simulated": "que-fpt2020-area remarn-area que-asap2021-dsp masr-area",
    "power and energy are not simulated": "que-fpt2020-v100-power remarn-v100-power que-jsps2020-energy sharp-power "
    "c-lstm-energy ese-power masr-energy brds-efficiency",
    "there is no model of this machine": "que-asap2021-latency sharp-asic sharp-fpga sharp-gpu e-batch-e-pur "
    "e-batch-tpu c-lstm-performance ese-cpu ese-gpu masr-performance nurvitadhi-volta-fp32 nurvitadhi-volta-int8 "
    "boutros-t4 yan-csr-orin yan-csr-4090",
    "neither the tasks of this figure nor the times of single ones are public": "boutros-v100",
    "there is no model of Plasticine, and none of this Xeon (two cores, 2 GHz)": "zhao-xeon",
    "there is no model of Plasticine; V100's own latencies are the group v100": "zhao-v100",
    "whole networks other than recurrent ones are not simulated": "gale-transformer",
    "not timed: the device has kernels for the conversion by the hash, not for the other one": "yan-sorting "
    "yan-dynamic-programming",
}
NOT_SIMULATED: Mapping[str, str] = {key: reason for reason, keys in _REASONS.items() for key in keys.split()}


def _judges(bench: tables.Bench, rows: Sequence[Measurement]) -> dict[str, tuple[str, Judge]]:
    """For each claim, by its key, the topic and the function that judges it."""
    arrays, speeds, kernels = Arrays(bench), Speeds(bench, rows), Kernels(bench.engine)
    return {
        "patent-ep-16384": (_PATENT, partial(arrays.best_ep, npe=16384)),
        "patent-ep-65536": (_PATENT, partial(arrays.best_ep, npe=65536)),
        "patent-order-512": (_PATENT, partial(arrays.ordering, hidden=512)),
        "patent-order-1024": (_PATENT, partial(arrays.ordering, hidden=1024)),
        "patent-cat": (_PATENT, arrays.cat_suffices),
        "renown-throughput": (_SPEED, speeds.throughput),
        "que-fpt2020-two-threads": (_SPEED, partial(speeds.thread_gain, cores=1)),
        "remarn-quad-core": (_SPEED, partial(speeds.thread_gain, cores=4)),
        "que-fccm2020-performance": (_OTHERS, speeds.over_row_wise),
        "que-fccm2020-utilization": (_OTHERS, speeds.utilization_over_row_wise),
        "renown-performance": (_OTHERS, speeds.over_row_wise),
        "que-fpt2020-v100": (_OTHERS, speeds.over_gpu),
        "remarn-v100": (_OTHERS, speeds.over_gpu),
        "gale-peak-share": (_KERNELS, kernels.peak_share),
        "gale-row-swizzle": (_KERNELS, kernels.row_swizzle),
        "astitch-figure-7": (_KERNELS, kernels.drawn_graph),
        "astitch-kernels": (_KERNELS, kernels.fewer_kernels),
        "astitch-mechanisms": (_KERNELS, kernels.one_after_the_other),
        "astitch-writes": (_KERNELS, kernels.written),
        "astitch-xla": (_KERNELS, kernels.speed),
        "zhao-brainwave": (_OTHERS, speeds.plasticine_over_brainwave),
    }


#: The keys of all claims that are known here.
KEYS = frozenset(_judges(tables.Bench(), ())) | frozenset(NOT_SIMULATED)


def claim_rows(
    claims: Sequence[Claim], rows: Sequence[Measurement], bench: tables.Bench, tick: Callable[[], None] = lambda: None
) -> tuple[ClaimRow, ...]:
    """Give a row for every claim, by topic and then in the order of `claims`.

    A claim that is unknown here fails, and so does a known claim that is missing.
    """
    judges = _judges(bench, rows)
    answer_rows = []
    for claim in claims:
        reason = NOT_SIMULATED.get(claim.key)
        topic, judge = judges.get(claim.key, (_REST, None))
        if judge is not None:
            found = judge(claim)
        elif reason is not None:
            found = Finding(reason, "", "not simulated")
        else:
            found = Finding("nothing here says how this claim is to be simulated", "", "fails")
        text = f"{claim.quantity}: {claim.value} {claim.unit}".rstrip()
        row = ClaimRow(claim.key, topic, text, found.condition, found.simulated, found.verdict, claim.source)
        answer_rows.append(row)
        tick()
    missing = "this claim is missing among the published ones"
    for key in sorted(KEYS - {claim.key for claim in claims}):
        topic = judges[key][0] if key in judges else _REST
        answer_rows.append(ClaimRow(key, topic, key, missing, "", "fails", ""))
    return tuple(sorted(answer_rows, key=lambda row: TOPICS.index(row.topic)))


CLAIMS = "claims"

#: The parts of a validation that can be asked for, in the order of the tables.
GROUPS = (tables.RTL, tables.CPP, tables.FITTED_GROUP, tables.HELD_OUT_GROUP, tables.V100, CLAIMS)


@dataclass(frozen=True)
class Published:
    """The published figures: Intel's workloads, DeepBench latencies, claims of sources that print no table."""

    intel: tuple[IntelWorkload, ...]
    deepbench: tuple[Measurement, ...]
    claims: tuple[Claim, ...]


def read_published(folder: str | os.PathLike[str] | None = None) -> Published:
    """Read the published tables; `InputError` for a damaged one."""
    return Published(published.intel_npu(folder), published.deepbench(folder), published.claims(folder))


def validate(
    groups: Sequence[str] = GROUPS,
    *,
    engine: str = "fast",
    figures: Published | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Validation:
    """Simulate what the groups claim to reproduce and compare it with the published figures.

    A figure that leaves its band is named in the result's `failures`; no error is raised.
    """
    wanted = [each for each in GROUPS if each in groups]
    mistakes = [_unknown("group", each, GROUPS) for each in groups if each not in GROUPS]
    if engine not in ENGINES:
        mistakes.append(_unknown("engine", engine, tuple(ENGINES)))
    refuse(mistakes)
    figures = figures or read_published()
    bench = tables.Bench(engine)
    parts = [_part(each, figures) for each in wanted if each != CLAIMS]
    claimed = figures.claims if CLAIMS in wanted else ()
    tick = _ticker(sum(size for size, _ in parts) + len(claimed), progress)
    compared = tuple(make(bench, tick) for _, make in parts)
    claims = claim_rows(claimed, figures.deepbench, bench, tick) if CLAIMS in wanted else ()
    return Validation(engine, compared, claims)


def _unknown(what: str, name: str, known: Sequence[str]) -> Mistake:
    return Mistake(what, f"no {what} called {name!r}{nearest(name, known) or '; there are: ' + ', '.join(known)}")


def _part(key: str, figures: Published) -> tuple[int, Callable[[tables.Bench, Callable[[], None]], Group]]:
    """How many comparisons a group has, and what makes it."""
    if key in (tables.RTL, tables.CPP):
        return len(figures.intel), partial(tables.intel_group, key, figures.intel)
    if key == tables.V100:
        return len(tables.v100_rows(figures.deepbench)), partial(tables.v100_group, figures.deepbench)
    return len(tables.in_group(key, figures.deepbench)), partial(tables.brainwave_group, key, figures.deepbench)


def _ticker(total: int, progress: Callable[[int, int], None] | None) -> Callable[[], None]:
    """A function that counts its calls and reports them to `progress`."""
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return tick
