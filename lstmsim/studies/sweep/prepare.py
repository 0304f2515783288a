"""Before the first point: the scenario's files are read once; mistakes that no point could mend are told."""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lstmsim.base.bounded import bounded_file
from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.catalog import is_path
from lstmsim.files.scenario.left_out import left_out
from lstmsim.files.scenario.scenario_file import scenario_from_document
from lstmsim.files.yaml.document import Document
from lstmsim.files.yaml.overrides import LABEL, apply_overrides
from lstmsim.studies.sweep.costs import COST_VERSION
from lstmsim.studies.sweep.evaluate import MODEL_VERSION, digest
from lstmsim.studies.sweep.resolve import Resolver, Setup
from lstmsim.studies.sweep.spec import Sweep
from lstmsim.studies.sweep.spec_file import SweepFile, load_sweep

__all__ = ["prepare"]

#: Sentences about paths that lead nowhere, and about files that lack something: no value of an axis changes them.
_NOWHERE = re.compile(
    r"unknown key|.* has no key |.* there is nothing below it|.* expected an index|.* there is no \d+$"
)
_LACKING = re.compile(r"unknown key|required key|no (chip|model|cell|file) called|duplicate key")
#: Points looked at for one that satisfies the constraints.
_TRIED = 1000


def prepare(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()
) -> tuple[Setup, list[tuple[str, tuple[str, ...]]]]:
    """Make the setup of a sweep file, and its axes as (name, paths).

    source, overrides: the sweep file, and changes of its scenario.
    `InputError` with what is wrong for every point.

    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> axes = {"ep": {"path": "chip.cores.0.epp", "values": [8]}}
    >>> prepare({"scenario": scenario, "axes": axes})
    Traceback (most recent call last):
    lstmsim.InputError: axes.ep.path: chip.cores.0.epp: unknown key; did you mean 'ep'?
    """
    from lstmsim import __version__

    file = load_sweep(source)
    sweep = file.sweep
    document = copy.deepcopy(file.scenario)
    try:
        # From here on no file of chips and models is read again, and no worker needs to have them.
        scenario_from_document(document, overrides, file.scenario_name)
        overrides = ()
    except InputError:
        document = file.scenario
    changed = copy.deepcopy(document)
    apply_overrides(changed, overrides, lambda path: True, left_out)
    texts = sorted(_file_names(sweep, changed))
    names = [sweep.names, [list(each) for each in sweep.paths.values()]]
    groups = [[[list(axis.values) for axis in group.axes], group.combine] for group in sweep.groups]
    rules = [[each.text for each in sweep.derived], list(sweep.constraints)]
    files = {name: _content(document, name) for name in texts}
    judged = [list(file.chip.names), repr(file.chip.device), [[each.column, each.maximise] for each in file.objectives]]
    known = [__version__, MODEL_VERSION, COST_VERSION]
    identity = digest([*known, names, groups, rules, document.data, list(overrides), files, judged])
    setup = Setup(sweep, document, file.scenario_name, tuple(overrides), identity, file.chip, file.objectives)
    _refuse_hopeless(setup, file)
    return setup, [(name, sweep.paths[name]) for name in sweep.names]


def _file_names(sweep: Sweep, document: Document) -> Iterator[str]:
    """Name the files that decide about cycles and are no part of the document.

    These are files of arrivals, and of chips and models that axes name, or that a scenario names which could not be
    read before the axes change it.
    """
    for axis in sweep.axes:
        come = any(path.endswith(".arrival.path") for path in axis.paths)
        yield from (value for value in axis.values if isinstance(value, str) and (come or is_path(value)))
    jobs = document.data.get("jobs")
    entries = [job for job in (jobs if isinstance(jobs, list) else []) if isinstance(job, dict)]
    models = [job.get("model") for job in entries]
    yield from (name for name in (document.data.get("chip"), *models) if isinstance(name, str) and is_path(name))
    arrivals = [job.get("arrival") for job in entries]
    paths = [arrival.get("path") for arrival in arrivals if isinstance(arrival, dict)]
    yield from (path for path in paths if isinstance(path, str))


def _content(document: Document, name: str) -> str:
    """A text for the content of a file: its digest, or why it cannot be read."""
    try:
        with bounded_file(document.folder / name, "a file of a scenario") as (file, _):
            return hashlib.file_digest(file, "sha256").hexdigest()
    except InputError as error:
        return "; ".join(each.sentence for each in error.mistakes)


def _refuse_hopeless(setup: Setup, file: SweepFile) -> None:
    """Raise `InputError` with mistakes of the first wanted point that every other point has too."""
    sweep = setup.sweep
    first = next((each for each in range(min(len(sweep), _TRIED)) if sweep.broken(sweep.values(each)) is None), None)
    if first is None:
        return
    try:
        Resolver(setup).checked(sweep.values(first))
    except InputError as error:
        mistakes = [each for mistake in error.mistakes for each in _hopeless(mistake, setup, file)]
        if mistakes:
            raise InputError(mistakes) from None


def _hopeless(mistake: Mistake, setup: Setup, file: SweepFile) -> Iterator[Mistake]:
    """The mistake, with its place in the sweep file, if no value of an axis could mend it."""
    label = mistake.place.removeprefix(LABEL)
    if label == mistake.place:
        if _LACKING.match(mistake.sentence):
            yield mistake
        return
    path = label.partition("=")[0]
    if any(text.partition("=")[0] == path for text in setup.overrides):
        yield mistake
    elif _NOWHERE.match(mistake.sentence):
        names = [name for name, paths in setup.sweep.paths.items() if path in paths]
        yield from (Mistake(file.places[name], f"{path}: {mistake.sentence}") for name in names)
