"""The steps of the jobs of an entry: a number, a list, random numbers, or a column of the file of arrivals."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.scenario.arrival_columns import Measure
from lstmsim.files.scenario.job_arrivals import JobArrivals
from lstmsim.files.scenario.model_entries import file_path
from lstmsim.files.scenario.schema import JobEntry
from lstmsim.files.scenario.schema_steps import MAX_LENGTHS, StepsEntry, measure_of, random_lengths, steps_mistakes
from lstmsim.files.yaml.document import DataPath, Document
from lstmsim.traffic.lengths import InOrder, Lengths, Weighted, drawn_lengths, length_arrays, possible, shares
from lstmsim.traffic.streams import StreamKey

__all__ = ["JobSteps"]


class JobSteps:
    """The steps of a document's jobs; each file of lengths is read once.

    document: the document, in which mistakes are noted.
    arrivals: the arrivals of the jobs.

    The key of an entry is its name, and how many earlier entries have that name. It gives the entry random numbers of
    its own.
    """

    def __init__(self, document: Document, arrivals: JobArrivals) -> None:
        self.document, self.arrivals = document, arrivals
        self.different = 0
        self._numbers: dict[Hashable, set[int]] = {}
        self._known: dict[int, Lengths] = {}
        self._files: dict[tuple[str, Measure], Sequence[int] | InputError] = {}

    def check(self, index: int, entry: JobEntry, count: int, own: int | None, alike: Hashable = None) -> Lengths | None:
        """Check the steps of entry number `index`, and give their distribution; None if they are missing or wrong.

        A mistake is noted in the document.

        count: how many jobs the entry has.
        own: steps that the model states; None if it states none.
        alike: equal for entries that share the lowered programs of equal steps; None: the entry shares none.
        """
        place: DataPath = ("jobs", index, "steps")
        try:
            lengths = self._lengths(index, entry, own)
        except InputError as error:
            self.document.mistakes.extend(error.mistakes)
            return None
        if isinstance(entry.steps, list) and len(entry.steps) != count:
            text = f"must hold as many numbers as there are jobs ({count:,}), got {len(entry.steps):,}"
            self.document.blame(place, f"{text}; {{kind: list, values: [...]}} draws from some")
            return None
        if lengths is None:
            return None
        before, self.different = self.different, self.different + self._new(possible(lengths), alike)
        if before <= MAX_LENGTHS < self.different:
            text = f"may be {self.different:,} different numbers, with those of the jobs before"
            hint = "; per_step makes fewer of a column" if isinstance(entry.steps, StepsEntry) else ""
            self.document.blame(place, f"{text}, at most {MAX_LENGTHS:,} are simulated{hint}")
            return None
        self._known[index] = lengths
        return lengths

    def _new(self, numbers: Sequence[int], alike: Hashable) -> int:
        """Count the numbers that no earlier entry with the same `alike` had."""
        if alike is None or len(numbers) > MAX_LENGTHS:
            return len(numbers)
        seen = self._numbers.setdefault(alike, set())
        before = len(seen)
        seen.update(numbers)
        return len(seen) - before

    def known(self, index: int) -> bool:
        """Tell whether entry number `index` has been checked and is right."""
        return index in self._known

    def total(self, index: int, entry: JobEntry, key: tuple[str, int], count: int) -> int:
        """Add up the steps of the first `count` jobs of an entry that has been checked."""
        return sum(islice(self.of_jobs(index, entry, key), count))

    def of_jobs(self, index: int, entry: JobEntry, key: tuple[str, int]) -> Iterator[int]:
        """Yield the steps of one job after another, of an entry that has been checked."""
        return drawn_lengths(self._known[index], _stream_key(entry, key))

    def in_arrays(self, index: int, entry: JobEntry, key: tuple[str, int], chunk: int) -> Iterator[NDArray[np.int64]]:
        """Yield the same steps as `of_jobs` in arrays of shape [chunk]."""
        return length_arrays(self._known[index], _stream_key(entry, key), chunk)

    def possible(self, index: int) -> Sequence[int]:
        """Give the possible numbers of steps, ascending, of an entry that has been checked."""
        return possible(self._known[index])

    def shares(self, index: int) -> tuple[tuple[int, float], ...]:
        """Give the possible numbers of steps, each with its share of jobs; empty if there is only one number."""
        lengths = shares(self._known[index])
        return tuple(lengths.items()) if len(lengths) > 1 else ()

    def _lengths(self, index: int, entry: JobEntry, own: int | None) -> Lengths | None:
        if isinstance(entry.steps, StepsEntry):
            return self._of_kind(index, entry, entry.steps)
        if isinstance(entry.steps, list):
            return InOrder(entry.steps)
        if entry.steps is not None:
            return InOrder((entry.steps,))
        try:
            rows = self.arrivals.traces.rows(index, entry)
        except InputError:  # the check of the arrivals has noted the mistake
            return None
        column = None if rows is None else rows.steps()
        if column:
            return InOrder(column)
        return None if own is None else InOrder((own,))

    def _of_kind(self, index: int, entry: JobEntry, steps: StepsEntry) -> Lengths | None:
        place: DataPath = ("jobs", index, "steps")
        mistakes = steps_mistakes(steps)
        for key, text in mistakes:
            self.document.blame((*place, key), text)
        if mistakes:
            return None
        drawn = random_lengths(steps)
        if drawn is not None:
            return drawn
        if steps.kind == "empirical":
            return Weighted(self._of_file((*place, "path"), steps))
        if self.arrivals.traces.comes_from(index, entry) is None:
            text = "column takes the steps from the rows of a file of arrivals, and this job comes from none"
            self.document.blame((*place, "kind"), f"{text}: empirical draws from the rows of any file")
            return None
        try:
            rows = self.arrivals.traces.rows(index, entry)
        except InputError:  # the check of the arrivals has noted the mistake
            return None
        column = None if rows is None else rows.steps(measure_of(steps))
        return InOrder(column) if column else None

    def _of_file(self, place: DataPath, steps: StepsEntry) -> Sequence[int]:
        # most scenarios have no such file
        from lstmsim.files.scenario.arrival_file import read_lengths

        key = file_path(self.document, place, steps.path), measure_of(steps)
        if key not in self._files:
            try:
                self._files[key] = read_lengths(*key)
            except InputError as error:
                self._files[key] = error
        lengths = self._files[key]
        if isinstance(lengths, InputError):
            named = self.document.place(place)
            raise InputError([Mistake(named, str(each)) if each.place == key[0] else each for each in lengths.mistakes])
        return lengths


def _stream_key(entry: JobEntry, key: tuple[str, int]) -> StreamKey:
    seed = entry.steps.seed if isinstance(entry.steps, StepsEntry) else 0
    return (seed, *key, "steps")
