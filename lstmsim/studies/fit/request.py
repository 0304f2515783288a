"""What a chip takes of FPGAs, and the energy of jobs: options, and what users call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import MostJobs, MostSteps, Overrides, Path, Source, names_of, table_size, takes

if TYPE_CHECKING:
    from lstmsim.studies.fit.energy import Energy
    from lstmsim.studies.fit.fit import Fits


@record
class FitRequest:
    """A scenario, and the FPGAs that its chip may fit."""

    scenario: Source
    devices: Annotated[
        Path | Sequence[Path],
        Key("A known device or a device file.", follows="all known", flag="--device", metavar="NAME", repeatable=True),
    ] = ()
    _: KW_ONLY
    most_jobs: MostJobs = None
    most_steps: MostSteps = None
    with_energy: Annotated[bool, Key("Show the relative energy of every job, too.", flag="--energy")] = False
    overrides: Overrides = ()


@takes(FitRequest)
def fit(request: FitRequest) -> Fits:
    """Say what the scenario's chip needs of FPGAs, with the weights of its models on the chip, and which resource
    binds.

    The answer has a fit for each device, in the order of the devices.

    >>> fits = fit({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}, "stratix-10-gx-2800")
    >>> fits[0].fits
    True
    """
    from lstmsim.machines.hardware import Stored
    from lstmsim.studies.fit.device import device, device_files
    from lstmsim.studies.fit.fit import Fits, with_table
    from lstmsim.studies.fit.fit import fit as fitting
    from lstmsim.studies.fit.needs import table_stored
    from lstmsim.studies.shared.loading import load_scenario

    loaded = load_scenario(request.scenario, request.overrides)
    models = tuple(dict.fromkeys(job.model for job in loaded.jobs))
    devices = [device(name) for name in names_of(request.devices) or tuple(device_files())]
    table = table_size(request.most_jobs, request.most_steps, loaded)
    if table is None:
        stored = Stored.of(loaded.jobs)
        fits = [fitting(loaded.chip, models, loaded.precision, each, stored) for each in devices]
    else:
        stored = table_stored(loaded, table)
        fits = [with_table(loaded, table, stored, each) for each in devices]
    return Fits(fits, energy(loaded) if request.with_energy else ())


def energy(scenario: Source, *, overrides: Overrides = ()) -> tuple[Energy, ...]:
    """Give the relative energy of each distinct job of a scenario, from a cited table of operations.

    >>> energy({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2, "count": 3}]})[0].steps
    2
    """
    from lstmsim.studies.fit.energy import energy as spending
    from lstmsim.studies.shared.loading import load_scenario

    loaded = load_scenario(scenario, overrides)
    distinct = dict.fromkeys((job.model, job.steps, job.batch, job.allowed(1)[0]) for job in loaded.jobs)
    return tuple(
        spending(loaded.chip, model, steps, loaded.precision, core=core, batch=batch)
        for model, steps, batch, core in distinct
    )
