"""A design run on a board by its host, and compared with what lstmsim says."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.files import readable_file
from lstmsim.machines.rtl import Event
from lstmsim.studies.board.lines import serial_line, simulated_line
from lstmsim.studies.board.protocol import Line, Link
from lstmsim.studies.board.records import events_of, parts_of
from lstmsim.studies.board.request import BoardRequest
from lstmsim.studies.board.result import BoardReport
from lstmsim.studies.board.top import FORMAT
from lstmsim.studies.rtl.result import compare, read_log
from lstmsim.studies.rtl.simulators import simulator_of
from lstmsim.studies.shared.request import takes

#: What the host must know of a design.
DATA = "board/board.json"
#: Spaces of the bus (docs/board.md section 2), and words of the space of control.
_SCHEDULE, _RESULTS, _CONTROL = 0x80000000, 0x90000000, 0xA0000000
_COMMAND, _ENTRIES = _CONTROL, _CONTROL + 3
_STOP, _ARM = 0, 1
_MAGIC = 0x4C4E5031
_ENDED, _LATE = 3, 4
#: Cycles after the last one of the simulation at which a board is stopped, and seconds after which it stands still.
_MARGIN, _SECONDS = 1000, 600


@takes(BoardRequest)
def run_board(request: BoardRequest) -> BoardReport:
    """Load a design's data onto a board, run its schedule, read the results back, and compare them.

    Admissions and finishes of jobs and all bits of h are compared in their cycles. A difference is no error:
    `BoardReport.equal` says so. `InputError` for a folder without a board, a port that cannot be opened, and results
    that the board's memory cannot hold; `LstmsimError` where the line does not answer.

    >>> run_board("nowhere")
    Traceback (most recent call last):
    lstmsim.InputError: nowhere/board/board.json: no such file or folder
    """
    folder = os.fspath(request.folder)
    data = _data(folder)
    golden = [each for each in read_log(_text(folder, "golden/events.txt").splitlines()) if each.kind in "HAF"]
    with _line(request, folder, data) as line:
        start = time.perf_counter()
        link = Link(line)
        _refuse_board(link, data, golden, folder)
        link.write(_COMMAND, [_STOP])
        _load(link, folder)
        _post(link, data["schedule"])
        loaded = time.perf_counter()
        state, cycle, count, lost = _run(link, max((each.cycle for each in golden), default=0))
        events = events_of(data["record"], list(_records(link, data["record"], count)))
        read = time.perf_counter()
        link.write(_COMMAND, [_STOP])
    faults = []
    if lost:
        faults.append(f"{lost:,} records of results found no place in the board's memory of {count:,}")
    if state & _LATE:
        faults.append("the schedule was late: a job or a frame was not posted in its cycle")
    if state & 3 != _ENDED:
        faults.append(f"not all jobs had finished when the board was stopped in cycle {cycle:,}")
    return BoardReport(
        folder,
        data["board"],
        line.name,
        data["clock_mhz"],
        cycle,
        compare(golden, events),
        events,
        tuple(faults),
        link.resent,
        loaded - start,
        read - loaded,
    )


def _text(folder: str, name: str) -> str:
    path = os.path.join(folder, *name.split("/"))
    with readable_file(path) as file:
        return file.read().decode(errors="replace")


def _data(folder: str) -> dict[str, Any]:
    """What the host must know of a design."""
    try:
        data = json.loads(_text(folder, DATA))
    except ValueError:
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(Mistake(os.path.join(folder, DATA), f"is no file of format {FORMAT}: run lstmsim rtl --board"))
    return data


def _line(request: BoardRequest, folder: str, data: Mapping[str, Any]) -> AbstractContextManager[Line]:
    """The line that was asked for."""
    if request.port != "sim":
        return serial_line(request.port, data["baud"])
    simulator = simulator_of(request.simulator)
    names = [
        f"{part}/{name}"
        for part in ("rtl", "board", "board/sim")
        for name in sorted(os.listdir(os.path.join(folder, *part.split("/"))))
        # the pins and the clock of the FPGA are not simulated
        if name.endswith(".v") and f"{part}/{name}" != "board/top.v"
    ]
    return simulated_line(simulator, folder, names, data["baud"])


def _refuse_board(link: Link, data: Mapping[str, Any], golden: Sequence[Event], folder: str) -> None:
    """Refuse a board with another design, or with too little memory for what will be said."""
    magic, design, results, entries = link.read(_CONTROL, 4)
    if magic != _MAGIC:
        raise LstmsimError(f"at {link.line.name} there is no board of lstmsim: it says {magic:08x}")
    if design != data["design_id"]:
        text = f"the board at {link.line.name} has design {design:08x}, {folder} is {data['design_id']:08x}"
        raise LstmsimError(f"{text}: load the bitstream of this folder")
    needed = len({each.cycle for each in golden})
    if needed > results:
        text = f"the run makes {needed:,} records of results, the board's memory holds {results:,}"
        raise InputError(Mistake(f"folder {folder}", text))
    if len(data["schedule"]) > entries:
        text = f"the schedule has {len(data['schedule']):,} entries, the board's memory holds {entries:,}"
        raise InputError(Mistake(f"folder {folder}", text))


def _load(link: Link, folder: str) -> None:
    """Write all of `data/*.hex`, words that follow each other in one go."""
    for name in sorted(os.listdir(os.path.join(folder, "data"))):
        if name.endswith(".hex"):
            for address, words in _runs(_text(folder, f"data/{name}")):
                link.write(address, words)


def _runs(text: str) -> Iterator[tuple[int, list[int]]]:
    """Words at addresses that follow each other."""
    first, words = 0, list[int]()
    for line in text.splitlines():
        address, word = (int(each, 16) for each in line.split())
        if words and address != first + len(words):
            yield first, words
            words = []
        if not words:
            first = address
        words.append(word)
    if words:
        yield first, words


def _post(link: Link, schedule: Sequence[Sequence[int]]) -> None:
    """Write the schedule."""
    link.write(_SCHEDULE, [word for entry in schedule for word in entry])
    link.write(_ENTRIES, [len(schedule)])


def _run(link: Link, last: int) -> tuple[int, int, int, int]:
    """Let the schedule run; give state, last cycle, records, and records that were lost."""
    link.write(_COMMAND, [_ARM])
    deadline = time.monotonic() + _SECONDS
    while True:
        state, cycle, count, lost = link.read(_CONTROL + 4, 4)
        passed = cycle != 0xFFFFFFFF and cycle > last + _MARGIN
        if state & 3 == _ENDED or passed or time.monotonic() > deadline:
            return state, cycle, count, lost


def _records(link: Link, record: Mapping[str, Any], count: int) -> Iterator[int]:
    """Read the records, each as a whole number."""
    parts = parts_of(record)
    stride = 1 << (parts - 1).bit_length()
    if parts == stride:
        words = link.read(_RESULTS, count * stride)
    else:
        words = [word for number in range(count) for word in [*link.read(_RESULTS + number * stride, parts), 0]]
        parts += 1
    for first in range(0, len(words), parts):
        yield sum(word << 32 * place for place, word in enumerate(words[first : first + parts]))
