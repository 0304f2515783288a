"""The arrivals of the jobs of an entry: stated cycles, those of a process, or rows of a file, which is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise, product, repeat
from string import ascii_lowercase
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounds import MAX_CYCLES
from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import nearest, show
from lstmsim.files.scenario.models import file_path
from lstmsim.files.scenario.schema import (
    OWN_STEPS,
    ArrivalEntry,
    JobEntry,
    Measure,
    StepsEntry,
    TraceEntry,
    arrival_mistakes,
    describe,
    measure_of,
)
from lstmsim.files.yaml.document import Document
from lstmsim.model.scenario import Offer, estimated_offer
from lstmsim.traffic.arrivals import (
    ClosedLoop,
    Stream,
    arrival_arrays,
    arrivals,
    deadline_arrays,
    exact,
    offer_of,
    think_cycles,
)
from lstmsim.traffic.streams import StreamKey

if TYPE_CHECKING:
    from lstmsim.files.scenario.arrival_file import ArrivalFile, Wanted


def job_names(names: list[str], counts: list[int]) -> list[str]:
    """Name the jobs of entries: the requests of an entry are numbered from 1 on, an entry of one job gives its name.

    names: of the entries.
    counts: how many jobs each has.

    >>> job_names(["voice", "ads"], [3, 1]), job_names(["m", "m"], [2, 1]), job_names(["m", "m"], [1, 1])
    (['voice #1', 'voice #2', 'voice #3', 'ads'], ['m #1 #1', 'm #1 #2', 'm'], ['m-a', 'm-b'])
    """
    single = iter(unique_names([name for name, requests in zip(names, counts, strict=True) if requests == 1]))
    jobs: list[str] = []
    for tenant, requests in zip(tenant_names(names), counts, strict=True):
        jobs += [next(single)] if requests == 1 else [f"{tenant} #{number}" for number in range(1, requests + 1)]
    # Nothing but a name that a user gave, like `voice #2`, can be there twice.
    return unique_names(jobs)


def tenant_names(names: list[str]) -> list[str]:
    """Make tenants of the names of entries: equal names get a number each."""
    # A number that makes the name of another entry is left out: requests of two entries are never counted as one's.
    times, taken = Counter(names), set(names)
    numbers = {name: map("{} #{}".format, repeat(name), count(1)) for name in times}
    return [next(each for each in numbers[name] if each not in taken) if times[name] > 1 else name for name in names]


def unique_names(names: list[str]) -> list[str]:
    """Make names unique: equal names get a letter each. Letters, because trace viewers ignore digits in colours."""
    times: Mapping[str, int] = Counter(names)
    taken = set(names)
    letters: dict[str, Iterator[str]] = {}
    unique = []
    for name in names:
        if times[name] > 1:
            suffixes = letters.setdefault(name, _letters())
            plain = name
            while name in taken:
                name = f"{plain}-{next(suffixes)}"
            taken.add(name)
        unique.append(name)
    return unique


def _letters() -> Iterator[str]:
    """a ... z, aa, ab ... zz, aaa ..."""
    return ("".join(word) for length in count(1) for word in product(ascii_lowercase, repeat=length))


@record
class Rows:
    """The rows of a file that one entry takes: their numbers in the order of time."""

    file: ArrivalFile
    numbers: Sequence[int]
    tenant_column: str

    @property
    def cycles(self) -> list[int]:
        """Cycle in which each row comes."""
        return [self.file.cycles[number] for number in self.numbers]

    @property
    def tenants(self) -> list[str] | None:
        """Tenant of each row; None if the file names no tenants."""
        words = self.file.labels.get(self.tenant_column)
        return None if words is None else [words[number] for number in self.numbers]

    def steps(self, measure: Measure = OWN_STEPS) -> list[int] | None:
        """Give the steps of each row; None if the file has no such columns."""
        column = self.file.lengths.get(measure)
        return None if column is None else [column[number] for number in self.numbers]


@record
class _Source:
    """A file of arrivals as a scenario names it."""

    place: DataPath
    entry: ArrivalEntry | TraceEntry
    shared: bool

    @property
    def job(self) -> str | None:
        """Word of the rows that are taken; None: all rows."""
        return self.entry.job if isinstance(self.entry, ArrivalEntry) else None

    @property
    def words(self) -> set[str]:
        """Columns of words that the file must have."""
        from lstmsim.files.scenario.arrival_file import LABELS

        named = {self.entry.job_column, self.entry.tenant_column} - set(LABELS)
        return named | ({self.entry.job_column} if self.job is not None else set())


class _Traces:
    """The files of arrivals of a document at one clock; after `prepare`, each is read once for all entries."""

    def __init__(self, document: Document, frequency_mhz: float | None, whole: TraceEntry | None = None) -> None:
        self.document, self.frequency_mhz, self.whole = document, frequency_mhz, whole
        self.entries: Sequence[JobEntry | None] = ()
        self._files: dict[tuple[str, float, int | None], ArrivalFile | InputError] = {}
        self._rows: dict[int, Rows] = {}
        self._by_word: dict[tuple[str, str], dict[str, list[int]]] = {}
        self._routed: list[list[int]] | None = None

    def prepare(self, entries: Sequence[JobEntry | None], names: Sequence[str]) -> None:
        """Take all entries of the document (None: a wrong entry) and their names."""
        self.entries = entries
        if self.whole is None or self.frequency_mhz is None or any(each is None for each in entries):
            return
        taking = [index for index, each in enumerate(entries) if each is not None and self._shares(each)]
        if not taking:
            self.document.blame(("arrivals",), "has no effect: each job has an `arrival` of its own")
            return
        try:
            self._routed = self._route(self._read(_Source(("arrivals",), self.whole, shared=True)), taking, names)
        except InputError as error:
            self.document.mistakes.extend(error.mistakes)

    def comes_from(self, index: int, entry: JobEntry) -> DataPath | None:
        """Give the path of the mapping that names an entry's file of arrivals; None if there is no such file."""
        source = self._source(index, entry)
        return None if source is None else source.place

    def unread(self, index: int, entry: JobEntry) -> bool:
        """Tell whether the entry has a file of arrivals whose rows are unknown. A mistake has been noted then."""
        return self._source(index, entry) is not None and index not in self._rows

    def rows(self, index: int, entry: JobEntry) -> Rows | None:
        """Give the rows that entry number `index` takes; None if it has no file, or a noted mistake hides its rows."""
        source = self._source(index, entry)
        if source is None or self.frequency_mhz is None or (source.shared and self._routed is None):
            return None
        if index in self._rows:
            return self._rows[index]
        file = self._read(source)
        numbers: Sequence[int] = self._routed[index] if source.shared and self._routed else self._filtered(file, source)
        if "count" in entry.given:
            if len(numbers) < entry.count:
                text = f"the file has {len(numbers):,} arrivals, there are {entry.count:,} jobs (count)"
                raise InputError(Mistake(self.document.place((*source.place, "path")), text))
            numbers = numbers[: entry.count]
        self._rows[index] = Rows(file, numbers, source.entry.tenant_column)
        return self._rows[index]

    def _shares(self, entry: JobEntry) -> bool:
        return self.whole is not None and "arrival" not in entry.given

    def _source(self, index: int, entry: JobEntry) -> _Source | None:
        if isinstance(entry.arrival, ArrivalEntry) and entry.arrival.kind == "file":
            return _Source(("jobs", index, "arrival"), entry.arrival, shared=False)
        if self.whole is not None and self._shares(entry):
            return _Source(("arrivals",), self.whole, shared=True)
        return None

    def _key(self, source: _Source) -> tuple[str, float, int | None]:
        path = file_path(self.document, (*source.place, "path"), source.entry.path)
        return path, source.entry.speedup, source.entry.rows

    def _read(self, source: _Source) -> ArrivalFile:
        """Read the file of a source for all entries that name the file."""
        # most scenarios have no such file
        from lstmsim.files.scenario.arrival_file import read_arrivals

        key = self._key(source)
        if key not in self._files:
            try:
                self._files[key] = read_arrivals(key[0], self.frequency_mhz or 0, wanted=self._wanted(source))
            except InputError as error:
                self._files[key] = error
        file = self._files[key]
        if isinstance(file, InputError):
            # A mistake of a whole file is reported at the place that names the file: the user can mend it there.
            named = self.document.place((*source.place, "path"))
            raise InputError([Mistake(named, str(each)) if each.location == key[0] else each for each in file.mistakes])
        return file

    def _wanted(self, source: _Source) -> Wanted:
        """Give the columns that all entries together need of the file of a source."""
        from lstmsim.files.scenario.arrival_file import Wanted

        words, measures = dict.fromkeys(sorted(source.words)), dict[Measure, None]()
        for index, entry in enumerate(self.entries):
            other = None if entry is None else self._source(index, entry)
            if entry is None or other is None or self._key(other) != self._key(source):
                continue
            words |= dict.fromkeys(sorted(other.words))
            if isinstance(entry.steps, StepsEntry) and entry.steps.kind == "column":
                measures[measure_of(entry.steps)] = None
        return Wanted(tuple(words), tuple(measures), source.entry.speedup, source.entry.rows)

    def _filtered(self, file: ArrivalFile, source: _Source) -> Sequence[int]:
        """Give the rows of the source's job; all rows if the source names no job."""
        if source.job is None:
            return range(len(file.cycles))
        column = source.entry.job_column
        if (file.name, column) not in self._by_word:
            groups: dict[str, list[int]] = {}
            for number, each in enumerate(file.labels[column]):
                groups.setdefault(each, []).append(number)
            self._by_word[file.name, column] = groups
        rows = self._by_word[file.name, column].get(source.job)
        if rows is None:
            hint = nearest(source.job, self._by_word[file.name, column])
            text = f"no row of {file.name} has {show(source.job)} in its column {show(column)}{hint}"
            raise InputError(Mistake(self.document.place((*source.place, "job")), text))
        return rows

    def _route(self, file: ArrivalFile, taking: list[int], names: Sequence[str]) -> list[list[int]]:
        """Give the rows of each entry. A row belongs to the entry that it names, of the entries that take rows."""
        assert self.whole is not None
        rows: list[list[int]] = [[] for _ in names]
        column = self.whole.job_column
        words = file.labels.get(column)
        if words is None:
            if len(taking) > 1:
                text = f"has no column {show(column)} that says to which of {len(taking)} jobs a row belongs"
                raise InputError(Mistake(f"{file.name}:1", text))
            rows[taking[0]] = list(range(len(file.cycles)))
            return rows
        # entries with equal names are numbered
        unique = tenant_names(list(names))
        entries = {unique[index]: index for index in taking}
        unknown: dict[str, str] = {}
        mistakes: list[Mistake] = []
        for number, each in enumerate(words):
            if each in entries:
                rows[entries[each]].append(number)
                continue
            if each not in unknown:
                unknown[each] = _unknown(each, entries, names)
            mistakes.append(Mistake(f"{file.name}:{file.line(number)}: {column}", unknown[each]))
        for index in [] if mistakes else taking:
            if not rows[index]:
                text = f"no row of {file.name} has its name, {show(names[index])}, in column {show(column)}"
                mistakes.append(Mistake(self.document.place(("jobs", index)), text))
        if mistakes:
            from lstmsim.base.bounded import capped

            raise InputError(capped(mistakes))
        return rows


def _unknown(name: str, entries: dict[str, int], names: Sequence[str]) -> str:
    """Give the sentence on a word that names no entry which takes rows."""
    times = list(names).count(name)
    if times > 1:
        numbered = [each for each in entries if each.startswith(f"{name} #")]
        which = f"expected one of {', '.join(numbered[:3])}" if numbered else "these have an `arrival` of their own"
        return f"{times} jobs are called {show(name)}: give each a name, or {which}"
    if times:
        return f"job {show(name)} has an `arrival` of its own"
    hint = nearest(name, entries) or f"; there is {', '.join(show(each) for each in list(entries)[:5])}"
    return f"no job is called {show(name)}{hint}"


Ints = NDArray[np.int64]

#: Arrival of a job, position of the job that it comes after (or None), latency that it should not exceed (or None).
Coming = tuple[int, int | None, int | None]


class JobArrivals(_Traces):
    """The arrivals of a document's jobs at one clock; `prepare` comes first."""

    def check(self, index: int, entry: JobEntry) -> int:
        """Count the jobs of entry number `index`: its `count`, or all rows of its file if `count` is left out."""
        process = entry.arrival
        if isinstance(process, ArrivalEntry):
            mistakes = arrival_mistakes(process)
            for key, text in mistakes:
                self.document.blame(("jobs", index, "arrival", key), text)
            if mistakes or self.frequency_mhz is None:
                return entry.count
            if process.kind == "stream" and exact(process.frame_ms) * exact(self.frequency_mhz) * 1000 < 1:
                text = f"is shorter than a cycle, which takes {0.001 / self.frequency_mhz:g} ms on this chip"
                self.document.blame(("jobs", index, "arrival", "frame_ms"), f"{text}: no frame could be in time")
        try:
            rows = self.rows(index, entry)
        except InputError as error:
            self.document.mistakes.extend(error.mistakes)
            rows = None
        return entry.count if rows is None else len(rows.numbers)

    def coming(self, index: int, entry: JobEntry, name: str, occurrence: int, first: int) -> list[Coming]:
        """Give the arrivals of the jobs of entry number `index`."""
        process, rows = entry.arrival, self.rows(index, entry)
        if rows is None and not isinstance(process, ArrivalEntry):
            each = process if isinstance(process, list) else [process] * entry.count
            return [(cycle, None, None) for cycle in each]
        if rows is not None:
            drawn: Iterator[Coming] = ((cycle, None, None) for cycle in rows.cycles)
        else:
            assert isinstance(process, ArrivalEntry)
            drawn = self._drawn(entry.count, process, (process.seed, name, occurrence), first)
        coming: list[Coming] = []
        place = self.document.place(("jobs", index, "arrival"))
        try:
            for one in drawn:
                if one[0] > MAX_CYCLES:
                    text = f"job {len(coming) + 1:,} of this entry comes as late as cycle {one[0]:,}"
                    raise InputError(Mistake(place, f"{text}, at most {MAX_CYCLES:,} are simulated"))
                coming.append(one)
        except InputError as error:
            raise InputError([Mistake(place, each.sentence) for each in error.mistakes]) from None
        return coming

    def goes_on(self, index: int, entry: JobEntry) -> bool:
        """Tell whether the arrivals of the entry never end."""
        return isinstance(entry.arrival, ArrivalEntry) and self.comes_from(index, entry) is None

    def tenants(self, index: int, entry: JobEntry, name: str) -> list[str] | None:
        """Name the tenant of each request of an entry, `name/word`; None if its file names no tenants."""
        rows = self.rows(index, entry)
        words = None if rows is None else rows.tenants
        return None if words is None else [f"{name}/{word}" for word in words]

    def in_arrays(
        self, index: int, entry: JobEntry, key: tuple[str, int], count: int, chunk: int
    ) -> Iterator[tuple[Ints, Ints | None]]:
        """Yield the arrivals of entry number `index` in its order, and latency limits (None: there are none)."""
        process, rows = entry.arrival, self.rows(index, entry)
        if rows is not None or not isinstance(process, ArrivalEntry):
            each = rows.cycles if rows is not None else process
            listed = np.array(each) if isinstance(each, list) else np.full(entry.count, each)
            listed = listed.astype(np.int64, copy=False)[:count]
            return ((listed[first : first + chunk], None) for first in range(0, len(listed), chunk))
        if process.kind == "closed":
            text = "clients wait for their answers, which a stream of requests does not support: use simulate --serving"
            raise InputError(Mistake(self.document.place(("jobs", index, "arrival")), text))
        description, clock = describe(process), self.frequency_mhz or 0
        assert not isinstance(description, ClosedLoop)
        cycles = arrival_arrays(description, count, clock, (process.seed, *key), chunk)
        if isinstance(description, Stream):
            return _until_the_next(cycles, deadline_arrays(description, count, clock, chunk))
        return ((block, None) for block in cycles)

    def offer(self, index: int, entry: JobEntry) -> Offer:
        """Give the rate at which the jobs of entry number `index` come in the long run, as far as it is known."""
        process, clock, rows = entry.arrival, self.frequency_mhz or 0, self.rows(index, entry)
        if rows is not None:
            return estimated_offer(rows.cycles, clock)
        if not isinstance(process, ArrivalEntry):
            return estimated_offer(sorted(process), clock) if isinstance(process, list) else Offer()
        return offer_of(describe(process), clock)

    def _drawn(self, count: int, process: ArrivalEntry, key: StreamKey, first: int) -> Iterator[Coming]:
        description, clock = describe(process), self.frequency_mhz or 0
        if isinstance(description, ClosedLoop):
            yield from _asked(description, count, clock, key, first)
        elif isinstance(description, Stream):
            for cycle, following in pairwise(arrivals(description, count + 1, clock, key)):
                yield cycle, None, following - cycle
        else:
            for cycle in arrivals(description, count, clock, key):
                yield cycle, None, None


def _until_the_next(cycles: Iterator[Ints], following: Iterator[Ints]) -> Iterator[tuple[Ints, Ints]]:
    """Frames, each with the cycles until the next one comes. The next one of the last may be too late to come."""
    for block, ends in zip(cycles, following, strict=True):
        yield block[: len(ends)], ends - block[: len(ends)]


def _asked(loop: ClosedLoop, count: int, frequency_mhz: float, key: StreamKey, first: int) -> Iterator[Coming]:
    many = min(loop.clients, count)
    thinking = [think_cycles(loop, client, frequency_mhz, key) for client in range(many)]
    for number in range(count):
        after = None if number < many else first + number - many
        yield next(thinking[number % many]), after, None
