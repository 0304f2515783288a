"""The fast engine: a program as flat sequences, a loop that runs on them as it stands or compiled.

The loop and its clock rules are in `lstmsim.engines.fast.loop`. A run begins uncompiled, so that a small one never pays
for the compiler; after `BUDGET` looks at a unit it goes on compiled where it stopped, if the package numba (extra
`fast`) is there. Once a process has loaded the compiled loop, every run uses it from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.engines.fast import compiled, layout, loop, naming
from lstmsim.engines.fast.handover import table_of, trace_of
from lstmsim.engines.fast.state import state_of
from lstmsim.engines.fast.stuck import deadlock
from lstmsim.engines.fast.tables import tables_of
from lstmsim.program.cycles import CYCLE_NAMES
from lstmsim.program.program import Program
from lstmsim.program.totals import Totals
from lstmsim.program.trace import Trace
from lstmsim.program.trace_tables import TASKS
from lstmsim.program.validate import validate

__all__ = ["BUDGET", "FastRun", "run", "totals"]

#: Events before a run is worth the compiler: about 1.5 s uncompiled; loading numba and the compiled loop takes as long.
BUDGET = 400_000
#: Cores times tasks from which on the compiled loop runs from the start, if it has only to be loaded: cores are looked
#: at without a look at a unit. Uncompiled, so many take about a second, and the compiler takes ten times as long.
_CROWD = 1_000_000
#: Rows of a trace that there is room for at first.
_ROOM = 1024


class FastRun:
    """Tables, state and room for the trace of one run, as lists, from some point on as arrays.

    `queue_room`: how many tasks can wait in each group (0: all that there are).
    """

    def __init__(
        self, program: Program, *, keep: bool, skipping: bool, budget: int, check: bool = True, queue_room: int = 0
    ) -> None:
        if check:
            validate(program)
        self.program = program
        self.tables: Any
        self.tables, pools = tables_of(program)
        for group in range(self.tables[layout.N_QUEUES] if queue_room else 0):
            members = self.tables[layout.T_GROUP] + group * layout.T_GROUP_SIZE + layout.MEMBERS
            self.tables[members] = queue_room
        self.room = _ROOM if keep else 0
        state, zeros = state_of(program, self.tables, pools, keep=keep, skipping=skipping, room=self.room)
        state[layout.BUDGET] = budget
        self.rows: Any = [0] * (self.room * layout.ISSUE_SIZE)
        self.switches: Any = [0] * (self.room * layout.SWITCH_SIZE)
        self.drive: Callable[..., int] = loop.drive
        self.account: Callable[..., None] = naming.account
        crowded = len(program.cores) * len(program.tasks) > _CROWD and compiled.kept()
        if (crowded or compiled.loaded()) and budget < layout.NEVER:
            self.state: Any = np.zeros(len(state) + zeros, np.int64)
            self.state[: len(state)] = state
            self.compile()
        else:
            self.state = state + [0] * zeros

    def compile(self) -> None:
        """Go on with the compiled loop."""
        self.drive, self.account = compiled.compiled()
        self.tables, self.state, self.rows, self.switches = (
            np.asarray(each, dtype=np.int64) for each in (self.tables, self.state, self.rows, self.switches)
        )
        self.state[layout.BUDGET] = layout.NEVER

    def grow(self) -> None:
        """Twice the room for the trace."""
        if isinstance(self.rows, list):
            self.rows += [0] * len(self.rows)
            self.switches += [0] * len(self.switches)
        else:
            self.rows, self.switches = (np.append(each, np.zeros_like(each)) for each in (self.rows, self.switches))
        self.room *= 2
        self.state[layout.ROOM] = self.room

    def finish(self) -> bool:
        """Run to the end, or until more tasks have to be known (False); `DeadlockError` if the program gets stuck."""
        while True:
            code = self.drive(self.tables, self.state, self.rows, self.switches)
            if code == loop.STUCK:
                raise deadlock(self.program, self.tables, self.state)
            if code in (loop.DONE, loop.HUNGRY):
                return code == loop.DONE
            if self.state[layout.BUDGET] > 0:
                self.grow()
            elif compiled.available():
                self.compile()
            else:
                self.state[layout.BUDGET] = layout.NEVER

    def tasks(self) -> NDArray[np.int64]:
        """Where and when each task ran."""
        tasks = self.state[int(self.state[layout.S_TASKS]) :]
        return table_of(tasks, len(self.program.tasks), layout.TASK_SIZE)

    def counted(self, makespan: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Cycles by name up to the makespan, work and issues of each core (see `Totals`)."""
        first = int(self.state[layout.S_CORE])
        records = [first + core * layout.S_CORE_SIZE for core in range(len(self.program.cores))]
        for core, record in enumerate(records):
            self.account(self.tables, self.state, core, makespan - int(self.state[record + layout.OFFSET]))
        fields = [[int(each) for each in self.state[k + layout.COUNTED : k + layout.ISSUED + 1]] for k in records]
        table = np.array(fields, dtype=np.int64).reshape(len(records), len(CYCLE_NAMES) + 2)
        return table[:, :-2], table[:, -2], table[:, -1]


def run(program: Program, *, budget: int = BUDGET, check: bool = True) -> Trace:
    """Run a program to its end; `ProgramError` if it breaks a rule, `DeadlockError` if it gets stuck.

    `budget`: looks at a unit, one each at every event, before the compiled loop takes over. `check`: look for broken
    rules first.
    """
    done = FastRun(program, keep=True, skipping=False, budget=budget, check=check)
    done.finish()
    issues = table_of(done.rows, int(done.state[layout.ROWS]), layout.ISSUE_SIZE)
    switches = table_of(done.switches, int(done.state[layout.SWITCHES]), layout.SWITCH_SIZE)
    return trace_of(issues, switches, done.tasks())


def totals(program: Program, *, skipping: bool = True, budget: int = BUDGET, check: bool = True) -> Totals:
    """The totals of a run without recording it; `skipping`: pass over whole periods at once, with the same result.

    Errors as `run`; `check`: look for broken rules first, which programs that a target has lowered do not need.
    """
    done = FastRun(program, keep=False, skipping=skipping, budget=budget, check=check)
    done.finish()
    tasks = done.tasks()
    return Totals(*done.counted(int(TASKS.of(tasks, "finish").max(initial=0))), tasks)
