// From the tables of a program to a machine before its first cycle.
#include <algorithm>

#include "machine.hpp"

namespace lstmsim {

namespace {

/// One way of a unit, free.
Unit unit_of(const flat::Unit& row, i64 number, i64 instance, const flat::Core& core) {
    Unit unit;
    unit.number = number;
    unit.instance = instance;
    unit.instances = row.instances;
    unit.policy = static_cast<flat::Policy>(row.policy);
    unit.switch_cycles = row.switch_cycles;
    unit.one_by_one = unit.policy == flat::FINE && core.contexts > 1;
    unit.accounted = number == core.accounted;
    unit.ready = Soonest(core.contexts);
    return unit;
}

}  // namespace

/// The machine before its first cycle.
Machine::Machine(const flat::Program& tables_of_program, bool keep_trace, bool fed_later, bool steadily)
    : program(tables_of_program), keep(keep_trace), fed(fed_later), skipping(steadily), steady(steadily), head(program.head[0]) {
    build_cores();
    build_groups();
    for (const flat::Body& body : program.bodies) {
        streams.push({});
        if (body.first_word != NONE) continue;
        sort_streams(Operations(program, body), streams[streams.size() - 1]);
    }
    at_hand.fill(program.bodies.size(), nullptr);
    build_barriers();
    build_jobs();
    build_variants();
    build_steady();
}

/// Cores with their units and threads, all of them free.
void Machine::build_cores() {
    i64 all_threads = 0, all_cursors = 0, own_threads = 0;
    for (const flat::Core& row : program.cores) {
        all_threads += row.contexts;
        all_cursors += row.contexts * row.units;
    }
    threads.reserve(all_threads);
    cursors.reserve(all_cursors);  // they never move, for there are references to them
    for (const flat::Core& row : program.cores) {
        Core core;
        core.number = cores.size();
        core.kind = row.kind;
        core.first_thread = threads.size();
        core.contexts = row.contexts;
        core.accounted = row.accounted;
        core.capacity = row.capacity;
        core.shared = row.shared != 0;
        core.mirrors = row.mirrors != 0;
        core.before = own_threads;
        if (!core.shared) own_threads += core.contexts;
        core.counted.fill(head.names, 0);
        core.kinds = row.units;
        core.dues = Soonest(row.contexts);
        core.vacant = Soonest(row.contexts);
        build_units(core, row);
        build_threads(core);
        cores.push(std::move(core));
    }
    events = Soonest(cores.size());
    dues = Soonest(cores.size());
    if (!program.weight_sets.size()) return;
    for (Core& core : cores) core.held.fill(program.weight_sets.size(), {});
    hold_at_start();
}

/// The units of a core, each way of a unit one of them.
void Machine::build_units(Core& core, const flat::Core& row) {
    for (const flat::Unit& each : program.units.part(row.first_unit, row.units)) {
        core.first_place.push(core.units.size());
        for (i64 instance = 0; instance < each.instances; ++instance) {
            Unit unit = unit_of(each, core.first_place.size() - 1, instance, row);
            unit.place = core.units.size();
            core.units.push(std::move(unit));
        }
    }
    core.events = Soonest(core.units.size());
}

/// The threads of a core.
void Machine::build_threads(Core& core) {
    for (i64 context = 0; context < core.contexts; ++context) {
        Thread thread;
        thread.number = threads.size();
        thread.core = core.number;
        thread.context = context;
        core.vacant.set(context, 0);
        threads.push(std::move(thread));
    }
}

/// A cursor of a thread for each unit. Threads that never have a task need none: large machines have very many.
void Machine::build_cursors(Thread& thread) {
    const Core& core = cores[thread.core];
    thread.first_cursor = cursors.size();
    for (i64 unit = 0; unit < core.kinds; ++unit) {
        Cursor one;
        one.thread = thread.number;
        one.unit = unit;
        one.place = core.first_place[unit] + thread.context % core.units[core.first_place[unit]].instances;
        cursors.push(one);
    }
}

/// Put the weight sets in place that lie in memories at the start, the least recently used first.
void Machine::hold_at_start() {
    for (Core& core : cores) {
        const flat::Core& row = program.cores[core.number];
        for (const flat::Held& each : program.held.part(row.first_held, row.held)) {
            Held& held = core.held[each.weight_set];
            if (!held.stamp) core.lying += program.weight_sets[each.weight_set].size;
            held.stamp = ++stamps;
        }
    }
}

/// Groups of new tasks; and, if tasks may pause, a group of each core's paused tasks.
void Machine::build_groups() {
    for (const flat::Group& row : program.groups) {
        Array<Array<i64>> places;
        for (const flat::Place& place : program.places.part(row.first_place, row.places)) {
            Array<i64> own;
            for (const flat::ThreadSlot& thread_slot : program.thread_slots.part(place.first_thread_slot, place.thread_slots)) own.push(thread_slot.core);
            places.push(std::move(own));
        }
        groups.push(group_of(places));
        groups[groups.size() - 1].queue = groups.size() - 1;
    }
    build_pools();
    new_groups = groups.size();
    for (const flat::Profile& profile : program.profiles) preempting = preempting || profile.preempts;
    for (i64 core = 0; preempting && core < cores.size(); ++core) {
        groups.push(group_of(Array<Array<i64>>(1, Array<i64>(1, core))));
    }
}

/// The group of the tasks that may use some places, of which each is a row of cores.
Group Machine::group_of(const Array<Array<i64>>& places) const {
    Group group;
    std::set<i64> firsts, own;
    std::set<std::vector<i64>> known;
    for (const Array<i64>& place : places) {
        group.order.push(place[0]);
        firsts.insert(place[0]);
        bool all_shared = true;
        for (const i64 core : place) {
            if (cores[core].shared) continue;
            own.insert(core);
            all_shared = false;
        }
        group.loose = group.loose || all_shared;
        known.insert(std::vector<i64>(place.begin(), place.end()));
    }
    for (const std::vector<i64>& each : known) {
        Place place;
        for (const i64 core : each) {
            place.cores.push(core);
            place.threads.push(std::count(each.begin(), each.end(), core));
        }
        group.places.push(std::move(place));
    }
    for (const i64 core : firsts) group.firsts.push(core);
    for (const i64 core : own) group.own.push(core);
    return group;
}

/// All barriers, closed.
void Machine::build_barriers() {
    if (fed && program.barriers.size()) throw Refusal("requests cannot come to a program that has barriers");
    for (const flat::Barrier& each : program.barriers) {
        barriers.push({});
        barriers[barriers.size() - 1].left = each.arrivals;
    }
}

/// The tasks that come, unless they come by `feed`.
void Machine::build_jobs() {
    if (program.sessions.size()) homes.fill(program.tasks.size(), NONE);
    bool after = barriers.size() > 0;
    if (fed) {
        linked = preempting || has_joint_tasks();
        return;
    }
    for (const flat::Task& task : program.tasks) {
        const i64 number = jobs.size();
        jobs.push({number, task.profile, task.release, task.frame_interval, task.key, task.key_from_arrival != 0,
                   task.starts, task.ends, task.until, number});
        if (task.behind != NONE) {
            behind.push({task.behind, number});
        } else if (task.after == NONE) {
            arrivals.push(number);
        } else {
            followers.push({task.after, number});
            after = true;
        }
    }
    known = jobs.size();
    linked = after || preempting || has_joint_tasks();
    rows.fill(known, {});
    if (preempting || rounds) paused.fill(known, {});
    std::stable_sort(arrivals.begin(), arrivals.end(), [&](i64 a, i64 b) { return jobs[a].release < jobs[b].release; });
    std::sort(followers.begin(), followers.end());
    std::sort(behind.begin(), behind.end());
}

/// Whether tasks take several cores at once, or need room in memories.
bool Machine::has_joint_tasks() const {
    for (const flat::Profile& profile : program.profiles) {
        if (profile.weight_set != NONE || profile.moldables) return true;
    }
    for (const Group& group : groups) {
        for (const Place& place : group.places) {
            if (place.cores.size() > 1) return true;
        }
    }
    return false;
}

/// What the phases of all variants need to know beforehand.
void Machine::build_variants() {
    looked_back_at.fill(program.phases.size(), 0);
    for (const flat::Variant& variant : program.variants) {
        // variants often share their phases
        if (!echoes.insert({{variant.first_phase, variant.phases}, {}}).second) continue;
        build_phases(variant);
        if (preempting) build_echoes(variant);
    }
}

/// Which phases of a variant must be remembered from their first iteration on, for later phases.
void Machine::build_phases(const flat::Variant& variant) {
    for (const flat::Phase& phase : program.phases.part(variant.first_phase, variant.phases)) {
        const flat::Body& body = program.bodies[phase.body];
        // a packed body looks back at no phase
        if (body.first_word != NONE) continue;
        for (const flat::Operation& each : program.operations.part(body.first_operation, body.operations)) {
            for (const flat::Need& need : program.needs.part(each.first_need, each.needs)) {
                if (need.phase != NONE) looked_back_at[variant.first_phase + need.phase] = 1;
            }
        }
    }
}

/// For each operation of a variant: when all that it brings about has come about, counted from its last start.
void Machine::build_echoes(const flat::Variant& variant) {
    const auto phases = program.phases.part(variant.first_phase, variant.phases);
    Array<Array<i64>>& all = echoes.at({variant.first_phase, variant.phases});
    all.fill(phases.size(), {});
    for (i64 number = 0; number < phases.size(); ++number) {
        const flat::Body& body = program.bodies[phases[number].body];
        Array<i64>& own = all[number];
        own.fill(body.operations, 0);
        for (i64 i = 0; i < body.operations; ++i) {
            const flat::Operation& each = program.operations[body.first_operation + i];
            own[i] = std::max(own[i], each.result_cycles);
            for (const flat::Need& need : program.needs.part(each.first_need, each.needs)) {
                i64& echo = all[need.phase == NONE ? number : need.phase][need.operation];
                echo = std::max(echo, need.delay);
            }
        }
    }
}

}  // namespace lstmsim
