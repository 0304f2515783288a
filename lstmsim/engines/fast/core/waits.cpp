// What a program that is stuck waits for.
#include "machine.hpp"

namespace lstmsim {

/// Write down, in order of cores and threads, what each cursor waits for that has not started: its task, the kind of its
/// first core and how many cores, the phase, iteration and operation, and which of the operation's needs (`NONE`: a slot
/// of its buffer).
void Machine::note_waits() {
    tables[WAITS].clear();
    for (const Thread& thread : threads) {
        if (thread.job == NONE) continue;
        Thread& lead = threads[thread.lead];
        i64 members = 0;
        for (i64 number = lead.number; number != NONE; number = threads[number].next) members += 1;
        for (i64 unit = 0; unit < cores[thread.core].kinds; ++unit) {
            Cursor& cursor = cursors[thread.first_cursor + unit];
            if (!cursor.operation) continue;
            i64* missing = nullptr;
            if (look_at_waits(cursor, missing) < NEVER) continue;
            i64 lacking = NONE, index = 0;
            for (const flat::Need& need :
                 lead.phases[cursor.phase].needs.part(cursor.operation->first_need, cursor.operation->needs)) {
                if (lacking == NONE && missing && start_of(lead, cursor, need) == missing) lacking = index;
                index += 1;
            }
            const i64 operation = cursor.operation - lead.phases[cursor.phase].operations.begin();
            tables[WAITS].add({fed ? templates[thread.job] : thread.job, cores[lead.core].kind, members, cursor.phase,
                                   cursor.iteration, operation, lacking});
        }
    }
}

}  // namespace lstmsim
