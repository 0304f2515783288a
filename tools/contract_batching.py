"""Cases of batching (docs/batching.md) for `tools/contract.py`: their layout, and what lstmsim makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lstmsim import run

__all__ = ["EXPECTED", "laid_out", "result"]

#: What every expectation holds; `cores` only those of the column-wise NPU.
EXPECTED = ("jobs", "batches", "makespan")


def laid_out(each: Any) -> Any:
    """A case of batching as all other files lay out theirs; anything else stays as it is.

    Its key `machine` is no key of a scenario: it holds durations that the case was made with.
    """
    of_batching = isinstance(each, dict) and isinstance(each.get("expected"), dict) and "scenario" in each
    if not of_batching or not isinstance(each["scenario"], dict):
        return each
    scenario = {key: value for key, value in each["scenario"].items() if key != "machine"}
    return each | {"scenario": scenario, "expect": each["expected"]}


def result(case: Mapping[str, Any], engine: str) -> dict[str, Any]:
    """What the engine makes of the case's scenario, laid out as its expectation."""
    made = run(case["scenario"], engine=engine)
    report = made.report
    names = [job.tenant for job in made.scenario.jobs]
    jobs: dict[int, dict[str, Any]] = {}
    for job in report.jobs:
        jobs[job.number] = {"name": names[job.number], "arrival": job.arrival, "start": job.start}
        jobs[job.number] |= {"finish": job.finish, "core": job.core, "thread": job.thread}
    for gone in report.rejected:
        jobs[gone.number] = {"name": names[gone.number], "arrival": gone.arrival, "away": True, "left": gone.at}
    batches: list[list[Any]] = [[each.start, each.core, each.thread, list(each.members)] for each in report.batches]
    if not batches:
        # nobody has company where no entry says so
        served = sorted(report.jobs, key=lambda job: (job.start, job.arrival, job.number))
        batches = [[job.start, job.core, job.thread, [job.number]] for job in served]
    whole = {"jobs": [jobs[number] for number in sorted(jobs)], "batches": batches, "makespan": report.makespan_cycles}
    if "cores" in case["expect"]:
        whole["cores"] = [{"cycles": dict(core.cycles), "macs": core.macs} for core in report.cores]
    return whole
