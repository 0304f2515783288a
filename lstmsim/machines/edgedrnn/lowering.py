"""From the entries of layer-steps to phases of a Program (docs/edgedrnn.md, section 11). No number is computed here.

Times of the encoder stand one cycle later than in the text, so that every delay is at least 1. The multipliers
also compute activations: a unit of its own here, so that the accounts of the multipliers name such cycles. Its
operations follow theirs anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lstmsim.base.records import record
from lstmsim.machines.edgedrnn.numbers import Entry, Sizes
from lstmsim.program.body_writer import NONE, BodyWriter
from lstmsim.program.operations import CAUSE_NUMBERS, Dependence
from lstmsim.program.program import Phase, Unit

#: The units of a core. The multipliers are accounted.
UNITS = (
    Unit("encoder", "fifo"),
    Unit("mac", "fifo", pipeline="multipliers"),
    Unit("command", "fifo"),
    Unit("activation", "fifo"),
)
ENCODER, MAC, COMMAND, ACTIVATION = range(4)

#: Cycles from the arrival of a job to the place where its first layer-step would begin behind another one.
START = 3


@record
class Timing:
    """The memory, in cycles of the core, and nothing else that takes time.

    latency: from a command to its first beat; period: from a beat to the next; gap: more after the last of a column.
    outstanding: commands that may be under way; 0: any number.
    """

    latency: int
    period: int = 1
    gap: int = 0
    outstanding: int = 0


@dataclass
class Lowering:
    """Layer-steps become phases, one after the other.

    timing: the memory.
    late: for each beat of weights in their order, cycles that it comes later; None: it never does.
    phases: of all layer-steps so far.
    _rows: of the layer-step that is being made.
    _last_beats: phase and operation of the last beat of weights so far.
    _final: the last operation of the phase before.
    _last_input: phase, scan and cycles of that scan, of the last input of the first layer.
    _beats: how many beats of weights there were.
    reset: cycles before the first layer-step.
    """

    timing: Timing
    late: Sequence[int] | None = None
    reset: int = 0
    phases: list[Phase] = field(default_factory=list)
    _rows: BodyWriter = field(default_factory=BodyWriter)
    _last_beats: tuple[int, int] | None = None
    _final: int = 0
    _last_input: tuple[int, int, int] | None = None
    _beats: int = 0

    def add(
        self,
        entries: Sequence[Entry],
        sizes: Sizes,
        step: int,
        layer: int,
        waits: tuple[Sequence[int], int] | None = None,
    ) -> None:
        """Add the layer-step of a layer.

        waits: for each entry, cycles that its input comes later than the one before it, and how much later than the
            last input of the step before the first one comes; None: none comes late.
        """
        number, self._rows = len(self.phases), BodyWriter()
        commands: list[int] = []  # the last beats of the columns of this layer-step
        before = None if self._last_beats is None else (self._last_beats[1], self._last_beats[0])
        last, tick = -1, -1
        for place, entry in enumerate(entries):
            gap = entry.tau - tick + (waits[0][place] if waits else 0)
            gap += START + self.reset if not number and not place else 0
            tick = entry.tau
            needs = [Dependence(self._final, 2, "activation", phase=number - 1)] if number and not place else []
            if waits and not place and self._last_input and self._last_input[2] + waits[1] > 3:
                # the first input comes so long after the last one of the step before was read
                phase, other, length = self._last_input
                needs.append(Dependence(other, length - 3 + waits[1], "input", phase=phase))
            named = (layer, 0, 0, entry.place)
            scan = self._put(ENCODER, gap, needs, "scan", named, frame=layer == 0 and not place, takes=0)
            if layer == 0 and entry.place == sizes.walked:
                self._last_input = number, scan, gap
            needs = [Dependence(scan, gap, "scan")]
            head_needs = list(needs)
            if commands and last == commands[-1]:
                head_needs.append(Dependence(last, 1, "memory"))
            if number and not place:
                # the entry comes later anyway: this names the cycles in which activations are computed
                head_needs.append(Dependence(self._final, 1, "activation", phase=number - 1))
            label, work = ("column", sizes.lanes) if entry.delta else ("marker", 0)
            frame = layer == 0 and not place
            head = self._put(MAC, 1, head_needs, label, named, frame=frame, frees=0, work=work)
            last = head
            if entry.delta:
                limit = self.timing.outstanding
                if limit and len(commands) >= limit:
                    needs.append(Dependence(commands[-limit], 1, "memory"))
                command = self._put(COMMAND, 1, needs, "command", named)
                last = self._column(head, command, before, sizes, named)
                commands.append(last)
                before = (last, -1)
        needs = [Dependence(last, 4, "activation")]
        groups = self._put(ACTIVATION, 5, needs, "activation", (layer,), count=sizes.groups + 1)
        self._final = self._put(ACTIVATION, 1, [Dependence(groups, 5, "activation")], "output", (layer,))
        if commands:
            self._last_beats = number, commands[-1]
        self.phases.append(Phase(self._rows.body(), 1, first_step=step))

    def _put(
        self,
        unit: int,
        cycles: int,
        needs: Sequence[Dependence],
        label: str,
        place: tuple[int, ...],
        *,
        count: int = 1,
        frame: bool = False,
        takes: int = NONE,
        frees: int = NONE,
        work: int = 0,
    ) -> int:
        """Append an operation; its place in the body."""
        rows = self._rows
        for need in needs:
            phase = NONE if need.phase is None else need.phase
            rows.need(None, need.operation, need.delay, phase=phase, cause=CAUSE_NUMBERS[need.cause])
        rows.operation(unit, label, place, cycles, count, frame, takes, frees, cycles, work)
        return rows.size - 1

    def _column(
        self, head: int, command: int, before: tuple[int, int] | None, sizes: Sizes, place: tuple[int, ...]
    ) -> int:
        """The beats of a column behind the first, which is its head; the place of the last one."""
        timing, beats, work = self.timing, sizes.beats, sizes.lanes
        late = self.late[self._beats : self._beats + beats] if self.late is not None else None
        self._beats += beats
        zero, one = (late[0], late[1]) if late is not None else (0, 0)
        needs = [
            Dependence(head, timing.period + one, "memory"),
            Dependence(command, timing.latency + timing.period + zero + one, "memory"),
        ]
        if before is not None:
            delay = 2 * timing.period + timing.gap + zero + one
            phase = None if before[1] < 0 else before[1]
            needs.append(Dependence(before[0], delay, "memory", phase=phase))
        if late is None and timing.period == 1:
            return self._put(MAC, 1, needs, "column", place, count=beats - 1, work=work)
        if late is None:
            # the last beat holds the multipliers for one cycle, whatever the period
            most = self._put(MAC, timing.period, needs, "column", place, count=beats - 2, work=work)
            return self._put(MAC, 1, [Dependence(most, timing.period, "memory")], "column", place, work=work)
        made = self._put(MAC, 1, needs, "column", place, work=work)
        for each in late[2:]:
            made = self._put(MAC, 1, [Dependence(made, timing.period + each, "memory")], "column", place, work=work)
        return made
