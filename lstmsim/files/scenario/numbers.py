"""The numbers of a scenario's jobs: weights and frames from files, or drawn at random on request.

Files of frames: safetensors (tensor `x`), NumPy's .npy, CSV. Shape [steps, input].
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from math import prod
from tokenize import TokenError

import numpy as np

from lstmsim.base.bounded import bounded_file, placed
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.memory import refuse_memory
from lstmsim.base.wording import show
from lstmsim.files.scenario.first_states import ZERO
from lstmsim.importers.files import read_states, read_weights
from lstmsim.importers.tensors import floats, read_safetensors, shape_text
from lstmsim.model.model import Model
from lstmsim.model.numerics.jobs import JobData
from lstmsim.model.numerics.weights import (
    LARGEST,
    Floats,
    Network,
    States,
    Stimulus,
    expected_shapes,
    random_network,
    random_stimulus,
)
from lstmsim.model.scenario import Job, Scenario

FRAME_SUFFIXES = (".safetensors", ".npy", ".csv")


def read_frames(path: str | os.PathLike[str], steps: int | None, width: int) -> Floats:
    """Read the first frames of a file: an array [steps, width]."""
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    if suffix == ".safetensors":
        x = _from_safetensors(name, steps, width)
    elif suffix == ".npy":
        x = _from_npy(name, steps, width)
    elif suffix == ".csv":
        x = _from_csv(name, steps, width)
    else:
        raise InputError(Mistake(name, f"expected a file that ends in {', '.join(FRAME_SUFFIXES)}"))
    if not np.all(np.isfinite(x)) or np.abs(x).max(initial=0) > LARGEST:
        step, column = (int(each) for each in np.argwhere(~(np.abs(x) <= LARGEST))[0])
        text = f"holds {x[step, column]} at step {step}, column {column}; expected finite numbers up to 1e12"
        raise InputError(Mistake(name, text))
    return x


def _check_shape(name: str, shape: tuple[int, ...], steps: int | None, width: int) -> None:
    least = 1 if steps is None else steps
    if len(shape) != 2 or shape[1] != width or shape[0] < least:
        expected = f"[{least} or more steps, {width} inputs]"
        raise InputError(Mistake(name, f"has frames of shape {shape_text(shape)}, expected {expected}"))


def _from_safetensors(name: str, steps: int | None, width: int) -> Floats:
    tensors = read_safetensors(name).tensors
    if "x" not in tensors:
        there = ", ".join(show(each) for each in islice(tensors, 5)) or "nothing"
        raise InputError(Mistake(name, f"has no tensor 'x' with the frames; there is {there}"))
    _check_shape(name, tensors["x"].shape, steps, width)
    try:
        return floats(tensors, {"x": tensors["x"].shape})["x"][:steps]
    except InputError as error:
        raise placed(error, name) from None


def _from_npy(name: str, steps: int | None, width: int) -> Floats:
    """Read an .npy file. The header is checked first, because a wrong shape must not take memory."""
    with bounded_file(name, "an .npy file") as (file, size):
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file, max_header_size=10_000)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, TokenError) as error:
            # for headers of old Pythons numpy uses a tokenizer, which raises its own error for open brackets
            text = " ".join(str(error).split())[:120]
            raise InputError(Mistake(name, f"is no .npy file, or is damaged: {text}")) from None
        if dtype.kind not in "fiu" or dtype.itemsize > 8:
            raise InputError(Mistake(name, f"holds {dtype}, expected real numbers of at most 64 bits"))
        _check_shape(name, shape, steps, width)
        if prod(shape) * dtype.itemsize != size - file.tell():
            raise InputError(Mistake(name, f"is cut off or damaged: {shape_text(shape)} needs another size"))
        flat = np.frombuffer(file.read(), dtype).astype(np.float64)
    return flat.reshape(shape, order="F" if fortran else "C")[:steps]


def _from_csv(name: str, steps: int | None, width: int) -> Floats:
    """Read a CSV file with one frame in each line; a first line of words is a header."""
    with bounded_file(name, "a CSV file") as (file, _), io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        rows: list[list[float]] = []
        try:
            for number, row in enumerate(csv.reader(text), 1):
                if not row or (number == 1 and not _number(row[0])):
                    continue
                if len(row) != width:
                    raise InputError(Mistake(f"{name}:{number}", f"has {len(row)} columns, expected {width} inputs"))
                wrong = next((each for each in row if not _number(each)), None)
                if wrong is not None:
                    raise InputError(Mistake(f"{name}:{number}", f"{show(wrong)} is no number"))
                rows.append([float(each) for each in row])
                if len(rows) == steps:
                    break
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(Mistake(name, f"is no CSV text: {error}")) from None
    least = 1 if steps is None else steps
    if len(rows) < least:
        raise InputError(Mistake(name, f"has {len(rows)} frames, expected {least} or more, one per step"))
    return np.array(rows)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


#: Bytes of a weight (drawn, in float64, calibrated, in fixed point), and of a unit's values in one step; both measured.
_OF_WEIGHT, _OF_VALUE = 29, 72


def check_memory(scenario: Scenario) -> None:
    """Refuse a scenario if the weights and vectors of its jobs take more memory than a run may.

    Args:
        scenario: Its models and steps are read, no file.

    Raises:
        InputError: With the estimate in GB.
    """
    size = 0
    for model in dict.fromkeys(job.model for job in scenario.jobs):
        shapes = [(layer.directions, expected_shapes(layer).values()) for layer in model.layers]
        size += _OF_WEIGHT * sum(directions * sum(map(prod, own)) for directions, own in shapes)
        width = 8 * model.layers[0].input + _OF_VALUE * sum(layer.output for layer in model.layers)
        size += width * sum(job.steps for job in scenario.jobs if job.model is model)
    refuse_memory(f"scenario {scenario.name}", "weights and vectors of all jobs", size, "take fewer units or steps")


def job_data(scenario: Scenario, random_weights: int | None = None) -> Mapping[int, JobData]:
    """Read the numbers of every job, by the job's index: weights, frames, first states and calibration.

    random_weights: seed of the weights for models that have none; None: every model must have weights.
    `InputError` if a model has no weights, or a file is wrong.

    A job without `inputs` runs on random frames of its own, so that numbers which went to the wrong job are noticed.
    Jobs of one model share its network.
    """
    check_memory(scenario)
    reader = _Reader(scenario, random_weights)
    numbers = {}
    mistakes: list[Mistake] = []
    for index in range(len(scenario.jobs)):
        try:
            numbers[index] = reader.job(index)
        except InputError as error:
            mistakes += error.mistakes
    if mistakes:
        raise InputError(list(dict.fromkeys(mistakes)))
    return numbers


class _Reader:
    """The reader of all numbers. It reads each file once: jobs share networks, frames and calibration."""

    def __init__(self, scenario: Scenario, random_weights: int | None) -> None:
        self.scenario, self.random_weights = scenario, random_weights
        self.networks: dict[tuple[Model, str, int], Network] = {}
        self.stimuli: dict[tuple[int, str, int, str], Stimulus] = {}
        self.calibrations: dict[tuple[str, int], Floats] = {}

    def job(self, index: int) -> JobData:
        """Read the numbers of job number `index`."""
        job = self.scenario.jobs[index]
        own = job.model.network
        key = (job.model, job.model.weights, id(own))
        if key not in self.networks:
            if isinstance(own, Network):
                self.networks[key] = replace(own, model=job.model)
            elif job.model.weights:
                self.networks[key] = read_weights(job.model.weights, job.model)
            elif self.random_weights is None:
                text = f"model {job.model.name} has no weights; --random-weights 0 draws some"
                raise InputError(Mistake(f"job {job.name}", text))
            else:
                self.networks[key] = random_network(job.model, self.random_weights)
        network = self.networks[key]
        stimulus, inputs = self._stimulus(job, network, index)
        calibration, calibrated_on = self._calibration(job)
        weights, begins = self._weights_from(job.model), self._begins(job, network)
        return JobData(network, stimulus, weights, inputs, job.states_of, begins, calibration, calibrated_on)

    def _weights_from(self, model: Model) -> str:
        """Say where the numbers of a model come from."""
        if model.network is not None:
            return "in memory"
        return os.path.basename(model.weights) or f"random, seed {self.random_weights}"

    def _stimulus(self, job: Job, network: Network, index: int) -> tuple[Stimulus, str]:
        if job.states_of is None and not job.initial and job.model.states_from:
            text = f"model {job.model.name} starts from {job.model.states_from}: give the job `initial`"
            text += ", the name of the job that computes them, a file of states, or zero"
            raise InputError(Mistake(f"job {job.name}", text))
        if job.states_of is not None and job.states_of != job.after:
            text = f"begins with the last states of job {job.states_of}, but does not come after it"
            raise InputError(Mistake(f"job {job.name}", text))
        if not job.inputs:
            # each job has random frames of its own
            x = random_stimulus(job.model, job.steps, index).x
            return Stimulus(x, self._initial(job, network)), f"random, seed {index}"
        key = (id(network), job.inputs, job.steps, job.initial)
        if key not in self.stimuli:
            x = read_frames(job.inputs, job.steps, job.model.layers[0].input)
            self.stimuli[key] = Stimulus(x, self._initial(job, network))
        return self.stimuli[key], os.path.basename(job.inputs)

    def _initial(self, job: Job, network: Network) -> States:
        """Give the first states: those of the job take the place of those that the network itself fixes."""
        if job.initial == ZERO:
            return {}
        if not job.initial:
            return network.initial
        given = read_states(job.initial, job.model)
        return {key: _over(network, key, given.get(key, {})) for key in {**network.initial, **given}}

    def _begins(self, job: Job, network: Network) -> str:
        if job.states_of is not None:
            return f"the last states of {self.scenario.jobs[job.states_of].name}"
        if job.initial:
            return "" if job.initial == ZERO else f"the states in {os.path.basename(job.initial)}"
        return "the states that its model fixes" if network.initial else ""

    def _calibration(self, job: Job) -> tuple[Floats | None, str]:
        """Give the frames on which the job's model is calibrated, and the name of their file."""
        path = self.scenario.calibration.get(job.model.name, "")
        if not path:
            return None, ""
        key = (path, job.model.layers[0].input)
        if key not in self.calibrations:
            try:
                self.calibrations[key] = read_frames(path, None, key[1])
            except InputError as error:
                text = f"for model {job.model.name}; models of other widths have files of their own:"
                text += " write precision.calibration as a mapping from each model's name to its file"
                several = os.path.isfile(path) and len({job.model.layers[0].input for job in self.scenario.jobs}) > 1
                mistakes = [Mistake(each.location, each.sentence + f" {text}" * several) for each in error.mistakes]
                raise InputError(mistakes) from None
        return self.calibrations[key], os.path.basename(path)


def _over(network: Network, key: tuple[int, int], given: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """Give the states of one pass: the given states, and the network's own states that they do not replace."""
    cell = network.model.layers[key[0]].cell
    # if h is given, a state that h is made of is no longer the network's own
    source = cell.node(cell.output).inputs[0]
    follow = {name for name, target in cell.states.items() if "h" in given and target == source}
    own = network.initial.get(key, {})
    return {**{name: values for name, values in own.items() if name not in follow}, **given}
