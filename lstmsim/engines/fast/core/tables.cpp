// What a run has written down for its caller.
#include "machine.hpp"

namespace lstmsim {

Slice<const i64> Machine::table(i64 number) {
    static_assert(sizeof(TaskRow) % sizeof(i64) == 0, "a row has whole numbers alone");
    if (number == TASKS) {
        const i64 width = sizeof(TaskRow) / sizeof(i64);
        return Slice<const i64>(reinterpret_cast<const i64*>(rows.data()), rows.size() * width);
    }
    if (number < 0 || number > OVER) return {};
    return Slice<const i64>(tables[number].all().begin(), tables[number].size());
}

i64* Machine::take(i64 number) {
    i64* const numbers = tables[number].release();
    clear(number);
    return numbers;
}

void Machine::clear(i64 number) {
    if (number < 0 || number > OVER) return;
    tables[number].clear();
    forget_stretches();
    for (Core& core : cores) core.last.clear();
    if (number != ISSUES) return;
    issues_in_order = true;
    // issues that go on have no row any more
    for (Core& core : cores) {
        for (Unit& unit : core.units) unit.row = NONE;
    }
}

}  // namespace lstmsim
