// Rows of a trace that come again with a period (periods.cpp).
//
// Rows that were written in the period are written again, later by its cycles, for iterations that come so many later. A
// row tells until when each cause held its operation back. What began in the phase itself comes later with it. All else
// was over when the period began (`Look::since`), so that it tells itself by its cycle: the arrival of the task, which
// stays, and starts in earlier phases, which are looked up. Once an iteration waits for none of these, no later one does.
//
// A row grows as long as issues of one operation follow each other. So nothing is repeated while a row may still grow.
#include "machine.hpp"

namespace lstmsim {

/// So many rows are written again in the time of an event.
constexpr i64 ROWS_OF_AN_EVENT = 2;

/// Whether the next issue of a unit may belong to its last row.
bool Machine::may_go_on(const Core& core, const Unit& unit, i64 now) const {
    if (!unit.one_by_one || unit.row == NONE || unit.row_end < now) return false;
    const Thread& thread = threads[core.first_thread + unit.active];
    if (thread.first_cursor == NONE) return false;
    const Cursor& cursor = cursors[thread.first_cursor + unit.number];
    return cursor.operation && cursor.left < cursor.operation->count;
}

/// How many rows of a trace may be written until the run comes back, at least.
i64 Machine::rows_left() const { return budget * ROWS_OF_AN_EVENT; }

/// Until when a cause held the operation of a cursor back that was over before its phase; 0: it never did.
i64 Machine::held_before(Thread& lead, const Cursor& cursor, i64 cause) {
    const Operations& operations = lead.phases[cursor.phase].operations;
    const i64 frame = operations[cursor.index].frame;
    i64 until = frame && cause == head.input ? lead.came + frame - 1 : 0;
    for (i64 number = 0; number < operations.needs(cursor.index); ++number) {
        const NeedOf each = operations.need(cursor.index, number);
        if (each.row.phase == NONE || each.row.cause != cause) continue;
        const i64* const start = start_of(lead, cursor, each);
        if (start) until = std::max(until, *start + each.row.delay);
    }
    return until;
}

/// Write the rows of a core since an earlier look again, so many times.
void Machine::repeat_rows(const Core& core, const Look& before, const Look& own, i64 times) {
    constexpr i64 SWITCHES_WIDTH = 6, OF_CORE = 1;
    repeat_issues(core, before, own, times);
    Rows& all = tables[SWITCHES];
    for (i64 time = 1; time <= times; ++time) {
        for (i64 place = before.switches; place < own.switches; place += SWITCHES_WIDTH) {
            if (all[place + OF_CORE] != core.number) continue;
            const auto row = all.extend(SWITCHES_WIDTH);
            const auto old = all.all().part(place, SWITCHES_WIDTH);
            std::copy(old.begin(), old.end(), row.begin());
            row[0] += time * (own.cycle - before.cycle);
        }
    }
}

/// The same of its issues.
void Machine::repeat_issues(const Core& core, const Look& before, const Look& own, i64 times) {
    Rows& all = tables[ISSUES];
    const i64 width = issue::COLUMNS + program.causes.size();
    Array<i64> window;
    const Array<Again> again = rows_again(core, before, own, window);
    if (window.empty()) return;
    const Slice<i64> made = all.extend(times * window.size());
    i64* row = made.begin();
    for (i64 time = 1; time <= times; ++time) {
        const i64 later = time * (own.cycle - before.cycle);
        const i64* old = window.data();
        for (const Again& each : again) {
            std::copy(old, old + issue::COLUMNS, row);
            row[issue::START] += later;
            row[issue::ITERATION] += time * each.apart;
            for (i64 cause = issue::COLUMNS; cause < width; ++cause) row[cause] = old[cause] + (old[cause] > each.since ? later : 0);
            if (each.looks_back) look_back(each, row);
            old += width;
            row += width;
        }
    }
    note_order(all.size() - made.size(), width);
    budget -= times * again.size() / ROWS_OF_AN_EVENT;
}

/// The issues of a core between two looks, and what has to be known of each when it comes again.
Array<Again> Machine::rows_again(const Core& core, const Look& before, const Look& own, Array<i64>& window) {
    const i64 width = issue::COLUMNS + program.causes.size();
    Array<Again> of_context(core.contexts), again;
    for (i64 context = 0, busy = 0; context < core.contexts; ++context) {
        Thread& thread = threads[core.first_thread + context];
        if (thread.job == NONE) continue;
        of_context[context] = {&thread, own.iterations[busy] - before.iterations[busy], own.since[busy], false};
        busy += 1;
    }
    for (i64 place = before.issues; place < own.issues; place += width) {
        const auto row = tables[ISSUES].all().part(place, width);
        // another core may have gone on in between
        if (row[issue::CORE] != core.number) continue;
        for (const i64 number : row) window.push(number);
        Again each = of_context[row[issue::CONTEXT]];
        each.looks_back = each.thread->phases[row[issue::PHASE]].streams->far > 0;
        again.push(each);
    }
    return again;
}

/// Waits of a row of issues that were over before its phase, in the iteration of the row.
void Machine::look_back(const Again& again, i64* row) {
    Cursor cursor;
    cursor.phase = row[issue::PHASE];
    cursor.iteration = row[issue::ITERATION];
    cursor.index = row[issue::OPERATION];
    for (i64 cause = 0; cause < program.causes.size(); ++cause) {
        i64& until = row[issue::COLUMNS + cause];
        if (until > 0 && until <= again.since) until = held_before(*again.thread, cursor, cause);
    }
}

}  // namespace lstmsim
