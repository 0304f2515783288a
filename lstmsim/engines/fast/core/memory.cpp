// What lies in the memories of cores: whether a task finds its content there, or room for it.
#include "machine.hpp"

namespace lstmsim {

/// Whether a core has what a task needs, or no memory that matters.
bool Machine::holds(const Core& core, i64 content) const {
    return core.capacity == NONE || core.held[content].stamp > 0;
}

/// Whether a content is there (and not only on its way), or fits beside what running tasks use.
bool Machine::has_room(const Core& core, i64 content) const {
    if (core.capacity == NONE) return true;
    const Held& held = core.held[content];
    if (held.stamp > 0) return !held.on_way;
    return core.used + program.contents[content].size <= core.capacity;
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
        core.lying -= program.contents[oldest].size;
    }
}

/// A task with a content begins on some cores. Returns whether all of them hold the content already.
///
/// loads: how many operations of the task load the content, if one of the cores does not hold it.
bool Machine::fill_memories(const Array<i64>& seats, i64 content, i64 loads) {
    bool warm = true;
    for (const i64 core : seats) warm = warm && holds(cores[core], content);
    const i64 size = program.contents[content].size;
    for (const i64 number : std::set<i64>(seats.begin(), seats.end())) {
        Core& core = cores[number];
        if (core.capacity == NONE) continue;
        if (program.contents[content].key == flat::OWN_ROOM) {
            make_room(core, size);
            core.lying += size;
            core.used += size;
            continue;
        }
        Held& held = core.held[content];
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

/// A task that needed a content has finished.
void Machine::let_go(const Thread& lead) {
    const i64 content = lead.profile->content;
    std::set<i64> known;
    for (i64 number = lead.number; number != NONE; number = threads[number].next) {
        Core& core = cores[threads[number].core];
        if (core.capacity == NONE || !known.insert(core.number).second) continue;
        if (program.contents[content].key == flat::OWN_ROOM) {
            core.lying -= program.contents[content].size;
            core.used -= program.contents[content].size;
            continue;
        }
        Held& held = core.held[content];
        if (--held.users == 0) core.used -= program.contents[content].size;
        held.stamp = ++stamps;
    }
}

/// All of a task's content is on its cores now.
void Machine::end_loading(Thread& lead) {
    for (i64 number = lead.number; number != NONE; number = threads[number].next) {
        Core& core = cores[threads[number].core];
        if (core.capacity != NONE) core.held[lead.profile->content].on_way = false;
    }
    lead.content_at = NEVER;
    set_due(lead);
}

}  // namespace lstmsim
