// Tasks come and begin to wait in their groups, find their queue full, or give up.
#include "check.hpp"
#include "machine.hpp"

namespace lstmsim {

/// Tasks that come up to `now`, and in this round of that cycle, begin to wait; true if there are any.
bool Machine::arrive(i64 now, i64 round) {
    bool came = false;
    while (arrived < arrivals.size() && jobs[arrivals[arrived]].release <= now) {
        const i64 job = arrivals[arrived++];
        wait(job, jobs[job].release, round);
        came = true;
    }
    while (!coming.empty() && std::get<0>(*coming.begin()) <= now && std::get<1>(*coming.begin()) <= round) {
        const auto [release, own_round, job] = *coming.begin();
        coming.erase(coming.begin());
        wait(job, release, round);
        came = true;
    }
    return came;
}

/// A task begins to wait in its group, or is turned away.
void Machine::wait(i64 job, i64 now, i64 round) {
    const flat::Profile& profile = profile_of(job);
    Group& group = group_of_job(job);
    rows[job].arrived = now;
    if (profile.queue_limit != NONE && too_many_wait(group, profile.queue_limit)) {
        turn_away(job, now, round);
        return;
    }
    const i64 rank = jobs[job].key + (jobs[job].key_from_arrival ? now : 0);
    const Waiting one{rank, now, jobs[job].number, job};
    if (group.pool) {
        join(group, one, now);
    } else {
        group.waiting.insert(one);
    }
    if (profile.patience != NONE) leaving.insert({now + profile.patience + 1, job});
}

/// Whether a task that comes finds its queue full.
bool Machine::too_many_wait(const Group& group, i64 limit) const {
    i64 before = 0;
    for (i64 other = 0; other < new_groups; ++other) {
        if (groups[other].queue == group.queue) before += waiting_in(groups[other]);
    }
    i64 free = -places_of_begun(group);
    for (const i64 core : group.firsts) free += cores[core].contexts - cores[core].occupied;
    return before - std::max(free, i64{0}) * (group.pool ? group.pool->most : 1) >= limit;
}

/// A task leaves without having run. Those that follow it at once come in the next round of this cycle.
void Machine::turn_away(i64 job, i64 now, i64 round) {
    TaskRow& row = rows[job];
    row.core = row.context = row.finish = NONE;
    row.admitted = now;
    let_follow(job, now, round + 1);
    note_over(job);
}

/// A task has finished or was turned away: those come that come after it.
void Machine::let_follow(i64 job, i64 now, i64 round) {
    auto follower = std::lower_bound(followers.begin(), followers.end(), std::pair<i64, i64>(job, NONE));
    for (; follower != followers.end() && follower->first == job; ++follower) {
        const i64 release = jobs[follower->second].release;
        coming.insert({now + release, release > 0 ? 0 : round, follower->second});
    }
}

/// Those who have waited longer than their patience lets them leave; true if there are any. Who follows them at once
/// comes with all others of this cycle.
bool Machine::give_up(i64 now) {
    bool left = false;
    while (!leaving.empty() && leaving.begin()->first <= now) {
        const i64 job = leaving.begin()->second;
        leaving.erase(leaving.begin());
        const i64 came = rows[job].arrived, rank = jobs[job].key + (jobs[job].key_from_arrival ? came : 0);
        Group& group = group_of_job(job);
        const Waiting one{rank, came, jobs[job].number, job};
        if (group.pool) {
            leave_pool(group, one);
        } else {
            group.waiting.erase(one);
        }
        turn_away(job, now, -1);
        left = true;
    }
    return left;
}

/// A task is done. In a feed its row is written down, and its place is free for another one, unless it still leads
/// others (`stays`).
void Machine::note_over(i64 job, bool stays) {
    finished += 1;
    if (!fed) return;
    const TaskRow& row = rows[job];
    tables[OVER].add({jobs[job].number, templates[job], row.core, row.context, row.admitted, row.finish,
                           row.arrived, row.pauses, row.taken, row.batch});
    if (!stays) free_jobs.push(job);
}

void Machine::check_requests(const Slice<const i64>& numbers) const {
    if (!fed) throw Refusal("the machine was not opened for requests");
    if (arrived < arrivals.size()) throw Refusal("there are requests that have not come yet");
    i64 last = fed_to;
    for (i64 i = 0; i < numbers.size(); i += 3) {
        const flat::Row row{"requests", known + i / 3};
        row.between("release", numbers[i], last, LATEST);
        row.row_of("template", numbers[i + 1], program.tasks.size());
        row.between("key", numbers[i + 2], -flat::MOST_KEY, flat::MOST_KEY);
        last = numbers[i];
    }
}

/// Take the next requests of a feed, each in a place that is free.
void Machine::feed(const i64* given, i64 count, bool others_follow) {
    const Slice<const i64> numbers(given, 3 * count);
    check_requests(numbers);
    if (count > 0) fed_to = numbers[3 * count - 3];
    arrivals.clear();
    arrived = 0;
    for (i64 i = 0; i < count; ++i) {
        const flat::Task& task = program.tasks[numbers[3 * i + 1]];
        if (free_jobs.empty()) {
            free_jobs.push(jobs.size());
            jobs.push({});
            rows.push({});
            templates.push(0);
            if (preempting || rounds) paused.push({});
        }
        const i64 job = free_jobs.pop();
        jobs[job] = {known, task.profile, numbers[3 * i], task.frame_interval, numbers[3 * i + 2],
                     task.key_from_arrival != 0};
        jobs[job].row = numbers[3 * i + 1];
        rows[job] = {};
        templates[job] = numbers[3 * i + 1];
        arrivals.push(job);
        known += 1;
    }
    more = others_follow;
}

}  // namespace lstmsim
