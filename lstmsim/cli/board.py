"""`lstmsim board`."""

from __future__ import annotations

from typing import Any

import click

from lstmsim.base.errors import ReplayError
from lstmsim.cli.options import Outputs, command, json_output, status
from lstmsim.studies.board.request import BoardRequest


@command("board", BoardRequest, json_output(), more=[click.Argument(["action"], type=click.Choice(["run"]))])
def board_command(files: Outputs, action: str, **asked: Any) -> None:
    """Run a design that `lstmsim rtl --board` wrote, on its board or on simulated pins, and compare.

    The host fills the memories over the serial line, and posts jobs and frames at their cycles. It reads back the
    cycles in which every job was admitted and finished, and all bits of h, and compares them with golden/events.txt.
    docs/board.md describes the protocol and the memory map.

    \b
    lstmsim board run npu --port sim
    lstmsim board run npu --port /dev/ttyUSB0
    """
    from lstmsim.studies.board.run import run_board

    with status("running the board"):
        report = run_board(**asked)
    files.finish(report)
    if report.wrong:
        raise ReplayError(report.wrong)
