// Names for the cycles of a core's accounted unit, as the run comes past them.
//
// The rules are those of lstmsim.program.accounts, which reads the names off a trace.
#include "machine.hpp"

namespace lstmsim {

/// Name the cycles of an accounted unit from the last named one up to `upto`, in which nothing issued.
void Machine::account(Core& core, Unit& unit, i64 upto) {
    while (unit.named < upto) {
        i64 end = upto;
        const i64 name = name_cycle(core, unit, end);
        core.counted[name] += end - unit.named;
        unit.named = end;
        budget -= core.contexts / unit.instances / STEPS_OF_AN_EVENT;
    }
}

/// The same of the unit on which a thread of a core is accounted, if any: the thread is about to be taken or freed.
void Machine::account(Core& core, i64 context, i64 upto) {
    if (core.accounted == NONE) return;
    const i64 first = core.first_place[core.accounted];
    account(core, core.units[first + context % core.units[first].instances], upto);
}

/// The name of a unit's next cycle, in which nothing issues: the strongest of those of its threads.
///
/// upto: is set to the first cycle after that one at which a cause no longer holds a thread back, if that is sooner.
i64 Machine::name_cycle(Core& core, const Unit& unit, i64& upto) {
    const i64 now = unit.named;
    const Soonest& ready = unit.ready;
    i64 name = head.idle;
    for (i64 context = unit.instance; context < core.contexts; context += unit.instances) {
        const Thread& thread = threads[core.first_thread + context];
        if (thread.job == NONE) continue;
        Cursor& cursor = cursors[thread.first_cursor + core.accounted];
        if (cursor.operation && ready.at(context) <= now) continue;
        i64* missing = nullptr;
        // of operations that it waits for, another one than the first may have started by now
        if (cursor.operation && ready.at(context) == NEVER) look_at_waits(cursor, missing);
        bool named = false;
        for (i64 cause = 0; cause < program.causes.size(); ++cause) {
            if (cursor.until[cause] <= now) continue;
            upto = std::min(upto, cursor.until[cause]);
            if (!named) name = std::min(name, program.causes[cause].name);
            named = true;
        }
        // the stream may have ended with an operation of no issue that still waits
        if (!cursor.operation && !named) name = std::min(name, head.drain);
    }
    return name;
}

/// The accounted unit is busy or switches from `now` on.
void Machine::count_taken(Core& core, Unit& unit, i64 now, i64 cycles, i64 name) {
    if (!unit.accounted) return;
    account(core, unit, now);
    core.counted[name] += cycles;
    unit.named = now + cycles;
}

/// Name the cycles up to `upto`; then write down, for each core, the cycles of each name, work and issues.
void Machine::total(i64 upto) {
    tables[TOTALS].clear();
    for (Core& core : cores) {
        for (Unit& unit : core.units) {
            if (unit.accounted) account(core, unit, upto);
        }
        for (const i64 cycles : core.counted) tables[TOTALS].add({cycles});
        tables[TOTALS].add({core.worked, core.issued});
    }
}

}  // namespace lstmsim
