// Broken rules of the machine that a flat program describes: its cores, what they hold, and where tasks may run.
#include <set>

#include "check.hpp"

namespace lstmsim::flat {

namespace {

void check_head(const Program& p) {
    const Row row{"head", 0};
    if (p.head.size() != 1) throw Refusal("table head: there are " + std::to_string(p.head.size()) + " rows, not 1");
    const Head& head = p.head[0];
    row.between("names", head.names, 1, MOST_NAMES);
    row.row_of("busy", head.busy, head.names);
    row.row_of("switching", head.switching, head.names);
    row.row_of("drain", head.drain, head.names);
    row.row_of("idle", head.idle, head.names);
    if (p.causes.size() < 1 || p.causes.size() > MOST_CAUSES) {
        throw Refusal("table causes: there are " + std::to_string(p.causes.size()) + " rows, not 1 to " +
                      std::to_string(MOST_CAUSES));
    }
    row.row_of("input", head.input, p.causes.size());
    for (i64 i = 0; i < p.causes.size(); ++i) Row{"causes", i}.row_of("name", p.causes[i].name, head.names);
}

/// What lies in the memory of a core at the start.
void check_held(const Program& p, const Row& row, const Core& core) {
    i64 sum = 0;
    std::set<i64> known;
    for (i64 i = core.first_held; i < core.first_held + core.held; ++i) {
        const Row own{"held", i};
        const i64 weight_set = p.held[i].weight_set;
        own.row_of("weight_set", weight_set, p.weight_sets.size());
        if (!known.insert(weight_set).second) own.refuse("weight_set", weight_set, "but the core holds it already");
        sum += p.weight_sets[weight_set].size;
        if (sum <= (core.capacity == NONE ? LATEST : core.capacity)) continue;
        row.refuse("capacity", core.capacity, "but what it holds has a size of " + std::to_string(sum));
    }
}

void check_cores(const Program& p) {
    std::set<i64> keys;
    for (i64 i = 0; i < p.weight_sets.size(); ++i) {
        const Row row{"weight_sets", i};
        row.between("size", p.weight_sets[i].size, 0, MOST_CYCLES);
        if (p.weight_sets[i].key != OWN_ROOM && !keys.insert(p.weight_sets[i].key).second) row.refuse("key", p.weight_sets[i].key, "and an earlier row has it too");
    }
    for (i64 i = 0; i < p.units.size(); ++i) {
        const Row row{"units", i};
        row.between("policy", p.units[i].policy, 0, POLICIES - 1);
        row.between("switch_cycles", p.units[i].switch_cycles, 0, MOST_CYCLES);
        row.between("instances", p.units[i].instances, 1, MOST_CURSORS);
    }
    Sum cursors("threads times units", MOST_CURSORS), places("places for weight sets", MOST_HELD);
    Sum held("weight sets that cores hold at the start", MOST_HELD);
    for (i64 i = 0; i < p.cores.size(); ++i) {
        const Row row{"cores", i};
        const Core& core = p.cores[i];
        row.rows_of("first_unit", core.first_unit, core.units, p.units.size());
        row.between("units", core.units, 1, MOST_CURSORS);
        row.between("contexts", core.contexts, 1, MOST_CURSORS);
        cursors.add(row, "contexts", core.contexts, core.contexts * core.units);
        row.row_or_none("accounted", core.accounted, core.units);
        for (const Unit& unit : p.units.part(core.first_unit, core.units)) {
            cursors.add(row, "units", core.units, 1 + (unit.instances - 1) * core.contexts);
        }
        row.between("capacity", core.capacity, NONE, LATEST);
        row.flag("shared", core.shared);
        row.flag("mirrors", core.mirrors);
        if (core.mirrors && !core.shared) row.refuse("mirrors", 1, "but the core is not shared");
        places.add(row, "kind", core.kind, p.weight_sets.size());
        row.rows_of("first_held", core.first_held, core.held, p.held.size());
        held.add(row, "held", core.held, core.held);
        check_held(p, row, core);
    }
}

void check_places(const Program& p) {
    Sum thread_slots("thread slots of places", MOST_THREAD_SLOTS);
    Array<i64> threads(p.cores.size(), 0);
    i64 all = 0;
    for (const Core& core : p.cores) all += core.shared ? 0 : core.contexts;
    for (i64 i = 0; i < p.places.size(); ++i) {
        const Row row{"places", i};
        const Place& place = p.places[i];
        row.rows_of("first_thread_slot", place.first_thread_slot, place.thread_slots, p.thread_slots.size());
        row.between("thread_slots", place.thread_slots, 1, p.thread_slots.size());
        thread_slots.add(row, "thread_slots", place.thread_slots, place.thread_slots);
        i64 own_threads = 0;
        for (i64 thread_slot = place.first_thread_slot; thread_slot < place.first_thread_slot + place.thread_slots; ++thread_slot) {
            const Row own{"thread_slots", thread_slot};
            const i64 core = p.thread_slots[thread_slot].core;
            own.row_of("core", core, p.cores.size());
            if (++threads[core] > p.cores[core].contexts) {
                own.refuse("core", core, "of which place " + std::to_string(i) + " needs more threads than it has");
            }
            own_threads += !p.cores[core].shared;
            if (!p.cores[core].mirrors) continue;
            if (p.cores[core].contexts != all) own.refuse("core", core, "which mirrors another number of threads");
            if (threads[core] > own_threads) own.refuse("core", core, "which mirrors a thread that is not before it");
        }
        for (const ThreadSlot& thread_slot : p.thread_slots.part(place.first_thread_slot, place.thread_slots)) threads[thread_slot.core] = 0;
    }
}

void check_groups(const Program& p) {
    Sum thread_slots("thread slots of groups", MOST_THREAD_SLOTS);
    for (i64 i = 0; i < p.groups.size(); ++i) {
        const Row row{"groups", i};
        const Group& group = p.groups[i];
        row.rows_of("first_place", group.first_place, group.places, p.places.size());
        row.between("places", group.places, 1, p.places.size());
        for (const Place& place : p.places.part(group.first_place, group.places)) {
            thread_slots.add(row, "places", group.places, place.thread_slots);
        }
    }
}

}  // namespace

void check_machine(const Program& program) {
    check_head(program);
    check_cores(program);
    check_places(program);
    check_groups(program);
}

}  // namespace lstmsim::flat
