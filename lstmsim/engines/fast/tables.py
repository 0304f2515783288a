"""A program as one flat sequence of whole numbers (see `lstmsim.engines.fast.layout`)."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain

from lstmsim.engines.fast import layout as at
from lstmsim.engines.fast.bodies import laid_down
from lstmsim.engines.fast.queues import Queues
from lstmsim.program.cycles import CAUSES
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import Buffer, Phase, Program

__all__ = ["tables_of"]

_POLICIES = tuple(POLICIES)


class _Builder:
    """Collects records of each kind; what a record refers to by address is known at the end (`tables_of`)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.units = max((len(core.units) for core in program.cores), default=1)
        self.kinds = 1 + max((core.kind for core in program.cores), default=0)
        slots = [len(each) for task in program.tasks for _, each in task.buffers]
        wide = {id(task.wide): task.wide for task in program.tasks}
        self.buffers = max([*slots, *(len(each.buffers) for one in wide.values() for each in one)], default=0)
        #: numbers of cores from 2 on for which some task has a variant
        self.wide = max((one[-1].members - 1 for one in wide.values() if one), default=0)
        self.parts: defaultdict[str, list[int]] = defaultdict(list)
        self.pools: list[tuple[int, int]] = []
        self.most_phases = 1

    def variants(self) -> None:
        """Tasks and their variants; bodies, phases and buffers that tasks share are laid down once."""
        used = {core.kind for core in self.program.cores}
        known: dict[tuple[int, int, int], int] = {}
        alike: dict[tuple[int, ...], list[int]] = {}
        parts = self.parts
        for task in self.program.tasks:
            members = 1 + max(map(len, task.partners)) if task.partners else 1
            same = (id(task.variants), id(task.buffers), id(task.wide), members)
            if same not in alike:
                own = alike[same] = [-1] * (self.kinds + self.wide)
                ways = [(kind, members, each, task.slots(kind)) for kind, each in task.variants if kind in used]
                ways += [(self.kinds + each.members - 2, each.members, each.phases, each.buffers) for each in task.wide]
                for place, threads, phases, slots in ways:
                    key = (id(phases), id(slots), threads)
                    if key not in known:
                        known[key] = len(known)
                        self.variant(phases, slots, threads)
                    own[place] = known[key]
            parts["variant_of"] += alike[same]

    def variant(self, phases: tuple[Phase, ...], slots: tuple[Buffer, ...], members: int) -> None:
        """Phases and buffers of a task on some kind of core, or on so many cores."""
        parts = self.parts
        self.most_phases = max(self.most_phases, len(phases))
        parts["variant"] += [len(parts["phase"]), len(phases), len(parts["buffer"]), len(parts["stream"])]
        parts["variant"].append(members * self.units * at.T_STREAM_SIZE)
        for index in range(self.buffers):
            buffer = slots[index] if index < len(slots) else None
            parts["buffer"] += [buffer.slots, CAUSES.index(buffer.cause)] if buffer else [0, 0]
        self.phases(phases, members)

    def phases(self, phases: tuple[Phase, ...], members: int) -> None:
        """All phases of a variant, and how much a thread has to remember for it."""
        laid, parts = laid_down(tuple([phase.body for phase in phases]), members, self.units), self.parts
        starts = frees = 0
        for phase, own in zip(phases, laid.phases, strict=True):
            parts["phase"] += [phase.repeat, int(phase.mirrored), own.stride, own.lag, own.reach]
            parts["phase"] += [own.cross, own.framed, phase.step(0)]
            starts += 2 * own.stride * phase.repeat
            frees += phase.repeat * own.frees
        parts["stream"] += _moved(laid.stream, at.T_STREAM_SIZE, at.FIRST, len(parts["address"]))
        parts["address"] += _moved(laid.address, 1, 0, len(parts["operation"]))
        parts["operation"] += _moved(laid.operation, at.T_OP_SIZE, at.NEED0, len(parts["need"]))
        parts["need"] += laid.need
        self.pools.append((starts, frees))

    def cores(self) -> None:
        """Cores and their units."""
        contexts = 0
        for core in self.program.cores:
            self.parts["core"] += [core.kind, contexts, core.contexts, len(core.units), core.accounted]
            self.parts["core"] += [-1 if core.capacity is None else core.capacity, int(core.shared)]
            contexts += core.contexts
            for unit in core.units:
                self.parts["unit"] += [_POLICIES.index(unit.policy), unit.switch_cycles]
            self.parts["unit"] += [0, 0] * (self.units - len(core.units))

    def tasks(self, queues: Queues) -> int:
        """Tasks, and in what order they come; returns how many come after no other."""
        tasks, parts = self.program.tasks, self.parts
        followers: defaultdict[int, list[int]] = defaultdict(list)
        for number, task in enumerate(tasks):
            if task.after is not None:
                followers[task.after].append(number)
        for number, (task, trait) in enumerate(zip(tasks, queues.traits_of(tasks), strict=True)):
            own = followers.get(number, ())
            parts["task"] += (
                *(task.release, task.frame_interval, task.key, int(task.key_from_arrival)),
                *(trait, len(parts["follow"]), len(own)),
            )
            parts["follow"] += own
        queues.close(linked=bool(followers))
        free = [number for number, task in enumerate(tasks) if task.after is None]
        parts["arrival"] += sorted(free, key=lambda number: (tasks[number].release, number))
        return len(free)


def tables_of(program: Program) -> tuple[list[int], list[tuple[int, int]]]:
    """The tables of a program; and per variant how many numbers a thread needs for its starts and its frees."""
    builder = _Builder(program)
    parts = builder.parts
    queues = Queues(program, parts)
    builder.variants()
    builder.cores()
    arrivals = builder.tasks(queues)
    order = [*("core", "unit", "task", "variant_of", "group", "variant", "phase", "stream", "content", "arrival")]
    order += ["buffer", "address", "operation", "need", "place", "seat", "first", "own", "trait", "follow"]
    base, end = {}, at.T_HEAD
    for name in order:
        base[name] = end
        end += len(parts[name])
    group = {at.PLACE0: "place", at.FIRST0: "first", at.OWN0: "own"}
    group |= {at.FIRST_END: "first", at.OWN_END: "own"}
    _relocate(parts["group"], at.T_GROUP_SIZE, {field: base[name] for field, name in group.items()})
    _relocate(parts["place"], at.T_PLACE_SIZE, {at.SEAT0: base["seat"]})
    _relocate(parts["task"], at.T_TASK_SIZE, {at.FOLLOW0: base["follow"], at.TRAIT: base["trait"]})
    variant = {at.PHASE0: base["phase"], at.BUFFER0: base["buffer"], at.STREAM0: base["stream"]}
    _relocate(parts["variant"], at.T_VARIANT_SIZE, variant)
    _relocate(parts["stream"], at.T_STREAM_SIZE, {at.FIRST: base["address"]})
    _relocate(parts["address"], 1, {0: base["operation"]})
    _relocate(parts["operation"], at.T_OP_SIZE, {at.NEED0: base["need"]})
    longest = max(parts["phase"][:: at.T_PHASE_SIZE], default=1)
    head = [len(program.cores), builder.units, builder.most_phases, builder.buffers, builder.kinds + builder.wide]
    head += [len(program.tasks), len(parts["group"]) // at.T_GROUP_SIZE, longest]
    contexts = sum(core.contexts for core in program.cores)
    head += [*(base[name] for name in order[:10]), arrivals, int(queues.linked), int(queues.entwined)]
    head += [len(queues.contents), queues.count, (contexts * (1 + builder.units)) if queues.entwined else 0]
    head.append(builder.wide)
    return list(chain(head, *(parts[name] for name in order))), builder.pools


def _moved(part: list[int], size: int, field: int, base: int) -> list[int]:
    """Records whose addresses in a field begin at `base` in place of 0; the part itself stays as it is."""
    if not base:
        return part
    moved = part.copy()
    _relocate(moved, size, {field: base})
    return moved


def _relocate(part: list[int], size: int, fields: dict[int, int]) -> None:
    """Turn places within a part into addresses."""
    for field, base in fields.items():
        part[field::size] = [base + each for each in part[field::size]]
