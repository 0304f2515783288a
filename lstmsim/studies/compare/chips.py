"""Which chips are compared: the scenario's own or another as the base, and the chips named beside it."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.model.scenario import Chip, Scenario

__all__ = ["chips_of"]


def chips_of(scenario: Scenario, names: Sequence[str], base: str | None = None) -> tuple[Chip, ...]:
    """List the chips of a comparison: the base first, then the others.

    scenario: its own chip is the base unless `base` is given.
    names: of the other chips: presets or paths of files.
    base: the name of the chip that is the base; None: the scenario's own.
    `InputError` with every name that is unknown or stands for a chip that is listed already.

    >>> from lstmsim.files.scenario.scenario_file import load_scenario
    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]})
    >>> [chip.name for chip in chips_of(scenario, ["column-npu-16k"])]
    ['column-npu-64k', 'column-npu-16k']
    >>> chips_of(scenario, ["column-npu-64"])
    Traceback (most recent call last):
    lstmsim.InputError: no chip called 'column-npu-64'; did you mean 'column-npu-64k'?
    """
    chips: list[tuple[str, Chip]] = [] if base is not None else [("the scenario's own chip", scenario.chip)]
    mistakes: list[Mistake] = []
    for name in [*([base] if base is not None else []), *names]:
        try:
            chip = load_chip(name)
        except InputError as error:
            mistakes += error.mistakes
            continue
        same = next((other for other, known in chips if known == chip), None)
        if same is None:
            chips.append((show(name), chip))
        else:
            again = "is named twice" if same == show(name) else f"is the same as {same}"
            mistakes.append(Mistake(f"chip {show(name)}", f"{again}; expected different chips"))
    if mistakes:
        raise InputError(mistakes)
    return tuple(chip for _, chip in chips)
