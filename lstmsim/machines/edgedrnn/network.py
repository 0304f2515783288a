"""A network and its inputs in the numbers of EdgeDRNN, and the entries of its layer-steps (docs/edgedrnn.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.edgedrnn.numbers import ONE, Entry, Ints, Layer, Sizes, entries_of, walked_over
from lstmsim.model.draws import changed
from lstmsim.model.model import Model
from lstmsim.model.numerics.jobs import JobData, OwnNumbers
from lstmsim.model.numerics.weights import Floats
from lstmsim.model.scenario import Job

#: Weights have 7 bits behind the point, in 8 bits; vectors 8 bits behind it, in 16.
_WEIGHT, _VECTOR = (128, -128, 127), (ONE, -32768, 32767)
#: The gates in the order of a column: reset, update, candidate (by the names of the cell).
_GATES = ("r", "z", "n")


class Held(NamedTuple):
    """Numbers as the machine holds them, and how many did not fit and became the nearest that does."""

    values: Ints
    lost: int


def held(values: Floats, scale: tuple[int, int, int]) -> Held:
    """Round to nearest even and saturate, before the run: the machine itself wraps.

    >>> held(np.array([0.5, 1.0, -2.0]), (128, -128, 127))
    Held(values=array([  64,  127, -128]), lost=2)
    """
    factor, low, high = scale
    exact = np.rint(values * factor)
    return Held(np.clip(exact, low, high).astype(np.int64), int(np.count_nonzero((exact < low) | (exact > high))))


def sizes_of(model: Model, lanes: int) -> list[Sizes]:
    """The sizes of each layer."""
    walked = [
        walked_over(layer.input, lanes) if not number else layer.input for number, layer in enumerate(model.layers)
    ]
    return [Sizes(each, layer.hidden, lanes) for each, layer in zip(walked, model.layers, strict=True)]


class Run(NamedTuple):
    """A run of a job's numbers.

    steps: entries of each layer-step, layers within steps.
    outputs: of the last layer, [steps, hidden].
    weights_lost, inputs_lost: how many numbers did not fit.
    """

    steps: list[tuple[Entry, ...]]
    outputs: Ints
    weights_lost: int
    inputs_lost: int


def layers_of(data: JobData, lanes: int) -> tuple[list[Layer], int]:
    """The layers with their weights, and how many of these did not fit; `InputError` for a bias that has no column."""
    model, made, lost = data.network.model, [], 0
    for number, (sizes, (own,)) in enumerate(zip(sizes_of(model, lanes), data.network.passes, strict=True)):
        layer = model.layers[number]
        if np.any(own.biases.get("nh", 0)):
            text = f"layer {number} has a recurrent bias of its candidate, for which the machine has no column"
            raise InputError(Mistake(f"model {model.name}", text))
        rows = {name: own.biases.get(name, np.zeros(layer.hidden)) for name in ("r", "z", "nx")}
        bias = np.concatenate([rows["r"], rows["z"], rows["nx"]])[None]
        x = np.concatenate([own.matrices[name, "x"].T for name in ("r", "z", "nx")], axis=1)
        h = np.concatenate([own.matrices[name, "h"].T for name in ("r", "z", "nh")], axis=1)
        added = np.zeros((sizes.walked - layer.input, 3 * layer.hidden))
        columns = held(np.concatenate([bias, x, added, h]), _WEIGHT)
        lost += columns.lost
        made.append(Layer(sizes, columns.values))
    return made, lost


def run_of(numbers: OwnNumbers, lanes: int, thresholds: tuple[int, int]) -> Run:
    """Run the numbers of a job once and keep what came out. thresholds: as the registers hold them."""
    key = ("edgedrnn", numbers.index, lanes, thresholds)
    if key not in numbers.every.runs:
        data = numbers.data
        layers, lost = layers_of(data, lanes)
        frames = held(data.stimulus.x, _VECTOR)
        steps, outputs = [], []
        for frame in frames.values:
            values = np.concatenate([frame, np.zeros(layers[0].sizes.walked - len(frame), np.int64)])
            for layer in layers:
                steps.append(layer.step(values, thresholds))
                values = layer.h
            outputs.append(values)
        numbers.every.runs[key] = Run(steps, np.stack(outputs), lost, frames.lost)
    made: Run = numbers.every.runs[key]
    return made


def entries(job: Job, lanes: int, thresholds: tuple[int, int]) -> list[tuple[Entry, ...]]:
    """The entries of each layer-step of a job that says what changes, layers within steps."""
    if job.density is not None:
        return list(_drawn(job, lanes, thresholds))
    assert isinstance(job.numbers, OwnNumbers), "checked before"
    return run_of(job.numbers, lanes, thresholds).steps


def _drawn(job: Job, lanes: int, thresholds: tuple[int, int]) -> Iterator[tuple[Entry, ...]]:
    assert job.density is not None
    sizes, layers = sizes_of(job.model, lanes), changed(job.model, job.steps, job.density)
    # the bias changes once, from 0 to 1
    first = ONE if thresholds[0] <= ONE else 0
    for step in range(job.steps):
        for own, flags in zip(sizes, layers, strict=True):
            x = np.zeros(own.walked, np.int64)
            x[: flags.x.shape[1]] = flags.x[step]
            yield entries_of(0 if step else first, x, flags.h[step].astype(np.int64))


def left_out(job: Job, lanes: int, thresholds: tuple[int, int]) -> tuple[int, int]:
    """How many columns of inputs and outputs a job sends, and how many it has."""
    sizes = sizes_of(job.model, lanes)
    sent = sum(each.delta != 0 and each.place > 0 for step in entries(job, lanes, thresholds) for each in step)
    return sent, job.steps * sum(layer.input + own.hidden for layer, own in zip(job.model.layers, sizes, strict=True))


def lost_words(job: Job, lanes: int, thresholds: tuple[int, int]) -> Sequence[str]:
    """Which numbers of a job did not fit the machine's, in a sentence; empty if all did."""
    if job.density is not None or not isinstance(job.numbers, OwnNumbers):
        return ()
    run = run_of(job.numbers, lanes, thresholds)
    if not run.weights_lost and not run.inputs_lost:
        return ()
    text = f"{run.weights_lost:,} weights beyond -1 to 127/128 and {run.inputs_lost:,} inputs beyond 16 bits saturated"
    return (f"job {job.name}: {text}",)
