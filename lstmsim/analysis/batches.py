"""The batches of a run: who ran together, when, where, and the work that was padding (docs/batching.md, section 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from lstmsim.base.records import record
from lstmsim.model.scenario import DISPATCH, Job, Scenario
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.program import Program
from lstmsim.program.runs import Runs, companies, runs_of
from lstmsim.program.trace import TASKS, Totals

_OPERATIONS = FLAT_TABLES["operations"]
_WIDTH = _OPERATIONS.width
_PLACES = [_OPERATIONS.place(name) for name in ("member", "count", "work")]


@record
class Batch:
    """Requests that ran together. Times are in cycles.

    start, finish: when they were admitted, and when their last results were visible.
    core, thread: where; of several cores the first.
    members: their places among the scenario's jobs, in order of turn.
    """

    start: int
    finish: int
    core: int
    thread: int
    members: tuple[int, ...]


def batches_of(jobs: Sequence[Job], totals: Totals) -> tuple[Batch, ...]:
    """The batches of a run in the order of their admission; a request without `batching` is a batch of its own.

    None are listed where no request has it.

    jobs: those of the scenario.
    totals: of the run.
    """
    if all(job.batching is None for job in jobs):
        return ()
    rows = totals.tasks[: len(jobs)]
    runs = runs_of(rows, totals.pauses)
    arrived = TASKS.of(rows, "arrived").tolist()
    made = []
    own = companies(runs, lambda number: _turn(jobs[number], arrived[number], number))
    led = runs.where(runs.leads)
    columns = (led.task, led.start, led.end, led.core, led.context)
    for lead, start, end, core, context in zip(*(column.tolist() for column in columns), strict=True):
        members, batching = own[lead, start], jobs[lead].batching
        first = _turn(jobs[members[0]], arrived[members[0]], members[0])
        if batching is not None and batching.ragged:
            members = sorted(members, key=lambda number: -jobs[number].steps)
        made.append((start, first, Batch(start, end, core, context, tuple(members))))
    return tuple(batch for _, _, batch in sorted(made, key=lambda each: each[:2]))


def batch_names(names: Sequence[str], runs: Runs) -> list[str]:
    """The names of jobs in a timeline, where one bar stands for all members of a batch: that of the job that leads it.

    Such a job is called `NAME x b` after the members of the batch. One that leads several rounds, with more members in
    some than in others, is called `NAME x 1 to 4`.

    names: of the jobs.
    """
    leads = (runs.batch == runs.task) & (runs.task < len(names))
    leaders, sizes = runs.task[leads], runs.sizes[leads]
    least, most = np.full(len(names), np.iinfo(np.int64).max), np.ones(len(names), dtype=np.int64)
    np.minimum.at(least, leaders, sizes)
    np.maximum.at(most, leaders, sizes)
    made = list(names)
    for job in np.flatnonzero(most > 1).tolist():
        range_of = f"{least[job]} to {most[job]}" if least[job] < most[job] else f"{most[job]}"
        made[job] = f"{names[job]} x {range_of}"
    return made


def _turn(job: Job, arrived: int, number: int) -> tuple[int, int, int]:
    key, from_arrival = DISPATCH[job.dispatch](job)
    return key + (arrived if from_arrival else 0), arrived, number


@record
class BatchFigures:
    """What a run's batches came to.

    batches: how many; of `continuous` its rounds.
    mean_size: their mean number of members.
    sizes: how many had 1, 2, ... members.
    padding_steps: steps that were run beyond the members' own / steps that were run, 0 to 1.
    """

    batches: int
    mean_size: float
    sizes: tuple[int, ...]
    padding_steps: float

    @property
    def words(self) -> str:
        """The figures in a line."""
        sizes = ", ".join(f"{count:,} of {size}" for size, count in enumerate(self.sizes, 1) if count)
        padding = f"padding {100 * self.padding_steps:.1f} % of steps"
        return f"batches: {self.batches:,}, mean size {self.mean_size:.3g} ({sizes}), {padding}"


def figures_of(jobs: Sequence[Job], batches: Sequence[Batch]) -> BatchFigures | None:
    """The figures of the batches of these jobs that have `batching`; None without any."""
    batches = [batch for batch in batches if jobs[batch.members[0]].batching is not None]
    if not batches:
        return None
    counts = Counter(len(batch.members) for batch in batches)
    most = max(job.batching.max_batch_size for job in jobs if job.batching is not None)
    run = own = members = 0
    for batch in batches:
        steps = [jobs[number].steps for number in batch.members]
        members += len(steps)
        run += len(steps) * max(steps) if pads(jobs[batch.members[0]]) else sum(steps)
        own += sum(steps)
    sizes = tuple(counts[size] for size in range(1, most + 1))
    return BatchFigures(len(batches), members / len(batches), sizes, 1 - own / run)


def pads(job: Job) -> bool:
    """Whether all members of a batch run as many steps as the longest."""
    return job.batching is not None and job.batching.lengths != "ragged" and not job.batching.in_rounds


def padded_work(scenario: Scenario, program: Program | None, batches: Sequence[Batch]) -> dict[int, int]:
    """Multiply-accumulates beyond the members' own steps, by core: they are no useful work.

    Batches that take all of a chip are left out: their work is of the members' own steps already.
    """
    padded: Counter[int] = Counter()
    for batch in batches:
        jobs = [scenario.jobs[number] for number in batch.members]
        longest = max(jobs, key=lambda job: job.steps)
        run, own = len(jobs) * longest.steps, sum(job.steps for job in jobs)
        if run == own or not pads(jobs[0]) or batch.core >= len(scenario.chip.core_figures):
            continue
        if program is None:
            padded[batch.core] += longest.model.macs_per_step * (run - own)
            continue
        task = program.tasks[batch.members[jobs.index(longest)]]
        place = next(each for each in task.places if each[0] == batch.core)
        worked = np.zeros(len(place), np.int64)
        for phase in task.phases(program.cores[batch.core].kind, 1, len(jobs)):
            rows = phase.body.rows.operations.reshape(-1, _WIDTH)
            member, count, work = (rows[:, column] for column in _PLACES)
            worked += np.bincount(member, count * work, len(place)).astype(np.int64) * phase.repeat
        # Steps and members are alike. What does not divide goes to the cores with the largest remainders.
        shares = [divmod(all_steps * (run - own), run) for all_steps in worked.tolist()]
        over = longest.model.macs_per_step * (run - own) - sum(whole for whole, _ in shares)
        more = sorted(range(len(place)), key=lambda each: -shares[each][1])[: max(0, over)]
        for number, core in enumerate(place):
            padded[core] += shares[number][0] + (number in more)
    return padded
