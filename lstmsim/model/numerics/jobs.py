"""The numbers of several jobs at once: what each begins with, one calibration for all of a network, golden runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.model.model import Precision
from lstmsim.model.numerics.arithmetic import Arithmetic, Array
from lstmsim.model.numerics.calibration import calibrate
from lstmsim.model.numerics.fixed import fixed_chip
from lstmsim.model.numerics.golden import NetworkRun, Sender, float_arithmetic, run_network
from lstmsim.model.numerics.weights import Floats, Network, States, Stimulus


@dataclass(frozen=True, eq=False)
class JobData:
    """The numbers of a job, and in words where weights, inputs and the states that it begins with (empty: 0) are from.

    follows: the job whose last states it begins with (a key of the same mapping); None: as the stimulus says.
    calibration: frames [any steps, input] that its fixed-point formats are calibrated on; None: on the jobs themselves.
    calibrated_on: the file of those frames, or empty.
    """

    network: Network
    stimulus: Stimulus
    weights: str
    inputs: str
    follows: int | None = None
    begins: str = ""
    calibration: Floats | None = None
    calibrated_on: str = ""


@dataclass(frozen=True, eq=False)
class JobNumbers:
    """What a job needs to be executed: arithmetic `[layer][direction]` with its weights, and its stimulus.

    follows: the job whose last states it begins with instead; None: as the stimulus says.
    """

    arithmetic: tuple[tuple[Arithmetic, ...], ...]
    stimulus: Stimulus
    follows: int | None = None

    def after(self, done: NetworkRun | None) -> Stimulus:
        """Give the job's stimulus, beginning with the last states of the run `done` if the job follows that run."""
        return self.stimulus if done is None else continued(self.stimulus, done, self.arithmetic)


@dataclass(eq=False)
class AllNumbers:
    """The numbers of the jobs of a scenario, read when somebody asks for them.

    load: reads them.
    precision: widths of fixed point; None: float64.
    runs: what machines have computed on them, and keep.
    """

    load: Callable[[], Mapping[int, JobData]]
    precision: Precision | None
    runs: dict[Hashable, Any] = field(default_factory=dict)

    @cached_property
    def data(self) -> Mapping[int, JobData]:
        """The numbers as they are in files."""
        return self.load()

    @cached_property
    def jobs(self) -> Mapping[int, JobNumbers]:
        """The numbers as the jobs compute on them."""
        return float_numbers(self.data) if self.precision is None else fixed_numbers(self.data, self.precision)


@dataclass(frozen=True)
class OwnNumbers:
    """The numbers of one job, for machines whose cycles depend on them. They are equal if their files are.

    every: those of all jobs; index: the job among these; files: what tells numbers apart.
    """

    every: AllNumbers = field(compare=False, repr=False)
    index: int = field(compare=False)
    files: Hashable

    @property
    def data(self) -> JobData:
        """The job's numbers as they are in files."""
        return self.every.data[self.index]

    @cached_property
    def digest(self) -> str:
        """A name of the numbers that is the same in every run."""
        own, fixed = self.data, self.every.precision
        made = hashlib.sha256(repr(fixed).encode())
        arrays = [own.stimulus.x, *([] if own.calibration is None else [own.calibration])]
        arrays += [each for states in own.stimulus.initial.values() for each in states.values()]
        for weights in (each for both in own.network.passes for each in both):
            arrays += [*weights.matrices.values(), *weights.biases.values(), *weights.parameters.values()]
        for array in arrays:
            made.update(np.asarray(array, np.float64).tobytes())
        return made.hexdigest()

    @property
    def job(self) -> JobNumbers:
        """The job's numbers as it computes on them."""
        return self.every.jobs[self.index]


def last_states(run: NetworkRun) -> dict[int, States]:
    """Give the states after the last step as real numbers: the number of each recurrent layer to its states."""
    return {
        layer: {
            (layer, direction): {name: own.decode(name, held) for name, held in one.states.items()}
            for direction, (one, own) in enumerate(zip(both, arithmetic, strict=True))
        }
        for layer, (both, arithmetic) in enumerate(zip(run.passes, run.arithmetic, strict=True))
        if arithmetic[0].layer.cell.recurrent
    }


def continued(stimulus: Stimulus, run: NetworkRun, arithmetic: Sequence[Sequence[Arithmetic]]) -> Stimulus:
    """Give the same frames, beginning with the last states of a run.

    Fixed-point states go over as the real numbers that they stand for; the first recurrent layer's states go to the
    first recurrent layer of `arithmetic`, and so on.
    """
    takers = [layer for layer, both in enumerate(arithmetic) if both[0].layer.cell.recurrent]
    initial = {
        (layer, direction): values
        for layer, states in zip(takers, last_states(run).values(), strict=True)
        for (_, direction), values in states.items()
    }
    return replace(stimulus, initial=initial)


#: From a job and its numbers to what the products of each layer see in place of its vectors.
Senders = Callable[[int, JobNumbers], Sequence[Sender]]


def run_jobs(jobs: Mapping[int, JobNumbers], senders: Senders | None = None) -> dict[int, NetworkRun]:
    """Run the golden model of every job; a job runs after the job that it follows, which has a smaller key.

    senders: gives for a job what the products of each layer see in place of its vectors; None, or empty: the vectors.
    """
    runs: dict[int, NetworkRun] = {}
    for index in sorted(jobs):
        own = jobs[index]
        before = None if own.follows is None else runs[own.follows]
        runs[index] = run_network(own.arithmetic, own.after(before), senders=senders(index, own) if senders else ())
    return runs


def float_numbers(jobs: Mapping[int, JobData]) -> dict[int, JobNumbers]:
    """Make every job ready to run in float64; the jobs of a network share their weights."""
    shared = {id(each.network): each.network for each in jobs.values()}
    passes = {key: float_arithmetic(network) for key, network in shared.items()}
    return {index: JobNumbers(passes[id(each.network)], each.stimulus, each.follows) for index, each in jobs.items()}


def fixed_numbers(jobs: Mapping[int, JobData], precision: Precision) -> dict[int, JobNumbers]:
    """Make every job ready to run in fixed point: one calibration for each network, counters for each job.

    What networks share on a chip (`precision.formats`) is shared by the networks of all of these jobs.
    A network is calibrated on the `calibration` frames of its jobs, beginning with the states that the network itself
    fixes. If no job has such frames, it is calibrated on all that its jobs run on. `InputError` if a width is not
    possible or a value of the floating-point run is not finite.
    """
    started = _float_stimuli(jobs)
    jobs_of: dict[int, list[int]] = {}
    for index, each in jobs.items():
        jobs_of.setdefault(id(each.network), []).append(index)
    calibrated = []
    for own in jobs_of.values():
        network = jobs[own[0]].network
        frames = {id(jobs[index].calibration): jobs[index].calibration for index in own}
        sets = [network.stimulus(x) for x in frames.values() if x is not None]
        # equal jobs share their stimulus
        stimuli = sets or list({id(started[index]): started[index] for index in own}.values())
        try:
            calibrated.append((network, calibrate(network, stimuli)))
        except InputError as error:
            named = f"model {network.model.name}"
            raise InputError(
                [
                    each
                    if each.location.startswith("precision.")
                    else Mistake(f"{named}: {each.location}".strip(": "), each.sentence)
                    for each in error.mistakes
                ]
            ) from None
    passes = dict(zip(jobs_of, fixed_chip(calibrated, precision), strict=True))
    return {
        index: JobNumbers(
            tuple(tuple(own.counting_anew() for own in both) for both in passes[id(each.network)]),
            each.stimulus,
            each.follows,
        )
        for index, each in jobs.items()
    }


def _float_stimuli(jobs: Mapping[int, JobData]) -> dict[int, Stimulus]:
    """What each job runs on in float64; to know it, only jobs that other jobs follow are run."""
    followed = {each.follows for each in jobs.values()}
    numbers = float_numbers(jobs)
    runs: dict[int, NetworkRun] = {}
    stimuli: dict[int, Stimulus] = {}
    for index in sorted(jobs):
        own = numbers[index]
        stimuli[index] = own.after(None if own.follows is None else runs[own.follows])
        if index in followed:
            runs[index] = run_network(own.arithmetic, stimuli[index])
    return stimuli


def judged_frames(jobs: Iterable[JobData]) -> list[int]:
    """Count for each job on how many of its own frames its formats were calibrated; above 0 is optimistic."""
    known: dict[int, set[bytes]] = {}
    counts: dict[tuple[int, int], int] = {}
    judged = []
    for job in jobs:
        key = (id(job.stimulus), id(job.calibration))
        if key not in counts:
            frames = _rows(job.stimulus.x)
            if job.calibration is not None and key[1] not in known:
                known[key[1]] = set(_rows(job.calibration))
            there = known.get(key[1])
            counts[key] = len(frames) if there is None else sum(row in there for row in frames)
        judged.append(counts[key])
    return judged


def _rows(frames: Floats) -> list[bytes]:
    return [row.tobytes() for row in np.asarray(frames, np.float64)]


def calibration_lines(jobs: Iterable[JobData]) -> list[str]:
    """Say what formats were calibrated on: a line for each file, and a line for the models without a file."""
    ways: dict[tuple[str, int | None], list[JobData]] = {}
    for each in jobs:
        frames = None if each.calibration is None else len(each.calibration)
        ways.setdefault((each.calibrated_on, frames), []).append(each)
    models = [list(dict.fromkeys(one.network.model.name for one in group)) for group in ways.values()]
    return [
        f"{some_of(names)}: formats calibrated {_how(*way, group)}"
        for names, (way, group) in zip(models, ways.items(), strict=True)
    ]


def _how(file: str, frames: int | None, jobs: Sequence[JobData]) -> str:
    """On what the formats of these jobs were calibrated."""
    if frames is None:
        return "on the frames that are judged: optimistic; give precision.calibration"
    every = {id(each.stimulus): each for each in jobs}.values()
    judged, total = sum(judged_frames(every)), sum(len(each.stimulus.x) for each in every)
    text = f"on {file} ({frames:,} frame{'s' * (frames > 1)})"
    return text + (f", which has {judged:,} of the {total:,} judged frames: optimistic" if judged else "")


def beginning_lines(jobs: Iterable[tuple[str, str]], limit: int = 10) -> list[str]:
    """Say what the states of jobs (name, what it begins with; empty: 0) begin with, in about `limit` lines.

    >>> beginning_lines([("a", ""), ("b", "the last states of a")])
    ['b begins with the last states of a']
    """
    words: dict[str, list[str]] = {}
    for name, text in jobs:
        words.setdefault(text, []).append(name)
    lines = [f"{some_of(names)} begin{'s' * (len(names) == 1)} with {text}" for text, names in words.items() if text]
    return lines if len(lines) <= limit else [*lines[:limit], f"... and {len(lines) - limit:,} more begin so"]


def some_of(names: Sequence[str]) -> str:
    """List the first three names, and say how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


#: `values[layer][direction][name]`: a sum's or node's held values, a row for each step in the order of computing.
Values = tuple[tuple[Mapping[str, Array], ...], ...]


def run_recorded(job: JobNumbers) -> tuple[NetworkRun, Values]:
    """Run the golden model of a job that follows no other, and keep all values."""
    assert job.follows is None
    computed: list[tuple[str, Array]] = []
    run = run_network(job.arithmetic, job.stimulus, lambda name, values: computed.append((name, values)))
    rest, steps = iter(computed), len(job.stimulus.x)
    return run, tuple(tuple(_of_pass(own, rest, steps) for own in both) for both in job.arithmetic)


def _of_pass(own: Arithmetic, computed: Iterator[tuple[str, Array]], steps: int) -> Mapping[str, Array]:
    """The values of the next pass, in whose steps each sum and node is computed once."""
    cell = own.layer.cell
    count = len(cell.sums) + len(cell.nodes)
    every: dict[str, list[Array]] = {}
    for _ in range(steps * count):
        name, values = next(computed)
        every.setdefault(name, []).append(values)
    return {name: np.stack(values) for name, values in every.items()}
