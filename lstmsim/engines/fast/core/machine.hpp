// The machine that runs a program: what it consists of, and what happens to it.
//
// Clock rules (lstmsim/program/program.py), and how they are kept here:
//
// 1. Time is a whole number of cycles.
// 2. `run` goes from event to event. At a cycle at which tasks finish or come, that takes effect, and tasks are admitted
//    (`happen`), before any unit chooses in this cycle (`step`). Where nothing on a core depends on other cores, the core
//    goes on alone up to its next finish or the next arrival; else all cores go on together, cycle by cycle.
// 3. Each thread has a cursor for each unit of its core: an in-order stream of operations. When a cursor moves on, all
//    its waits are looked at. If an operation that it waits for has not started, the cursor stands in a list at that
//    operation, and its waits are looked at again when the operation starts (`complete`).
// 4. A unit chooses by its policy among cursors that may issue (`choose`). Delays are at least 1, so nothing that issues
//    now changes a choice of this cycle, and the order in which units are looked at cannot matter.
// 5. If nothing has a next cycle and tasks are unfinished, the program is stuck.
#pragma once

#include <set>
#include <tuple>
#include <utility>

#include "flat.hpp"
#include "soonest.hpp"
#include "starts.hpp"

namespace lstmsim {

/// A boundary between iterations of a task: everything before this iteration is done.
struct Boundary {
    i64 phase = 0, iteration = 0;
    bool operator<(const Boundary& other) const {
        return phase != other.phase ? phase < other.phase : iteration < other.iteration;
    }
};

/// A boundary that no stream comes to.
constexpr Boundary NO_BOUNDARY{NEVER, 0};

/// A thread on a unit of its core: the next operation of its stream, and what holds that operation back.
struct Cursor {
    i64 thread = 0, unit = 0;
    const flat::Operation* operation = nullptr;  // null: the stream is at its end, or its thread stops before it
    i64 left = 0;                                // issues of the operation
    i64 phase = 0, iteration = 0, position = 0;
    Slice<const i64> order;                      // operations of the stream in this phase
    Boundary reached;                            // behind the last iteration in which it has issued
    i64 ended = 0;                               // when its last issue was over
    i64 behind = NONE;                           // the next cursor that waits for the same operation
    i64 until[flat::MOST_CAUSES] = {};           // from when on each cause no longer holds the operation back
};

/// A unit of a core, which starts one operation at a time.
struct Unit {
    i64 number = 0;
    flat::Policy policy = flat::COARSE;
    i64 switch_cycles = 0;
    bool one_by_one = false;  // whether another thread may come between two issues of an operation
    bool accounted = false;
    i64 active = 0;           // the thread that issued last, or that the unit has switched to
    bool fresh = false;       // that thread has not issued since the switch
    i64 free_at = 0;
    i64 row = NONE;           // the last row of the trace, and up to when its issues go
    i64 row_end = 0;
    Soonest ready;            // for each thread, when its next operation may issue
};

i64 choose(const Unit& unit, i64 contexts, i64 now);

/// A content (weights) in the memory of a core.
struct Held {
    i64 stamp = 0;  // the last use; 0: it is not there
    i64 users = 0;  // running tasks that need it
    bool on_way = false;
};

/// A core: its units, and threads that have numbers in a row.
struct Core {
    i64 number = 0, kind = 0, first_thread = 0, contexts = 0, accounted = 0, capacity = NONE;
    bool shared = false;
    Array<Unit> units;
    Soonest events;  // for each unit, when it can do something next
    Soonest dues;    // for each thread, when its task finishes or pauses, or has loaded its content
    Soonest vacant;  // for each thread, 0 if it is free
    i64 occupied = 0;
    Array<Held> held;
    i64 used = 0, lying = 0;  // sizes of the contents that running tasks need, and of all
    i64 kept = 0;             // the last pass of admission in which a task kept other tasks off
    i64 named = 0;            // up to where the cycles have names
    Array<i64> counted;       // cycles of each name
    i64 worked = 0, issued = 0;
};

/// What a thread remembers of a phase.
struct PhaseState {
    const flat::Phase* phase = nullptr;
    Slice<const flat::Operation> operations;
    Starts starts;  // of the last issue of each operation; or `NOT_STARTED`, or who waits for it
    i64 lag = 0;    // how many iterations back its own operations look
    i64 first = 0;  // iterations before this one count as done long ago
    Slice<const i64> echoes;  // for each operation, after how many cycles all that it brings about has come about
};

/// A buffer of a thread.
struct BufferState {
    i64 slots = 0, cause = 0, taken = 0;
    Array<i64> frees;     // when slots were freed
    i64 waiter = NONE;    // the cursor that waits for the next free
};

/// Whether a running task was asked to pause. It may be that it just finishes at its boundary.
enum class Asked { NO, PAUSES, FINISHES };

/// A thread of a core, and the task on it. A task on several threads is a chain of them, of which the first leads.
struct Thread {
    i64 number = 0, core = 0, context = 0, first_cursor = 0;
    i64 job = NONE, member = 0, lead = NONE, next = NONE;
    i64 admitted = 0;
    // what follows is of the leading thread alone
    const flat::Profile* profile = nullptr;
    i64 came = 0, rank = 0, frame_interval = 0;
    Array<PhaseState> phases;
    Array<BufferState> buffers;
    Boundary entry, stop = NO_BOUNDARY;
    Asked asked = Asked::NO;
    i64 open = 0;                           // streams that are not at their end
    i64 finish = NEVER;                     // when the task finishes or pauses
    i64 done_at = 0, clear_at = 0;          // when its results are there; when all that it brings about has come about
    i64 loads = 0, loaded = 0;              // operations that have yet to load its content; when the others have
    i64 content_at = NEVER;                 // when its content is there
};

/// One task that comes. Requests of a feed have places in turn; `number` counts all that have come.
struct Job {
    i64 number = 0, profile = 0, release = 0, frame_interval = 0, key = 0;
    bool key_from_arrival = false;
};

/// What became of a task: the columns of lstmsim.program.trace_tables.TASKS.
struct TaskRow {
    i64 core = 0, context = 0, admitted = 0, finish = 0, arrived = 0, pauses = 0, taken = 0;
};

/// A task that waits. Those that come first in this order are looked at first.
struct Waiting {
    i64 rank, came, number, job;
    bool operator<(const Waiting& other) const {
        return std::tie(rank, came, number) < std::tie(other.rank, other.came, other.number);
    }
};

/// A place where a task may run: its cores, in the order of the task's members.
struct Place {
    Array<i64> cores;
    Array<i64> threads;  // for each of them, how many of the members are on it
};

/// Tasks that may use the same places. The paused tasks of a core are a group of their own.
struct Group {
    Array<Place> places;  // from the lowest cores to the highest
    Array<i64> order;     // first cores of the places, in the order of the tasks' cores
    Array<i64> firsts;    // the same without repeats, the lowest first
    Array<i64> own;       // all cores of the places that are not shared
    bool loose = false;   // a place has shared cores alone
    std::set<Waiting> waiting;
    std::set<Waiting>::iterator at;  // in a pass of admission: the next one to be looked at
    i64 looked = 0, seen = 0;        // the last pass, and how many of the first places have no free thread in it
};

/// Where a paused task goes on.
struct Paused {
    Boundary boundary;
    i64 core = 0, context = 0, since = 0;
};

/// What all variants with a kind of body need to know of it: which operations are on which unit of which member.
struct Streams {
    i64 members = 0, units = 0;
    Array<i64> first;  // for member * units + unit, where its operations begin in `order`
    Array<i64> order;
    i64 lag = 0;  // how many iterations back its operations look
};

/// A task that comes at a cycle, in a round of that cycle, because another one has gone.
using Coming = std::tuple<i64, i64, i64>;

/// Why a run came back.
enum Outcome : i64 { DONE, PAUSED, STUCK, HUNGRY };

/// So many steps that are not events, but may be very many (threads that are looked at, starts that are forgotten), count
/// as an event. So a run comes back in time whatever the program is.
constexpr i64 STEPS_OF_AN_EVENT = 256;

/// The tables that a run has for its caller.
enum Table : i64 { ISSUES, SWITCHES, TASKS, PAUSES, SEATS, HALTS, TOTALS, WAITS, OVER };

class Machine {
  public:
    Machine(const flat::Program& program, bool keep, bool fed);

    /// Go on for about so many events.
    Outcome run(i64 events);
    /// Let requests come: rows of (release, number of the template, key). `more`: others will follow. `flat::Refusal` if
    /// they break a rule; then nothing has changed.
    void feed(const i64* rows, i64 count, bool more);
    /// Name the cycles up to `upto`, then write a row for each core: cycles of each name, work, issues.
    void total(i64 upto);
    /// Write down what each cursor waits for that can never issue.
    void note_waits();

    /// The numbers of a table.
    Slice<const i64> table(i64 number);
    /// Forget what is in a table.
    void clear(i64 number);

    Array<i64> tables[OVER + 1];
    i64 last_cycle = 0;  // of any start or admission

  private:
    // build.cpp: from the tables to the machine
    void build_cores();
    void build_groups();
    void build_jobs();
    void build_variants();
    void build_phases(const flat::Variant& variant);
    void build_echoes(const flat::Variant& variant);
    Group group_of(const Array<Array<i64>>& places) const;
    bool has_joint_tasks() const;
    void hold_at_start();

    // run.cpp: from event to event
    i64 next_look() const;
    void advance(Core& core, i64 stop);
    void step(Core& core, i64 now);
    void happen(i64 now);
    void touch(const Core& core);

    // units.cpp: what a unit does in a cycle
    void turn(Core& core, Unit& unit, i64 now);
    i64 issue(Core& core, Unit& unit, i64 context, i64 now);
    void record(const Core& core, Unit& unit, const Thread& thread, const Cursor& cursor, i64 now, i64 issues, i64 end);
    i64 extra_of(const Thread& thread, const Cursor& cursor) const;
    void complete(Thread& thread, Cursor& cursor, i64 start);

    // cursors.cpp: where a stream stands, and what holds its next operation back
    void begin(Thread& lead);
    void set_phase(Cursor& cursor, i64 phase);
    bool settle(Cursor& cursor);
    bool move_on(Cursor& cursor);
    void close(Cursor& cursor);
    void remember(const Cursor& cursor);
    void resolve(Cursor& cursor);
    i64 look_at_waits(Cursor& cursor, i64*& missing);
    i64* start_of(Thread& lead, const Cursor& cursor, const flat::Need& need);
    void wake(i64 waiters);
    void set_ready(const Cursor& cursor, i64 cycle);
    void set_due(Thread& lead);
    Thread& lead_of(const Cursor& cursor) { return threads[threads[cursor.thread].lead]; }

    // accounts.cpp: a name for each cycle of an accounted unit
    void account(Core& core, i64 upto);
    i64 name_cycle(Core& core, i64 now, i64& upto);
    void take(Core& core, const Unit& unit, i64 now, i64 cycles, i64 name);

    // arrivals.cpp: tasks come, find their queue full, or give up
    void check_requests(const Slice<const i64>& numbers) const;
    bool arrive(i64 now, i64 round);
    void wait(i64 job, i64 now, i64 round);
    void turn_away(i64 job, i64 now, i64 round);
    bool give_up(i64 now);
    void let_follow(i64 job, i64 now, i64 round);
    bool too_many_wait(const Group& group, i64 limit) const;
    void note_over(i64 job);
    const flat::Profile& profile_of(i64 job) const { return program.profiles[jobs[job].profile]; }

    // admission.cpp: waiting tasks are admitted, in turn
    void admit(i64 now);
    Group* first_in_turn();
    const Place* best_place(Group& group, const flat::Profile& profile);
    void hold_back(Group& group, i64 now, bool asking);
    void start(Group& group, const Place& place, const Waiting& one, i64 now);
    void go_on(const Place& place, const Waiting& one, i64 now);
    Array<i64> spread(const Group& group, const flat::Profile& profile) const;
    bool others_wait(const Group& group) const;

    // seating.cpp: tasks take threads and leave them
    void seat(const Array<i64>& at, const Waiting& one, i64 now, Boundary entry);
    Thread& sit(Core& core, i64 now);
    void prepare(Thread& lead, const flat::Variant& variant);
    void note_seat(const Thread& thread);
    const flat::Variant& variant_of(const flat::Profile& profile, const Array<i64>& at) const;
    bool leave(Core& core, i64 now);
    void finish(Thread& lead, i64 now);
    void free(Thread& lead, i64 now);

    // memory.cpp: what lies in the memories of cores
    bool holds(const Core& core, i64 content) const;
    bool has_room(const Core& core, i64 content) const;
    void make_room(Core& core, i64 size);
    bool fill_memories(const Array<i64>& at, i64 content, i64 loads);
    void let_go(const Thread& lead);
    void loaded(Thread& lead);

    // pausing.cpp: a running task is asked to make room
    void ask(const Group& group, i64 rank, i64 now);
    Thread* victim(const Group& group, i64 rank);
    void stop(Thread& lead, i64 now);
    void note_halt(const Thread& lead, Cursor& cursor, i64 now);
    void pause(Thread& lead, i64 now);

    const flat::Program program;
    const bool keep;  // whether a trace is recorded
    const bool fed;   // whether tasks come by `feed`
    bool linked = false;   // what happens on one core can bring or stop a task on another
    bool preempting = false;
    flat::Head head{};

    Array<Core> cores;
    Array<Thread> threads;
    Array<Cursor> cursors;
    Array<Group> groups;  // of new tasks; then, if tasks may pause, one of each core's paused tasks
    i64 new_groups = 0;
    Array<Streams> streams;
    Array<Array<i64>> echoes;   // of each phase
    Array<char> looked_back_at;  // for each phase, 1 if later phases look at its starts
    Array<Job> jobs;
    Array<TaskRow> rows;
    Array<std::pair<i64, i64>> followers;  // (task, one that comes after it), sorted
    Array<Paused> paused;

    Soonest events;  // for each core, when one of its units can do something next
    Soonest dues;    // for each core, when one of its tasks is done
    i64 running = NONE;  // the core that goes on
    i64 budget = 0;      // events until the run comes back
    i64 starts_left = flat::MOST_STARTS;  // so many more can be remembered

    Array<i64> arrivals;  // tasks that come after no other, in order
    i64 arrived = 0;
    bool more = false;    // others will follow
    i64 fed_to = 0;       // when the last request comes
    std::set<Coming> coming;
    std::set<std::pair<i64, i64>> leaving;  // (when, task) of those whose patience will end
    i64 look = NEVER;     // a cycle in which tasks that wait are looked at whatever happens
    i64 pass = 0, stamps = 0, finished = 0, known = 0;
    Array<i64> free_jobs;
    Array<i64> templates;
};

}  // namespace lstmsim
