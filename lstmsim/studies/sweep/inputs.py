"""The files that a sweep reads: none of its outputs may replace them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lstmsim.base.errors import InputError
from lstmsim.studies.shared.files_read import files_read_by_document, files_that_come_along
from lstmsim.studies.sweep.spec_file import load_sweep

__all__ = ["files_of_sweep"]


def files_of_sweep(spec: str, overrides: Sequence[str] = ()) -> list[str]:
    """List the files that a sweep reads. Mistakes are passed over, because the sweep itself tells them.

    These are the sweep's own file, the scenario's, all files that the scenario names after `PATH=VALUE` overrides,
    files that its axes go through, and the files that come with lstmsim.

    spec: the file of the sweep.
    overrides: changes of the scenario.

    >>> files_of_sweep("no-such-file.yaml")
    ['no-such-file.yaml']
    """
    try:
        loaded = load_sweep(spec)
    except InputError:
        return [spec]
    folder = loaded.scenario.folder
    values = {each for axis in loaded.sweep.axes for each in axis.values if isinstance(each, str) and "\0" not in each}
    named = [loaded.scenario.name, *sorted(str(folder / each) for each in values)]
    files = [each for each in named if os.path.isfile(each)]
    if loaded.device_file is not None:
        files.append(loaded.device_file)
    return [spec, *files, *files_read_by_document(loaded.scenario, overrides), *files_that_come_along()]
