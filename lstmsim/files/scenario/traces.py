"""Files of arrivals that a scenario names: each is read once, and each job entry takes its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import nearest, show
from lstmsim.files.scenario import request_schema, schema
from lstmsim.files.scenario.models import file_path
from lstmsim.files.yaml.document import Document

if TYPE_CHECKING:
    from lstmsim.files.scenario.arrival_file import ArrivalFile, Wanted

K = TypeVar("K")
T = TypeVar("T")


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

    def steps(self, measure: request_schema.Measure) -> list[int] | None:
        """Give the steps of each row; None if the file has no such columns."""
        column = self.file.lengths.get(measure)
        return None if column is None else [column[number] for number in self.numbers]


@record
class _Source:
    """A file of arrivals as a scenario names it."""

    place: DataPath
    entry: request_schema.ArrivalEntry | request_schema.TraceEntry
    shared: bool

    @property
    def job(self) -> str | None:
        """Word of the rows that are taken; None: all rows."""
        return self.entry.job if isinstance(self.entry, request_schema.ArrivalEntry) else None

    @property
    def words(self) -> set[str]:
        """Columns of words that the file must have."""
        from lstmsim.files.scenario.arrival_file import LABELS

        named = {self.entry.job_column, self.entry.tenant_column} - set(LABELS)
        return named | ({self.entry.job_column} if self.job is not None else set())


def read_once(
    kept: dict[K, T | InputError], key: K, file: str, document: Document, place: DataPath, read: Callable[[], T]
) -> T:
    """Give what `read` gives of a file, and keep it under `key` for all entries that name the file.

    place: where the document names the file. A mistake of the whole file is told there: the user can mend it there.
    """
    if key not in kept:
        try:
            kept[key] = read()
        except InputError as error:
            kept[key] = error
    known = kept[key]
    if isinstance(known, InputError):
        named = document.place(place)
        raise InputError([Mistake(named, str(each)) if each.location == file else each for each in known.mistakes])
    return known


class Traces:
    """The files of arrivals of a document at one clock; each is read once for all entries.

    order, entries: the entry of the document (None: it has mistakes), and those of its jobs (None: it is wrong).
    names, tenants: of the entries of jobs.
    """

    def __init__(
        self,
        document: Document,
        order: schema.ScenarioFile | None,
        entries: Sequence[schema.JobEntry | None],
        names: Sequence[str],
        tenants: Sequence[str],
    ) -> None:
        self.document, self.entries = document, entries
        self.frequency_mhz: float | None = None if order is None else order.chip.frequency_mhz
        self.whole = None if order is None else order.arrivals
        self._files: dict[tuple[str, float, int | None], ArrivalFile | InputError] = {}
        self._rows: dict[int, Rows] = {}
        self._by_word: dict[tuple[str, str], dict[str, list[int]]] = {}
        self._routed: list[list[int]] | None = None
        if self.whole is None or self.frequency_mhz is None or any(each is None for each in entries):
            return
        taking = [index for index, each in enumerate(entries) if each is not None and self._shares(each)]
        if not taking:
            self.document.blame(("arrivals",), "has no effect: each job has an `arrival` of its own")
            return
        try:
            file = self._read(_Source(("arrivals",), self.whole, shared=True))
            self._routed = self._route(file, taking, names, tenants)
        except InputError as error:
            self.document.mistakes.extend(error.mistakes)

    def named(self, index: int, entry: schema.JobEntry) -> bool:
        """Tell whether a file is named from which the entry's arrivals come."""
        return self._source(index, entry) is not None

    def unread(self, index: int, entry: schema.JobEntry) -> bool:
        """Tell whether the entry has a file of arrivals whose rows are unknown. A mistake has been noted then."""
        return self._source(index, entry) is not None and index not in self._rows

    def rows(self, index: int, entry: schema.JobEntry) -> Rows | None:
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

    def _shares(self, entry: schema.JobEntry) -> bool:
        return self.whole is not None and "arrival" not in entry.given

    def _source(self, index: int, entry: schema.JobEntry) -> _Source | None:
        if isinstance(entry.arrival, request_schema.ArrivalEntry) and entry.arrival.kind == "file":
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

        key, clock = self._key(source), self.frequency_mhz or 0
        return read_once(
            self._files,
            key,
            key[0],
            self.document,
            (*source.place, "path"),
            lambda: read_arrivals(key[0], clock, wanted=self._wanted(source)),
        )

    def _wanted(self, source: _Source) -> Wanted:
        """Give the columns that all entries together need of the file of a source."""
        from lstmsim.files.scenario.arrival_file import Wanted

        words, measures = dict.fromkeys(sorted(source.words)), dict[request_schema.Measure, None]()
        for index, entry in enumerate(self.entries):
            other = None if entry is None else self._source(index, entry)
            if entry is None or other is None or self._key(other) != self._key(source):
                continue
            words |= dict.fromkeys(sorted(other.words))
            if isinstance(entry.steps, request_schema.StepsEntry) and entry.steps.kind == "column":
                measures[request_schema.measure_of(entry.steps)] = None
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

    def _route(
        self, file: ArrivalFile, taking: list[int], names: Sequence[str], tenants: Sequence[str]
    ) -> list[list[int]]:
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
        entries = {tenants[index]: index for index in taking}
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
