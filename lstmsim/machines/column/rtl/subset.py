"""What cannot be written as Verilog, each with its key."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.plan import Plan
from lstmsim.model.precision import Precision
from lstmsim.model.scenario import Job, Scenario

__all__ = ["refusals"]

_HOST = "the queue of the hardware is in posting order; a host that sorts jobs before it posts them can do the same"

#: Key of a job -> whether the job has it, and why it is refused.
_OF_JOBS: dict[str, tuple[Callable[[Job], bool], str]] = {
    "split": (lambda job: bool(job.split), "must be left out: the exchange between cores is not written as Verilog"),
    "dispatch": (lambda job: job.dispatch != "fcfs", f"must be 'fcfs': {_HOST}"),
    "preemption": (lambda job: job.preempts, "must be false: a job keeps its context until it ends"),
    "queue_limit": (lambda job: job.queue_limit is not None, "must be left out: jobs are not turned away"),
    "patience": (lambda job: job.patience is not None, "must be left out: jobs are not turned away"),
    "initial": (
        lambda job: job.states_of is not None,
        "must not name a job: states begin with what a host has written before, and a job comes at a known cycle",
    ),
    "arrival": (
        lambda job: job.after is not None and job.states_of is None,
        "must not follow other jobs: a job comes at a cycle that is known beforehand",
    ),
}


def refusals(scenario: Scenario, precision: Precision | None) -> list[Mistake]:
    """Why a scenario of a column-wise NPU is outside the subset, each with its key; empty if it is inside.

    precision: None if only cycles are wanted.

    >>> from lstmsim.machines.column.npu import ColumnCore
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> chip = ColumnNpu("small", 260, (ColumnCore(npe=64, ep=4, vp=16),) * 2)
    >>> job = Job("a", Model("m", (Layer(cell("lstm"), 10, 7),)), 3, split="rows")
    >>> [each.place for each in refusals(Scenario(chip, (job,)), None)]
    ['job a: split']
    """
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    mistakes = [*_of_jobs(scenario, chip), *_of_cores(chip)]
    return mistakes or list(_of_weights(scenario, chip))


def _of_jobs(scenario: Scenario, chip: ColumnNpu) -> Iterator[Mistake]:
    """Refuse keys of jobs, each key once: a scenario may have thousands of jobs."""
    for key, (has, text) in _OF_JOBS.items():
        names = [job.name for job in scenario.jobs if has(job.settled(len(chip.cores)))]
        if names:
            more = f" (as for {len(names) - 1:,} more)" if len(names) > 1 else ""
            yield Mistake(f"job {names[0]}: {key}", text + more)


def _of_cores(chip: ColumnNpu) -> Iterator[Mistake]:
    for number, core in enumerate(chip.cores):
        if core.tree_inputs not in (None, core.ep) and core.latency.add != 1:
            text = f"must be 1 where a configurable tail adds up in its tree, got {core.latency.add}"
            yield Mistake(f"chip {chip.name}: cores.{number}.latency.add", text)


def _of_weights(scenario: Scenario, chip: ColumnNpu) -> Iterator[Mistake]:
    """Refuse contents that take turns, are streamed, or lie on some cores only."""
    try:
        tight = Plan(chip, scenario.jobs).tight
    except InputError as error:
        yield from error.mistakes
        return
    if tight:
        key = "weight_kib" if chip.memory is None else "memory"
        text = "the weights of all models must fit on every core that their jobs may use; they stay there"
        yield Mistake(f"chip {chip.name}: {key}", text)
