"""The numbers of a scenario's jobs: weights and frames from their files, or drawn at random if that was asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.frames import read_frames
from lstmsim.formats.weights import read_weights
from lstmsim.numerics.weights import Network, Stimulus, random_network, random_stimulus
from lstmsim.replay.check import JobData
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Job, Scenario

__all__ = ["job_data"]


def job_data(scenario: Scenario, random_weights: int | None = None) -> Mapping[int, JobData]:
    """Weights and input of every job by its index; `InputError` for jobs whose model has no weights.

    `random_weights`: the seed of weights for models that have none. A job without `inputs` runs on random frames, other
    ones for each job, so that numbers which went to the wrong job are noticed.

    >>> from lstmsim.api import load_scenario
    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-256", "steps": 2}]})
    >>> job_data(scenario)
    Traceback (most recent call last):
    lstmsim.errors.InputError: job lstm-256: model lstm-256 has no weights; --random-weights 0 draws some
    >>> job_data(scenario, random_weights=0)[0].weights
    'random, seed 0'
    """
    networks: dict[tuple[Model, str], Network] = {}
    found = {}
    mistakes: list[Mistake] = []
    for index, job in enumerate(scenario.jobs):
        try:
            key = (job.model, job.model.weights)
            if key not in networks:
                networks[key] = _network(job, random_weights)
            weights = os.path.basename(job.model.weights) or f"random, seed {random_weights}"
            stimulus, inputs = _stimulus(job, networks[key], index)
            found[index] = JobData(networks[key], stimulus, weights, inputs)
        except InputError as error:
            mistakes += error.mistakes
    if mistakes:
        raise InputError(list(dict.fromkeys(mistakes)))
    return found


def _network(job: Job, random_weights: int | None) -> Network:
    if job.model.weights:
        return read_weights(job.model.weights, job.model)
    if random_weights is None:
        text = f"model {job.model.name} has no weights; --random-weights 0 draws some"
        raise InputError(Mistake(f"job {job.name}", text))
    return random_network(job.model, random_weights)


def _stimulus(job: Job, network: Network, index: int) -> tuple[Stimulus, str]:
    if job.model.states_from:
        text = f"model {job.model.name} starts from {job.model.states_from}, which no file here has the numbers of"
        raise InputError(Mistake(f"job {job.name}", text))
    if job.inputs:
        x = read_frames(job.inputs, job.steps, job.model.layers[0].input)
        return network.stimulus(x), os.path.basename(job.inputs)
    return network.stimulus(random_stimulus(job.model, job.steps, index).x), f"random, seed {index}"
