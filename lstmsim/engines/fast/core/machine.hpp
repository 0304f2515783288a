// The machine that runs a program: what happens to it, in which file. What it consists of is in state.hpp.
// The rules of the clock stand in run.cpp.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <utility>

#include "state.hpp"
#include "stretch.hpp"

namespace lstmsim {

/// Why a run came back.
enum Outcome : i64 { DONE, PAUSED, STUCK, HUNGRY };

/// So many steps that are not events, but may be very many (threads that are looked at, starts that are forgotten), count
/// as an event. So a run comes back in time whatever the program is.
constexpr i64 STEPS_OF_AN_EVENT = 256;

/// The tables that a run has for its caller.
enum Table : i64 { ISSUES, SWITCHES, TASKS, PAUSES, THREAD_SLOTS, HALTS, TOTALS, WAITS, OVER };

/// Columns of a row of ISSUES (lstmsim.program.trace.ISSUES); behind them, until when each cause held it back.
namespace issue {
enum Column : i64 { START, CORE, UNIT, CONTEXT, TASK, PHASE, ITERATION, OPERATION, COUNT, CYCLES, COLUMNS };
}

/// streams.cpp: the streams of a body.
void sort_streams(const Operations& operations, Streams& streams);
/// units.cpp: which of its threads a unit turns to.
i64 choose(const Unit& unit, i64 contexts, i64 now);

class Machine {
  public:
    /// keep: a trace is recorded. fed: tasks come by `feed`. steady: what comes again is not run again (steady.cpp, periods.cpp).
    Machine(const flat::Program& program, bool keep, bool fed, bool steady);

    /// Go on for about so many events (run.cpp).
    Outcome run(i64 events);
    /// How many events of the last `run` are left.
    i64 left() const { return budget; }
    /// Let requests come: rows of (release, number of the template, key). `more`: others will follow. `Refusal` if
    /// they break a rule; then nothing has changed (arrivals.cpp).
    void feed(const i64* rows, i64 count, bool more);
    /// Name the cycles up to `upto`, then write a row for each core: cycles of each name, work, issues
    /// (accounts.cpp).
    void total(i64 upto);
    /// Write down what each cursor waits for that can never issue (waits.cpp).
    void note_waits();

    /// The numbers of a table (tables.cpp).
    Slice<const i64> table(i64 number);
    /// Hand the numbers of a table of rows over to somebody who frees them, and forget them (tables.cpp).
    i64* take(i64 number);
    /// Whether the issues that are in their table came in its canonical order.
    bool in_order() const { return issues_in_order; }
    /// Forget what is in a table (tables.cpp).
    void clear(i64 number);

    Rows tables[OVER + 1];
    i64 last_cycle = 0;  // of any start

  private:
    // build.cpp: from the tables to the machine
    void build_cores();
    void build_units(Core& core, const flat::Core& row);
    void build_threads(Core& core);
    void build_cursors(Thread& thread);
    void build_groups();
    void build_barriers();
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
    void note_next(const Core& core);

    // periods.cpp: what comes again within tasks
    bool skip_periods(Core& core, i64 now, i64 stop);
    bool write_look(const Core& core, i64 now, Look& look) const;
    bool write_thread(const Core& core, const Thread& thread, i64 now, i64 busy, Look& look) const;
    bool write_buffers(const Thread& thread, i64 now, i64 since, Look& look) const;
    bool write_starts(const Thread& thread, i64 phase, i64 first, i64 end, i64 now, i64 since, Look& look) const;
    i64 periods_left(const Core& core, const Look& before, const Look& own, i64 stop) const;
    void repeat_period(Core& core, const Look& before, const Look& own, i64 times);

    // traced_periods.cpp: rows of a trace that come again with them
    bool may_go_on(const Core& core, const Unit& unit, i64 now) const;
    void repeat_rows(const Core& core, const Look& before, const Look& own, i64 times);
    void repeat_issues(const Core& core, const Look& before, const Look& own, i64 times);
    i64 rows_left() const;
    i64 held_before(Thread& lead, const Cursor& cursor, i64 cause);
    Array<Again> rows_again(const Core& core, const Look& before, const Look& own, Array<i64>& window);
    void look_back(const Again& again, i64* row);

    // units.cpp: what a unit does in a cycle
    void turn(Core& core, Unit& unit, i64 now);
    i64 issue(Core& core, Unit& unit, i64 context, i64 now);
    void record(const Core& core, Unit& unit, const Thread& thread, const Cursor& cursor, i64 now, i64 issues, i64 end);
    void note_order(i64 row, i64 width);
    i64 extra_of(const Thread& thread, const Cursor& cursor) const;
    void complete(Thread& thread, Cursor& cursor, i64 start);

    // cursors.cpp: where a stream stands, and what holds its next operation back
    void begin(Thread& lead);
    void set_phase(Cursor& cursor, i64 phase);
    bool settle(Cursor& cursor);
    void step_on(Cursor& cursor);
    bool move_on(Cursor& cursor);
    void close(Cursor& cursor);
    void remember(const Cursor& cursor);
    void resolve(Cursor& cursor);
    void end_quietly(Cursor& cursor, i64 cycle);
    i64 look_at_waits(Cursor& cursor, i64*& missing);
    i64* start_of(Thread& lead, const Cursor& cursor, const NeedOf& need);
    void wake(i64 waiters);
    void set_ready(const Cursor& cursor, i64 cycle);
    void set_due(Thread& lead);
    Thread& lead_of(const Cursor& cursor) { return threads[threads[cursor.thread].lead]; }

    // accounts.cpp: a name for each cycle of an accounted unit
    void account(Core& core, Unit& unit, i64 upto);
    void account(Core& core, i64 context, i64 upto);
    i64 name_cycle(Core& core, const Unit& unit, i64& upto);
    void count_taken(Core& core, Unit& unit, i64 now, i64 cycles, i64 name);

    // arrivals.cpp: tasks come, find their queue full, or give up
    void check_requests(const Slice<const i64>& numbers) const;
    bool arrive(i64 now, i64 round);
    void wait(i64 job, i64 now, i64 round);
    void turn_away(i64 job, i64 now, i64 round);
    bool give_up(i64 now);
    void let_follow(i64 job, i64 now, i64 round);
    bool too_many_wait(const Group& group, i64 limit) const;
    void note_over(i64 job, bool stays = false);
    const flat::Profile& profile_of(i64 job) const { return program.profiles[jobs[job].profile]; }

    // admission.cpp: waiting tasks are admitted, in turn
    void admit(i64 now);
    Group* first_in_turn();
    const Place* best_place(Group& group, const flat::Profile& profile);
    void hold_back(Group& group, i64 now, bool asking);
    void start(Group& group, const Place& place, const Waiting& task, i64 now);
    void go_on(const Place& place, const Waiting& task, i64 now);
    Array<i64> spread(const Group& group, const flat::Profile& profile, i64 now) const;
    bool others_wait(const Group& group, i64 now) const;

    // pools.cpp: tasks wait for company
    void build_pools();
    Group& group_of_job(i64 job) { return groups[group_of_profile[jobs[job].profile]]; }
    void join(Group& group, const Waiting& one, i64 now);
    void close(Group& group);
    void close_windows(i64 now);
    void leave_pool(Group& group, const Waiting& one);
    bool ripe(const Group& group, i64 now) const;
    i64 waiting_in(const Group& group) const;
    void build_begun(i64 newcomers);
    Array<Waiting> company(Group& group, const Waiting& first, i64 core);
    Array<Waiting> next_round(Group& fresh, i64 core);
    i64 places_of_begun(const Group& group) const;
    void begin_member(const Waiting& each, i64 now);
    void wait_again(const Thread& lead, i64 job, i64 now);
    void start_batch(Group& group, const Place& place, const Waiting& first, i64 now);
    void note_pools(i64 now);

    // ragged.cpp: members of a batch leave out steps, and finish one by one
    void begin_parts(Thread& lead);
    bool left_out(const Thread& lead, i64 phase, i64 iteration, i64 inference) const;
    void complete_part(Thread& lead, const Cursor& cursor, i64 done);
    void finish_parts(Thread& lead, i64 now);

    // placement.cpp: tasks take threads and leave them
    void take_threads(const Array<i64>& thread_slots, const Waiting& task, i64 now, Boundary entry, const Array<i64>& others = {});
    i64 move(i64 job, i64 core), mirrored_thread(Core& core, const Array<i64>& own) const;
    Thread& take_thread(Core& core, i64 context, i64 now);
    void prepare(Thread& lead, const flat::Variant& variant);
    void set_body(PhaseState& state, i64 number);
    void put_away(Thread& lead);
    void note_thread_slot(const Thread& thread);
    const flat::Variant& variant_of(const flat::Profile& profile, const Array<i64>& thread_slots, i64 size) const;
    void leave(Core& core, i64 now);
    void finish(Thread& lead, i64 now);
    void finish_job(const Thread& lead, i64 job, i64 now, bool stays = false);
    void free(Thread& lead, i64 now);

    // barriers.cpp: who arrives at barriers, and what happens when they open
    void arrive_at(i64 barrier, i64 cycle);
    void open(i64 number);
    void last_until(Thread& lead, i64 barrier);

    // memory.cpp: what lies in the memories of cores
    bool holds(const Core& core, i64 weight_set) const;
    bool has_room(const Core& core, i64 weight_set) const;
    void make_room(Core& core, i64 size);
    bool fill_memories(const Array<i64>& thread_slots, i64 weight_set, i64 loads);
    void let_go(const Thread& lead);
    void end_loading(Thread& lead);

    // steady.cpp: whether a stretch of a run comes again
    void build_steady();
    void go_on_steadily();
    i64 barrier_to_follow() const;
    Slice<const std::pair<i64, i64>> tasks_behind(i64 barrier) const;
    bool at_rest(i64 now) const;
    bool plain(i64 barrier) const;
    bool alike(i64 barrier, i64 other) const;
    void write_state(i64 now);
    const Stretch* stretch_like(i64 barrier) const;
    bool may_repeat(const Stretch& known, i64 now) const;

    // stretches.cpp: a stretch is watched, kept and done once more
    void watch(i64 barrier, i64 now);
    void keep_stretch(i64 now);
    void repeat(const Stretch& known, i64 barrier, i64 now);
    void repeat_rows(const Stretch& known, i64 table, i64 later, i64 apart);
    void forget_stretches();

    // pausing.cpp: a running task is asked to make room
    void ask(const Group& group, i64 rank, i64 now);
    Thread* victim(const Group& group, i64 rank);
    void stop(Thread& lead, i64 now);
    void note_halt(const Thread& lead, Cursor& cursor, i64 now);
    void pause(Thread& lead, i64 now);

    const flat::Program program;
    const bool keep;  // whether a trace is recorded
    const bool fed;   // whether tasks come by `feed`
    const bool skipping;  // whether what comes again is not run again
    bool steady;      // whether that holds for stretches
    bool linked = false;   // what happens on one core can bring or stop a task on another
    bool preempting = false;
    bool rounds = false;  // whether a pool goes on step by step
    flat::Head head{};

    Array<Core> cores;
    Array<Thread> threads;
    Array<Cursor> cursors;
    Array<Group> groups;  // of new tasks; then, if tasks may pause, one of each core's paused tasks
    Array<i64> group_of_profile, homes;  // homes: of each session the core of its states; empty: no sessions
    i64 new_groups = 0;    // how many of them are of new tasks
    Array<Streams> streams;      // of each body that is not packed
    std::deque<Unpacked> unpacked;  // packed bodies that tasks run, or ran
    Array<Unpacked*> at_hand;    // of each packed body, what is worked out of it; null if no task runs it
    Array<Unpacked*> spare;      // room of bodies that nobody runs any more
    std::map<std::pair<i64, i64>, Array<Array<i64>>> echoes;  // of variants, by first phase and number of phases
    Array<char> looked_back_at;  // for each phase, 1 if later phases look at its starts

    Array<Job> jobs;
    Array<TaskRow> rows;                   // of each job
    Array<Paused> paused;                  // of each job, if tasks may pause or have rounds
    Array<std::pair<i64, i64>> followers;  // (task, one that comes after it), sorted
    Array<Barrier> barriers;
    Array<std::pair<i64, i64>> behind;     // (barrier, a task that comes behind it), sorted
    bool came_behind = false;              // a task comes behind a barrier that an issue has opened
    i64 looked_at = 0;  // the cycle in which tasks were looked at last
    i64 round = NONE;   // in which round of that cycle tasks are being admitted
    i64 placements = 0;                      // how many times tasks took threads

    Array<char> perhaps_alike;  // for each barrier, 1 if tasks behind another one may be like those behind it
    Array<Stretch> stretches;   // those that were run last
    i64 next_stretch = 0;       // where the next one is kept
    Stretch watched;            // the one that is run, if it may be kept
    Array<i64> state;           // what the machine is, at rest
    bool steady_at_hand = false;  // tasks came or went, and whether what follows comes again was not looked at yet
    i64 met = 0;                // how many times an arrival at a barrier or a need of one was looked at

    bool issues_in_order = true;
    Look present;    // what a core is now (periods.cpp)
    Soonest events;  // for each core, when one of its units can do something next
    Soonest dues;    // for each core, when one of its tasks is done
    i64 running = NONE;  // the core that goes on
    i64 budget = 0;      // events until the run comes back
    StartsRoom starts_room;

    Array<i64> arrivals;  // tasks that come after no other, in order
    i64 arrived = 0;
    bool more = false;    // others will follow
    i64 fed_to = 0;       // when the last request comes
    std::set<Coming> coming;
    std::set<std::pair<i64, i64>> leaving;  // (when, task) of those whose patience will end
    i64 look = NEVER;     // a cycle in which tasks that wait are looked at whatever happens
    i64 known = 0;        // jobs of a program, or those that have come by `feed`
    i64 finished = 0;     // how many of them are done, or were turned away
    i64 pass = 0;         // passes of admission so far
    i64 stamps = 0;       // uses of weight sets so far
    Array<i64> free_jobs;  // places of jobs for the next requests of a feed
    Array<i64> templates;  // of each job of a feed the task of the program that it is like
};

}  // namespace lstmsim
