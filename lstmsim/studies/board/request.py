"""Options of runs on a board."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.rtl.request import Simulator
from lstmsim.studies.shared.request import Path


@record
class BoardRequest:
    """A design that runs on a board, or on simulated pins."""

    folder: Annotated[Path, Key("Folder that `lstmsim rtl --board` has written.")]
    _: KW_ONLY
    port: Annotated[str, Key("Serial port of the board, like /dev/ttyUSB0; sim: simulated pins.", metavar="PORT")] = (
        "sim"
    )
    simulator: Simulator = "icarus"
