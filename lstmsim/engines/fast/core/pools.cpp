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
    const i64 known_groups = groups.size();
    for (i64 number = 0; number < known_groups; ++number) build_begun(number);
}

/// Of a pool that goes on step by step, a group for each core, of those who have begun there.
void Machine::build_begun(i64 newcomers) {
    const flat::Pool* const pool = groups[newcomers].pool;
    if (!pool || pool->policy != flat::CONTINUOUS) return;
    rounds = true;
    const Array<i64> firsts = groups[newcomers].firsts;
    for (const i64 core : firsts) {
        Group group = group_of(Array<Array<i64>>(1, Array<i64>(1, core)));
        group.pool = pool;
        group.newcomers = newcomers;
        groups[newcomers].begun[core] = groups.size();
        groups.push(std::move(group));
    }
}

/// A task begins to wait in its pool.
void Machine::join(Group& group, const Waiting& one, i64 now) {
    if (group.pool->policy != flat::WINDOW) {
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
    if (group.pool->policy != flat::WINDOW) {
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
    if (!group.pool || group.pool->policy != flat::DYNAMIC) return true;
    if (static_cast<i64>(group.waiting.size()) >= group.pool->most) return true;
    return !group.ages.empty() && *group.ages.begin() + group.pool->wait <= now;
}

/// How many tasks wait in a group.
i64 Machine::waiting_in(const Group& group) const {
    return static_cast<i64>(group.pool && group.pool->policy == flat::WINDOW ? group.window_of.size() : group.waiting.size());
}

/// The members of the batch of a task that has found a place on a core, in order of turn. They wait no more.
Array<Waiting> Machine::company(Group& group, const Waiting& first, i64 core) {
    Array<Waiting> batch;
    if (group.pool->policy == flat::CONTINUOUS) return next_round(group.newcomers == NONE ? group : groups[group.newcomers], core);
    if (group.pool->policy == flat::WINDOW) {
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

/// The next round of a pool on a core, in order of turn, of newcomers and those who have begun there.
///
/// Whoever comes before the one who has found the place may use another core only, or has gone.
Array<Waiting> Machine::next_round(Group& fresh, i64 core) {
    Array<Waiting> batch;
    Group& begun = groups[fresh.begun.at(core)];
    while (batch.size() < fresh.pool->most && !(fresh.waiting.empty() && begun.waiting.empty())) {
        const bool newcomer = begun.waiting.empty() || (!fresh.waiting.empty() && *fresh.waiting.begin() < *begun.waiting.begin());
        Group& group = newcomer ? fresh : begun;
        batch.push(*group.waiting.begin());
        group.waiting.erase(group.waiting.begin());
        if (newcomer) group.ages.erase(group.ages.find(batch[batch.size() - 1].came));
    }
    fresh.at = fresh.waiting.begin();
    begun.at = begun.waiting.begin();
    return batch;
}

/// Admit a task and its company. The longest of them leads; of a round, in which all run one step, the first in turn.
void Machine::start_batch(Group& group, const Place& place, const Waiting& first, i64 now) {
    Array<Waiting> batch = company(group, first, place.cores[0]);
    const auto length = [&](const Waiting& each) { return profile_of(each.job).length; };
    const bool alike = group.pool->policy == flat::CONTINUOUS;
    if (group.pool->ragged && !alike) {
        std::stable_sort(batch.begin(), batch.end(), [&](const Waiting& a, const Waiting& b) { return length(a) > length(b); });
    }
    const Waiting* lead = &batch[0];
    for (const Waiting& each : batch) {
        if (!alike && length(each) > length(*lead)) lead = &each;
    }
    Array<i64> others;
    for (const Waiting& each : batch) {
        begin_member(each, now);
        if (each.job != lead->job) others.push(each.job);
    }
    take_threads(place.cores, *lead, now, {}, others);
}

/// A member of a batch begins, or goes on.
void Machine::begin_member(const Waiting& each, i64 now) {
    TaskRow& row = rows[each.job];
    if (jobs[each.job].rounds > 0) {
        const Paused& before = paused[each.job];
        row.pauses += 1;
        tables[PAUSES].add({jobs[each.job].number, before.core, before.context, before.since, now, before.batch});
        return;
    }
    const i64 patience = profile_of(each.job).patience;
    if (patience != NONE) leaving.erase({each.came + patience + 1, each.job});
    row.admitted = now;
}

/// A round of a task is over: it waits again on its core, or it was the last one.
void Machine::wait_again(const Thread& lead, i64 job, i64 now) {
    Job& own = jobs[job];
    if (++own.rounds == profile_of(job).length) {
        finish_job(lead, job, now);
        return;
    }
    paused[job] = {{}, lead.core, lead.context, now, jobs[lead.job].number};
    const i64 came = rows[job].arrived;
    groups[group_of_job(job).begun.at(lead.core)].waiting.insert({own.key + (own.key_from_arrival ? came : 0), came, own.number, job});
}

/// How many free threads of a group's cores those take who have begun there and wait.
i64 Machine::places_of_begun(const Group& group) const {
    i64 taken = 0;
    for (const Group& other : groups) {
        if (other.newcomers == NONE || other.waiting.empty()) continue;
        const bool shared = std::binary_search(group.firsts.begin(), group.firsts.end(), other.firsts[0]);
        if (shared) taken += (static_cast<i64>(other.waiting.size()) - 1) / other.pool->most + 1;
    }
    return taken;
}

/// When pools are to be looked at next: the oldest of one has waited long enough, or a window ends.
void Machine::note_pools(i64 now) {
    for (i64 number = 0; number < new_groups; ++number) {
        const Group& group = groups[number];
        if (!group.pool) continue;
        i64 next = NEVER;
        if (group.open != NONE) next = group.windows.at(group.open).ends;
        if (!group.ages.empty() && group.pool->policy == flat::DYNAMIC) next = *group.ages.begin() + group.pool->wait;
        if (next > now) look = std::min(look, next);
    }
}

}  // namespace lstmsim
