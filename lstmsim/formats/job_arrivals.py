"""When the jobs of an entry come: cycles as they stand, or those of a process."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.arrival_file import read_arrivals
from lstmsim.formats.document import Document
from lstmsim.formats.model_entries import file_path
from lstmsim.formats.schema import JobEntry
from lstmsim.formats.schema_arrivals import ArrivalEntry, describe
from lstmsim.formats.schema_types import MAX_CYCLES
from lstmsim.serving.arrivals import Stream, arrivals
from lstmsim.serving.closed_loop import Clients, ClosedLoop

__all__ = ["Coming", "coming"]

#: Of a job: its arrival, the position of the job that it comes after (or None), the latency that it should not exceed.
Coming = tuple[int, int | None, int | None]


def coming(
    document: Document, index: int, entry: JobEntry, name: str, frequency_mhz: float, first: int
) -> list[Coming]:
    """How each of the jobs of entry number `index` comes; `first` is the position of its first job among all.

    `name` keeps the random numbers of one entry apart from those of others. `InputError` for arrivals that are too late
    for a simulation, and for a file that lacks some.
    """
    process = entry.arrival
    if not isinstance(process, ArrivalEntry):
        each = process if isinstance(process, list) else [process] * entry.count
        return [(cycle, None, None) for cycle in each]
    found = list(_process(document, index, entry, process, name, frequency_mhz, first))
    place = document.place(("jobs", index, "arrival"))
    if len(found) < entry.count:
        text = f"the file has {len(found):,} arrivals, there are {entry.count:,} jobs (count)"
        raise InputError(Mistake(place, text))
    late = max((cycle for cycle, _, _ in found), default=0)
    if late > MAX_CYCLES:
        raise InputError(Mistake(place, f"comes as late as cycle {late:,}, at most {MAX_CYCLES:,} are simulated"))
    return found


def _process(
    document: Document,
    index: int,
    entry: JobEntry,
    process: ArrivalEntry,
    name: str,
    frequency_mhz: float,
    first: int,
) -> Iterator[Coming]:
    if process.kind == "file":
        path = file_path(document, ("jobs", index, "arrival", "path"), process.path)
        yield from ((cycle, None, None) for cycle in islice(read_arrivals(path, frequency_mhz).cycles, entry.count))
        return
    key = (process.seed, name, 0)
    description = describe(process)
    if isinstance(description, ClosedLoop):
        clients, many = Clients(description, frequency_mhz, key), description.clients
        thought = [0] * many
        for number in range(entry.count):
            # how long a client thinks does not depend on when its last request has finished
            before = thought[number % many]
            thought[number % many] = clients.next_arrival(number % many, before)
            after = None if number < many else first + number - many
            yield thought[number % many] - before, after, None
        return
    cycles = list(arrivals(description, entry.count + 1, frequency_mhz, key))
    for number in range(entry.count):
        due = cycles[number + 1] - cycles[number] if isinstance(description, Stream) else None
        yield cycles[number], None, due
