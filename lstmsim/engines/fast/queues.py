"""Which tasks wait together, and what tasks have in common, as records of the tables (`engines.fast.layout`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

from lstmsim.engines.fast import layout as at
from lstmsim.program.program import Program, Task

__all__ = ["Queues"]

_TRAITS = attrgetter("cores", "partners", "content", "affine", "preempts", "queue_limit", "patience", "spreads")

Places = tuple[tuple[int, ...], ...]


class Queues:
    """Tasks with the same places are a group; one more per core is for its paused tasks, if any task preempts."""

    def __init__(self, program: Program, parts: dict[str, list[int]]) -> None:
        self.program, self.parts = program, parts
        self.groups: dict[Places, int] = {}
        self.members: list[int] = []
        self.spreading: set[Places] = set()
        self.contents: dict[int, int] = {}
        self.count = 0
        self.preempting = self.entwined = self.linked = False

    def traits_of(self, tasks: Sequence[Task]) -> list[int]:
        """Per task where the record of its traits is."""
        known: dict[tuple[object, ...], int] = {}
        found, last, trait = [], None, -1
        for task in tasks:
            key = _TRAITS(task)
            # most tasks are like the one before them
            if key != last:
                last = key
                if key not in known:
                    known[key] = self.trait(task)
                trait = known[key]
            found.append(trait)
        for trait, count in Counter(found).items():
            self.members[self.parts["trait"][trait + at.GROUP]] += count
        return found

    def trait(self, task: Task) -> int:
        """Lay down the traits of a task; returns where they are."""
        content, loading = -1, 0
        if task.content is not None:
            loading = task.content.loading
            content = self.contents.setdefault(task.content.key, len(self.contents))
            if content == len(self.parts["content"]):
                self.parts["content"].append(task.content.size)
        address = len(self.parts["trait"])
        self.parts["trait"] += [self.group(task.places), content, loading, int(task.affine), int(task.preempts)]
        self.parts["trait"] += [-1 if each is None else each for each in (task.queue_limit, task.patience)]
        self.parts["trait"].append(int(task.spreads))
        if task.spreads:
            self.spreading.add(task.places)
        self.preempting = self.preempting or task.preempts
        joint = any(task.partners) or task.content is not None or task.spreads
        self.entwined = self.entwined or task.preempts or joint
        self.linked = self.linked or self.entwined
        return address

    def group(self, places: Places) -> int:
        """The number of the group of tasks with these places."""
        if places not in self.groups:
            self.groups[places] = len(self.groups)
            self.members.append(0)
        return self.groups[places]

    def close(self, *, linked: bool) -> None:
        """All tasks are known: lay down the groups; `linked`: some tasks come after others."""
        self.linked = self.linked or linked
        self.count = len(self.groups)
        for places, group in self.groups.items():
            self.lay_down(places, self.members[group])
        if self.preempting:
            for core in range(len(self.program.cores)):
                self.lay_down(((core,),), 0)

    def lay_down(self, places: Places, members: int) -> None:
        """A group's places, from the lowest cores to the highest, and its cores."""
        cores, parts = self.program.cores, self.parts
        own = sorted(set(places))
        parts["group"] += [len(parts["place"]), len(own), len(parts["first"])]
        for place in own:
            self.seats(place)
        if places in self.spreading:
            self.seats(tuple(place[0] for place in places))
        parts["first"] += sorted({place[0] for place in places})
        parts["group"] += [len(parts["first"]), len(parts["own"])]
        parts["own"] += sorted({core for place in places for core in place if not cores[core].shared})
        loose = any(all(cores[core].shared for core in place) for place in places)
        parts["group"] += [len(parts["own"]), int(loose), members]

    def seats(self, place: tuple[int, ...]) -> None:
        """A place and its seats."""
        self.parts["place"] += [len(self.parts["seat"]), len(place)]
        for index, core in enumerate(place):
            self.parts["seat"] += [core, place.count(core), int(core not in place[:index])]
