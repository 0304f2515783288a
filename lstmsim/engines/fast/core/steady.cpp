// Stretches of a run that are equal to an earlier one are not run again.
//
// Programs of barriers come to rest over and over: all tasks behind one barrier are done, a barrier opens with the last of
// them, and the tasks behind that one are still to come. The run from one such cycle of rest to the next is a stretch.
// What happens in it follows from two things, for every rule of the machine counts in cycles from others, and orders
// tasks by their numbers, never by a cycle or a number itself:
//
// * the tasks. They are compared one by one (`alike`): profile (so phases, bodies, places), rank, when they come, in the
//   same distance of numbers. Whatever could see an absolute cycle or number is left out (`plain`): frames at an interval,
//   limits of queues, patience, moldable tasks, ranks that depend on the arrival for some tasks alone, barriers other
//   than the one at which all of them end (`met` counts every look at another one).
// * the machine (`write_state`). At rest (`at_rest`) no stream of a task is open, no unit has a next event, no task is
//   about to finish, and those that wait find no place. So what is left of the machine is
//     - of each unit, which is free: the thread that was active last (where the policy looks at it), and whether it is fresh;
//     - of each core: the threads that tasks hold which last until a barrier, and what their room in memories is. Such a
//       task has nothing to issue, and nothing that names cycles depends on when it came. Weight sets that stay in
//       memories are left out altogether (`build_steady`);
//     - of free threads: how many starts there was room for (starts.hpp). If none was given back since, each has at least
//       the room that the earlier stretch needed, so that this one would take none.
//   Numbers of passes, of placements and of looks at groups are compared with themselves alone, within one cycle.
//   Cycles of accounted units are named up to the cycle of rest before anything is compared.
//
// That nothing else happened in the earlier stretch, the counts of finished and placed tasks say (`keep_stretch`). If all
// this is equal, all that the earlier stretch did is done at once, later by so many cycles and for tasks of numbers
// larger by so many: rows of tasks and of the trace, sums of each core, states of units (`repeat`). Then the barrier
// opens as if the last task had just arrived there. What may come from outside must come after that: a task that
// arrives in the stretch, or in its last cycle, lets it run as usual. So does a stretch in which a sum would not fit, or
// that leads past the last cycle; the run then ends where it would.
#include "machine.hpp"

namespace lstmsim {

/// Whether stretches of this program may be repeated at all.
void Machine::build_steady() {
    steady = steady && !fed && !preempting && program.pools.size() == 0 && behind.size() > 0 && program.held.size() == 0;
    steady = steady && program.sessions.size() == 0;
    for (const flat::WeightSet& each : program.weight_sets) steady = steady && each.key == flat::OWN_ROOM;
    if (!steady) return;
    // most barriers of a graph of kernels have no like: nothing is looked at there
    perhaps_alike.fill(barriers.size(), 0);
    std::map<std::tuple<i64, i64, i64>, i64> known;
    for (i64 first = 0, last = 0; first < behind.size(); first = last) {
        const i64 barrier = behind[first].first;
        while (last < behind.size() && behind[last].first == barrier) last += 1;
        const auto profile = [&](i64 place) { return jobs[behind[place].second].profile; };
        const auto [other, is_new] = known.insert({{last - first, profile(first), profile(last - 1)}, barrier});
        if (!is_new) perhaps_alike[barrier] = perhaps_alike[other->second] = 1;
    }
}

/// After a cycle in which tasks came or went: repeat what was run before, as long as it comes again.
void Machine::go_on_steadily() {
    while (budget > 0) {
        const i64 now = looked_at;
        const i64 barrier = barrier_to_follow();
        if (barrier == NONE || (watched.barrier == NONE && !perhaps_alike[barrier])) break;
        if (!at_rest(now) || !plain(barrier)) {
            watched.barrier = NONE;
            break;
        }
        for (Core& core : cores) {
            for (Unit& unit : core.units) {
                if (unit.accounted) account(core, unit, now);
            }
        }
        keep_stretch(now);
        if (!perhaps_alike[barrier]) break;
        write_state(now);
        const Stretch* const known = stretch_like(barrier);
        if (!known || !may_repeat(*known, now)) {
            watch(barrier, now);
            break;
        }
        repeat(*known, barrier, now);
    }
    // the rest is looked at in the next call, if time is up
    steady_at_hand = budget <= 0;
}

/// The barrier behind which all tasks come that are to come next, if they are all that come behind it; else `NONE`.
i64 Machine::barrier_to_follow() const {
    if (events.cycle() < NEVER || dues.cycle() < NEVER || look < NEVER || coming.empty() || !leaving.empty()) return NONE;
    const i64 barrier = program.tasks[std::get<2>(*coming.begin())].behind;
    if (barrier == NONE || static_cast<i64>(coming.size()) != tasks_behind(barrier).size()) return NONE;
    for (const auto& [cycle, own_round, job] : coming) {
        if (program.tasks[job].behind != barrier || own_round != 0 || cycle <= looked_at) return NONE;
    }
    return barrier;
}

/// The tasks that come behind a barrier, by their numbers.
Slice<const std::pair<i64, i64>> Machine::tasks_behind(i64 barrier) const {
    const auto first = std::lower_bound(behind.begin(), behind.end(), std::pair<i64, i64>(barrier, NONE));
    const auto last = std::lower_bound(first, behind.end(), std::pair<i64, i64>(barrier + 1, NONE));
    return behind.part(first - behind.begin(), last - first);
}

/// Whether tasks that run, and tasks that wait, do nothing before a barrier opens or another task goes.
bool Machine::at_rest(i64 now) const {
    for (const Core& core : cores) {
        for (const Unit& unit : core.units) {
            if (unit.free_at > now || unit.named > now) return false;
        }
        for (i64 context = core.occupied > 0 ? 0 : core.contexts; context < core.contexts; ++context) {
            const Thread& thread = threads[core.first_thread + context];
            if (thread.job == NONE) continue;
            if (threads[thread.lead].done_at > now || threads[thread.lead].weight_set_at < NEVER) return false;
            for (const Cursor& cursor : cursors.part(thread.first_cursor, core.kinds)) {
                if (cursor.operation) return false;
                for (i64 cause = 0; cause < program.causes.size(); ++cause) {
                    if (cursor.until[cause] > now) return false;
                }
            }
        }
    }
    for (const Group& group : groups) {
        if (group.waiting.empty()) continue;
        // who waits for shared cores alone keeps nobody off, and finds no place as long as those stay who run now
        if (!group.own.empty()) return false;
        for (const Place& place : group.places) {
            bool full = false;
            for (i64 slot = 0; slot < place.cores.size(); ++slot) {
                const Core& core = cores[place.cores[slot]];
                full = full || core.occupied + place.threads[slot] > core.contexts;
            }
            if (!full) return false;
        }
    }
    return true;
}

/// Whether tasks behind a barrier see no cycles and numbers but their own, and end together at another barrier.
bool Machine::plain(i64 barrier) const {
    const auto tasks = tasks_behind(barrier);
    const Job& first = jobs[tasks[0].second];
    if (first.ends == NONE || barriers[first.ends].left != tasks.size()) return false;
    if (barriers[first.ends].opened != NOT_STARTED) return false;
    for (const auto& [its_barrier, number] : tasks) {
        const Job& job = jobs[number];
        const flat::Profile& profile = program.profiles[job.profile];
        if (job.starts != NONE || job.until != NONE || job.ends != first.ends || job.frame_interval != 0) return false;
        if (job.key_from_arrival != first.key_from_arrival) return false;
        if (profile.queue_limit != NONE || profile.patience != NONE || profile.moldables > 0) return false;
    }
    // nobody comes after one of them
    const auto follower = std::lower_bound(followers.begin(), followers.end(), std::pair<i64, i64>(first.number, NONE));
    return follower == followers.end() || follower->first > tasks[tasks.size() - 1].second;
}

/// Whether tasks behind two barriers differ in nothing but their numbers, all by the same amount.
bool Machine::alike(i64 barrier, i64 other) const {
    const auto own = tasks_behind(barrier), others = tasks_behind(other);
    if (own.size() != others.size()) return false;
    const i64 apart = own[0].second - others[0].second;
    for (i64 i = own.size() - 1; i >= 0; --i) {
        const Job &a = jobs[own[i].second], &b = jobs[others[i].second];
        if (a.number - b.number != apart || a.profile != b.profile || a.release != b.release || a.key != b.key ||
            a.key_from_arrival != b.key_from_arrival) {
            return false;
        }
    }
    return true;
}

/// What is left of a machine at rest that can matter for what comes.
void Machine::write_state(i64 now) {
    state.clear();
    state.push(starts_room.given_back);
    state.push(now - barriers[program.tasks[std::get<2>(*coming.begin())].behind].latest);
    for (const Core& core : cores) {
        state.push(core.used);
        state.push(core.lying);
        state.push(core.occupied);
        for (i64 context = core.occupied > 0 ? 0 : core.contexts; context < core.contexts; ++context) {
            if (threads[core.first_thread + context].job != NONE) state.push(context);
        }
        for (const Unit& unit : core.units) {
            // `fifo` looks at the active thread only to switch
            state.push(unit.policy == flat::FIFO && unit.switch_cycles == 0 ? 0 : unit.active);
            state.push(unit.fresh);
        }
    }
}

/// A stretch that is kept, of tasks like those behind a barrier, and from the state that the machine has; or null.
const Stretch* Machine::stretch_like(i64 barrier) const {
    for (const Stretch& each : stretches) {
        if (std::equal(each.before.begin(), each.before.end(), state.begin(), state.end()) && alike(barrier, each.barrier)) {
            return &each;
        }
    }
    return nullptr;
}

/// Whether nothing comes in between, and no number becomes too large.
bool Machine::may_repeat(const Stretch& known, i64 now) const {
    const i64 end = now + (known.end - known.begin);
    if (end > LATEST) return false;
    if (arrived < arrivals.size() && jobs[arrivals[arrived]].release <= end) return false;
    const auto fits = [](i64 sum, i64 more) { return !__builtin_add_overflow(sum, more, &sum); };
    i64 place = 0;
    for (const Core& core : cores) {
        place += core.counted.size();
        if (!fits(core.worked, known.counted[place]) || !fits(core.issued, known.counted[place + 1])) return false;
        place += 2;
    }
    return true;
}

}  // namespace lstmsim
