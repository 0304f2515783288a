"""Scenarios and models as files have them: with every key resolved for a page, or as text that reads back."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import note_read, own_ledger, whole_file
from lstmsim.base.keys import as_data
from lstmsim.files.scenario.batching import keys_of_batching
from lstmsim.files.scenario.entries import job_names
from lstmsim.files.yaml.document import OnOneLine, yaml_text
from lstmsim.model.cell import Cell
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Chip, Job, Scenario

if TYPE_CHECKING:
    from lstmsim.importers.imported import ImportedModel
    from lstmsim.model.numerics.weights import Network


def cell_data(cell: Cell) -> dict[str, Any]:
    """Give a cell as plain data, which `lstmsim.files.scenario.models.read_cells` reads back."""
    nodes = {
        node.name: " ".join([node.operation, *(each if isinstance(each, str) else repr(each) for each in node.inputs)])
        for node in cell.nodes
    }
    stages = []
    for stage in cell.stages:
        sums = {gate.name: {each.name: list(each.vectors) for each in gate.sums} for gate in stage.gates}
        gates = {name: own[name] if list(own) == [name] else own for name, own in sums.items()}
        stages.append({"rows": stage.rows, "gates": gates})
    data = {"source": cell.source, "stages": stages, "nodes": nodes, "states": OnOneLine(cell.states)}
    return data | {"parameters": list(cell.parameters)}


#: Keys of a job that stand elsewhere in a file, or not in every job.
_NOT_PLAIN = (
    *("name", "model", "steps", "arrival", "inputs", "after", "tenant", "dispatch", "preempts", "affinity"),
    *("cores", "split", "initial", "states_of", "density", "numbers", "on", "batching", "session", "move_cycles"),
)

#: What `job_names` appends to the name of an entry for each of its jobs.
_SUFFIX = re.compile(r"(.+) #\d+")


def resolved_text(scenario: Scenario) -> str:
    """Write the scenario as a scenario file that loads again and gives the same cycles and numbers.

    Nothing in it is left to a default but `precision`, without which outputs are in float64. Neighbouring jobs of one
    entry that differ in nothing but name, steps and arrival are one entry with a `count`. A job that begins with the
    last states of another job is an entry of its own, and so is the other job.
    """
    return yaml_text(resolved_data(scenario))


def resolved_data(scenario: Scenario) -> dict[str, Any]:
    """Give the scenario file of `resolved_text` as plain data."""
    cells = _shared_cells(scenario)
    first = scenario.jobs[0]
    data: dict[str, Any] = {"name": scenario.name, "chip": _chip(scenario.chip), "dispatch": first.dispatch}
    data |= {"preemption": first.preempts, "placement": "affinity" if first.affinity else "least-loaded"}
    jobs = []
    for name, group in _groups(scenario.jobs):
        before = group[0].states_of
        follows = "" if before is None else scenario.jobs[before].name
        jobs.append(_job_entry(name, group, follows, own_cells=cells is None))
    data["jobs"] = jobs
    if scenario.precision_given:
        calibration = {"calibration": dict(scenario.calibration)} if scenario.calibration else {}
        data["precision"] = asdict(scenario.precision) | calibration
    if cells:
        data["cells"] = {name: cell_data(each) for name, each in cells.items()}
    return data


def loads_again(scenario: Scenario) -> bool:
    """Say whether a file can describe the scenario completely.

    It cannot where jobs come after other jobs (except to begin with their last states), are ranked in unlike ways, or
    belong to streams whose states are moved.
    """
    ways = {(job.dispatch, job.preempts, job.affinity) for job in scenario.jobs}
    return len(ways) == 1 and all(job.after == job.states_of and job.session is None for job in scenario.jobs)


def _chip(chip: Chip) -> dict[str, Any]:
    """The chip as a file describes it: every key of its description with its value."""
    keys = {key: _on_one_line(value) for key, value in as_data(chip).items()}
    cores = [
        {"count": sum(1 for _ in same)} | {key: _on_one_line(value) for key, value in as_data(core).items()}
        for core, same in groupby(chip.cores)
    ]
    return {"kind": chip.kind, "name": chip.name, **keys, "cores": cores, "sources": dict(chip.sources)}


def _on_one_line(value: Any) -> Any:
    """A part of a description on one line; named parts on a line each."""
    if not isinstance(value, dict):
        return value
    below = any(isinstance(each, dict) for each in value.values()) or not value
    return {key: _on_one_line(each) for key, each in value.items()} if below else OnOneLine(value)


def _groups(jobs: Sequence[Job]) -> list[tuple[str, list[Job]]]:
    """Jobs that one entry can describe, with the entry's name; all jobs are alone where their names would change."""
    groups: list[tuple[str, list[Job]]] = []
    followed = {jobs[job.states_of].name for job in jobs if job.states_of is not None}
    for job in jobs:
        match = _SUFFIX.fullmatch(job.name)
        alone = job.states_of is not None or job.name in followed
        name = match[1] if match and not alone else job.name
        if groups and groups[-1][0] == name and match and _alike(groups[-1][1][-1], job):
            groups[-1][1].append(job)
        else:
            groups.append((name, [job]))
    groups = [(name if len(group) > 1 else group[0].name, group) for name, group in groups]
    names = job_names([name for name, _ in groups], [len(group) for _, group in groups])
    return groups if names == [job.name for job in jobs] else [(job.name, [job]) for job in jobs]


def _alike(one: Job, other: Job) -> bool:
    """Whether one entry can describe both jobs."""
    # Tenants of one entry have its name before a slash. Equality does not look at weights, inputs and states.
    same = one.model.weights == other.model.weights and one.tenant.partition("/")[0] == other.tenant.partition("/")[0]
    keys = {each.name for each in fields(one)} - {"name", "steps", "arrival", "tenant"}
    return same and all(getattr(one, key) == getattr(other, key) for key in keys)


def _job_entry(name: str, group: list[Job], follows: str, own_cells: bool) -> dict[str, Any]:
    job, arrivals = group[0], [job.arrival for job in group]
    arrival = arrivals[0] if len(set(arrivals)) == 1 else arrivals
    data = {"name": name, "count": len(group), "model": _model(job.model, own_cells), "arrival": arrival}
    steps = [each.steps for each in group]
    data["steps"] = job.steps if len(set(steps)) == 1 else steps
    data |= {each.name: getattr(job, each.name) for each in fields(job) if each.name not in _NOT_PLAIN}
    data |= {"cores": None if job.cores is None else list(job.cores), "split": job.split or None}
    if job.on:
        # keys of other machines stand beside those of machines that are not named, as in the file
        by_machine = {machine: {key: _listed(value) for key, value in keys} for machine, keys in job.on}
        data |= by_machine.pop("", {})
        data["on"] = by_machine
    if job.batching is not None:
        data["batching"] = OnOneLine(keys_of_batching(job.batching))
    data |= {"inputs": job.inputs} if job.inputs else {}
    if job.density is not None:
        data["density"] = OnOneLine(x=job.density.x, h=job.density.h, seed=job.density.seed)
    data |= {"initial": job.initial} if job.initial else {}
    if follows:
        return data | {"initial": {"job": follows}}
    return data | ({"after": job.after} if job.after is not None else {})


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _model(model: Model, own_cells: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"name": model.name, "layers": [_layer(layer) for layer in model.layers]}
    data["layer_order"] = model.layer_order
    if model.weights:
        data["weights"] = model.weights
    if model.states_from:
        data["states_from"] = model.states_from
        data |= {} if model.states_whole else {"states_whole": False}
    cells = {layer.cell.name: layer.cell for layer in model.layers if layer.cell.name not in CELLS}
    if own_cells and cells:
        data["cells"] = {name: cell_data(each) for name, each in cells.items()}
    return data


def _layer(layer: Layer) -> OnOneLine:
    data = OnOneLine(cell=layer.cell.name, hidden=layer.hidden, input=layer.input, bidirectional=layer.bidirectional)
    if layer.projection is not None:
        data["projection"] = layer.projection
    if layer.reverse:
        data["reverse"] = True
    return data


def _shared_cells(scenario: Scenario) -> dict[str, Cell] | None:
    """The user's own cells by name; None where two cells of one name differ, so that each model needs its own."""
    cells: dict[str, Cell] = {}
    for job in scenario.jobs:
        for layer in job.model.layers:
            if layer.cell.name not in CELLS and cells.setdefault(layer.cell.name, layer.cell) != layer.cell:
                return None
    return cells


_WIDTH = 118


def model_text(
    model: Model, *, source: str, licence: str | None = None, notes: Iterable[str] = (), steps: int | None = None
) -> str:
    """Write a model as the text of a model file: comments first, then the model."""
    data = _model(model, own_cells=True)
    keys = ("cell", "hidden", "input", "projection", "bidirectional", "reverse")
    layers = [OnOneLine({key: layer[key] for key in keys if layer.get(key)}) for layer in data.pop("layers")]
    about = {"name": data.pop("name"), "source": source} | ({} if licence is None else {"licence": licence})
    about |= {"layers": layers, "layer_order": data.pop("layer_order")} | ({} if steps is None else {"steps": steps})
    comments = [line for text in (_summary(model), *notes) for line in _comment(text)]
    return "".join(f"{line}\n" for line in comments) + yaml_text(about | data)


def write_model_file(
    model: Model,
    path: str | os.PathLike[str],
    *,
    source: str,
    licence: str | None = None,
    notes: Iterable[str] = (),
    network: Network | None = None,
    steps: int | None = None,
) -> str:
    """Write a model file, whole or not at all, and return its text."""
    numbers_path = weights_path(path)
    there = os.path.lexists(numbers_path)
    if network is not None:
        model = replace(model, weights=os.path.basename(numbers_path))
    text = model_text(model, source=source, licence=licence, notes=notes, steps=steps)
    about = {"source": source} | ({"licence": licence} if licence is not None else {})
    try:
        with whole_file(path, "w") as stream:
            stream.write(text)
            if network is not None:
                from lstmsim.importers.files import write_weights

                about = {key: each.encode("utf-8", "replace").decode() for key, each in about.items()}
                write_weights(network, numbers_path, about)
    except BaseException:
        if network is not None and not there:
            with suppress(OSError):
                os.unlink(numbers_path)
        raise
    return text


def save_model(
    imported: ImportedModel, path: str | os.PathLike[str], *, licence: str | None = None, force: bool = False
) -> str:
    """Write an imported model as a model file with its weights next to it as .safetensors. Returns the file's path.

    imported: result of `import_weights`, `from_torch` or `from_keras`.
    path: file to write, `.yaml` or `.yml`.
    licence: licence of the network, kept in the file.
    force: whether to replace files that are there; files that the network was read from are never replaced.
    `InputError` if a file is there already (without `force`), or cannot be written. Then nothing is written.

    >>> import lstmsim, pathlib, tempfile
    >>> from lstmsim.model.cells import cell
    >>> imported = lstmsim.ImportedModel(Model("speech", (Layer(cell("gru"), 8, 4),)), ("gru",), "an example")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(imported, pathlib.Path(folder, "speech.yaml"))
    ...     report = lstmsim.simulate({"chip": "column-npu-64k", "jobs": [{"model": path, "steps": 20}]})
    >>> report.jobs[0].name
    'speech'
    """
    if not hasattr(imported, "files"):
        text = (
            f"expects an ImportedModel, as lstmsim.import_model gives it; got a value of type {type(imported).__name__}"
        )
        raise InputError(Mistake("save_model", text))
    name = os.fspath(path)
    if not name.lower().endswith((".yaml", ".yml")):
        raise InputError(Mistake(name, "expected a file name that ends in .yaml or .yml"))
    wanted = [name, *([weights_path(name)] if imported.network else [])]
    there = [each for each in wanted if os.path.lexists(each)]
    if there and not force:
        raise InputError([Mistake(each, "exists already; force=True replaces it") for each in there])
    # Only the files that the network was read from may not be replaced. A model file that a simulation has read since
    # may be replaced, because `force` says so.
    with own_ledger():
        for each in imported.files:
            note_read(each)
        write_model_file(
            imported.model,
            name,
            source=imported.source,
            licence=licence,
            notes=imported.comments(),
            network=imported.network,
            steps=imported.steps,
        )
    return name


def weights_path(path: str | os.PathLike[str]) -> str:
    """Name the file of a model's numbers, which is next to the model file `path`."""
    return os.path.splitext(os.fspath(path))[0] + ".safetensors"


def _summary(model: Model) -> str:
    layers = [
        f"{layer.cell.name} of {layer.hidden} units{' in each direction' if layer.bidirectional else ''} "
        f"over {layer.input} inputs{', in reverse' if layer.reverse else ''}"
        for layer in model.layers[:4]
    ]
    count = len(model.layers)
    rest = ", ..." if count > len(layers) else ""
    return f"Recurrent network of {count} layer{'s' if count > 1 else ''}: {', '.join(layers)}{rest}."


def _comment(text: str) -> list[str]:
    """Write text as comment lines; letters that YAML does not allow become question marks."""
    words = "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in text)
    return textwrap.wrap(words, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False)
