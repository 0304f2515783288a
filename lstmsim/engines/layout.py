"""Where everything is in the two sequences that the fast engine's loop works on.

`T` holds the tables of a program, `S` the state of a run; both are plain sequences of whole numbers, so that the loop
runs on lists as it stands and on arrays when compiled. A record is a few numbers in a row: `T[o + CYCLES]` is the
field CYCLES of the operation whose record begins at `o`. The heads hold sizes, and where each kind of record begins.
"""

from __future__ import annotations

#: Later than any cycle: a wait whose end is not known, a stream that has come to its end.
NEVER = 1 << 60

#: Policies of `lstmsim.program.policy`.
COARSE, FINE, FIFO = 0, 1, 2

#: Names of a core's cycles, strongest first; the order of `lstmsim.program.totals.CYCLE_NAMES`.
BUSY, SWITCH, HAZARD, BACKPRESSURE, INPUT, DISPATCH, DRAIN, IDLE = 0, 1, 2, 3, 4, 5, 6, 7
NAMES = 8

#: How many causes of waiting there are; the order of `lstmsim.program.program.CAUSES`.
N_CAUSES = 4
C_DISPATCH, C_HAZARD, C_INPUT, C_BACKPRESSURE = 0, 1, 2, 3

# --- T: head ---
N_CORES, N_UNITS, N_PHASES, N_BUFFERS, N_KINDS, N_TASKS, N_GROUPS, N_LONGEST = 0, 1, 2, 3, 4, 5, 6, 7
T_CORE, T_UNIT, T_TASK, T_VARIANT_OF, T_GROUP, T_VARIANT, T_PHASE, T_STREAM, T_BUFFER = 8, 9, 10, 11, 12, 13, 14, 15, 16
#: Tasks that come after no other, in order of arrival: where their numbers are, how many.
T_ARRIVAL, N_ARRIVALS = 17, 18
T_HEAD = 19

# --- T: records ---
#: A core: its kind, its first context and how many, how many units, which unit is accounted.
KIND, CONTEXT0, CONTEXTS, UNITS, ACCOUNTED, T_CORE_SIZE = 0, 1, 2, 3, 4, 5
#: A unit of a core.
POLICY, SWITCH_CYCLES, T_UNIT_SIZE = 0, 1, 2
#: A task; GROUP: its group's number; FOLLOW0, FOLLOWS: where the numbers of the tasks that come after it are, how many.
RELEASE, INTERVAL, KEY, KEY_FROM_ARRIVAL, GROUP, FOLLOW0, FOLLOWS, T_TASK_SIZE = 0, 1, 2, 3, 4, 5, 6, 7
#: A group of tasks that may use the same cores: where its cores begin and end, and how many tasks it has.
CORE0, CORE_END, MEMBERS, T_GROUP_SIZE = 0, 1, 2, 3
#: A task on one kind of core: number of its first phase, how many, where its buffers are.
PHASE0, PHASES, BUFFER0, T_VARIANT_SIZE = 0, 1, 2, 3
#: A phase: STRIDE starts are remembered per iteration; LAG, REACH: most iterations back and longest delay of its own
#: needs; CROSS: longest delay with which later phases wait for it; FRAMED: whether it waits for frames; FIRST_STEP: the
#: step of iteration 0.
REPEAT, MIRRORED, STRIDE, LAG, REACH, CROSS, FRAMED, FIRST_STEP, T_PHASE_SIZE = 0, 1, 2, 3, 4, 5, 6, 7, 8
#: A phase on a unit: where the addresses of its operations begin, and how many.
FIRST, LENGTH, T_STREAM_SIZE = 0, 1, 2
#: An operation; INDEX is its place in its body.
CYCLES, COUNT, FRAME, TAKES, FREES, RESULT, SLOT, WORK, NEED0, NEEDS, INDEX = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
AHEAD, T_OP_SIZE = 11, 12
#: A need; MODE 0: own phase, 1: an earlier one at the same step, 2: at the mirrored step.
SOURCE, NEED_SLOT, NEED_LAG, MODE, DELAY, CAUSE, T_NEED_SIZE = 0, 1, 2, 3, 4, 5, 6
#: A buffer of a variant.
SLOTS, BUFFER_CAUSE, T_BUFFER_SIZE = 0, 1, 2

# --- S: head ---
#: BUDGET: looks at units, one each at every event, until the loop comes back to its caller.
KEEP, SKIPPING, ROOM, ROWS, SWITCHES, FINISHED, BUDGET = 0, 1, 2, 3, 4, 5, 6
S_GROUP, S_CORE, S_UNIT, S_CONTEXT, S_STREAM, S_PHASE, S_BUFFER, S_TASKS = 7, 8, 9, 10, 11, 12, 13, 14
#: ARRIVED: how many of T_ARRIVAL have come; S_COMING, COMING: heap of tasks that will come after others, how many.
ARRIVED, S_COMING, COMING = 15, 16, 17
S_HEAD = 18

# --- S: records ---
#: A group: the heap of its tasks that wait, and how many.
WAITING, WAITERS, S_GROUP_SIZE = 0, 1, 2
#: A core. OFFSET: its clock is behind the machine's by that much; NAMED: up to where its cycles have names, COUNTED how
#: many each; ANCHOR: the thread whose changes of iteration (WRAPPED) are looked at for periods; MARK...: the marked
#: state and what was counted then.
OFFSET, NOW, LAST, NAMED, OCCUPIED, ANCHOR, WRAPPED, FRAME_BOUND = 0, 1, 2, 3, 4, 5, 6, 7
MARK, MARK_ROOM, MARK_VALID, MARK_POWER, MARK_STEPS, MARK_LENGTH, MARK_NOW = 8, 9, 10, 11, 12, 13, 14
COUNTED, WORKED, ISSUED = 15, 15 + NAMES, 16 + NAMES
MARK_COUNTED, MARK_WORKED, MARK_ISSUED, S_CORE_SIZE = 17 + NAMES, 17 + 2 * NAMES, 18 + 2 * NAMES, 19 + 2 * NAMES
#: A unit of a core; ROW, ROW_END: its last row of the trace and until when that goes.
ACTIVE, FRESH, FREE_AT, ROW, ROW_END, S_UNIT_SIZE = 0, 1, 2, 3, 4, 5
#: A thread. ENTERED and CAME (its task's arrival) are on the machine's clock, all other times on that of the core.
TASK, VARIANT, ENTERED, ADMITTED, FINISH, DONE_AT, OPEN, EPOCH, POOL = 0, 1, 2, 3, 4, 5, 6, 7, 8
MARK_ITERATION, CAME, S_CONTEXT_SIZE = 9, 10, 11
#: A thread on a unit: its cursor, issues left of the operation under it, when that may issue, until when what holds it.
PHASE, ITERATION, POSITION, LEFT, READY, UNTIL, S_STREAM_SIZE = 0, 1, 2, 3, 4, 5, 5 + N_CAUSES
#: A thread in a phase: where its starts are; iterations skipped so far, from the first skip to the end of the last;
#: the cycle from which nobody waits for any of its starts so far.
STARTS, SKIPPED, SKIPPED_FROM, SKIPPED_TO, SETTLED, S_PHASE_SIZE = 0, 1, 2, 3, 4, 5
#: A thread's buffer: slots taken and freed so far, and where the cycles of the frees are.
TAKEN, FREED, FREE_CYCLES, S_BUFFER_SIZE = 0, 1, 2, 3

#: Numbers in a row of the trace's issues and switches, and of its tasks.
ISSUE_SIZE, SWITCH_SIZE, TASK_SIZE = 10 + N_CAUSES, 6, 5

#: Numbers of an entry of a heap: a key, a second one among equals, and a task, which decides in the end.
HEAP_SIZE = 3

#: Streams that run more iterations than this ahead of each other are not looked at for periods.
LAG_LIMIT = 4
