"""Designs of a few multipliers, which a simulator has run before anybody waits."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from lstmsim.machines.rtl import Event
from lstmsim.studies.board.result import BoardReport
from lstmsim.studies.rtl.result import compare

__all__ = ["TINY", "board_report", "relisted"]

_MODEL = {"name": "a", "layers": [{"cell": "rnn", "input": 1, "hidden": 2}]}
TINY: dict[str, Any] = {
    "name": "tiny",
    "chip": {
        "kind": "column-npu",
        "name": "tiny",
        "frequency_mhz": 25,
        "cores": [{"npe": 4, "ep": 1, "threads": 1, "tail_width": 1}],
    },
    "precision": {"formats": "shared", "shift": "common", "activation_entries": 4},
    "jobs": [
        {"model": _MODEL, "steps": 2, "count": 2},
        {"model": _MODEL, "steps": 3, "arrival": 100, "frame_interval": 40},
    ],
}


def board_report(*, faults: tuple[str, ...] = (), finish: int = 12) -> BoardReport:
    """A run of a single job that admitted and finished; lstmsim says that it ends in cycle 12."""
    said = [Event("A", 0, (0, 0)), Event("F", finish, (0,))]
    expected = [Event("A", 0, (0, 0)), Event("F", 12, (0,))]
    compared = compare(expected, said)
    return BoardReport("design", "ulx3s-85f", "pins", 25.0, 12, compared, tuple(said), faults, 1, 0.5, 0.25)


def relisted(folder: Path, *names: str) -> None:
    """Have the list of a folder say that files are as they were written: what stands behind this check is tested."""
    path = folder / "files.sha256"
    text = path.read_text()
    for name in names:
        digest = sha256((folder / name).read_bytes()).hexdigest()
        text = re.sub(rf"(?m)^.*  {re.escape(name)}\n", "", text) + f"{digest}  {name}\n"
    path.write_text(text)
