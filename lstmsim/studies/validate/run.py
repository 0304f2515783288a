"""The validation as a whole: published figures are simulated again; every claim is judged, shown, or left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import nearest
from lstmsim.engines import ENGINES
from lstmsim.files import published
from lstmsim.files.published import Claim, IntelWorkload, Measurement
from lstmsim.studies.validate.column_claims import Arrays, Speeds
from lstmsim.studies.validate.gpu_kernels import Kernels
from lstmsim.studies.validate.groups import (
    CPP,
    FITTED_GROUP,
    HELD_OUT_GROUP,
    RTL,
    V100,
    Bench,
    brainwave_group,
    in_group,
    intel_group,
    v100_group,
    v100_rows,
)
from lstmsim.studies.validate.rows import TOPICS, ClaimRow, Finding, Group, Validation

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


def _judges(bench: Bench, rows: Sequence[Measurement]) -> dict[str, tuple[str, Judge]]:
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
KEYS = frozenset(_judges(Bench(), ())) | frozenset(NOT_SIMULATED)


def claim_rows(
    claims: Sequence[Claim], rows: Sequence[Measurement], bench: Bench, tick: Callable[[], None] = lambda: None
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
GROUPS = (RTL, CPP, FITTED_GROUP, HELD_OUT_GROUP, V100, CLAIMS)


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
    if mistakes:
        raise InputError(mistakes)
    figures = figures or read_published()
    bench = Bench(engine)
    parts = [_part(each, figures) for each in wanted if each != CLAIMS]
    claimed = figures.claims if CLAIMS in wanted else ()
    tick = _ticker(sum(size for size, _ in parts) + len(claimed), progress)
    compared = tuple(make(bench, tick) for _, make in parts)
    claims = claim_rows(claimed, figures.deepbench, bench, tick) if CLAIMS in wanted else ()
    return Validation(engine, compared, claims)


def _unknown(what: str, name: str, known: Sequence[str]) -> Mistake:
    return Mistake(what, f"no {what} called {name!r}{nearest(name, known) or '; there are: ' + ', '.join(known)}")


def _part(key: str, figures: Published) -> tuple[int, Callable[[Bench, Callable[[], None]], Group]]:
    """How many comparisons a group has, and what makes it."""
    if key in (RTL, CPP):
        return len(figures.intel), partial(intel_group, key, figures.intel)
    if key == V100:
        return len(v100_rows(figures.deepbench)), partial(v100_group, figures.deepbench)
    return len(in_group(key, figures.deepbench)), partial(brainwave_group, key, figures.deepbench)


def _ticker(total: int, progress: Callable[[int, int], None] | None) -> Callable[[], None]:
    """A function that counts its calls and tells `progress`."""
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return tick
