"""Whether a chip fits the device of the machine that it is compared with: one that does not fit wins nothing there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lstmsim.base.errors import InputError
from lstmsim.machines.registry import target_of
from lstmsim.model.model import Model, Precision
from lstmsim.model.scenario import Chip
from lstmsim.studies.fit.device import Device, device, device_of
from lstmsim.studies.fit.fit import fit, joint_share

NO_DEVICE = "no device known"


@dataclass(frozen=True)
class DeviceFit:
    """One chip with the weights of one workload on the device of other machines.

    chip: the simulated machine.
    device: where the other machines were built, "" where none is known.
    rivals: the names of the other machines.
    workload: whose weights are meant.
    fits: whether chip and weights fit; None: unknown.
    reason: the verdict in words.
    weights: bits of the weights and all else that is held / bits of the device's memories; None: unknown.
    """

    chip: str
    device: str
    rivals: tuple[str, ...]
    workload: str
    fits: bool | None
    reason: str
    weights: float | None = None

    @property
    def short(self) -> str:
        """The verdict and the share that the weights alone take, for a cell of a table."""
        if not self.device:
            return NO_DEVICE
        word, why = {True: "yes", False: "no", None: "cannot tell"}[self.fits], self.reason.partition(": ")[2]
        if self.weights is None:
            return f"{word}: {why}; weights: cannot tell"
        held = "fit" if self.weights <= 1 else "do not fit"
        return f"{word}: {why}; weights {held} ({100 * self.weights:.0f} %)"


def fit_on(
    chip: Chip,
    models: Sequence[Model],
    precision: Precision,
    on: Device,
    *,
    rivals: Sequence[str] = (),
    workload: str = "",
) -> DeviceFit:
    """Say whether a chip with the weights of some models fits a device."""
    try:
        occupancy = fit(chip, models, precision, on)
    except InputError as error:
        reason = f"cannot tell: {'; '.join(each.sentence for each in error.mistakes)}"
        return DeviceFit(chip.name, on.name, tuple(rivals), workload, None, reason)
    known = all(each.available is not None for each in occupancy.memories)
    weights = joint_share(occupancy.memories, "capacity") if known else None
    return DeviceFit(chip.name, on.name, tuple(rivals), workload, occupancy.fits, occupancy.verdict, weights)


def device_fits(
    names: Sequence[str],
    chips: Sequence[Chip],
    designs: Sequence[str],
    rows: Sequence[tuple[str, Sequence[Model]]],
    precision: Precision,
) -> tuple[DeviceFit, ...]:
    """Check every simulated chip on the device of every other machine, once for each workload.

    A chip on its own device is left out: it was built there, with widths of its own. Published machines without a
    device (GPUs, chips that were never built) are one entry together, at the first chip.
    """
    found = []
    for name, chip in zip(names, chips, strict=True):
        others = [*(each for each in names if each != name), *designs]
        homes = {each: device_of(each) for each in others}
        for home in dict.fromkeys(filter(None, homes.values())):
            if home == device_of(name) or target_of(chip.kind).hardware() is None:
                continue
            on, rivals = device(home), [each for each in others if homes[each] == home]
            found += [fit_on(chip, models, precision, on, rivals=rivals, workload=work) for work, models in rows]
        homeless = tuple(each for each in designs if homes[each] is None)
        if homeless and name == names[0]:
            found.append(DeviceFit(name, "", homeless, "", None, NO_DEVICE))
    return tuple(found)
