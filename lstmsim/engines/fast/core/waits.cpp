// What a program that is stuck waits for.
#include "machine.hpp"

namespace lstmsim {

/// Write down, in order of cores and threads, what each cursor waits for that has not started: its task, the kind of its
/// first core, how many cores, the size of its batch, the phase, iteration and operation, and which of the operation's needs (`NONE`: a slot
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
            const Operations& operations = lead.phases[cursor.phase].operations;
            i64 lacking = NONE;
            for (i64 number = operations.needs(cursor.index) - 1; missing && number >= 0; --number) {
                if (start_of(lead, cursor, operations.need(cursor.index, number)) == missing) lacking = number;
            }
            tables[WAITS].add({fed ? templates[thread.job] : thread.job, cores[lead.core].kind, members, 1 + lead.others.size(), cursor.phase,
                                   cursor.iteration, cursor.index, lacking});
        }
    }
}

}  // namespace lstmsim
