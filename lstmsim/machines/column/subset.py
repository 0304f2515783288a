"""What of the column-wise NPU can be written as Verilog: the subset inside which generated hardware is its equal.

It stands apart from what writes the Verilog, because every result asks whether it lies inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.plan import Plan
from lstmsim.machines.column.shape import pass_shapes
from lstmsim.model.scenario import Job, distinct_jobs

_HOST = "the queue of the hardware is in posting order; a host that sorts jobs before it posts them can do the same"

#: Key of a job -> whether the job has it, and why it is refused.
_OF_JOBS: dict[str, tuple[Callable[[Job], bool], str]] = {
    "dispatch": (lambda job: job.dispatch != "fcfs", f"must be 'fcfs': {_HOST}"),
    "preemption": (lambda job: job.preempts, "must be false: a job keeps its context until it ends"),
    "batch": (lambda job: job.batch > 1, "must be 1: a thread of this hardware runs one inference"),
    "batching": (
        lambda job: job.batching is not None,
        "must be left out: a thread of this hardware runs one inference",
    ),
    "queue_limit": (lambda job: job.queue_limit is not None, "must be left out: jobs are not rejected"),
    "patience": (lambda job: job.patience is not None, "must be left out: jobs are not rejected"),
    "session": (lambda job: job.session is not None, "must not be moved: this hardware has no way between its cores"),
    "initial": (
        lambda job: job.states_of is not None,
        "must not name a job: states begin with what a host has written before, and a job comes at a known cycle",
    ),
    "arrival": (
        lambda job: job.after is not None and job.states_of is None,
        "must not follow other jobs: a job comes at a cycle that is known beforehand",
    ),
}


def _of_jobs(chip: ColumnNpu, jobs: Sequence[Job]) -> Iterator[Mistake]:
    """Refuse keys of jobs, each key once: a scenario may have thousands of jobs."""
    for key, (has, text) in _OF_JOBS.items():
        names = [job.name for job in jobs if has(job.settled(len(chip.cores)))]
        if names:
            more = f" (as for {len(names) - 1:,} more)" if len(names) > 1 else ""
            yield Mistake(f"job {names[0]}: {key}", text + more)


def _of_cores(chip: ColumnNpu) -> Iterator[Mistake]:
    if chip.device_count > 1:
        text = f"must be left out: generated hardware is one device, got {chip.device_count}"
        yield Mistake(f"chip {chip.name}: devices", text)
    for number, core in enumerate(chip.cores):
        if core.delta is not None:
            yield Mistake(f"chip {chip.name}: cores.{number}.delta", "must be left out: it is not written as Verilog")
        if core.tree_inputs not in (None, core.ep) and core.latency.add != 1:
            text = f"must be 1 where a configurable tail adds up in its tree, got {core.latency.add}"
            yield Mistake(f"chip {chip.name}: cores.{number}.latency.add", text)


def _of_weights(chip: ColumnNpu, jobs: Sequence[Job]) -> Iterator[Mistake]:
    """Refuse contents that take turns, or lie on some cores only; and streams that are not written as Verilog."""
    if all(core.weight_kib is None for core in chip.cores):
        return
    plan = Plan(chip, jobs)
    try:
        tight = plan.tight
    except InputError as error:
        yield from error.mistakes
        return
    if not tight:
        return
    text = ""
    if chip.memory is None:
        text = "the weights of all models must fit on every core that their jobs may use; they stay there"
    elif plan.turns:
        text = "no core may have weights that take turns: a core whose weights do not stay streams those of one model"
    elif any(job.settled(len(chip.cores)).split for job in jobs):
        text = "must be left out with `split`: members of a job do not stream weights as Verilog"
    elif fast := _too_fast(chip, plan, jobs):
        text = f"gb_per_s: {fast}, and the port of the memory takes one tile's weights a cycle"
    if text:
        yield Mistake(f"chip {chip.name}: {'weight_kib' if chip.memory is None else 'memory'}", text)


def _too_fast(chip: ColumnNpu, plan: Plan, jobs: Sequence[Job]) -> str:
    """Which row block comes in fewer cycles than it has tiles, in words; empty if none does."""
    for job in distinct_jobs(jobs):
        for core in {core for place in plan.demand(job).places for core in place}:
            for (layer, _, _, stage), (_, cycles) in plan.streams(job, core).items():
                shape = pass_shapes(job.model.layers[layer], chip.cores[core])[stage]
                tiles = sum(shape.groups(vector) for vector in shape.stage.vectors)
                if cycles < tiles:
                    return f"a row block of layer {layer} has {tiles} tiles and comes in {cycles} cycles"
    return ""


def outside(chip: ColumnNpu, jobs: Sequence[Job]) -> list[Mistake]:
    """Why cycles of these jobs on the chip are those of no generated hardware, each with its key; empty if they are.

    Whether memories have room for the numbers is asked where a design is made (`generated.refusals`).
    """
    return [*_of_jobs(chip, jobs), *_of_cores(chip)] or list(_of_weights(chip, jobs))
