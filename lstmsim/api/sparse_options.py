"""What users say of a sparse product: the matrix, the chip, parameters of a kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lstmsim.errors import InputError, Mistake
from lstmsim.sparse.csr import Csr, csr_of_dense
from lstmsim.sparse.pruning import PRUNINGS, pruned
from lstmsim.wording import listed, nearest, show

if TYPE_CHECKING:
    from lstmsim.api.loading import Path
    from lstmsim.workload.scenario import Chip

__all__ = ["chip_of", "matrix_of", "options_from"]

_WORDS = {"true": True, "false": False, "null": None}
_ANY_JOB = {"model": {"layers": [{"cell": "lstm", "hidden": 1, "input": 1}]}, "steps": 1}


def options_from(given: Sequence[str] | Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Read parameters of a kernel.

    given: texts like `tile=64`, or a mapping from name to value.
    known: the parameters that there are.

    `InputError` with the nearest name for one that is not known.

    >>> known = dict.fromkeys(["tile", "shift", "order", "share"])
    >>> options_from(["tile=64", "shift=4,8", "order=sorted", "share=true"], known)
    {'tile': 64, 'shift': (4, 8), 'order': 'sorted', 'share': True}
    """
    values: dict[str, Any] = {}
    mistakes = []
    pairs = given.items() if isinstance(given, Mapping) else (_pair(each) for each in given)
    for name, value in pairs:
        if name not in known:
            text = f"is no parameter of this method{nearest(str(name), known)}; it has {listed(known, 'and')}"
            mistakes.append(Mistake(f"--set {name}", text))
        values[name] = value
    if mistakes:
        raise InputError(mistakes)
    return values


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(Mistake("--set", f"expected NAME=VALUE, got {show(text)}"))
    parts = [_plain(each.strip()) for each in value.split(",")]
    return name.strip(), tuple(parts) if len(parts) > 1 else parts[0]


def _plain(word: str) -> Any:
    """A whole number, a truth value, or the word itself."""
    if word.removeprefix("-").isdigit() and word.isascii() and len(word) < 20:
        return int(word)
    return _WORDS.get(word, word)


def chip_of(chip: Path | Chip, overrides: Sequence[str]) -> Chip:
    """The chip of a name, a file, or itself.

    overrides: texts like `partitions=8`, which change what its file says.
    """
    from lstmsim.api.loading import load_chip, load_scenario
    from lstmsim.formats.yaml.overrides import LABEL
    from lstmsim.targets.registry import target_of

    if not isinstance(chip, str | os.PathLike):
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
        told = [Mistake(each.place.replace(f"{LABEL}chip.", "chip ", 1), each.sentence) for each in error.mistakes]
        counted = [f"chip {name}" for name in target_of(load_chip(chip).kind).counts]
        hint = "follows from the entries of 'cores' and is no key: change these, like cores.0.count=4"
        raise InputError(
            [Mistake(each.place, hint) if each.place.partition("=")[0] in counted else each for each in told]
        ) from error


def matrix_of(
    source: object, prune: float | None, prune_by: str, banks: int, block: int, seed: int | None
) -> tuple[Csr, str]:
    """The matrix, and a sentence on where it is from.

    source: a file, the name of a model's weights, or a matrix.
    prune: which fraction of a model's weights goes; None: none.
    prune_by, banks, block: how, as in `lstmsim.sparse.pruning.pruned`.
    seed: of the values of a file that has none; None: each is 1.
    """
    from lstmsim.formats.matrices import is_matrix_file, read_matrix, weight_matrix

    if isinstance(source, Csr):
        return _unpruned(source, "a matrix in memory", prune)
    if not isinstance(source, str | os.PathLike):
        text = f"must be a file, a name like 'resemblyzer:l1' or a Csr, got {show(source)}"
        raise InputError(Mistake("matrix", text))
    name = os.fspath(source)
    if is_matrix_file(name):
        read = read_matrix(name, seed)
        return _unpruned(read.matrix, f"{name}: {read.note}", prune)
    weights, about = weight_matrix(name)
    if prune is None:
        return csr_of_dense(weights), f"{about}; not pruned"
    matrix = pruned(weights, prune, prune_by, banks=banks, block=block)
    parts = {"bank": f", {banks} banks a row", "block": f", {block} x {block}"}.get(prune_by, "")
    return matrix, f"{about}; {100 * prune:g} % of the weights pruned by {prune_by} ({PRUNINGS[prune_by]}{parts})"


def _unpruned(matrix: Csr, about: str, prune: float | None) -> tuple[Csr, str]:
    if prune is not None:
        text = "is for weights of models like 'resemblyzer:l1'; this matrix is sparse already"
        raise InputError(Mistake("prune", text))
    return matrix, about
