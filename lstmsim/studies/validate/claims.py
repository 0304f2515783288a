"""Every published claim once: judged, simulated without a verdict, or named as something that is not simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lstmsim.files.tables.published import Claim, Measurement
from lstmsim.studies.validate import optima, ratios
from lstmsim.studies.validate.bench import Bench
from lstmsim.studies.validate.gpu_kernels import Kernels
from lstmsim.studies.validate.optima import Arrays
from lstmsim.studies.validate.rows import ClaimRow, Finding

__all__ = ["KEYS", "NOT_SIMULATED", "TOPICS", "claim_rows"]

Judge = Callable[[Claim], Finding]

_PATENT = "the patent's EP, VP and CAT"
_SPEED = "throughput, threads, cores"
_OTHERS = "speed beside other machines"
_KERNELS = "kernels of a GPU"
_REST = "not simulated"

#: What claims are about, in the order of the tables.
TOPICS = (_PATENT, _SPEED, _OTHERS, _KERNELS, _REST)

_AREA = "area and logic are not simulated"
_POWER = "power and energy are not simulated"
_MACHINE = "there is no model of this machine"
_GPU = "neither the tasks of this figure nor the times of single ones are public"
_NOT_TIMED = "not timed: the device has kernels for the conversion by the hash, not for the other one"

#: Claims that nothing here can say anything about, and why.
NOT_SIMULATED: Mapping[str, str] = {
    "que-fccm2020-devices": "names devices, no figure of theirs",
    "que-fpt2020-area": _AREA,
    "que-fpt2020-v100-power": _POWER,
    "remarn-area": _AREA,
    "remarn-v100-power": _POWER,
    "que-jsps2020-energy": _POWER,
    "que-asap2021-dsp": _AREA,
    "que-asap2021-latency": _MACHINE,
    "sharp-asic": _MACHINE,
    "sharp-fpga": _MACHINE,
    "sharp-gpu": _MACHINE,
    "sharp-power": _POWER,
    "e-batch-e-pur": _MACHINE,
    "e-batch-tpu": _MACHINE,
    "c-lstm-performance": _MACHINE,
    "c-lstm-energy": _POWER,
    "ese-cpu": _MACHINE,
    "ese-gpu": _MACHINE,
    "ese-power": _POWER,
    "masr-area": _AREA,
    "masr-energy": _POWER,
    "masr-performance": _MACHINE,
    "brds-efficiency": _POWER,
    "nurvitadhi-volta-fp32": _MACHINE,
    "nurvitadhi-volta-int8": _MACHINE,
    "boutros-t4": _MACHINE,
    "boutros-v100": _GPU,
    "zhao-xeon": "there is no model of Plasticine, and none of this Xeon (two cores, 2 GHz)",
    "zhao-v100": "there is no model of Plasticine; V100's own latencies are the group v100",
    "gale-transformer": "whole networks other than recurrent ones are not simulated",
    "yan-sorting": _NOT_TIMED,
    "yan-dynamic-programming": _NOT_TIMED,
    "yan-csr-orin": _MACHINE,
    "yan-csr-4090": _MACHINE,
}


def _judges(bench: Bench, rows: Sequence[Measurement]) -> dict[str, tuple[str, Judge]]:
    """For each claim, by its key, the topic and the function that judges it."""
    arrays, kernels = Arrays(bench), Kernels(bench.engine)
    return {
        "patent-ep-16384": (_PATENT, partial(optima.best_ep, arrays=arrays, npe=16384)),
        "patent-ep-65536": (_PATENT, partial(optima.best_ep, arrays=arrays, npe=65536)),
        "patent-order-512": (_PATENT, partial(optima.ordering, arrays=arrays, hidden=512)),
        "patent-order-1024": (_PATENT, partial(optima.ordering, arrays=arrays, hidden=1024)),
        "patent-cat": (_PATENT, partial(optima.cat_suffices, arrays=arrays)),
        "renown-throughput": (_SPEED, partial(ratios.throughput, bench=bench, rows=rows)),
        "que-fpt2020-two-threads": (_SPEED, partial(ratios.thread_gain, bench=bench, rows=rows, cores=1)),
        "remarn-quad-core": (_SPEED, partial(ratios.thread_gain, bench=bench, rows=rows, cores=4)),
        "que-fccm2020-performance": (_OTHERS, partial(ratios.over_row_wise, bench=bench, rows=rows)),
        "que-fccm2020-utilization": (_OTHERS, partial(ratios.utilization_over_row_wise, bench=bench, rows=rows)),
        "renown-performance": (_OTHERS, partial(ratios.over_row_wise, bench=bench, rows=rows)),
        "que-fpt2020-v100": (_OTHERS, partial(ratios.over_gpu, bench=bench, rows=rows)),
        "remarn-v100": (_OTHERS, partial(ratios.over_gpu, bench=bench, rows=rows)),
        "gale-peak-share": (_KERNELS, kernels.peak_share),
        "gale-row-swizzle": (_KERNELS, kernels.row_swizzle),
        "astitch-figure-7": (_KERNELS, kernels.drawn_graph),
        "astitch-kernels": (_KERNELS, kernels.fewer_kernels),
        "astitch-mechanisms": (_KERNELS, kernels.one_after_the_other),
        "astitch-writes": (_KERNELS, kernels.written),
        "astitch-xla": (_KERNELS, kernels.speed),
        "zhao-brainwave": (_OTHERS, partial(ratios.plasticine_over_brainwave, bench=bench, rows=rows)),
    }


#: The keys of all claims that are known here.
KEYS = frozenset(_judges(Bench(), ())) | frozenset(NOT_SIMULATED)


def claim_rows(
    claims: Sequence[Claim], rows: Sequence[Measurement], bench: Bench, tick: Callable[[], None] = lambda: None
) -> tuple[ClaimRow, ...]:
    """Give a row for every claim, by topic and then in the order of `claims`.

    A claim that is unknown here fails, and so does a known claim that is missing.

    claims: the published claims.
    rows: the published DeepBench latencies.
    bench: simulates what claims are about.
    tick: is called after each claim.
    """
    judges = _judges(bench, rows)
    answer_rows = []
    for claim in claims:
        topic, judge = judges.get(claim.key, (_REST, _unsimulated))
        answer_rows.append(_row(claim, topic, judge(claim)))
        tick()
    answer_rows += [
        _missing(key, judges[key][0] if key in judges else _REST) for key in sorted(KEYS - {c.key for c in claims})
    ]
    return tuple(sorted(answer_rows, key=lambda row: TOPICS.index(row.topic)))


def _unsimulated(claim: Claim) -> Finding:
    if claim.key in NOT_SIMULATED:
        return Finding(NOT_SIMULATED[claim.key], "", "not simulated")
    return Finding("nothing here says how this claim is to be simulated", "", "fails")


def _row(claim: Claim, topic: str, finding: Finding) -> ClaimRow:
    text = f"{claim.quantity}: {claim.value} {claim.unit}".rstrip()
    return ClaimRow(claim.key, topic, text, finding.condition, finding.simulated, finding.verdict, claim.source)


def _missing(key: str, topic: str) -> ClaimRow:
    return ClaimRow(key, topic, key, "this claim is missing among the published ones", "", "fails", "")
