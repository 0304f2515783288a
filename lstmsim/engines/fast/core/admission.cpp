// Waiting tasks are admitted, in the order of rank, arrival and position.
#include "machine.hpp"

namespace lstmsim {

/// Place whoever finds a place; who finds none keeps others off.
///
/// Tasks that may use the same places are a group: where its first finds none, none of them does (unless it is loose).
/// Nobody asks another task to pause while more tasks come in this very cycle, in another round.
void Machine::admit(i64 now) {
    pass += 1;
    close_windows(now);
    const bool asking = coming.empty() || std::get<0>(*coming.begin()) > now;
    for (Group& group : groups) group.at = group.waiting.begin();
    while (Group* const group = first_in_turn()) {
        if (!ripe(*group, now)) {
            group->at = group->waiting.end();
            continue;
        }
        const Waiting task = *group->at;
        budget -= (groups.size() + group->places.size()) / STEPS_OF_AN_EVENT;
        const flat::Profile& profile = profile_of(task.job);
        const Place* const place = best_place(*group, profile);
        if (!place) {
            hold_back(*group, now, asking);
            continue;
        }
        if (group->pool) {
            start_batch(*group, *place, task, now);
            group->at = group->waiting.begin();
            continue;
        }
        group->at = group->waiting.erase(group->at);
        if (group - &groups[0] >= new_groups) {
            go_on(*place, task, now);
        } else {
            start(*group, *place, task, now);
        }
    }
}

/// The group whose next task is looked at next; null if there is none any more in this pass.
Group* Machine::first_in_turn() {
    Group* first = nullptr;
    for (Group& group : groups) {
        if (group.at != group.waiting.end() && (!first || *group.at < *first->at)) first = &group;
    }
    return first;
}

/// Where a task of a group is admitted now; null if there is no such place.
///
/// Threads are only taken in a pass. So the first places that have none are not looked at again in it.
const Place* Machine::best_place(Group& group, const flat::Profile& profile) {
    if (group.looked_in != pass) {
        group.looked_in = pass;
        group.full = 0;
    }
    const Place* best = nullptr;
    bool best_lacks = true;
    i64 least = NEVER;
    for (i64 index = group.full; index < group.places.size(); ++index) {
        const Place& place = group.places[index];
        bool able = true, lacks = false;
        i64 occupied = 0;
        for (i64 thread_slot = 0; able && thread_slot < place.cores.size(); ++thread_slot) {
            const Core& core = cores[place.cores[thread_slot]];
            if (core.occupied + place.threads[thread_slot] > core.contexts || core.closed_in == pass) {
                able = false;
                if (group.full == index) group.full += 1;
            } else if (profile.weight_set != NONE) {
                able = has_room(core, profile.weight_set);
                lacks = lacks || (profile.affine && !holds(core, profile.weight_set));
            }
            if (!core.shared) occupied += core.occupied;
        }
        if (!able || (best && std::tie(best_lacks, least) <= std::tie(lacks, occupied))) continue;
        best = &place;
        best_lacks = lacks;
        least = occupied;
        // no place behind it can be better
        if (!lacks && occupied == 0) break;
    }
    return best;
}

/// The next task of a group finds no place: perhaps it asks another one to pause; it keeps tasks behind it off.
void Machine::hold_back(Group& group, i64 now, bool asking) {
    if (asking && profile_of(group.at->job).preempts) ask(group, group.at->rank, now);
    for (const i64 core : group.own) cores[core].closed_in = pass;
    if (group.loose && !group.pool) {
        // tasks behind it may find a place for all that, on shared cores alone
        ++group.at;
    } else {
        group.at = group.waiting.end();
    }
}

/// Admit a task that waits no more, at a place for it or on several of its cores.
void Machine::start(Group& group, const Place& place, const Waiting& task, i64 now) {
    const flat::Profile& profile = profile_of(task.job);
    if (profile.patience != NONE) leaving.erase({task.came + profile.patience + 1, task.job});
    rows[task.job].admitted = now;
    if (profile.moldables > 0) {
        const Array<i64> thread_slots = spread(group, profile, now);
        if (thread_slots.size() > 1) {
            take_threads(thread_slots, task, now, {});
            return;
        }
    }
    take_threads(place.cores, task, now, {});
}

/// A paused task has a thread again.
void Machine::go_on(const Place& place, const Waiting& task, i64 now) {
    const Paused& before = paused[task.job];
    rows[task.job].pauses += 1;
    tables[PAUSES].add({jobs[task.job].number, before.core, before.context, before.since, now, NONE});
    take_threads(place.cores, task, now, before.boundary);
}

/// The cores that a task takes at once; empty if it takes one place, as other tasks do.
Array<i64> Machine::spread(const Group& group, const flat::Profile& profile, i64 now) const {
    Array<i64> thread_slots;
    if (others_wait(group, now)) return thread_slots;
    i64 free = 0, members = 0;
    for (const i64 core : group.order) free += cores[core].occupied < cores[core].contexts;
    for (const flat::Variant& moldable : program.variants.part(profile.first_moldable, profile.moldables)) {
        if (moldable.members <= free) members = std::max(members, moldable.members);
    }
    for (const i64 core : group.order) {
        if (thread_slots.size() < members && cores[core].occupied < cores[core].contexts) thread_slots.push(core);
    }
    return thread_slots;
}

/// Whether a task waits that could use one of the cores of a group.
bool Machine::others_wait(const Group& group, i64 now) const {
    for (const Group& other : groups) {
        if (other.waiting.empty() || !ripe(other, now)) continue;
        for (const i64 core : other.own) {
            if (std::binary_search(group.own.begin(), group.own.end(), core)) return true;
        }
    }
    return false;
}

}  // namespace lstmsim
