"""Where everything is in the two sequences that the fast engine's loop works on.

`T` holds the tables of a program, `S` the state of a run; both are plain sequences of whole numbers, so that the loop
runs on lists as it stands and on arrays when compiled. A record is a few numbers in a row: `T[o + CYCLES]` is the
field CYCLES of the operation whose record begins at `o`. The heads hold sizes, and where each kind of record begins.
"""

from __future__ import annotations

from lstmsim.program import trace_tables
from lstmsim.program.cycles import CAUSES, CYCLE_NAMES
from lstmsim.program.policy import POLICIES

#: Later than any cycle: a wait whose end is not known, a stream that has come to its end.
NEVER = 1 << 60

#: Numbers of policies: places in `lstmsim.program.policy.POLICIES`.
COARSE, FINE, FIFO = (tuple(POLICIES).index(name) for name in ("coarse", "fine", "fifo"))

#: How many names a core's cycles have, and the numbers of those that the loop gives by itself: places in `CYCLE_NAMES`.
NAMES = len(CYCLE_NAMES)
BUSY, SWITCH, DRAIN, IDLE = (CYCLE_NAMES.index(name) for name in ("busy", "switch", "drain", "idle"))

#: How many causes of waiting there are, which of them is a frame that has not come, and the name of each.
N_CAUSES = len(CAUSES)
C_INPUT = CAUSES.index("input")
NAME_OF_CAUSE = tuple(CYCLE_NAMES.index(cause) for cause in CAUSES)

# --- T: head ---
N_CORES, N_UNITS, N_PHASES, N_BUFFERS, N_KINDS, N_TASKS, N_GROUPS, N_LONGEST = 0, 1, 2, 3, 4, 5, 6, 7
T_CORE, T_UNIT, T_TASK, T_VARIANT_OF, T_GROUP, T_VARIANT, T_PHASE, T_STREAM = 8, 9, 10, 11, 12, 13, 14, 15
T_CONTENT = 16
#: Tasks that come after no other, in order of arrival: where their numbers are, how many.
T_ARRIVAL, N_ARRIVALS = 17, 18
#: LINKED: what happens on one core can bring or stop a task on another; ENTWINED: no periods, since tasks have several
#: cores or contents, or may be paused; N_QUEUES: groups of new tasks, those of paused ones stand behind; MARGIN: rows
#: of the trace that one cycle's admissions may need.
LINKED, ENTWINED, N_CONTENTS, N_QUEUES, MARGIN = 19, 20, 21, 22, 23
#: The variants of a task: N_KINDS numbers, first those by kind of core, then N_WIDE for 2, 3, ... cores (-1: none).
N_WIDE, T_HEAD = 24, 25

# --- T: records ---
#: A core: its kind, its first context and how many, how many units, which unit is accounted; CAPACITY -1: no matter.
KIND, CONTEXT0, CONTEXTS, UNITS, ACCOUNTED, CAPACITY, SHARED, T_CORE_SIZE = 0, 1, 2, 3, 4, 5, 6, 7
#: A unit of a core.
POLICY, SWITCH_CYCLES, T_UNIT_SIZE = 0, 1, 2
#: A task; TRAIT: where its traits are; FOLLOW0, FOLLOWS: where the numbers of those that come after it are, how many.
RELEASE, INTERVAL, KEY, KEY_FROM_ARRIVAL, TRAIT, FOLLOW0, FOLLOWS, T_TASK_SIZE = 0, 1, 2, 3, 4, 5, 6, 7
#: What many tasks share; GROUP: number of their group; CONTENT: number of what they need; -1: none, as for those below.
#: SPREADS: it has variants for several of its cores.
GROUP, CONTENT, LOADING, AFFINE, PREEMPTS, QUEUE_LIMIT, PATIENCE, SPREADS, T_TRAIT_SIZE = 0, 1, 2, 3, 4, 5, 6, 7, 8
#: A group of tasks that may use the same places: where those are and how many, the cores that come first in one, and
#: all that are not shared; LOOSE: a place has shared cores alone; and how many tasks the group has. If any of them
#: spreads, one more place stands behind the others: all of their cores, in their order.
PLACE0, PLACES, FIRST0, FIRST_END, OWN0, OWN_END, LOOSE, MEMBERS, T_GROUP_SIZE = 0, 1, 2, 3, 4, 5, 6, 7, 8
#: A place: where its seats are, and how many. A seat: a core, how many of the place's are on it, whether this one is
#: the first of them.
SEAT0, SEATS, T_PLACE_SIZE = 0, 1, 2
SEAT_CORE, SEATS_THERE, FIRST_THERE, T_SEAT_SIZE = 0, 1, 2, 3
#: A task on one kind of core: where its phases are and how many, where its buffers are, where the streams of its first
#: phase are, and how far those of the next are from there.
PHASE0, PHASES, BUFFER0, STREAM0, STREAM_STEP, T_VARIANT_SIZE = 0, 1, 2, 3, 4, 5
#: A phase: STRIDE starts are remembered per iteration; LAG, REACH: most iterations back and longest delay of its own
#: needs; CROSS: longest delay with which later phases wait for it; FRAMED: whether it waits for frames; FIRST_STEP: the
#: step of iteration 0.
REPEAT, MIRRORED, STRIDE, LAG, REACH, CROSS, FRAMED, FIRST_STEP, T_PHASE_SIZE = 0, 1, 2, 3, 4, 5, 6, 7, 8
#: A phase on a unit of a member: where the addresses of its operations begin, and how many.
FIRST, LENGTH, T_STREAM_SIZE = 0, 1, 2
#: An operation; INDEX is its place in its body; ECHO: after how many cycles all that it brings about has come about.
CYCLES, COUNT, FRAME, TAKES, FREES, RESULT, SLOT, WORK, NEED0, NEEDS, INDEX = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
AHEAD, ECHO, T_OP_SIZE = 11, 12, 13
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
#: PASS: how often tasks were admitted; EPOCHS: the last epoch given to a thread; STAMPS: the last use of a content.
#: MORE: more tasks will come than are known; the loop comes back when the last of those that are has come.
S_HELD, S_PAUSED, PASS, EPOCHS, STAMPS, MORE = 18, 19, 20, 21, 22, 23
#: S_LEAVING, LEAVING: heap of tasks whose patience will end while they wait, how many; S_ENTRY, S_LEAVING_ENTRY: per
#: task where it is in the heap of those that come or wait, and in that one; LOOK: a cycle in which tasks that wait are
#: looked at again, whatever happens.
S_LEAVING, LEAVING, S_ENTRY, S_LEAVING_ENTRY, LOOK, S_HEAD = 24, 25, 26, 27, 28, 29

# --- S: records ---
#: A group: where the first of its tasks that wait is, and how many (new ones: a heap; paused ones: a list); BLOCKED:
#: the pass in which none of them finds a place any more; ASIDE: how many were set aside until the next pass
#: (behind the heap; of a list, the first of them is ASIDE_FIRST); LOOKED: the last pass in which a place was looked
#: for; SEEN: how many of the first places have no free thread in it, or only one that is kept.
WAITING, WAITERS, BLOCKED, ASIDE, ASIDE_FIRST, LOOKED, SEEN, S_GROUP_SIZE = 0, 1, 2, 3, 4, 5, 6, 7
#: A core. OFFSET: its clock is behind the machine's by that much; NAMED: up to where its cycles have names, COUNTED how
#: many each; ANCHOR: the thread whose changes of iteration (WRAPPED) are looked at for periods; MARK...: the marked
#: state and what was counted then; KEPT: the pass in which a task that found no place keeps others off; COMES: its next
#: event on the machine's clock, where all cores go on together.
OFFSET, NOW, LAST, NAMED, OCCUPIED, ANCHOR, WRAPPED, FRAME_BOUND = 0, 1, 2, 3, 4, 5, 6, 7
MARK, MARK_ROOM, MARK_VALID, MARK_POWER, MARK_STEPS, MARK_LENGTH, MARK_NOW = 8, 9, 10, 11, 12, 13, 14
KEPT, COMES = 15, 16
COUNTED, WORKED, ISSUED = 17, 17 + NAMES, 18 + NAMES
MARK_COUNTED, MARK_WORKED, MARK_ISSUED, S_CORE_SIZE = 19 + NAMES, 19 + 2 * NAMES, 20 + 2 * NAMES, 21 + 2 * NAMES
#: A unit of a core; ROW, ROW_END: its last row of the trace and until when that goes.
ACTIVE, FRESH, FREE_AT, ROW, ROW_END, S_UNIT_SIZE = 0, 1, 2, 3, 4, 5
#: A thread. ENTERED and CAME (its task's arrival) are on the machine's clock, all other times on that of the core.
#: AT_CORE, ROWS_AT: its core, and where its streams are. A task on several threads is a chain of records: LEAD, then
#: NEXT (-1: no more). What comes from FINISH on counts for the lead alone, and all have its PHASES_AT and BUFFERS_AT
#: (where these records of the thread are) and EPOCH. STREAMS_AT: where the tables of its streams are.
TASK, VARIANT, ENTERED, ADMITTED, EPOCH, CAME, MARK_ITERATION, POOL, AT_CORE = 0, 1, 2, 3, 4, 5, 6, 7, 8
LEAD, NEXT, PHASES_AT, BUFFERS_AT, STREAMS_AT, ROWS_AT = 9, 10, 11, 12, 13, 14
#: When it finishes or is paused (FINISH), when its results are there, when all that it brought about has come about,
#: how many streams are not at their end; its rank; the boundary at which it began; the one at which it stops, and
#: whether it was asked to: 0 no, 1 yes, 2 yes, but it finishes there; 3: what comes at FINISH is its content alone.
#: LOADS: how many operations have yet to issue that load that; LOADED: when the results of the others are there.
FINISH, DONE_AT, CLEAR_AT, OPEN, RANK, ENTRY_PHASE, ENTRY_ITERATION = 15, 16, 17, 18, 19, 20, 21
STOP_PHASE, STOP_ITERATION, ASKED, LOADS, LOADED, S_CONTEXT_SIZE = 22, 23, 24, 25, 26, 27
#: A thread on a unit: its cursor, issues left of the operation under it, when that may issue, where its record is, when
#: the one before it was over, until when what holds it.
PHASE, ITERATION, POSITION, LEFT, READY, OPERATION, ENDED, UNTIL, S_STREAM_SIZE = 0, 1, 2, 3, 4, 5, 6, 7, 7 + N_CAUSES
#: A thread in a phase: where its starts are; iterations skipped so far, from the first skip to the end of the last;
#: the cycle from which nobody waits for any of its starts so far. What lies before the boundary at which a thread
#: begins counts as skipped.
STARTS, SKIPPED, SKIPPED_FROM, SKIPPED_TO, SETTLED, S_PHASE_SIZE = 0, 1, 2, 3, 4, 5
#: A thread's buffer: slots taken and freed so far, and where the cycles of the frees are.
TAKEN, FREED, FREE_CYCLES, S_BUFFER_SIZE = 0, 1, 2, 3
#: A content on a core: when it was last used (0: it is not there), by how many running tasks it is used, and whether
#: it is on its way.
STAMP, USERS, ON_WAY, S_HELD_SIZE = 0, 1, 2, 3
#: A paused task: its turn (rank, arrival, number), the next one on the same core, where and when it was paused.
TURN, LATER, PAUSED_PHASE, PAUSED_ITERATION, PAUSED_CONTEXT, PAUSED_AT, S_PAUSED_SIZE = 0, 3, 4, 5, 6, 7, 8

#: Numbers in a row of the trace's issues and switches, and of its tasks.
ISSUE_SIZE, SWITCH_SIZE, TASK_SIZE = (
    len(table.names) for table in (trace_tables.ISSUES, trace_tables.SWITCHES, trace_tables.TASKS)
)
#: In place of a core among the switches: the row is a pause, or a seat of a task beside its first. They become tables
#: of their own in `lstmsim.engines.fast.handover`.
PAUSE_ROW, SEAT_ROW = -1, -2

#: Numbers of an entry of a heap: a key, a second one among equals, and a task, which decides in the end.
HEAP_SIZE = 3

#: Streams that run more iterations than this ahead of each other are not looked at for periods.
LAG_LIMIT = 4
