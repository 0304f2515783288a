"""What a chip takes of FPGAs, and the energy of jobs: what users ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lstmsim.studies.fit.fit import Fits
from lstmsim.studies.shared.arguments import refuse, wrong_names
from lstmsim.studies.shared.loading import Source, load_scenario

if TYPE_CHECKING:
    from lstmsim.studies.fit.energy import Energy


def fit(
    scenario: Source, devices: str | Sequence[str] = (), *, with_energy: bool = False, overrides: Sequence[str] = ()
) -> Fits:
    """Say what the scenario's chip needs of FPGAs, with the weights of its models on the chip, and which resource
    binds.

    The answer has a fit for each device, in the order of the devices.

    scenario: a path, a mapping, or a `Scenario`.
    devices: names or device files, one or several; all known devices if none are given.
    with_energy: add the energy of each distinct job (`Fits.energy`).
    overrides: texts like `"chip.cores.0.ep=16"`.

    >>> fits = fit({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}, "stratix-10-gx-2800")
    >>> fits[0].fits
    True
    """
    from lstmsim.machines.hardware import Stored
    from lstmsim.studies.fit.device import device, device_files
    from lstmsim.studies.fit.fit import fit as fitting

    refuse(wrong_names("devices", devices, "a device's name or file"))
    loaded = load_scenario(scenario, overrides)
    models = tuple(dict.fromkeys(job.model for job in loaded.jobs))
    names = ([devices] if isinstance(devices, str) else tuple(devices)) or tuple(device_files())
    fits = [fitting(loaded.chip, models, loaded.precision, device(name), Stored.of(loaded.jobs)) for name in names]
    return Fits(fits, energy(loaded) if with_energy else ())


def energy(scenario: Source, *, overrides: Sequence[str] = ()) -> tuple[Energy, ...]:
    """Give the relative energy of each distinct job of a scenario, from a cited table of operations.

    >>> energy({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2, "count": 3}]})[0].steps
    2
    """
    from lstmsim.studies.fit.energy import energy as spending

    loaded = load_scenario(scenario, overrides)
    distinct = dict.fromkeys((job.model, job.steps, job.batch, job.allowed(1)[0]) for job in loaded.jobs)
    return tuple(
        spending(loaded.chip, model, steps, loaded.precision, core=core, batch=batch)
        for model, steps, batch, core in distinct
    )
