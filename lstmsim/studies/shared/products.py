"""The arguments of a product besides its operands: the chip, parameters of a kernel or of a planner."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import given_twice, listed, nearest, show

if TYPE_CHECKING:
    from lstmsim.model.scenario import Chip
    from lstmsim.studies.shared.loading import Path

_WORDS = {"true": True, "false": False, "null": None}
_FRACTION = re.compile(r"-?\d{1,18}\.\d{1,18}", re.ASCII)
_ANY_JOB = {"model": {"layers": [{"cell": "lstm", "hidden": 1, "input": 1}]}, "steps": 1}


def options_from(
    given: Collection[str] | Mapping[str, Any],
    known: Mapping[str, Any],
    what: str = "parameter of this method",
    field: str = "options",
) -> dict[str, Any]:
    """Read parameters of a kernel or of a planner, in words a `what`; `InputError`, on `field`, for an unknown one.

    >>> known = dict.fromkeys(["tile", "shift", "order", "share", "padding"])
    >>> options_from(["tile=64", "shift=4,8", "order=sorted", "share=true", "padding=0.5"], known)
    {'tile': 64, 'shift': (4, 8), 'order': 'sorted', 'share': True, 'padding': 0.5}
    """
    values: dict[str, Any] = {}
    mistakes = []
    if isinstance(given, str) or not isinstance(given, Collection):
        raise InputError(Mistake(field, f"must be a list of texts like 'name=value' or a mapping, got {show(given)}"))
    pairs = given.items() if isinstance(given, Mapping) else (_pair(each, field) for each in given)
    for name, value in pairs:
        if name not in known:
            text = f"is no {what}{nearest(str(name), known)}; it has {listed(known, 'and')}"
            mistakes.append(Mistake(f"{field}.{name}", text))
        elif name in values:
            mistakes.append(Mistake(f"{field}.{name}", given_twice(values[name], value)))
        values[name] = value
    refuse(mistakes)
    return values


def _pair(text: object, field: str) -> tuple[str, Any]:
    name, equals, value = str(text).partition("=")
    if not equals or not name:
        raise InputError(Mistake(field, f"expected NAME=VALUE, got {show(text)}"))
    parts = [_plain(each.strip()) for each in value.split(",")]
    return name.strip(), tuple(parts) if len(parts) > 1 else parts[0]


def _plain(word: str) -> Any:
    """A number, a truth value, or the word itself."""
    if word.removeprefix("-").isdigit() and word.isascii() and len(word) < 20:
        return int(word)
    if _FRACTION.fullmatch(word):
        return float(word)
    return _WORDS.get(word, word)


def chip_of(chip: Path | Chip, overrides: Collection[str]) -> Chip:
    """The chip of a name, a file, or itself, with texts like `partitions=8` that change what its file says."""
    from lstmsim.files.yaml.document import LABEL
    from lstmsim.machines.registry import target_of
    from lstmsim.studies.shared.loading import load_chip, load_scenario
    from lstmsim.studies.shared.objects import is_chip

    if not isinstance(chip, str | os.PathLike):
        if not is_chip(chip):
            raise InputError(Mistake("chip", f"must be a preset's name, a chip's file or a chip, got {show(chip)}"))
        if overrides:
            raise InputError(Mistake("chip", "is finished: overrides need a preset's name or a file"))
        return chip
    if not overrides:
        return load_chip(chip)
    scenario = {"chip": os.fspath(chip), "jobs": [_ANY_JOB]}
    try:
        return load_scenario(scenario, [f"chip.{each}" for each in overrides]).chip
    except InputError as error:
        # a user of this function has written neither `--set` nor `chip.`
        reported = [
            Mistake(each.location.replace(f"{LABEL}chip.", "chip ", 1), each.sentence) for each in error.mistakes
        ]
        counted = [f"chip {name}" for name in target_of(load_chip(chip).kind).counts]
        hint = "follows from the entries of 'cores' and is no key: change these, like cores.0.count=4"
        raise InputError(
            [Mistake(each.location, hint) if each.location.partition("=")[0] in counted else each for each in reported]
        ) from error


def presets_with(name: str) -> list[str]:
    """Names of the presets whose machines have a capability."""
    from lstmsim.files.catalog import chip_files
    from lstmsim.machines.registry import capability
    from lstmsim.studies.shared.loading import load_chip

    return [each for each in chip_files() if capability(load_chip(each).kind, name) is not None]
