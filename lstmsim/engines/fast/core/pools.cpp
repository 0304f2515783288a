// Tasks wait in pools for company, and are admitted in batches. docs/batching.md has the rules.
#include "machine.hpp"

namespace lstmsim {

/// A group for each pool, whose tasks all have the same places.
void Machine::build_pools() {
    std::map<std::pair<i64, i64>, i64> known;
    for (const flat::Profile& profile : program.profiles) {
        if (profile.pool == NONE) {
            group_of_profile.push(profile.group);
            continue;
        }
        const auto [own, is_new] = known.insert({{profile.group, profile.pool}, groups.size()});
        if (is_new) {
            Group group = groups[profile.group];
            group.pool = &program.pools[profile.pool];
            group.queue = profile.group;
            groups.push(std::move(group));
        }
        group_of_profile.push(own->second);
    }
}

/// A task begins to wait in its pool.
void Machine::join(Group& group, const Waiting& one, i64 now) {
    if (!group.pool->window) {
        group.waiting.insert(one);
        group.ages.insert(now);
        return;
    }
    if (group.open == NONE) {
        group.open = group.opened++;
        group.windows[group.open].ends = now + group.pool->wait;
    }
    Window& window = group.windows[group.open];
    window.members.insert(one);
    group.window_of[one.job] = group.open;
    if (static_cast<i64>(window.members.size()) == group.pool->most) close(group);
}

/// The open window closes.
void Machine::close(Group& group) {
    Window& window = group.windows[group.open];
    window.closed = true;
    group.waiting.insert(*window.members.begin());
    group.open = NONE;
}

/// Windows close whose time has come.
void Machine::close_windows(i64 now) {
    for (Group& group : groups) {
        if (group.open != NONE && group.windows[group.open].ends <= now) close(group);
    }
}

/// A task has lost patience. A window that nobody is left in is gone.
void Machine::leave_pool(Group& group, const Waiting& one) {
    if (!group.pool->window) {
        group.waiting.erase(one);
        group.ages.erase(group.ages.find(one.came));
        return;
    }
    const auto number = group.window_of.find(one.job);
    const i64 own = number->second;
    group.window_of.erase(number);
    Window& window = group.windows[own];
    window.members.erase(one);
    if (window.closed && group.waiting.erase(one) && !window.members.empty()) group.waiting.insert(*window.members.begin());
    if (!window.members.empty()) return;
    group.windows.erase(own);
    if (group.open == own) group.open = NONE;
}

/// Whether those of a group who are looked at may go.
bool Machine::ripe(const Group& group, i64 now) const {
    if (!group.pool || group.pool->window) return true;
    if (static_cast<i64>(group.waiting.size()) >= group.pool->most) return true;
    return !group.ages.empty() && *group.ages.begin() + group.pool->wait <= now;
}

/// How many tasks wait in a group.
i64 Machine::waiting_in(const Group& group) const {
    return static_cast<i64>(group.pool && group.pool->window ? group.window_of.size() : group.waiting.size());
}

/// The members of the batch of a task that has found a place, in order of turn. They wait no more.
Array<Waiting> Machine::company(Group& group, const Waiting& first) {
    Array<Waiting> batch;
    if (group.pool->window) {
        const auto window = group.windows.find(group.window_of[first.job]);
        for (const Waiting& each : window->second.members) {
            batch.push(each);
            group.window_of.erase(each.job);
        }
        group.waiting.erase(first);
        group.windows.erase(window);
        return batch;
    }
    while (batch.size() < group.pool->most && !group.waiting.empty()) {
        const Waiting each = *group.waiting.begin();
        group.waiting.erase(group.waiting.begin());
        group.ages.erase(group.ages.find(each.came));
        batch.push(each);
    }
    return batch;
}

/// Admit a task and its company. The longest of them leads.
void Machine::start_batch(Group& group, const Place& place, const Waiting& first, i64 now) {
    const Array<Waiting> batch = company(group, first);
    const Waiting* lead = &batch[0];
    for (const Waiting& each : batch) {
        if (profile_of(each.job).length > profile_of(lead->job).length) lead = &each;
    }
    Array<i64> others;
    for (const Waiting& each : batch) {
        const i64 patience = profile_of(each.job).patience;
        if (patience != NONE) leaving.erase({each.came + patience + 1, each.job});
        rows[each.job].admitted = now;
        if (each.job != lead->job) others.push(each.job);
    }
    take_threads(place.cores, *lead, now, {}, others);
}

/// When pools are to be looked at next: the oldest of one has waited long enough, or a window ends.
void Machine::note_pools(i64 now) {
    for (i64 number = 0; number < new_groups; ++number) {
        const Group& group = groups[number];
        if (!group.pool) continue;
        i64 next = NEVER;
        if (group.open != NONE) next = group.windows.at(group.open).ends;
        if (!group.ages.empty()) next = *group.ages.begin() + group.pool->wait;
        if (next > now) look = std::min(look, next);
    }
}

}  // namespace lstmsim
