// What a unit of a core does in a cycle: choose a thread, switch to it, or issue from it.
#include "machine.hpp"

namespace lstmsim {

/// Which of its threads a unit turns to, or `NONE`; the choices are those of lstmsim/program/policy.py.
i64 choose(const Unit& unit, i64 contexts, i64 now) {
    if (unit.policy == flat::FIFO) return unit.ready.cycle() <= now ? unit.ready.place() : NONE;
    i64 first = unit.active;
    if (unit.policy == flat::FINE && !unit.fresh) first = first + 1 < contexts ? first + 1 : 0;
    const i64 chosen = unit.ready.next(first, now);
    return chosen != NONE ? chosen : unit.ready.next(0, now);
}

/// Let a unit that is free choose among the threads of its core, once. One of them may issue.
void Machine::turn(Core& core, Unit& unit, i64 now) {
    const i64 chosen = choose(unit, core.contexts, now), before = unit.active;
    check_place(chosen, core.contexts);
    unit.active = chosen;
    unit.fresh = chosen != before && unit.switch_cycles > 0;
    if (unit.fresh) {
        unit.free_at = now + unit.switch_cycles;
        count_taken(core, unit, now, unit.switch_cycles, head.switching);
        if (keep) {
            tables[SWITCHES].add({now, core.number, unit.number, unit.switch_cycles, before, chosen});
        }
    } else {
        unit.free_at = issue(core, unit, chosen, now);
    }
    core.events.set(unit.place, std::max(unit.ready.cycle(), unit.free_at));
}

/// Issue once, or all that is left of an operation where nothing can come between; returns when the unit is free.
i64 Machine::issue(Core& core, Unit& unit, i64 context, i64 now) {
    Thread& thread = threads[core.first_thread + context];
    Cursor& cursor = cursors[thread.first_cursor + unit.number];
    const flat::Operation& operation = *cursor.operation;
    const i64 issues = unit.one_by_one ? 1 : cursor.left;
    const i64 end = now + issues * operation.cycles + extra_of(thread, cursor);
    if (keep) record(core, unit, thread, cursor, now, issues, end);
    count_taken(core, unit, now, end - now, head.busy);
    add(core.worked, issues * operation.work);
    add(core.issued, issues);
    // what follows from the start of the last issue comes later by the extra cycles
    const i64 start = end - operation.cycles;
    last_cycle = std::max(last_cycle, now + (issues - 1) * operation.cycles);
    if (cursor.left == operation.count && operation.takes != NONE) {
        threads[thread.lead].buffers[operation.takes].taken += 1;
    }
    cursor.ended = end;
    cursor.reached = {cursor.phase, cursor.iteration + 1};
    cursor.left -= issues;
    // what issues next on this unit comes when the unit is free
    unit.free_at = end;
    if (cursor.left == 0) complete(thread, cursor, start);
    return end;
}

/// How many cycles more than usual the operation under a cursor takes in its iteration.
i64 Machine::extra_of(const Thread& thread, const Cursor& cursor) const {
    if (cursor.operation->extra == NONE) return 0;
    const flat::Phase& phase = *threads[thread.lead].phases[cursor.phase].phase;
    return program.extras[phase.first_extra + cursor.operation->extra * phase.repeat + cursor.iteration].cycles;
}

/// Write a row of the trace, or add issues to the last row of the unit if nothing came between.
void Machine::record(
    const Core& core, Unit& unit, const Thread& thread, const Cursor& cursor, i64 now, i64 issues, i64 end) {
    const i64 causes = program.causes.size();
    Rows& table = tables[ISSUES];
    const flat::Operation& operation = *cursor.operation;
    const i64 who[] = {thread.job, cursor.phase, cursor.iteration, cursor.index};
    if (unit.row != NONE && unit.row_end == now &&
        std::equal(std::begin(who), std::end(who), table.all().part(unit.row + issue::TASK, 4).begin())) {
        table[unit.row + issue::COUNT] += issues;
    } else {
        unit.row = table.size();
        const Slice<i64> row = table.extend(issue::COLUMNS + causes);
        const i64 where[] = {now, core.number, unit.number, thread.context};
        std::copy(std::begin(where), std::end(where), &row[issue::START]);
        std::copy(std::begin(who), std::end(who), &row[issue::TASK]);
        row[issue::COUNT] = issues;
        row[issue::CYCLES] = (end - now) / issues;
        // what had held the operation back is told with its first issue
        const bool first = cursor.left == operation.count;
        for (i64 cause = 0; cause < causes; ++cause) row[issue::COLUMNS + cause] = first ? cursor.until[cause] : 0;
        note_order(unit.row, row.size());
    }
    unit.row_end = end;
}

/// A row was written behind another one: do both stand in the order of (start, core, unit, context)?
void Machine::note_order(i64 row, i64 width) {
    if (row == 0 || !issues_in_order) return;
    const i64 *const own = &tables[ISSUES][row], *const before = own - width;
    issues_in_order = !std::lexicographical_compare(own, own + issue::TASK, before, before + issue::TASK);
}

/// The last issue of an operation is at `start`: move on, and look again at whoever waited for it.
void Machine::complete(Thread& thread, Cursor& cursor, i64 start) {
    Thread& lead = threads[thread.lead];
    const flat::Operation& operation = *cursor.operation;
    PhaseState& phase = lead.phases[cursor.phase];
    const i64 index = cursor.index;
    i64& place = phase.starts.at(cursor.iteration, index);
    const i64 waiters = std::exchange(place, start);
    i64 waiter = NONE;
    if (operation.frees != NONE) {
        BufferState& buffer = lead.buffers[operation.frees];
        buffer.frees.add(start + operation.cycles, buffer.taken - buffer.slots);
        waiter = std::exchange(buffer.waiter, NONE);
    }
    const i64 done = start + operation.result_cycles;
    lead.done_at = std::max(lead.done_at, done);
    if (preempting) lead.clear_at = std::max(lead.clear_at, start + phase.echoes[index]);
    if (lead.loads > 0 && cursor.phase < lead.profile->loading) {
        lead.loaded = std::max(lead.loaded, done);
        if (--lead.loads == 0) lead.weight_set_at = lead.loaded;
    }
    if (!lead.parts.empty()) complete_part(lead, cursor, done);
    if (operation.arrives != NONE) {
        const flat::Phase& row = *phase.phase;
        arrive_at(row.first_barrier + cursor.iteration * row.barriers + operation.arrives, start + operation.cycles);
    }
    const i64 before = cursor.phase;
    if (move_on(cursor)) resolve(cursor);
    if (cursor.phase != before) lead.crossed = std::max(lead.crossed, start);
    wake(waiters);
    if (waiter != NONE && cursors[waiter].operation) resolve(cursors[waiter]);
    if (lead.open == 0 || lead.weight_set_at < NEVER || lead.part_at < NEVER) set_due(lead);
}

}  // namespace lstmsim
