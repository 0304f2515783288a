"""Cases of an accuracy report: a scenario's different jobs with their numbers, and the words for g2p-en."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from lstmsim.analysis.replay.check import JobData
from lstmsim.base.files import readable_file
from lstmsim.files.catalog import find_model
from lstmsim.files.scenario.numbers import job_data
from lstmsim.model.model import Model
from lstmsim.model.scenario import Scenario
from lstmsim.studies.accuracy.accuracy_study import Case
from lstmsim.studies.accuracy.g2p import G2p
from lstmsim.studies.accuracy.g2p_files import read_g2p

__all__ = ["accuracy_cases", "read_words", "words_of"]

_G2P = ("g2p-en-encoder", "g2p-en-decoder")


def accuracy_cases(scenario: Scenario, random_weights: int | None = None) -> tuple[Case, ...]:
    """Read the numbers of a scenario's jobs; jobs with equal model, weights, inputs, steps and states are one case.

    scenario: the jobs.
    random_weights: seed of the weights of models without a file; None: such a model is a mistake.

    `InputError` if `job_data` cannot read a file.

    >>> from lstmsim.studies.simulate.run import load_scenario
    >>> job = {"model": "silero-vad-16k", "steps": 2, "inputs": "silero-speech.safetensors", "count": 3}
    >>> [case.jobs for case in accuracy_cases(load_scenario({"chip": "column-npu-16k", "jobs": [job]}))]
    [('silero-vad-16k #1', 'silero-vad-16k #2', 'silero-vad-16k #3')]
    """
    groups: dict[tuple[Model, str, str, int, str, int | None], list[int]] = {}
    data: Mapping[int, JobData] = job_data(scenario, random_weights)
    case_of: dict[int, int] = {}
    for index, job in enumerate(scenario.jobs):
        # A job without a file has random frames of its own.
        inputs = job.inputs or data[index].inputs
        before = None if job.states_of is None else case_of[job.states_of]
        group = groups.setdefault((job.model, job.model.weights, inputs, job.steps, job.initial, before), [])
        group.append(index)
        case_of[index] = len(groups) - 1 if len(group) == 1 else case_of[group[0]]
    return tuple(
        Case(
            jobs=tuple(scenario.jobs[index].name for index in indices),
            **{**vars(data[indices[0]]), "follows": key[-1]},
        )
        for key, indices in groups.items()
    )


def words_of(scenario: Scenario) -> tuple[G2p, tuple[str, ...]] | None:
    """Read the speller and its words if a job runs a network of g2p-en that comes with lstmsim, else None.

    >>> from lstmsim.studies.simulate.run import load_scenario
    >>> words_of(load_scenario({"chip": "column-npu-16k", "jobs": [{"model": "silero-vad-16k", "steps": 1}]})) is None
    True
    """
    folder = os.path.realpath(_models() / "weights")
    files = {os.path.join(folder, f"{name}.safetensors") for name in _G2P}
    if files.isdisjoint(os.path.realpath(job.model.weights) for job in scenario.jobs if job.model.weights):
        return None
    return read_g2p(), read_words()


def read_words() -> tuple[str, ...]:
    """Read the English words that come with lstmsim.

    >>> len(read_words()), read_words()[0]
    (365, 'able')
    """
    with readable_file(_models() / "inputs" / "words.txt") as file:
        return tuple(file.read().decode("utf-8").split())


def _models() -> Path:
    return find_model(_G2P[0]).parent
