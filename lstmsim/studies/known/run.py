"""What lstmsim knows by name, each with its source: models, chips, machines, devices, cells, policies and so on."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lstmsim

#: Name and source of each known thing of one kind.
Known = list[tuple[str, str]]

_PACKAGE = Path(lstmsim.__file__).parent


def _models() -> Known:
    from lstmsim.files.catalog import list_models

    return [(entry.name, entry.source) for entry in list_models()]


def _chips() -> Known:
    from lstmsim.files.catalog import list_chips

    return [(entry.name, entry.source) for entry in list_chips()]


def _machines() -> Known:
    from lstmsim.machines.registry import KINDS as MACHINES
    from lstmsim.machines.registry import target_of

    machines = [target_of(kind) for kind in MACHINES]
    return [(each.kind, f"{each.title}; {each.fidelity.text}") for each in machines]


def _devices() -> Known:
    from lstmsim.studies.fit.device import device, device_files

    known = [device(name) for name in device_files()]
    return [(each.name, f"{each.sources['multipliers']}; lstmsim/studies/fit/data/{each.name}.yaml") for each in known]


def _cells() -> Known:
    from lstmsim.model.cells import CELLS

    return [(name, cell.source) for name, cell in CELLS.items()]


def _graphs() -> Known:
    from lstmsim.model.fusion.library import GRAPHS

    return [
        (name, f"{each.meaning}; sizes {', '.join(f'{size} {value}' for size, value in each.sizes.items())}")
        for name, each in GRAPHS.items()
    ]


def _policies() -> Known:
    from lstmsim.model.scenario import DISPATCH, PLACEMENTS, SPLITS
    from lstmsim.program.policy import POLICIES

    homes: dict[str, Mapping[str, Callable[..., object]]] = {"program/policy": POLICIES, "workload/dispatch": DISPATCH}
    named = [
        (name, _first_sentence(inspect.getdoc(policy), f"lstmsim/{home}.py"))
        for home, policies in homes.items()
        for name, policy in policies.items()
    ]
    keys = {"placement": PLACEMENTS, "split": SPLITS}
    return named + [(f"{key}: {name}", about) for key, names in keys.items() for name, about in names.items()]


def _engines() -> Known:
    from lstmsim.engines import ENGINES

    return [(name, f"{about}; lstmsim/engines/{name}/") for name, about in ENGINES.items()]


def experiments(package: Path = _PACKAGE) -> Known:
    """List the studies in the folder `experiments` of a checkout; an installed package has none. No script is run."""
    checkout = package.parent
    rows = []
    if (checkout / "pyproject.toml").is_file():
        for folder in sorted(path for path in (checkout / "experiments").glob("*/") if path.is_dir()):
            scripts = sorted(folder.glob("*.py"))
            main = [script for script in scripts if script.stem in ("run", "main", folder.name)] or scripts
            if main:
                docstring = ast.get_docstring(ast.parse(main[0].read_text(encoding="utf-8")))
                rows.append((folder.name, _first_sentence(docstring, f"experiments/{folder.name}/{main[0].name}")))
    return rows


def _keys() -> Known:
    from lstmsim.studies.known.keys import chip_keys, file_keys

    return [*file_keys(), *chip_keys()]


def _first_sentence(docstring: str | None, home: str) -> str:
    """The first paragraph of a docstring as one line, and its `Source:` paragraph or else its home."""
    paragraphs = [" ".join(each.split()) for each in (docstring or "").split("\n\n")]
    sources = [each.removeprefix("Source:").strip() for each in paragraphs if each.startswith("Source:")]
    return "; ".join(part.rstrip(".") for part in [paragraphs[0], *(sources or [home])] if part)


#: The kinds in the order of the output, and who knows them.
KINDS: Mapping[str, Callable[[], Known]] = {
    "models": _models,
    "chips": _chips,
    "machines": _machines,
    "devices": _devices,
    "cells": _cells,
    "graphs": _graphs,
    "policies": _policies,
    "engines": _engines,
    "experiments": experiments,
    "keys": _keys,
}

#: Kinds that are too long to be shown unasked.
_ASKED_FOR = {"keys"}


def list_known(kind: str | None = None) -> dict[str, Any]:
    """List what lstmsim knows by name: for each kind a list of mappings with `name` and `source`.

    kind: a key of `KINDS`, for that kind alone; None: all kinds but the keys of files.

    `InputError` for an unknown kind.

    >>> list_known("engines")["engines"][0]["name"]
    'fast'
    """
    from lstmsim.base.errors import InputError, Mistake
    from lstmsim.base.wording import listed, nearest

    if kind is not None and kind not in KINDS:
        hint = nearest(str(kind), KINDS)
        raise InputError(Mistake("kind", f"must be one of {listed(KINDS)}, got {kind!r}{hint}"))
    known = {each: KINDS[each]() for each in ([kind] if kind else KINDS) if kind or each not in _ASKED_FOR}
    plain = {each: [{"name": name, "source": source} for name, source in rows] for each, rows in known.items()}
    return {"schema": "lstmsim/list/1", **plain}
