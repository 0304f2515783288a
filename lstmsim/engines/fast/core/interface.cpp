// The plain C interface: whole numbers and addresses of arrays of whole numbers.
#include "interface.hpp"

#include <algorithm>

#include "machine.hpp"

namespace lstmsim {
namespace {

/// What the core comes back with when nothing failed is smaller than any failure.
static_assert(static_cast<i64>(HUNGRY) < static_cast<i64>(REFUSED));

/// Bits of the options of `lstmsim_open`.
enum Option : i64 { KEEP = 1, FED = 2, EACH = 4 };

}  // namespace
}  // namespace lstmsim

using lstmsim::i64;
using lstmsim::Machine;

/// The version of the flat format that the core reads.
LSTMSIM_PUBLIC i64 lstmsim_format() { return lstmsim::flat::FORMAT; }

/// Open a machine for the program in `words`, which must live as long as the machine, and stay as it is. 0, or more if it
/// failed.
///
/// options: bits; 1: record a trace, 2: tasks of the program are templates, requests come by `lstmsim_feed`, 4: run
/// what comes again as well (steady.cpp, periods.cpp).
/// machine: is set to the machine; null if it failed.
/// message: room for the reason of a failure.
LSTMSIM_PUBLIC i64 lstmsim_open(
    const i64* words, i64 count, i64 options, Machine** machine, char* message, i64 room) {
    *machine = nullptr;
    return lstmsim::guarded(
        [&] {
            const lstmsim::flat::Program program = lstmsim::flat::read(words, count);
            lstmsim::flat::check(program);
            *machine = new Machine(program, options & lstmsim::KEEP, options & lstmsim::FED, !(options & lstmsim::EACH));
            return i64{0};
        },
        message, room);
}

/// Go on for about `events` events. 0: all tasks are done, 1: not yet, 2: stuck, 3: the next requests are needed; more:
/// it failed, for the reason in `message`.
LSTMSIM_PUBLIC i64 lstmsim_run(Machine* machine, i64 events, char* message, i64 room) {
    return lstmsim::guarded([&] { return static_cast<i64>(machine->run(events)); }, message, room);
}

/// Let requests come: `count` rows of (release, number of the template, key), in order. 0, or more if it failed.
LSTMSIM_PUBLIC i64 lstmsim_feed(Machine* machine, const i64* rows, i64 count, i64 more, char* message, i64 room) {
    return lstmsim::guarded([&] { machine->feed(rows, count, more != 0); return i64{0}; }, message, room);
}

/// How many numbers a table of the run has.
LSTMSIM_PUBLIC i64 lstmsim_size(Machine* machine, i64 table) { return machine->table(table).size(); }

/// Copy the numbers of a table of the run to where there is room for them.
LSTMSIM_PUBLIC void lstmsim_copy(Machine* machine, i64 table, i64* room) {
    const lstmsim::Slice<const i64> numbers = machine->table(table);
    std::copy(numbers.begin(), numbers.end(), room);
}

/// Hand over the numbers of a table of rows, which `lstmsim_free` frees, and forget them. in_order: is set to 1 if issues
/// stand in their canonical order already.
LSTMSIM_PUBLIC i64* lstmsim_take(Machine* machine, i64 table, i64* in_order) {
    *in_order = table == lstmsim::ISSUES && machine->in_order();
    return machine->take(table);
}

/// Free numbers that were handed over.
LSTMSIM_PUBLIC void lstmsim_free(i64* numbers) { std::free(numbers); }

/// Forget what is in a table.
LSTMSIM_PUBLIC void lstmsim_clear(Machine* machine, i64 table) { machine->clear(table); }

/// Write the totals up to cycle `upto` to their table. 0, or more if it failed.
LSTMSIM_PUBLIC i64 lstmsim_total(Machine* machine, i64 upto, char* message, i64 room) {
    return lstmsim::guarded([&] { machine->total(upto); return i64{0}; }, message, room);
}

/// Write down what a machine that is stuck waits for. 0, or more if it failed.
LSTMSIM_PUBLIC i64 lstmsim_waits(Machine* machine, char* message, i64 room) {
    return lstmsim::guarded([&] { machine->note_waits(); return i64{0}; }, message, room);
}

/// The cycle of the last start.
LSTMSIM_PUBLIC i64 lstmsim_last_cycle(Machine* machine) { return machine->last_cycle; }

/// Which of `contexts` threads a unit would choose, of which each may issue from a cycle of `ready` on; -1: none.
LSTMSIM_PUBLIC i64 lstmsim_choose(i64 policy, i64 active, i64 fresh, const i64* ready, i64 contexts, i64 now) {
    i64 chosen = lstmsim::NONE;
    char unheard[1];
    lstmsim::guarded(
        [&] {
            lstmsim::Unit unit;
            unit.policy = static_cast<lstmsim::flat::Policy>(policy);
            unit.active = active;
            unit.fresh = fresh != 0;
            unit.ready = lstmsim::Soonest(contexts);
            for (i64 context = 0; context < contexts; ++context) unit.ready.set(context, ready[context]);
            chosen = lstmsim::choose(unit, contexts, now);
            return i64{0};
        },
        unheard, 0);
    return chosen;
}

/// Forget a machine.
LSTMSIM_PUBLIC void lstmsim_close(Machine* machine) { delete machine; }
