"""The states with which jobs begin: a file, zero, or the last states of the jobs of an earlier entry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from lstmsim.base.checks import DataPath
from lstmsim.base.wording import nearest, show
from lstmsim.files.scenario.models import file_path
from lstmsim.files.scenario.request_schema import ArrivalEntry
from lstmsim.files.scenario.schema import InitialEntry, JobEntry
from lstmsim.files.yaml.document import Document
from lstmsim.model.model import Model

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
        if not check_initial(self.document, ("jobs", index, "initial"), entry) or not named.job:
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


def check_initial(document: Document, path: DataPath, entry: JobEntry) -> bool:
    """Tell whether the mapping of first states has one key; if not, that is noted."""
    given = entry.initial
    wrong = isinstance(given, InitialEntry) and bool(given.job) == bool(given.file)
    if wrong:
        keys = "`job` (the name of an earlier one) or `file` (a .safetensors file of states)"
        document.blame(path, f"must have one key, {keys}")
    return not wrong
