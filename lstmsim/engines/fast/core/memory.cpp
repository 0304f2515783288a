// What lies in the memories of cores: whether a task finds its weight set there, or room for it.
#include "machine.hpp"

namespace lstmsim {

/// Whether a core has what a task needs, or no memory that matters.
bool Machine::holds(const Core& core, i64 weight_set) const {
    return core.capacity == NONE || core.held[weight_set].stamp > 0;
}

/// Whether a weight set is there (and not only on its way), or fits beside what running tasks use.
bool Machine::has_room(const Core& core, i64 weight_set) const {
    if (core.capacity == NONE) return true;
    const Held& held = core.held[weight_set];
    if (held.stamp > 0) return !held.on_way;
    return core.used + program.weight_sets[weight_set].size <= core.capacity;
}

/// Drop what no running task uses, the least recently used first, until there is room for so much more.
void Machine::make_room(Core& core, i64 size) {
    while (core.lying + size > core.capacity) {
        i64 oldest = NONE;
        for (i64 other = 0; other < core.held.size(); ++other) {
            const Held& held = core.held[other];
            if (held.stamp == 0 || held.users > 0) continue;
            if (oldest == NONE || held.stamp < core.held[oldest].stamp) oldest = other;
        }
        core.held[oldest].stamp = 0;
        core.lying -= program.weight_sets[oldest].size;
    }
}

/// A task with a weight set begins on some cores. Returns whether all of them hold the weight set already.
///
/// loads: how many operations of the task load the weight set, if one of the cores does not hold it.
bool Machine::fill_memories(const Array<i64>& thread_slots, i64 weight_set, i64 loads) {
    bool warm = true;
    for (const i64 core : thread_slots) warm = warm && holds(cores[core], weight_set);
    const i64 size = program.weight_sets[weight_set].size;
    for (const i64 number : std::set<i64>(thread_slots.begin(), thread_slots.end())) {
        Core& core = cores[number];
        if (core.capacity == NONE) continue;
        if (program.weight_sets[weight_set].key == flat::OWN_ROOM) {
            make_room(core, size);
            core.lying += size;
            core.used += size;
            continue;
        }
        Held& held = core.held[weight_set];
        if (held.stamp == 0) {
            make_room(core, size);
            core.lying += size;
            held.on_way = !warm && loads > 0;
        }
        if (held.users++ == 0) core.used += size;
        held.stamp = ++stamps;
    }
    return warm;
}

/// A task that needed a weight set has finished.
void Machine::let_go(const Thread& lead) {
    const i64 weight_set = lead.profile->weight_set;
    std::set<i64> known;
    for (i64 number = lead.number; number != NONE; number = threads[number].next) {
        Core& core = cores[threads[number].core];
        if (core.capacity == NONE || !known.insert(core.number).second) continue;
        if (program.weight_sets[weight_set].key == flat::OWN_ROOM) {
            core.lying -= program.weight_sets[weight_set].size;
            core.used -= program.weight_sets[weight_set].size;
            continue;
        }
        Held& held = core.held[weight_set];
        if (--held.users == 0) core.used -= program.weight_sets[weight_set].size;
        held.stamp = ++stamps;
    }
}

/// All of a task's weight set is on its cores now.
void Machine::end_loading(Thread& lead) {
    for (i64 number = lead.number; number != NONE; number = threads[number].next) {
        Core& core = cores[threads[number].core];
        if (core.capacity != NONE) core.held[lead.profile->weight_set].on_way = false;
    }
    lead.weight_set_at = NEVER;
    set_due(lead);
}

}  // namespace lstmsim
