// From event to event.
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
#include "machine.hpp"

namespace lstmsim {

/// Go on, core after core, up to the next cycle in which tasks come or go; let that happen; and so on.
Outcome Machine::run(i64 events_at_most) {
    budget = events_at_most;
    for (;;) {
        if (budget <= 0) return PAUSED;
        if (more && arrived == arrivals.size()) return HUNGRY;
        if (steady_at_hand) {
            go_on_steadily();
            if (budget <= 0) return PAUSED;
        }
        i64 stop = next_look();
        while (events.cycle() < std::min(stop, dues.cycle())) {
            if (budget <= 0) return PAUSED;
            Core& core = cores[events.place()];
            running = core.number;
            if (linked) {
                step(core, core.events.cycle());
            } else {
                advance(core, stop);
            }
            running = NONE;
            note_next(core);
            if (std::exchange(came_behind, false)) stop = next_look();
        }
        const i64 now = std::min(stop, dues.cycle());
        if (now >= NEVER) return finished == known ? DONE : STUCK;
        happen(now);
    }
}

/// When tasks that wait are looked at next, as far as is known: one comes or gives up, or it is `look`.
i64 Machine::next_look() const {
    i64 soonest = look;
    if (!leaving.empty()) soonest = std::min(soonest, leaving.begin()->first);
    if (arrived < arrivals.size()) soonest = std::min(soonest, jobs[arrivals[arrived]].release);
    if (!coming.empty()) soonest = std::min(soonest, std::get<0>(*coming.begin()));
    return soonest;
}

/// Let a core go on alone, up to its next finish or to `stop`.
void Machine::advance(Core& core, i64 stop) {
    for (i64 now = core.events.cycle(); now < stop && now < core.dues.cycle(); now = core.events.cycle()) {
        if (budget <= 0) return;
        if (core.wrapped && skip_periods(core, now, stop)) continue;
        step(core, now);
    }
}

/// Let each unit of a core that can do something in this cycle do it.
void Machine::step(Core& core, i64 now) {
    if (now > LATEST) throw Overrun("the run comes to cycle " + std::to_string(now));
    budget -= 1;
    for (i64 unit = core.events.next(0, now); unit != NONE; unit = core.events.next(unit + 1, now)) {
        turn(core, core.units[unit], now);
    }
}

/// Everything that is due takes effect; then tasks are admitted.
void Machine::happen(i64 now) {
    if (now > LATEST) throw Overrun("the run comes to cycle " + std::to_string(now));
    budget -= 1;
    looked_at = now;
    steady_at_hand = steady;
    bool changed = look <= now;
    for (; dues.cycle() == now; changed = true) leave(cores[dues.place()], now);
    changed = give_up(now) || changed;
    changed = arrive(now, 0) || changed;
    if (!changed) return;
    look = NEVER;
    round = 0;
    admit(now);
    // those who follow one that found its queue full in this very cycle
    for (round = 1; !coming.empty() && arrive(now, round); ++round) admit(now);
    round = NONE;
    note_pools(now);
}

/// What the machine knows of a core's next event and finish.
void Machine::note_next(const Core& core) {
    events.set(core.number, core.events.cycle());
    dues.set(core.number, core.dues.cycle());
}

}  // namespace lstmsim
