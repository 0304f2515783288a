"""Has a chip room on the device of the machine that it is compared with? A chip without room wins nothing there."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.machines.registry import target_of
from lstmsim.model.model import Model, Precision
from lstmsim.model.scenario import Chip
from lstmsim.studies.fit.device import Device, device, device_of
from lstmsim.studies.fit.fit import fit, joint_share

NO_DEVICE = "no device known"
_WIDTH = 100


@dataclass(frozen=True)
class Room:
    """One chip with the weights of one workload on the device of other machines.

    chip: the simulated machine.
    device: where the other machines were built, "" where none is known.
    rivals: the names of the other machines.
    workload: whose weights are meant.
    fits: whether there is room; None: unknown.
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
        _, _, why = self.reason.partition(": ")
        word = {True: "yes", False: "no", None: "cannot tell"}[self.fits]
        if self.weights is None:
            return f"{word}: {why}; weights: cannot tell"
        held = "fit" if self.weights <= 1 else "do not fit"
        return f"{word}: {why}; weights {held} ({100 * self.weights:.0f} %)"


def room_on(
    chip: Chip,
    models: Sequence[Model],
    precision: Precision,
    on: Device,
    *,
    rivals: Sequence[str] = (),
    workload: str = "",
) -> Room:
    """Say whether a chip with the weights of some models has room on a device."""
    try:
        occupancy = fit(chip, models, precision, on)
    except InputError as error:
        reason = f"cannot tell: {'; '.join(each.sentence for each in error.mistakes)}"
        return Room(chip.name, on.name, tuple(rivals), workload, None, reason)
    known = all(each.available is not None for each in occupancy.memories)
    weights = joint_share(occupancy.memories, "capacity") if known else None
    return Room(chip.name, on.name, tuple(rivals), workload, occupancy.fits, occupancy.verdict, weights)


def rooms(
    names: Sequence[str],
    chips: Sequence[Chip],
    designs: Sequence[str],
    rows: Sequence[tuple[str, Sequence[Model]]],
    precision: Precision,
) -> tuple[Room, ...]:
    """Check every simulated chip on the device of every other machine, once for each workload.

    A chip on its own device is left out: it was built there, with widths of its own. Published machines without a
    device (GPUs, chips that nobody has built) are one entry together, at the first chip.
    """
    all_rooms = []
    for name, chip in zip(names, chips, strict=True):
        others = [*(each for each in names if each != name), *designs]
        homes = {each: device_of(each) for each in others}
        for home in dict.fromkeys(filter(None, homes.values())):
            if home == device_of(name) or target_of(chip.kind).hardware() is None:
                continue
            rivals = tuple(each for each in others if homes[each] == home)
            on = device(home)
            all_rooms += [
                room_on(chip, models, precision, on, rivals=rivals, workload=workload) for workload, models in rows
            ]
        homeless = tuple(each for each in designs if homes[each] is None)
        if homeless and name == names[0]:
            all_rooms.append(Room(name, "", homeless, "", None, NO_DEVICE))
    return tuple(all_rooms)


def rooms_text(all_rooms: Sequence[Room]) -> str:
    """Write a paragraph: for each chip and device the verdict, once for all workloads that share it; "" of none."""
    if not all_rooms:
        return ""
    lines = ["HAS IT ROOM on the device of the machine that it is compared with, with the workload's weights?"]
    for chip, home, rivals in dict.fromkeys((each.chip, each.device, each.rivals) for each in all_rooms):
        own = [each for each in all_rooms if (each.chip, each.device, each.rivals) == (chip, home, rivals)]
        if not home:
            lines += textwrap.wrap(f"{', '.join(rivals)}: {NO_DEVICE}", _WIDTH, subsequent_indent="  ")
            continue
        lines += textwrap.wrap(f"{chip} on {home} ({', '.join(rivals)}):", _WIDTH, subsequent_indent="  ")
        for short in dict.fromkeys(each.short for each in own):
            named = [each.workload for each in own if each.short == short]
            text = short if len(named) == len(own) else f"{', '.join(named)}: {short}"
            lines += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines)


def rooms_json(all_rooms: Sequence[Room]) -> list[dict[str, Any]]:
    """Give the entries as plain data, ready for `json.dumps`; `fits` is null where it is unknown."""
    return [
        {
            "chip": each.chip,
            "device": each.device or None,
            "rivals": list(each.rivals),
            "workload": each.workload or None,
            "fits": each.fits,
            "verdict": each.reason,
            "weights": each.weights,
        }
        for each in all_rooms
    ]
