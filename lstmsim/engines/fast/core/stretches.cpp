// A stretch of a run is watched, kept and done once more (steady.cpp).
#include "machine.hpp"

namespace lstmsim {

/// Tables whose rows belong to a stretch, and which of their columns are cycles or tasks.
struct TraceTable {
    Table table;
    i64 width, cycle, task;
    bool causes;  // whether cycles of all causes follow; 0 there says that a cause never held
};
constexpr TraceTable TRACE_TABLES[] = {
    {ISSUES, issue::COLUMNS, issue::START, issue::TASK, true},
    {SWITCHES, 6, 0, NONE, false},
    {THREAD_SLOTS, 4, NONE, 0, false},
    {HALTS, 5, 0, 4, true},
};

/// A stretch begins that is run: what has to be known of its beginning.
void Machine::watch(i64 barrier, i64 now) {
    watched.barrier = barrier;
    watched.begin = now;
    watched.before = state;
    watched.counted.clear();
    for (const Core& core : cores) {
        for (const i64 cycles : core.counted) watched.counted.push(cycles);
        watched.counted.push(core.worked);
        watched.counted.push(core.issued);
    }
    watched.finished = finished;
    watched.placements = placements;
    watched.arrived = arrived;
    watched.stamps = stamps;
    watched.met = met;
    watched.first_row.clear();
    for (const TraceTable& each : TRACE_TABLES) watched.first_row.push(tables[each.table].size());
}

/// A stretch that was run has ended, if one began: keep it, if its tasks were all that happened.
void Machine::keep_stretch(i64 now) {
    const i64 barrier = std::exchange(watched.barrier, NONE);
    if (barrier == NONE) return;
    const auto tasks = tasks_behind(barrier);
    const i64 count = tasks.size(), ends = jobs[tasks[0].second].ends;
    if (finished - watched.finished != count || placements - watched.placements != count) return;
    if (met - watched.met != count || arrived != watched.arrived || stamps != watched.stamps) return;
    if (starts_room.given_back != watched.before[0] || barriers[ends].opened != now) return;
    for (const auto& [its_barrier, job] : tasks) {
        if (rows[job].finish <= watched.begin || rows[job].finish > now) return;
    }
    watched.barrier = barrier;
    watched.end = now;
    watched.last_cycle = last_cycle;
    watched.active.clear();
    watched.fresh.clear();
    i64 place = 0;
    for (const Core& core : cores) {
        for (const i64 cycles : core.counted) {
            watched.counted[place] = cycles - watched.counted[place];
            place += 1;
        }
        watched.counted[place] = core.worked - watched.counted[place];
        watched.counted[place + 1] = core.issued - watched.counted[place + 1];
        place += 2;
        for (const Unit& unit : core.units) {
            watched.active.push(unit.active);
            watched.fresh.push(unit.fresh);
        }
    }
    watched.end_row.clear();
    for (const TraceTable& each : TRACE_TABLES) watched.end_row.push(tables[each.table].size());
    if (stretches.size() < MOST_STRETCHES) stretches.push({});
    stretches[next_stretch] = std::exchange(watched, {});
    next_stretch = (next_stretch + 1) % MOST_STRETCHES;
}

/// Do at once what a stretch did, for the tasks behind a barrier.
void Machine::repeat(const Stretch& known, i64 barrier, i64 now) {
    const i64 later = now - known.begin, end = known.end + later;
    const auto own = tasks_behind(barrier), others = tasks_behind(known.barrier);
    const i64 apart = own[0].second - others[0].second, ends = jobs[own[0].second].ends;
    for (i64 i = 0; i < own.size(); ++i) {
        TaskRow& row = rows[own[i].second] = rows[others[i].second];
        row.admitted += later;
        row.finish += later;
        row.arrived += later;
    }
    finished += own.size();
    i64 place = 0, number = 0;
    for (Core& core : cores) {
        for (i64& cycles : core.counted) cycles += known.counted[place++];
        core.worked += known.counted[place++];
        core.issued += known.counted[place++];
        for (Unit& unit : core.units) {
            unit.active = known.active[number];
            unit.fresh = known.fresh[number];
            unit.free_at = unit.named = end;
            number += 1;
        }
    }
    if (known.last_cycle > known.begin) last_cycle = known.last_cycle + later;
    for (i64 table = 0; keep && table < known.first_row.size(); ++table) repeat_rows(known, table, later, apart);
    budget -= 1 + own.size() / STEPS_OF_AN_EVENT;
    coming.clear();
    looked_at = end;
    barriers[ends].left = 0;
    barriers[ends].latest = end;
    open(ends);
}

/// The rows of stretches are not in the tables any more.
void Machine::forget_stretches() {
    stretches.clear();
    next_stretch = 0;
    watched.barrier = NONE;
}

/// Write the rows of a table once more, later and for other tasks.
void Machine::repeat_rows(const Stretch& known, i64 table, i64 later, i64 apart) {
    const TraceTable& shape = TRACE_TABLES[table];
    const i64 causes = shape.causes ? program.causes.size() : 0, width = shape.width + causes;
    const i64 first = known.first_row[table], count = known.end_row[table] - first;
    Rows& all = tables[shape.table];
    const Slice<i64> made = all.extend(count);
    const Slice<i64> from = all.all().part(first, count);
    bool wrong = false;
    for (i64 place = 0; place < count; place += width) {
        const i64* const old = from.part(place, width).begin();
        i64* const row = made.part(place, width).begin();
        std::copy(old, old + shape.width, row);
        if (shape.cycle != NONE) row[shape.cycle] += later;
        if (shape.task != NONE) row[shape.task] += apart;
        for (i64 cause = shape.width; cause < width; ++cause) {
            wrong = wrong || (old[cause] > 0 && old[cause] <= known.begin);
            row[cause] = old[cause] > 0 ? old[cause] + later : 0;
        }
    }
    if (wrong) throw Fault("an operation was held back by something before its stretch");
    if (shape.table == ISSUES && count > 0) note_order(all.size() - count, width);
    budget -= count / width / STEPS_OF_AN_EVENT;
}

}  // namespace lstmsim
