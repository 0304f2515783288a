"""Job entries are read, each once, into records that hold all that jobs, requests and offers are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice, product, repeat
from typing import TYPE_CHECKING

from lstmsim.base.bounds import MAX_JOBS
from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.wording import show
from lstmsim.files.scenario import request_schema, schema
from lstmsim.files.scenario.first_states import Initials, initial_file
from lstmsim.files.scenario.models import STAND_IN, ChipRead, blame, file_path, frames_path
from lstmsim.files.scenario.pinned import pinned_faults
from lstmsim.files.scenario.traces import Rows, Traces, read_once
from lstmsim.files.yaml.document import Document
from lstmsim.machines.assembly import AnyCore, PerStep, Tally, way_out
from lstmsim.machines.target import Fault, Target
from lstmsim.model.model import Model

if TYPE_CHECKING:
    from lstmsim.traffic.arrivals import ClosedLoop, OpenArrivals
    from lstmsim.traffic.lengths import Lengths
    from lstmsim.traffic.streams import StreamKey


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
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ("".join(word) for length in count(1) for word in product(letters, repeat=length))


def entry_keys(names: Sequence[str]) -> list[tuple[str, int]]:
    """Give for each entry its name and how many earlier entries have that name: the key of its random numbers."""
    named = Counter[str]()
    keys = []
    for name in names:
        keys.append((name, named[name]))
        named[name] += 1
    return keys


def named_cores(entry: schema.JobEntry) -> tuple[int, ...] | None:
    """Give the cores that an entry names; None: all cores of the chip."""
    if entry.cores is not None:
        return tuple(entry.cores)
    return None if entry.core is None else (entry.core,)


def check_cores(document: Document, path: DataPath, entry: schema.JobEntry, chip: ChipRead) -> None:
    """Note cores that do not exist, cores that are named twice, and keys that say the same."""
    key = "core" if entry.cores is None else "cores"
    if entry.core is not None and entry.cores is not None:
        document.blame((*path, "core"), "says the same as `cores`: give one of them")
    named = named_cores(entry) or ()
    for position, each in enumerate(named):
        if chip.known and each >= len(chip.cores):
            last = len(chip.cores) - 1
            text = "must be 0, the chip's only core" if last == 0 else f"must be one of the chip's cores 0 to {last}"
            place = (*path, key) if entry.cores is None else (*path, key, position)
            document.blame(place, f"{text}, got {each}")
    twice = [each for each in named if named.count(each) > 1]
    if twice and entry.split != "layers":
        why = "only a job split into layers takes several threads of a core"
        document.blame((*path, "cores"), f"names core {twice[0]} twice; {why}")


@record
class StepsRead:
    """The numbers of steps of the jobs of an entry."""

    lengths: Lengths | int  # how they are chosen; a number: the steps of every job
    stream: StreamKey  # the key of their random numbers
    possible: Sequence[int]  # each number once, ascending
    shares: tuple[tuple[int, float], ...]  # each number with its share of the jobs, if there are several

    def drawn(self) -> Iterator[int]:
        """Give the numbers of one job after another, endlessly."""
        if isinstance(self.lengths, int):
            return repeat(self.lengths)
        from lstmsim.traffic.lengths import drawn_lengths

        return drawn_lengths(self.lengths, self.stream)


def _spread(lengths: Lengths | int) -> tuple[Sequence[int], dict[int, float]]:
    """The numbers that may come, ascending, and the share of each, unless they are too many."""
    if isinstance(lengths, int):
        return [lengths], {}
    from lstmsim.traffic.lengths import possible, shares

    numbers = possible(lengths)
    return numbers, shares(lengths) if len(numbers) <= request_schema.MAX_LENGTHS else {}


def _in_order(numbers: Sequence[int]) -> Lengths:
    from lstmsim.traffic.lengths import InOrder

    return InOrder(numbers)


@record
class JobRecord:
    """A job entry that has been read; `inputs` and `initial` are as in `lstmsim.model.scenario.Job`."""

    entry: schema.JobEntry
    model: Model
    key: tuple[str, int]  # its name, and how many earlier entries have it: the key of its random numbers
    tenant: str  # its name among all entries
    tenants: tuple[str, ...] | None  # tenant of each job, `tenant/word`; None if there is no file that names tenants
    count: int  # how many jobs it stands for
    process: OpenArrivals | ClosedLoop | None  # how its jobs come, if they come by a process
    rows: Rows | None  # the rows of a file with which they come; else None
    place: str  # where it says how its jobs come, if they are drawn or read
    follows: int | None  # number of the entry with whose last states its jobs begin
    steps: StepsRead
    inputs: str
    initial: str


@record
class _Suited:
    """What the chip's machine says of the jobs of an entry."""

    faults: Sequence[Fault] = ()  # of its keys
    refused: tuple[DataPath, str] | None = None  # a place, and the sentence that says why no core can run them
    per_step: PerStep | None = None  # bounds on the operations of one step; None if no core can run them
    bound: Callable[[int], PerStep] | None = None  # gives these bounds for a batch


class _Machine:
    """The chip's machine, as it is asked about entries; it answers once for like entries."""

    def __init__(self, document: Document, chip: ChipRead) -> None:
        self.data, self.chip = document.data.get("chip"), chip
        self._allowed: dict[tuple[int, ...] | None, dict[AnyCore, int] | None] = {}
        self._known: dict[Hashable, _Suited] = {}

    def suited(self, path: DataPath, entry: schema.JobEntry, model: Model | None) -> _Suited:
        """Say what the machine says of the jobs of an entry."""
        target, cores, named = self.chip.target, self.chip.cores, named_cores(entry)
        key = (named, entry.split, entry.batch, entry.threads, id(model))
        if target is None or key in self._known:
            return self._known.get(key, _Suited())
        able, refused = ([], None) if model is None else self._able(target, path, entry, model)
        bound = per_step = None
        if able and model is not None:
            members = entry.threads or len(named or cores)
            bound = partial(target.per_step, able, model, split=entry.split or "", members=members)
            per_step = bound(entry.batch)
        faults = target.job_faults(entry.batch, entry.split, entry.threads, len(cores) if self.chip.known else None)
        suited = _Suited(faults, refused, per_step, bound)
        if refused is None:
            # else the sentence names the entry
            self._known[key] = suited
        return suited

    def _able(
        self, target: Target, path: DataPath, entry: schema.JobEntry, model: Model
    ) -> tuple[list[AnyCore], tuple[DataPath, str] | None]:
        """Give the distinct cores that can run the jobs of an entry; if none can, why."""
        named = named_cores(entry)
        allowed = self._first_of_each(named)
        if allowed is None:
            return [], None
        members = len(self.chip.cores if named is None else named)
        if entry.split is not None and members > 1:
            if entry.split not in target.splits:
                return [], None
            if len(allowed) > 1:
                text = "the cores of a job that is split must be equal: name some that are (`cores`)"
                return [], ((*path, "split"), text)
            refusal = target.split_refusal(next(iter(allowed)), model, entry.split, members)
            if refusal is not None:
                return [], ((*path, "split"), f"job {show(entry.name or model.name)} cannot be split: {refusal}")
            if entry.split != "auto":
                return list(allowed), None
        refused = target.model_refusal(self.data, model)
        refusals = {core: refused or core.refusal(model) for core in allowed}
        runnable = [core for core in allowed if not refusals[core]]
        if runnable:
            return runnable, None
        where = "any core" if named is None else f"core {', '.join(map(str, named))}"
        reasons = _reasons({index: refusals[core] or "" for core, index in allowed.items()})
        place = path if named is None else (*path, "core" if entry.cores is None else "cores")
        return [], (place, f"job {show(entry.name or model.name)} cannot run on {where}: {reasons}")

    def _first_of_each(self, named: tuple[int, ...] | None) -> dict[AnyCore, int] | None:
        """Give the distinct cores among these, each with its first place; None if one of them is wrong."""
        if named not in self._allowed:
            cores = self.chip.cores
            indexes = range(len(cores)) if named is None else named
            wrong = not self.chip.known or any(each >= len(cores) or cores[each] is None for each in indexes)
            self._allowed[named] = None if wrong else {cores[index]: index for index in reversed(indexes)}
        return self._allowed[named]


def _reasons(by_core: dict[int, str]) -> str:
    """Give each reason once, with its first core. If all cores have the same reason, no core is named."""
    first = {text: index for index, text in sorted(by_core.items(), reverse=True)}
    if len(first) == 1:
        return next(iter(first))
    texts = [f"core {index}: {text}" for text, index in sorted(first.items(), key=lambda pair: pair[1])]
    return "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more" if len(texts) > 3 else "")


class JobReader:
    """The reader of the job entries of a document, in which it notes mistakes.

    order: the entry of the document, if it has no mistakes.
    models: of each job entry; None for a wrong model.
    single: whether each entry stands for a stream of requests, and not for jobs that are all there.
    """

    def __init__(
        self,
        document: Document,
        wrong: schema.WrongPaths,
        order: schema.ScenarioFile | None,
        chip: ChipRead,
        models: Sequence[Model | None],
        single: bool,
    ) -> None:
        jobs = document.data.get("jobs")
        self.document, self.chip, self.models, self.single = document, chip, models, single
        self.clock = None if order is None else order.chip.frequency_mhz
        self.jobs = jobs if isinstance(jobs, list) else []
        self.mistaken: list[set[str | int]] = [set()] * len(models)
        self.entries: Sequence[schema.JobEntry | None] = [] if order is None else order.jobs
        if order is None:
            self.mistaken = [wrong.below(("jobs", index)) for index in range(len(models))]
            pairs = zip(self.jobs, self.mistaken, strict=True)
            self.entries = [schema.usable(schema.JobEntry, data, keys, {"model": STAND_IN}) for data, keys in pairs]
        both = list(zip(self.entries, models, strict=True))
        self.names = [(entry and entry.name) or (model and model.name) or "" for entry, model in both]
        self.keys, self.tenants = entry_keys(self.names), tenant_names(self.names)
        self.machine, self.tally = _Machine(document, chip), Tally()
        self.counts, self.total, self.different = [0] * len(models), 0, 0
        self._numbers: dict[Hashable, set[int]] = {}
        self._files: dict[tuple[str, request_schema.Measure], Sequence[int] | InputError] = {}
        # most scenarios have neither files of arrivals nor jobs that begin with given states
        arrivals = [each.arrival for each in self.entries if each is not None]
        files = any(isinstance(each, request_schema.ArrivalEntry) and each.kind == "file" for each in arrivals)
        self.traces: Traces | None = None
        self.initials: Initials | None = None
        if files or (order is not None and order.arrivals is not None):
            right = [None if model is None else entry for entry, model in both]
            self.traces = Traces(document, order, right, self.names, self.tenants)
        if any(each is not None and each.initial is not None for each in self.entries):
            self.initials = Initials(document, self.entries, self.names, models)

    def read(self) -> tuple[JobRecord, ...]:
        """Read all entries, from the first to the last. Without mistakes each has a record."""
        return tuple(each for index in range(len(self.models)) if (each := self._read(index)) is not None)

    def _read(self, index: int) -> JobRecord | None:
        path: DataPath = ("jobs", index)
        entry, model, document = self.entries[index], self.models[index], self.document
        if entry is None:
            return None
        suited = self.machine.suited(path, entry, model)
        stated = entry.arrival
        if isinstance(stated, list) and "count" not in self.mistaken[index] and len(stated) != entry.count:
            text = f"must hold as many arrivals as there are jobs (count {entry.count}), got {len(stated)}"
            document.blame((*path, "arrival"), text)
        for fault in suited.faults:
            blame(document, path, fault)
        check_cores(document, path, entry, self.chip)
        self.counts[index] = self._count(index, entry)
        if self.initials is not None:
            comes_from_file = self.traces is not None and self.traces.named(index, entry)
            self.initials.check(index, self.counts, comes_from_file=comes_from_file, single=self.single)
        jobs = 1 if self.single else self.counts[index]
        self.total += jobs
        if self.total - jobs <= MAX_JOBS < self.total:
            key = "count" if "count" in self.jobs[index] else "arrival"
            document.blame((*path, key), f"more than {MAX_JOBS} jobs in all")
        steps = self._steps(index, entry, model)
        if suited.refused is not None:
            document.blame(*suited.refused)
        record = None
        if model is not None:
            if steps is not None and not document.mistakes:
                record = self._record(index, entry, model, steps)
            self._weigh(index, entry, model, suited, steps)
        return record

    def _count(self, index: int, entry: schema.JobEntry) -> int:
        """Count the jobs of an entry: its `count`, or all rows of its file if `count` is left out."""
        process, path = entry.arrival, ("jobs", index, "arrival")
        if isinstance(process, request_schema.ArrivalEntry):
            mistakes = request_schema.arrival_mistakes(process)
            for key, text in mistakes:
                self.document.blame((*path, key), text)
            if mistakes or self.clock is None:
                return entry.count
            from lstmsim.traffic.arrivals import exact

            if process.kind == "stream" and exact(process.frame_ms) * exact(self.clock) * 1000 < 1:
                text = f"is shorter than a cycle, which takes {0.001 / self.clock:g} ms on this chip"
                self.document.blame((*path, "frame_ms"), f"{text}: no frame could be in time")
            for where, sentence in pinned_faults(entry, self.chip.chip, self.chip.target):
                self.document.blame(("jobs", index, *where), sentence)
        rows = self._rows(index, entry, reported=False)
        return entry.count if rows is None else len(rows.numbers)

    def _steps(self, index: int, entry: schema.JobEntry, model: Model | None) -> StepsRead | None:
        """Read the steps of the jobs of an entry; None if they are missing or wrong, which is noted."""
        place, data, steps = ("jobs", index, "steps"), self.jobs[index].get("model"), None
        own = data.get("steps") if isinstance(data, dict) else None
        try:
            lengths = self._lengths(index, entry, own if isinstance(own, int) else None)
        except InputError as error:
            self.document.mistakes.extend(error.mistakes)
            lengths = None
        if isinstance(entry.steps, list) and len(entry.steps) != self.counts[index]:
            text = f"must hold as many numbers as there are jobs ({self.counts[index]:,}), got {len(entry.steps):,}"
            self.document.blame(place, f"{text}; {{kind: list, values: [...]}} draws from some")
        elif lengths is not None:
            numbers, parts = _spread(lengths)
            seed = entry.steps.seed if isinstance(entry.steps, request_schema.StepsEntry) else 0
            several = tuple(parts.items()) if len(parts) > 1 else ()
            steps = StepsRead(lengths, (seed, *self.keys[index], "steps"), numbers, several)
            steps = None if self._too_different(place, entry, model, numbers) else steps
        if steps is None and entry.steps is None and own is None and "steps" not in self.mistaken[index]:
            unread = self.traces is not None and self.traces.unread(index, entry)
            if isinstance(data, dict) and not unread:
                self.document.blame(place, "required key is missing (the model states no steps of its own)")
        return steps

    def _too_different(
        self, place: DataPath, entry: schema.JobEntry, model: Model | None, numbers: Sequence[int]
    ) -> bool:
        """Tell, and note, whether these numbers of steps and those before are more than are simulated."""
        new = len(numbers)
        if not self.single and new <= request_schema.MAX_LENGTHS:
            # serving keeps tables for each entry, so that no two entries are alike there
            alike = (id(model), named_cores(entry), entry.split, entry.batch, entry.threads)
            seen = self._numbers.setdefault(alike, set())
            before = len(seen)
            seen.update(numbers)
            new = len(seen) - before
        before, self.different = self.different, self.different + new
        if not before <= request_schema.MAX_LENGTHS < self.different:
            return False
        text = f"may be {self.different:,} different numbers, with those of the jobs before"
        hint = "; per_step makes fewer of a column" if isinstance(entry.steps, request_schema.StepsEntry) else ""
        self.document.blame(place, f"{text}, at most {request_schema.MAX_LENGTHS:,} are simulated{hint}")
        return True

    def _lengths(self, index: int, entry: schema.JobEntry, own: int | None) -> Lengths | int | None:
        if isinstance(entry.steps, request_schema.StepsEntry):
            return self._of_kind(index, entry, entry.steps)
        if isinstance(entry.steps, list):
            return _in_order(entry.steps)
        return self._column(index, entry, request_schema.OWN_STEPS) or own if entry.steps is None else entry.steps

    def _of_kind(self, index: int, entry: schema.JobEntry, steps: request_schema.StepsEntry) -> Lengths | None:
        place: DataPath = ("jobs", index, "steps")
        mistakes = request_schema.steps_mistakes(steps)
        for key, text in mistakes:
            self.document.blame((*place, key), text)
        if mistakes:
            return None
        drawn = request_schema.random_lengths(steps)
        if drawn is not None:
            return drawn
        if steps.kind == "empirical":
            from lstmsim.traffic.lengths import Weighted

            return Weighted(self._of_file((*place, "path"), steps))
        if self.traces is None or not self.traces.named(index, entry):
            text = "column takes the steps from the rows of a file of arrivals, and this job comes from none"
            self.document.blame((*place, "kind"), f"{text}: empirical draws from the rows of any file")
            return None
        return self._column(index, entry, request_schema.measure_of(steps))

    def _column(self, index: int, entry: schema.JobEntry, measure: request_schema.Measure) -> Lengths | None:
        """Give the steps that stand in the rows of an entry's file of arrivals; None if there are none."""
        rows = self._rows(index, entry)
        column = None if rows is None else rows.steps(measure)
        return _in_order(column) if column else None

    def _rows(self, index: int, entry: schema.JobEntry, *, reported: bool = True) -> Rows | None:
        """Give the rows of an entry's file of arrivals; None: there are none. Mistakes are noted unless `reported`."""
        try:
            return None if self.traces is None else self.traces.rows(index, entry)
        except InputError as error:
            self.document.mistakes.extend(() if reported else error.mistakes)
            return None

    def _of_file(self, place: DataPath, steps: request_schema.StepsEntry) -> Sequence[int]:
        # most scenarios have no such file
        from lstmsim.files.scenario.arrival_file import read_lengths

        key = file_path(self.document, place, steps.path), request_schema.measure_of(steps)
        return read_once(self._files, key, key[0], self.document, place, lambda: read_lengths(*key))

    def _weigh(
        self, index: int, entry: schema.JobEntry, model: Model, suited: _Suited, steps: StepsRead | None
    ) -> None:
        """Note jobs that are too many operations, at the key whose value would have to be smaller."""
        if suited.per_step is None or suited.bound is None:
            return
        jobs, total = 1 if self.single else self.counts[index], None
        if steps is not None and not self.single:
            total = partial(lambda each: sum(islice(each.drawn(), jobs)), steps)
        wrong = self.tally.add(suited.per_step, 1 if steps is None else steps.possible[-1], jobs, total)
        if wrong is not None:
            wrong = way_out(wrong, entry.batch, suited.bound)
            keys = {"step": (), "job": ("steps", "model"), "all": ("steps", "count", "model")}[wrong.what]
            here = [key for key in keys if key in self.jobs[index]]
            self.document.blame(("jobs", index, *here[:1]), wrong.message(show(model.name)))

    def _record(self, index: int, entry: schema.JobEntry, model: Model, steps: StepsRead) -> JobRecord:
        """Make the record of an entry without mistakes."""
        document, path, process, rows = self.document, ("jobs", index), entry.arrival, self._rows(index, entry)
        drawn = isinstance(process, request_schema.ArrivalEntry) or rows is not None
        words = None if rows is None else rows.tenants
        return JobRecord(
            entry,
            model,
            self.keys[index],
            self.tenants[index],
            None if words is None else tuple(f"{self.tenants[index]}/{word}" for word in words),
            self.counts[index],
            request_schema.describe(process)
            if isinstance(process, request_schema.ArrivalEntry) and rows is None
            else None,
            rows,
            document.place((*path, "arrival")) if drawn else "",
            None if self.initials is None else self.initials.follows(index),
            steps,
            "" if entry.inputs is None else frames_path(document, (*path, "inputs"), entry.inputs),
            "" if entry.initial is None else initial_file(document, index, entry),
        )
