// A running task is asked to make room for one of a smaller rank, stops at a boundary, and waits.
#include "machine.hpp"

namespace lstmsim {

/// Ask one of the running tasks on the cores of a group to pause, if any may be asked. Where that one will just finish,
/// another one may be asked in the next cycle.
void Machine::ask(const Group& group, i64 rank, i64 now) {
    Thread* const lead = victim(group, rank);
    if (lead) stop(*lead, now);
}

/// The thread that is asked: of the largest rank, then admitted last, then the highest. Null if there is none, or if one
/// is about to pause already.
Thread* Machine::victim(const Group& group, i64 rank) {
    Thread* victim = nullptr;
    for (const i64 number : group.firsts) {
        const Core& core = cores[number];
        if (core.closed_in == pass) continue;
        for (i64 context = 0; context < core.contexts; ++context) {
            const Thread& member = threads[core.first_thread + context];
            if (member.job == NONE) continue;
            Thread& lead = threads[member.lead];
            if (lead.asked == Asked::PAUSES) return nullptr;
            const bool whole = lead.next == NONE && lead.profile->weight_set == NONE && lead.profile->moldables == 0;
            if (!whole || lead.asked != Asked::NO || lead.rank <= rank) continue;
            if (!victim || std::tie(lead.rank, lead.admitted) >= std::tie(victim->rank, victim->admitted)) {
                victim = &lead;
            }
        }
    }
    return victim;
}

/// Let a task stop at the first boundary that none of its streams has passed.
void Machine::stop(Thread& lead, i64 now) {
    Core& core = cores[lead.core];
    const auto own = cursors.part(lead.first_cursor, core.kinds);
    Boundary stop = lead.entry;
    for (const Cursor& cursor : own) {
        Boundary reached = cursor.reached;
        if (reached.phase < lead.phases.size() && reached.iteration == lead.phases[reached.phase].phase->repeat) {
            reached = {reached.phase + 1, 0};
        }
        if (stop < reached) stop = reached;
    }
    lead.stop = stop;
    lead.asked = stop.phase == lead.phases.size() ? Asked::FINISHES : Asked::PAUSES;
    if (lead.asked == Asked::FINISHES) look = now + 1;
    account(core, lead.context, now);
    for (Cursor& cursor : own) {
        if (!cursor.operation || Boundary{cursor.phase, cursor.iteration} < stop) continue;
        if (keep && cursor.ended < now) note_halt(lead, cursor, now);
        close(cursor);
        // what it waited for does not matter any more
        std::fill_n(cursor.until, program.causes.size(), 0);
    }
    if (lead.open > 0) return;
    if (lead.asked == Asked::PAUSES) lead.finish = std::max(lead.clear_at, now + 1);
    set_due(lead);
}

/// Write down what had held an operation back that is put off.
void Machine::note_halt(const Thread& lead, Cursor& cursor, i64 now) {
    i64* missing = nullptr;
    look_at_waits(cursor, missing);
    tables[HALTS].add({now, lead.core, cursor.unit, lead.context, lead.job});
    for (i64 cause = 0; cause < program.causes.size(); ++cause) {
        tables[HALTS].add({std::min(cursor.until[cause], now)});
    }
}

/// A task that has stopped begins to wait for a thread of its core.
void Machine::pause(Thread& lead, i64 now) {
    paused[lead.job] = {lead.stop, lead.core, lead.context, now};
    groups[new_groups + lead.core].waiting.insert({lead.rank, lead.came, jobs[lead.job].number, lead.job});
}

}  // namespace lstmsim
