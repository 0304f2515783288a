// What a machine consists of: its cores with units and threads, the tasks that come, and where each of them stands.
#pragma once

#include <map>
#include <set>
#include <tuple>

#include "body.hpp"
#include "flat.hpp"
#include "rows.hpp"
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
    i64 thread = 0, unit = 0, place = 0;         // place: of its unit in the core, which is one of the instances of `unit`
    const flat::Operation* operation = nullptr;  // null: the stream is at its end, or its thread stops before it
    i64 index = 0;                               // its place in the body
    i64 left = 0;                                // issues of the operation
    i64 phase = 0, iteration = 0, position = 0;
    Slice<const i32> order;                      // operations of the stream in this phase
    Boundary reached;                            // behind the last iteration in which it has issued
    i64 ended = 0;                               // when its last issue was over
    i64 behind = NONE;                           // the next cursor that waits for the same operation
    i64 until[flat::MOST_CAUSES] = {};           // from when on each cause no longer holds the operation back
};

/// A unit of a core, which starts one operation at a time. A unit with several instances is so many of these: instance w is that
/// of the threads with number `n mod instances == w`.
struct Unit {
    i64 number = 0, place = 0;  // its number in the program; its place among the core's units
    i64 instance = 0, instances = 1;
    flat::Policy policy = flat::COARSE;
    i64 switch_cycles = 0;
    bool one_by_one = false;  // whether another thread may come between two issues of an operation
    bool accounted = false;
    i64 active = 0;           // the thread that issued last, or that the unit has switched to
    i64 named = 0;            // up to where the cycles of an accounted unit have names
    bool fresh = false;       // that thread has not issued since the switch
    i64 free_at = 0;
    i64 row = NONE;           // the last row of the trace, and up to when its issues go
    i64 row_end = 0;
    Soonest ready;            // for each thread, when its next operation may issue
};

/// A weight set (weights) in the memory of a core.
struct Held {
    i64 stamp = 0;  // the last use; 0: it is not there
    i64 users = 0;  // running tasks that need it
    bool on_way = false;
};

/// What a core was when it was looked at (periods.cpp). Cycles count from that cycle, iterations from those that
/// its tasks had come to.
struct Look {
    i64 cycle = NONE;
    Array<i64> state;
    Array<i64> counted;     // cycles of each name, work, issues
    Array<i64> iterations;  // of each busy thread
    Array<i64> since;       // of each busy thread: what came before its phase, or from outside, was over by then
    Array<i64> taken;       // slots of each buffer of these threads that were taken
    i64 issues = 0, switches = 0;  // numbers in the tables of a trace
};

/// What has to be known of a row of a trace to write it again (traced_periods.cpp): its thread, after how many iterations
/// it comes again, until when waits may have been over that do not come later with it, and whether they are looked up.
struct Again {
    struct Thread* thread = nullptr;
    i64 apart = 0, since = 0;
    bool looks_back = false;
};

/// A core: its units, and threads that have numbers in a row.
struct Core {
    i64 number = 0, kind = 0, first_thread = 0, contexts = 0, accounted = 0, capacity = NONE;
    bool shared = false, mirrors = false;
    i64 before = 0;          // threads of the cores before it that are not shared
    i64 placed_in = 0, placed = 0;  // the last task that took a mirrored thread, and how many it took
    Array<Unit> units;
    i64 kinds = 0;           // how many units it has in the program
    Array<i64> first_place;  // of each of these, the place of its first way
    Soonest events;  // for each unit, when it can do something next
    Soonest dues;    // for each thread, when its task finishes or pauses, or has loaded its weight set
    Soonest vacant;  // for each thread, 0 if it is free
    i64 occupied = 0;
    Array<Held> held;
    i64 used = 0, lying = 0;  // sizes of the weight sets that running tasks need, and of all
    i64 closed_in = 0;             // the last pass of admission in which a task kept other tasks off
    Array<i64> counted;       // cycles of each name
    i64 worked = 0, issued = 0;
    bool wrapped = false;     // whether a stream of its first unit has come to another iteration
    i64 looks = 0;            // how many times this was so since tasks came or went
    Array<Look> last;         // the last of them
};

/// What all variants with a kind of body need to know of it: which operations are on which unit of which member.
struct Streams {
    i64 members = 0, units = 0;
    Array<i64> first;  // for member * units + unit, where its operations begin in `order`
    Array<i32> order;
    i64 lag = 0;  // how many iterations back its operations look
    i64 far = 0;  // the longest delay after an operation of an earlier phase
    i64 loose = 0;  // a bit for each unit with an operation that waits for none of its own phase
    bool plain = true;  // whether all of its iterations take the same cycles, and no barrier has a part in them
};

/// What is worked out of a packed body while tasks run it.
struct Unpacked {
    i64 body = NONE, users = 0;  // the phases of running tasks that have the body
    Operations operations;
    Array<i32> places;
    Streams streams;
};

/// What a thread remembers of a phase.
struct PhaseState {
    const flat::Phase* phase = nullptr;
    Operations operations;
    const Streams* streams = nullptr;
    Unpacked* unpacked = nullptr;   // of a packed body
    Starts starts;  // of the last issue of each operation; or `NOT_STARTED`, or who waits for it
    i64 lag = 0;    // how many iterations back its own operations look
    i64 first = 0;  // iterations before this one count as done long ago
    Slice<const i64> echoes;  // for each operation, after how many cycles all that it brings about has come about
};

/// When slots of a buffer were freed, for as many turns as may still matter.
class Frees {
  public:
    /// How many times slots were freed; when they were in a turn that may still matter.
    i64 count() const { return gone_ + kept_.size(); }
    i64 at(i64 turn) const { return kept_[turn - gone_]; }

    /// A slot is freed. needed: the first turn that still matters.
    void add(i64 cycle, i64 needed) {
        if (needed - gone_ >= std::max(kept_.size() / 2, FEWEST)) forget(needed);
        kept_.push(cycle);
    }

    /// What matters still is so many turns and cycles later. needed: the first turn of it.
    void come_again(i64 needed, i64 turns, i64 cycles) {
        forget(needed);
        for (i64& cycle : kept_) cycle += cycles;
        gone_ += turns;
    }

  private:
    static constexpr i64 FEWEST = 32;

    /// Forget the turns before one.
    void forget(i64 needed) {
        const i64 more = std::min(needed - gone_, kept_.size());
        if (more <= 0) return;
        for (i64 i = more; i < kept_.size(); ++i) kept_[i - more] = kept_[i];
        kept_.resize(kept_.size() - more);
        gone_ += more;
    }

    Array<i64> kept_;
    i64 gone_ = 0;
};

/// A buffer of a thread.
struct BufferState {
    i64 slots = 0, cause = 0, taken = 0;
    Frees frees;
    i64 waiter = NONE;    // the cursor that waits for the next free
};

/// Whether a running task was asked to pause. It may be that it just finishes at its boundary.
enum class Asked { NO, PAUSES, FINISHES };

/// A member of a ragged batch. Operations of its inference are left out in steps from `steps` on.
struct Part {
    i64 job = 0, steps = 0;
    i64 left = 0;      // operations of its last steps, one in each phase, that have yet to complete
    i64 done_at = 0;   // when the results of the others are there
    bool gone = false; // it has finished
};

/// A thread of a core, and the task on it. A task on several threads is a chain of them, of which the first leads.
struct Thread {
    i64 number = 0, core = 0, context = 0, first_cursor = NONE;  // no cursor before its first task
    i64 job = NONE, member = 0, lead = NONE, next = NONE;
    i64 admitted = 0;
    // what follows is of the leading thread alone
    const flat::Profile* profile = nullptr;
    i64 came = 0, rank = 0, frame_interval = 0;
    i64 opens = 0;                          // when the states of its session are there; it issues nothing before
    Array<PhaseState> phases;
    Array<BufferState> buffers;
    Boundary entry, stop = NO_BOUNDARY;
    Asked asked = Asked::NO;
    i64 open = 0;                           // streams that are not at their end
    i64 finish = NEVER;                     // when the task finishes or pauses
    i64 crossed = 0;                        // the last start of a stream before it came to another phase
    i64 done_at = 0, clear_at = 0;          // when its results are there; when all that it brings about has come about
    i64 loads = 0, loaded = 0;              // operations that have yet to load its weight set; when the others have
    i64 weight_set_at = NEVER;                 // when its weight set is there
    Array<i64> others;                      // of a batch the jobs of its other members
    Array<Part> parts;                      // of a ragged batch its members, in their order; else empty
    i64 part_at = NEVER;                    // when the next of them finishes before the others
};

/// One task that comes. Requests of a feed have places in turn; `number` counts all that have come.
struct Job {
    i64 number = 0, profile = 0, release = 0, frame_interval = 0, key = 0;
    bool key_from_arrival = false;
    i64 starts = NONE, ends = NONE, until = NONE;  // barriers
    i64 row = 0;                                   // of `tasks`
    i64 rounds = 0;                                // of a pool that goes on step by step, how many it has had
};

/// A barrier: who is still to arrive, and who waits for it to open.
struct Barrier {
    i64 left = 0, latest = 0;  // how many are to arrive; the latest of those that have
    i64 opened = NOT_STARTED;  // when it has opened; or `NOT_STARTED`, or which cursor waits for that
    Array<i64> lasting;        // threads whose tasks last until then
};

/// What became of a task: the columns of lstmsim.program.trace.TASKS.
struct TaskRow {
    i64 core = 0, context = 0, admitted = 0, finish = 0, arrived = 0, pauses = 0, taken = 0, batch = NONE;
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

/// Tasks of a pool that go together.
struct Window {
    i64 ends = 0;  // when it closes if it is not full before
    bool closed = false;
    std::set<Waiting> members;
};

/// Tasks that may use the same places. The paused tasks of a core are a group of their own, and so are those of a pool.
/// Of a pool with windows only the first of each closed window is among those `waiting` that are looked at.
struct Group {
    Array<Place> places;  // from the lowest cores to the highest
    Array<i64> order;     // first cores of the places, in the order of the tasks' cores
    Array<i64> firsts;    // the same without repeats, the lowest first
    Array<i64> own;       // all cores of the places that are not shared
    bool loose = false;   // a place has shared cores alone
    std::set<Waiting> waiting;
    std::set<Waiting>::iterator at;  // in a pass of admission: the next one to be looked at
    const flat::Pool* pool = nullptr;
    i64 queue = NONE;                // groups of one queue have the same places; none of those who have begun
    i64 newcomers = NONE;            // of those who have begun: the group of their pool's newcomers
    std::map<i64, i64> begun;        // of newcomers of a pool that goes on step by step: core -> group of those who have begun there
    std::multiset<i64> ages;         // when those came who wait in a pool without windows
    std::map<i64, Window> windows;
    std::map<i64, i64> window_of;    // of each job that waits in a window, the number of that
    i64 open = NONE, opened = 0;     // the open window; how many there have been
    i64 looked_in = 0, full = 0;     // the last pass that looked at it, and how many of the first places were full
};

/// Where a paused task goes on, and who led the batch in which it was.
struct Paused {
    Boundary boundary;
    i64 core = 0, context = 0, since = 0, batch = NONE;
};

/// A task that comes at a cycle, in a round of that cycle, because another one has gone.
using Coming = std::tuple<i64, i64, i64>;

}  // namespace lstmsim
