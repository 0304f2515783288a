"""A design run on a board by its host, and compared with what lstmsim says."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from math import inf
from typing import Any

from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.files import readable_file
from lstmsim.base.folder import refuse_changed
from lstmsim.base.wording import show
from lstmsim.machines.rtl import AT_PORTS, EVENT_KINDS, Event
from lstmsim.studies.board.lines import serial_line, simulated_line
from lstmsim.studies.board.protocol import Line, Link
from lstmsim.studies.board.records import events_of, parts_of
from lstmsim.studies.board.request import BoardRequest
from lstmsim.studies.board.result import BoardReport
from lstmsim.studies.board.top import FORMAT
from lstmsim.studies.rtl.result import compare, read_log
from lstmsim.studies.rtl.run import GOLDEN
from lstmsim.studies.rtl.simulators import simulator_of
from lstmsim.studies.shared.request import takes

#: What the host must know of a design.
DATA = "board/board.json"
#: Spaces of the bus (docs/board.md section 2), and words of the space of control.
_SCHEDULE, _RESULTS, _CONTROL = 0x80000000, 0x90000000, 0xA0000000
_COMMAND, _ENTRIES, _JOBS = _CONTROL, _CONTROL + 3, _CONTROL + 4
_STOP, _ARM = 0, 1
_MAGIC = 0x4C4E5031
#: A line of `data/*.hex`.
_ENTRY = re.compile(r"\s*([0-9a-f]{1,8})\s+([0-9a-f]{1,8})\s*", re.IGNORECASE | re.ASCII)
_ENDED, _LATE = 3, 4
#: Cycles after the last one of the simulation at which a board is stopped, and seconds after which it stands still.
_MARGIN, _SECONDS = 1000, 600
#: Files that are read: of any board, and of one that is simulated.
_READ = re.compile(r"board/board\.json|golden/events\.txt|data/[^/]*\.hex")
_SIMULATED = re.compile(rf"{_READ.pattern}|(rtl|board|board/sim)/[^/]*\.vh?")
#: What to do about a file that is not as it was written.
_WRITE_AGAIN = (
    "run lstmsim rtl --board again, with --replace over an edited file (other weights belong in the scenario, so that "
    "what is expected follows them)"
)


@takes(BoardRequest)
def run_board(request: BoardRequest) -> BoardReport:
    """Load a design's data onto a board, run its schedule, read the results back, and compare them.

    Admissions and finishes of jobs and all bits of h are compared in their cycles. A difference is no error:
    `BoardReport.equal` says so. `InputError` for a folder without a board, one with a file that is not as `lstmsim rtl`
    wrote it, a port that cannot be opened, and results that the board's memory cannot hold; `LstmsimError` where the
    line does not answer.

    >>> run_board("nowhere")
    Traceback (most recent call last):
    lstmsim.InputError: folder nowhere: no such folder; run lstmsim rtl --board again, ...
    """
    folder = os.fspath(request.folder)
    # before anything is opened: a board with half its data never ends its jobs
    reads = _SIMULATED if request.port == "sim" else _READ
    refuse_changed(folder, lambda name: reads.fullmatch(name) is not None, _WRITE_AGAIN)
    data = _data(folder)
    golden = [each for each in _golden(folder) if each.kind in AT_PORTS]
    images = list(_images(folder))
    with _line(request, folder, data) as line:
        start = time.perf_counter()
        link = Link(line)
        _refuse_board(link, data, golden, folder)
        link.write(_COMMAND, [_STOP])
        for address, words in images:
            link.write(address, words)
        _post(link, data["schedule"], data["jobs"])
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


def _golden(folder: str) -> Iterator[Event]:
    """What the simulator says; `InputError` for a line that is no event."""
    for number, line in enumerate(_text(folder, GOLDEN).splitlines(), 1):
        try:
            yield from read_log([line])
        except LstmsimError:
            text = f"expected an event (one of {' '.join(EVENT_KINDS)}, and a cycle), got {show(line)}"
            raise InputError(Mistake(f"{os.path.join(folder, *GOLDEN.split('/'))}:{number}", text)) from None


def _data(folder: str) -> dict[str, Any]:
    """What the host must know of a design."""
    try:
        data = json.loads(_text(folder, DATA))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(Mistake(os.path.join(folder, DATA), f"is no file of format {FORMAT}: run lstmsim rtl --board"))
    wrong = next((name for name, sound in _SOUND.items() if not sound(data.get(name))), None)
    if wrong is not None:
        text = f"{wrong} is not what lstmsim rtl --board writes there: run it again"
        raise InputError(Mistake(os.path.join(folder, DATA), text))
    return data


def _whole(value: object, most: int = 2**32 - 1, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_schedule(value: object) -> bool:
    """Whether it is a list of entries: a cycle, and what is there from then on."""
    entries = value if isinstance(value, list) else [None]
    return all(isinstance(each, list) and len(each) == 2 and all(map(_whole, each)) for each in entries)


def _is_record(value: object) -> bool:
    """Whether the fields of a record are there, so that one can be read."""
    try:
        bits = value["bits"]  # type: ignore[index]
        # each bit alone
        events_of(value, [1 << each for each in range(bits)])  # type: ignore[arg-type]
        return _whole(bits, 1 << 15, 1)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return False


#: Of `DATA` what the host reads, and whether it can.
_SOUND: Mapping[str, Callable[[Any], bool]] = {
    "board": lambda value: isinstance(value, str),
    "clock_mhz": lambda value: isinstance(value, int | float) and 0 < value < inf,
    "baud": lambda value: _whole(value, 10**9, 1),
    "design_id": _whole,
    "jobs": _whole,
    "schedule": _is_schedule,
    "record": _is_record,
}


def _line(request: BoardRequest, folder: str, data: Mapping[str, Any]) -> AbstractContextManager[Line]:
    """The line that was asked for."""
    if request.port != "sim":
        return serial_line(request.port, data["baud"])
    simulator = simulator_of(request.simulator)
    names = [
        f"{part}/{name}"
        for part in ("rtl", "board", "board/sim")
        for name in _names(folder, part)
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


def _images(folder: str) -> Iterator[tuple[int, list[int]]]:
    """Give all of `data/*.hex`, words at addresses that follow each other in one go."""
    for name in _names(folder, "data"):
        if name.endswith(".hex"):
            yield from _runs(os.path.join(folder, "data", name), _text(folder, f"data/{name}"))


def _names(folder: str, part: str) -> list[str]:
    """The names of the files of a part of the folder."""
    path = os.path.join(folder, *part.split("/"))
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        raise InputError(Mistake(path, f"{error.strerror}: run lstmsim rtl --board")) from None


def _runs(path: str, text: str) -> Iterator[tuple[int, list[int]]]:
    """Words at addresses that follow each other; path: where the text is from."""
    first, words = 0, list[int]()
    for number, line in enumerate(text.splitlines(), 1):
        found = _ENTRY.fullmatch(line)
        if found is None:
            text = f"expected an address and a word of 32 bits, both in hexadecimal, got {show(line)}"
            raise InputError(Mistake(f"{path}:{number}", text))
        address, word = (int(each, 16) for each in found.groups())
        if words and address != first + len(words):
            yield first, words
            words = []
        if not words:
            first = address
        words.append(word)
    if words:
        yield first, words


def _post(link: Link, schedule: Sequence[Sequence[int]], jobs: int) -> None:
    """Write the schedule, and how many jobs end."""
    link.write(_SCHEDULE, [word for entry in schedule for word in entry])
    link.write(_ENTRIES, [len(schedule)])
    link.write(_JOBS, [jobs])


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
