"""Which tasks wait together, and what tasks have in common, as records of the tables (`lstmsim.engines.layout`)."""

from __future__ import annotations

from lstmsim.program.program import Program, Task

__all__ = ["Queues"]

Places = tuple[tuple[int, ...], ...]


class Queues:
    """Tasks with the same places are a group; one more per core is for its paused tasks, if any task preempts."""

    def __init__(self, program: Program, parts: dict[str, list[int]]) -> None:
        self.program, self.parts = program, parts
        self.traits: dict[tuple[object, ...], tuple[int, int]] = {}
        self.groups: dict[Places, int] = {}
        self.members: list[int] = []
        self.contents: dict[int, int] = {}
        self.count = 0
        self.preempting = any(task.preempts for task in program.tasks)
        self.entwined = self.preempting or any(map(any, (task.partners for task in program.tasks)))
        self.linked = self.entwined or any(task.after is not None or task.content is not None for task in program.tasks)

    def trait(self, task: Task) -> int:
        """Where the record of a task's traits is; one more task of its group."""
        key = (task.cores, task.partners, task.content, task.affine, task.preempts, task.queue_limit, task.patience)
        known = self.traits.get(key)
        if known is None:
            known = self.traits[key] = (len(self.parts["trait"]), self.group(task.places))
            content, loading = -1, 0
            if task.content is not None:
                loading = task.content.loading
                content = self.contents.setdefault(task.content.key, len(self.contents))
                if content == len(self.parts["content"]):
                    self.parts["content"].append(task.content.size)
            self.parts["trait"] += [known[1], content, loading, int(task.affine), int(task.preempts)]
            self.parts["trait"] += [-1 if each is None else each for each in (task.queue_limit, task.patience)]
        self.members[known[1]] += 1
        return known[0]

    def group(self, places: Places) -> int:
        """The number of the group of tasks with these places."""
        if places not in self.groups:
            self.groups[places] = len(self.groups)
            self.members.append(0)
        return self.groups[places]

    def close(self) -> None:
        """All tasks are known: lay down the groups."""
        self.count = len(self.groups)
        for places, group in self.groups.items():
            self.lay_down(places, self.members[group])
        if self.preempting:
            for core in range(len(self.program.cores)):
                self.lay_down(((core,),), 0)

    def lay_down(self, places: Places, members: int) -> None:
        """A group's places, from the lowest cores to the highest, and its cores."""
        cores, parts = self.program.cores, self.parts
        parts["group"].append(len(parts["place"]))
        for place in sorted(set(places)):
            parts["place"].append(len(parts["seat"]))
            for index, core in enumerate(place):
                parts["seat"] += [core, place.count(core), int(core not in place[:index])]
            parts["place"].append(len(parts["seat"]))
        parts["group"] += [len(parts["place"]), len(parts["first"])]
        parts["first"] += sorted({place[0] for place in places})
        parts["group"] += [len(parts["first"]), len(parts["own"])]
        parts["own"] += sorted({core for place in places for core in place if not cores[core].shared})
        loose = any(all(cores[core].shared for core in place) for place in places)
        parts["group"] += [len(parts["own"]), int(loose), members]
