"""Checks of a job entry beyond its schema: cores that can run it, and first states; and a job made of single keys."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Annotated, Any, NamedTuple

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError
from lstmsim.base.keys import Key
from lstmsim.base.wording import nearest, show
from lstmsim.files.scenario.models import STAND_IN, Cores, file_path, frames_path
from lstmsim.files.scenario.schema import ArrivalEntry, InitialEntry, JobEntry, Text
from lstmsim.files.yaml.document import Document, check, document_of
from lstmsim.machines.assembly import AnyCore
from lstmsim.model.model import Model
from lstmsim.model.scenario import DISPATCH, Job


def named_cores(entry: JobEntry) -> tuple[int, ...] | None:
    """Give the cores that an entry names; None: all cores of the chip."""
    if entry.cores is not None:
        return tuple(entry.cores)
    return None if entry.core is None else (entry.core,)


def check_cores(document: Document, path: DataPath, entry: JobEntry, cores: Cores) -> None:
    """Note cores that do not exist, cores that are named twice, and keys that say the same."""
    key = "core" if entry.cores is None else "cores"
    if entry.core is not None and entry.cores is not None:
        document.blame((*path, "core"), "says the same as `cores`: give one of them")
    for position, each in enumerate(named_cores(entry) or ()):
        if cores.known and each >= len(cores.cores):
            last = len(cores.cores) - 1
            text = "must be 0, the chip's only core" if last == 0 else f"must be one of the chip's cores 0 to {last}"
            place = (*path, key) if entry.cores is None else (*path, key, position)
            document.blame(place, f"{text}, got {each}")
    named = named_cores(entry) or ()
    twice = [each for each in named if named.count(each) > 1]
    if twice and entry.split != "layers":
        why = "only a job split into layers takes several threads of a core"
        document.blame((*path, "cores"), f"names core {twice[0]} twice; {why}")


class Runnable:
    """The cores of a chip that can run the jobs of a document. The answer for like entries is computed once."""

    def __init__(self, document: Document, cores: Cores) -> None:
        self.document, self.of_chip = document, cores
        self._allowed: dict[tuple[int, ...] | None, dict[AnyCore, int] | None] = {}
        self._refusals: dict[tuple[AnyCore, int], str | None] = {}
        self._known: dict[Hashable, list[AnyCore]] = {}

    def cores(self, path: DataPath, entry: JobEntry, model: Model) -> list[AnyCore]:
        """Give the distinct cores that can run the jobs of an entry. If there is no such core, a mistake is noted."""
        key = (named_cores(entry), entry.split, id(model))
        if key in self._known:
            return self._known[key]
        before = len(self.document.mistakes)
        able = self._able(path, entry, model)
        if len(self.document.mistakes) == before:
            self._known[key] = able
        return able

    def _able(self, path: DataPath, entry: JobEntry, model: Model) -> list[AnyCore]:
        named = named_cores(entry)
        if named not in self._allowed:
            self._allowed[named] = self._first_of_each(named)
        allowed = self._allowed[named]
        if allowed is None:
            return []
        members = len(self.of_chip.cores if named is None else named)
        if entry.split is not None and members > 1:
            split = self._split_cores(path, entry, model, list(allowed), members)
            if entry.split != "auto" or not split:
                return split
        refusals = {core: self._refusal(core, model) for core in allowed}
        runnable = [core for core in allowed if not refusals[core]]
        if not runnable:
            where = "any core" if named is None else f"core {', '.join(map(str, named))}"
            reasons = _reasons({index: refusals[core] or "" for core, index in allowed.items()})
            place = path if named is None else (*path, "core" if entry.cores is None else "cores")
            self.document.blame(place, f"job {show(entry.name or model.name)} cannot run on {where}: {reasons}")
        return runnable

    def _first_of_each(self, named: tuple[int, ...] | None) -> dict[AnyCore, int] | None:
        """Give the distinct cores among these, each with its first place; None if one of them is wrong."""
        cores = self.of_chip.cores
        indexes = range(len(cores)) if named is None else named
        if not self.of_chip.known or any(each >= len(cores) or cores[each] is None for each in indexes):
            return None
        return {core: index for index in reversed(indexes) if (core := cores[index]) is not None}

    def _refusal(self, core: AnyCore, model: Model) -> str | None:
        key = (core, id(model))
        if key not in self._refusals:
            chip, target = self.document.data.get("chip"), self.of_chip.target
            refused = target.model_refusal(chip, model) if target is not None and isinstance(chip, dict) else None
            self._refusals[key] = refused or core.refusal(model)
        return self._refusals[key]

    def _split_cores(
        self, path: DataPath, entry: JobEntry, model: Model, cores: list[AnyCore], members: int
    ) -> list[AnyCore]:
        """Give the one kind of core over which a job is split. Reasons against a split are noted as mistakes."""
        target, split = self.of_chip.target, entry.split or ""
        if target is None or split not in target.splits:
            return []
        place = (*path, "split")
        if len(cores) > 1:
            text = "the cores of a job that is split must be equal: name some that are (`cores`)"
            self.document.blame(place, text)
            return []
        refusal = target.split_refusal(cores[0], model, split, members)
        if refusal is not None:
            self.document.blame(place, f"job {show(entry.name or model.name)} cannot be split: {refusal}")
            return []
        return [cores[0]]


def _reasons(by_core: dict[int, str]) -> str:
    """Give each reason once, with its first core. If all cores have the same reason, no core is named."""
    first = {text: index for index, text in sorted(by_core.items(), reverse=True)}
    if len(first) == 1:
        return next(iter(first))
    texts = [f"core {index}: {text}" for text, index in sorted(first.items(), key=lambda pair: pair[1])]
    return "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more" if len(texts) > 3 else "")


#: The word for states that are 0, whatever the network itself fixes.
ZERO = "zero"
_FILE = ".safetensors"


class _Named(NamedTuple):
    """The name of a job or of a file that an entry gives, and its path; at least one of the names is empty."""

    job: str
    file: str
    path: DataPath


def _named(index: int, entry: JobEntry) -> _Named:
    given, path = entry.initial, ("jobs", index, "initial")
    if isinstance(given, InitialEntry):
        job, file = given.job or "", given.file or ""
        return _Named(job, file, (*path, "job" if job else "file") if job or file else path)
    if given is None or given == ZERO:
        return _Named("", "", path)
    return _Named(given, "", path) if names_job(given) else _Named("", given, path)


def names_job(initial: str) -> bool:
    """Whether the text of a key `initial` is the name of another job."""
    return initial not in ("", ZERO) and not initial.endswith(_FILE)


def initial_file(document: Document, index: int, entry: JobEntry) -> str:
    """Give the path of an entry's file of states; `ZERO` for states of 0; empty if there is no file."""
    named = _named(index, entry)
    return ZERO if entry.initial == ZERO else file_path(document, named.path, named.file or None)


def state_shapes(model: Model) -> list[list[dict[str, int]]]:
    """List for each recurrent layer and each of its directions: name of a state -> its units."""
    return [
        [{name: layer.width(name) for name in layer.cell.states}] * layer.directions
        for layer in model.layers
        if layer.cell.recurrent
    ]


class Initials:
    """The entries of a document that begin with the last states of other entries."""

    def __init__(
        self, document: Document, entries: Sequence[JobEntry | None], names: Sequence[str], models: Sequence[Any]
    ) -> None:
        self.document, self.entries, self.names, self.models = document, entries, names, models
        self._earlier: dict[str, list[int]] = {}
        for index, name in enumerate(names):
            self._earlier.setdefault(name, []).append(index)

    def follows(self, index: int) -> int | None:
        """Give the number of the entry whose last states begin entry number `index`; None if there is no such entry."""
        entry = self.entries[index]
        name = "" if entry is None else _named(index, entry).job
        return next((each for each in self._earlier.get(name, ()) if each < index), None) if name else None

    def check(self, index: int, counts: Sequence[int], *, comes_from_file: bool, single: bool) -> None:
        """Note mistakes in the first states of entry number `index` in the document."""
        entry = self.entries[index]
        if entry is None or entry.initial is None:
            return
        named = _named(index, entry)
        if not _check_initial(self.document, ("jobs", index, "initial"), entry) or not named.job:
            return
        text = self._wrong_name(index, named.job)
        before = self.follows(index)
        if text is None and before is not None:
            text = self._wrong_pair(index, before, counts, single=single)
        if text is not None:
            self.document.blame(named.path, text)
        elif isinstance(entry.arrival, ArrivalEntry) or comes_from_file:
            text = f"must be cycles, counted from the finish of {show(named.job)}, whose last states it begins with"
            self.document.blame(("jobs", index, "arrival"), text)

    def _wrong_name(self, index: int, name: str) -> str | None:
        places = self._earlier.get(name, [])
        earlier = [each for each in places if each < index]
        if len(earlier) == 1:
            return None
        if len(earlier) > 1:
            return f"names {len(earlier)} entries called {show(name)}: give each a `name` of its own"
        if places:
            return f"names {show(name)}, which does not stand before this entry in the file"
        known = list(dict.fromkeys(each for each in self.names[:index] if each))
        hint = nearest(name, known) or (f"; there are: {', '.join(known[:8])}" if known else "")
        return f"no earlier job called {show(name)}{hint}; a file of states ends in {_FILE}, states of 0 are {ZERO!r}"

    def _wrong_pair(self, index: int, before: int, counts: Sequence[int], *, single: bool) -> str | None:
        other, model, first = self.entries[before], self.models[index], self.models[before]
        name = show(self.names[before])
        if counts[index] != counts[before]:
            text = f"job for job with {name}: count must be {counts[before]}, as many as there, got {counts[index]}"
            return f"begins {text}"
        if other is not None and (other.queue_limit is not None or other.patience is not None):
            how = "may be rejected or may renege: leave queue_limit and patience out"
            return f"begins with the last states of {name}, which {how}"
        if single:
            return f"begins after {name}, which a stream of requests does not support: use simulate --serving"
        if isinstance(model, Model) and model.states_from and not model.states_whole:
            text = f"begins with the last states of {name}, but model {show(model.name)} with {model.states_from}"
            return f"{text}: give them as a file of states"
        if isinstance(model, Model) and isinstance(first, Model) and state_shapes(model) != state_shapes(first):
            ours, theirs = (_shape_text(state_shapes(each)) for each in (model, first))
            return f"begins with the last states of {name}, which has {theirs}; model {show(model.name)} has {ours}"
        return None


def _shape_text(shapes: Sequence[Sequence[dict[str, int]]]) -> str:
    """Describe states layer by layer, for a message."""
    parts = [", ".join(f"{name} [{units}]" for name, units in each.items()) for each in chain(*shapes)]
    more = f" and {len(parts) - 4} more" if len(parts) > 4 else ""
    return ("; ".join(parts[:4]) or "no states") + more


class _OneJob(JobEntry):
    """The keys of an entry, and those that a file states once or that follow from the position of an entry."""

    after: int | None = None
    states_of: int | None = None
    dispatch: Annotated[str, Key(choices=tuple(DISPATCH))] = "fcfs"
    preempts: bool = False
    affinity: bool = False
    tenant: Text = ""


_DEFAULTS = {each.name: each.default for each in fields(Job)}


def checked_job(model: Model, stated: int | None, keys: Mapping[str, Any]) -> Job:
    """Make a job of a model.

    model: the model.
    stated: the steps that the model itself states; None: it states none.
    keys: fields of `Job`; a field with None or its default counts as not given.
    `InputError` with every mistake, in the words of a scenario file.
    """
    given = {key: value for key, value in keys.items() if value is not None and not _is_default(key, value)}
    document = document_of({"model": STAND_IN, **given})
    entry, _ = check(_OneJob, document)
    _check_single(document, given)
    if entry is not None:
        _check_initial(document, ("initial",), entry)
        check_cores(document, (), entry, Cores((), known=False))
    steps = given.get("steps", stated)
    if steps is None:
        document.blame(("steps",), "required key is missing (the model states no steps of its own)")
    if entry is None or document.mistakes or steps is None:
        raise InputError(document.mistakes)
    values = {key: getattr(entry, key) for key in given if key not in ("steps", "cores", "inputs", "initial")}
    if entry.cores is not None:
        values["cores"] = tuple(entry.cores)
    if entry.inputs is not None:
        values["inputs"] = frames_path(document, ("inputs",), entry.inputs)
    if "initial" in given:
        values["initial"] = _initial(document, entry)
    return Job(**({"name": model.name} | values), model=model, steps=int(steps))


def _initial(document: Document, entry: JobEntry) -> str:
    """A file of states, `zero`, or the name of another job, which means something once the jobs stand together."""
    given = entry.initial
    word = str((given.job or given.file) if isinstance(given, InitialEntry) else given)
    return word if word == ZERO or names_job(word) else file_path(document, ("initial",), word)


def _check_initial(document: Document, path: DataPath, entry: JobEntry) -> bool:
    """Tell whether the mapping of first states has one key; if not, that is noted."""
    given = entry.initial
    wrong = isinstance(given, InitialEntry) and bool(given.job) == bool(given.file)
    if wrong:
        keys = "`job` (the name of an earlier one) or `file` (a .safetensors file of states)"
        document.blame(path, f"must have one key, {keys}")
    return not wrong


def _is_default(key: str, value: Any) -> bool:
    default = _DEFAULTS[key]
    return type(value) is type(default) and value == default


def _check_single(document: Document, given: Mapping[str, Any]) -> None:
    """Note keys that make many jobs of an entry, because the keys here describe a single job."""
    more = {"arrival": "a process or a list of arrivals", "steps": "a distribution or a list of steps"}
    for key, what in more.items():
        if isinstance(given.get(key), list | tuple | Mapping):
            text = f"must be a whole number, got {show(given[key])}: {what} belongs to a mapping, which is many jobs"
            document.blame((key,), text)
