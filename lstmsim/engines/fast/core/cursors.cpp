// Where the streams of a task stand, and what holds their next operations back.
#include "machine.hpp"

namespace lstmsim {

/// Put the cursors of all threads of a task on their first operations.
void Machine::begin(Thread& lead) {
    for (i64 number = lead.number; number != NONE; number = threads[number].next) {
        if (threads[number].first_cursor == NONE) build_cursors(threads[number]);
    }
    for (i64 number = lead.number; number != NONE; number = threads[number].next) {
        Thread& thread = threads[number];
        const i64 units = cores[thread.core].kinds;
        lead.open += units;
        for (i64 unit = 0; unit < units; ++unit) {
            Cursor& cursor = cursors[thread.first_cursor + unit];
            cursor.reached = lead.entry;
            cursor.ended = thread.admitted;
            cursor.left = 0;
            std::fill_n(cursor.until, program.causes.size(), 0);
            set_phase(cursor, lead.entry.phase);
            cursor.iteration = lead.entry.iteration;
            if (settle(cursor)) resolve(cursor);
        }
    }
}

/// Let a cursor stand before the first operation of a phase.
void Machine::set_phase(Cursor& cursor, i64 phase) {
    const Thread& lead = lead_of(cursor);
    cursor.phase = phase;
    cursor.iteration = cursor.position = 0;
    cursor.order = {};
    if (phase == lead.phases.size()) return;
    const Streams& own = *lead.phases[phase].streams;
    const i64 member = threads[cursor.thread].member;
    if (member >= own.members || cursor.unit >= own.units) return;
    const i64 first = own.first[member * own.units + cursor.unit];
    cursor.order = own.order.part(first, own.first[member * own.units + cursor.unit + 1] - first);
}

/// Put a cursor on an operation, past phases without any for it; false at the end of the stream.
bool Machine::settle(Cursor& cursor) {
    Thread& lead = lead_of(cursor);
    for (;; step_on(cursor)) {
        while (cursor.order.size() == 0) {
            if (cursor.phase == lead.phases.size()) {
                close(cursor);
                return false;
            }
            set_phase(cursor, cursor.phase + 1);
        }
        if (!(Boundary{cursor.phase, cursor.iteration} < lead.stop)) {
            close(cursor);
            return false;
        }
        cursor.index = cursor.order[cursor.position];
        cursor.operation = &lead.phases[cursor.phase].operations[cursor.index];
        if (lead.parts.empty() || !left_out(lead, cursor.phase, cursor.iteration, cursor.operation->inference)) break;
    }
    cursor.left = cursor.operation->count;
    if (!lead.phases[cursor.phase].starts.reaches(cursor.iteration)) remember(cursor);
    return true;
}

/// Make room for the starts of the iteration that a cursor has come to.
void Machine::remember(const Cursor& cursor) {
    Thread& lead = lead_of(cursor);
    PhaseState& state = lead.phases[cursor.phase];
    i64 needed = cursor.iteration;
    if (!state.starts.has_room(cursor.iteration)) {
        for (i64 number = lead.number; number != NONE; number = threads[number].next) {
            const i64 units = cores[threads[number].core].kinds;
            for (const Cursor& other : cursors.part(threads[number].first_cursor, units)) {
                if (!other.operation || other.phase > cursor.phase) continue;
                needed = std::min(needed, other.phase < cursor.phase ? 0 : other.iteration);
            }
        }
    }
    state.starts.reach(cursor.iteration, needed - state.lag, starts_room);
}

/// Move a cursor past an operation whose last issue is done; false at the end of the stream.
bool Machine::move_on(Cursor& cursor) {
    step_on(cursor);
    return settle(cursor);
}

/// Let a cursor stand behind its operation, in the next iteration or phase if there is none.
void Machine::step_on(Cursor& cursor) {
    if (++cursor.position < cursor.order.size()) return;
    cursor.position = 0;
    if (cursor.unit == 0) cores[threads[cursor.thread].core].wrapped = true;
    if (++cursor.iteration == lead_of(cursor).phases[cursor.phase].phase->repeat) set_phase(cursor, cursor.phase + 1);
}

/// A cursor is at the end of its stream, or at the boundary at which its thread stops.
void Machine::close(Cursor& cursor) {
    lead_of(cursor).open -= 1;
    cursor.operation = nullptr;
    cursor.left = 0;
    set_ready(cursor, NEVER);
}

/// When the operation that a need points to has started, or who waits for that; null if the need holds nothing back.
i64* Machine::start_of(Thread& lead, const Cursor& cursor, const NeedOf& each) {
    const flat::Need& need = each.row;
    i64 phase = cursor.phase, iteration = cursor.iteration - need.lag;
    if (need.barrier) {
        met += 1;
        const flat::Phase& row = *lead.phases[phase].phase;
        const i64 barrier = row.first_barrier + cursor.iteration * row.barriers + each.operation;
        return barrier < 0 ? nullptr : &barriers[barrier].opened;
    }
    if (need.phase != NONE) {
        phase = need.phase;
        const i64 repeat = lead.phases[phase].phase->repeat;
        iteration = need.mirrored ? repeat - 1 - cursor.iteration : cursor.iteration;
        if (iteration >= repeat) return nullptr;
    }
    PhaseState& source = lead.phases[phase];
    if (iteration < source.first) return nullptr;
    if (!lead.parts.empty() && left_out(lead, phase, iteration, source.operations[each.operation].inference)) return nullptr;
    return &source.starts.at(iteration, each.operation);
}

/// Compute until when each cause holds the operation under a cursor back; returns the latest of them.
///
/// missing: is set to the start of the first operation that has not started and that it waits for.
i64 Machine::look_at_waits(Cursor& cursor, i64*& missing) {
    Thread& lead = lead_of(cursor);
    const flat::Operation& operation = *cursor.operation;
    i64 ready = lead.admitted;
    std::fill_n(cursor.until, program.causes.size(), 0);
    const auto hold = [&](i64 cause, i64 until) {
        check_place(cause, flat::MOST_CAUSES);
        cursor.until[cause] = std::max(cursor.until[cause], until);
        ready = std::max(ready, until);
    };
    if (lead.opens > lead.admitted) hold(head.input, lead.opens);
    const Operations& operations = lead.phases[cursor.phase].operations;
    const i64 needs = operations.needs(cursor.index);
    for (i64 number = 0; number < needs; ++number) {
        const NeedOf each = operations.need(cursor.index, number);
        const flat::Need& need = each.row;
        i64* const start = start_of(lead, cursor, each);
        if (!start) continue;
        if (*start <= NOT_STARTED) {
            if (!missing) missing = start;
            hold(need.cause, NEVER);
        } else {
            hold(need.cause, *start + need.delay);
        }
    }
    if (operation.frame) {
        const flat::Phase& phase = *lead.phases[cursor.phase].phase;
        const i64 steps = cursor.iteration + operation.ahead;
        const i64 step = phase.first_step + (phase.mirrored ? -steps : steps);
        const i64 most = lead.frame_interval > 0 ? LATEST / lead.frame_interval : LATEST;
        if (step > most) throw Overrun("the frame of step " + std::to_string(step) + " comes too late");
        // a frame of long before the first step holds nothing back
        if (step >= -most) hold(head.input, lead.came + step * lead.frame_interval + operation.frame - 1);
    }
    if (operation.takes != NONE) {
        const BufferState& buffer = lead.buffers[operation.takes];
        const i64 turn = buffer.taken - buffer.slots;
        if (turn >= 0) hold(buffer.cause, turn < buffer.frees.count() ? buffer.frees.at(turn) : NEVER);
    }
    return ready;
}

/// Compute when the operation under a cursor may issue. Where that is not known, the cursor is told when to look again.
void Machine::resolve(Cursor& cursor) {
    i64* missing = nullptr;
    const i64 ready = look_at_waits(cursor, missing);
    set_ready(cursor, ready);
    if (ready < NEVER && cursor.operation->count == 0) end_quietly(cursor, ready);
    if (ready < NEVER) return;
    const i64 own = &cursor - cursors.data();
    if (missing) {
        cursor.behind = *missing;
        *missing = NOT_STARTED - 1 - own;
    } else {
        threads[threads[cursor.thread].lead].buffers[cursor.operation->takes].waiter = own;
    }
}

/// An operation of no issue, the last one of its stream, is passed at a cycle that is known now. Until then it waits.
void Machine::end_quietly(Cursor& cursor, i64 cycle) {
    const Thread& thread = threads[cursor.thread];
    Thread& lead = lead_of(cursor);
    lead.done_at = std::max(lead.done_at, cycle);
    if (keep) {
        tables[HALTS].add({cycle, thread.core, cursor.unit, thread.context, lead.job});
        for (i64 cause = 0; cause < program.causes.size(); ++cause) tables[HALTS].add({cursor.until[cause]});
    }
    close(cursor);
}

/// An operation has started: look again at the cursors that waited for that.
void Machine::wake(i64 waiters) {
    while (waiters < NOT_STARTED) {
        Cursor& cursor = cursors[NOT_STARTED - 1 - waiters];
        waiters = cursor.behind;
        if (cursor.operation) resolve(cursor);
    }
}

/// When a cursor's operation may issue is known anew.
void Machine::set_ready(const Cursor& cursor, i64 cycle) {
    const Thread& thread = threads[cursor.thread];
    Core& core = cores[thread.core];
    Unit& unit = core.units[cursor.place];
    unit.ready.set(thread.context, std::min(cycle, NEVER));
    core.events.set(unit.place, std::min(NEVER, std::max(unit.ready.cycle(), unit.free_at)));
    if (core.number != running) events.set(core.number, core.events.cycle());
}

/// When a task finishes or pauses, or has loaded its weight set, is known anew.
void Machine::set_due(Thread& lead) {
    if (lead.open == 0 && lead.finish == NEVER) lead.finish = lead.asked == Asked::PAUSES ? lead.clear_at : lead.done_at;
    Core& core = cores[lead.core];
    core.dues.set(lead.context, std::min({lead.finish, lead.weight_set_at, lead.part_at}));
    dues.set(core.number, core.dues.cycle());
}

}  // namespace lstmsim
