// Tasks take threads and leave them.
#include "machine.hpp"

namespace lstmsim {

/// Start a task on a thread of each of some cores, or let it go on there, from a boundary on.
///
/// others: of a batch, which the task leads, the jobs of the other members.
void Machine::take_threads(const Array<i64>& thread_slots, const Waiting& task, i64 now, Boundary entry, const Array<i64>& others) {
    const flat::Profile& profile = profile_of(task.job);
    const flat::Variant& variant = variant_of(profile, thread_slots, 1 + others.size());
    i64 loads = 0;
    if (profile.weight_set != NONE) {
        for (const flat::Phase& phase : program.phases.part(variant.first_phase, profile.loading)) {
            loads += phase.repeat * program.bodies[phase.body].operations;
        }
        // a task that finds its weight set leaves out the phases that load it
        if (fill_memories(thread_slots, profile.weight_set, loads)) entry = {profile.loading, 0};
    }
    i64 lead = NONE, last = NONE;
    Array<i64> own;
    placements += 1;
    for (const i64 core : thread_slots) {
        const bool mirrors = cores[core].mirrors;
        Thread& thread = take_thread(cores[core], mirrors ? mirrored_thread(cores[core], own) : NONE, now);
        if (!cores[core].shared) own.push(thread.number);
        thread.job = task.job;
        thread.member = last == NONE ? 0 : threads[last].member + 1;
        thread.next = NONE;
        (lead == NONE ? lead : threads[last].next) = thread.number;
        thread.lead = lead;
        last = thread.number;
        if (keep && thread.member > 0) note_thread_slot(thread);
        if (profile.moldables > 0) {
            const auto& order = group_of_job(task.job).order;
            rows[task.job].taken += i64{1} << (std::find(order.begin(), order.end(), core) - order.begin());
        }
    }
    Thread& leading = threads[lead];
    leading.profile = &profile;
    leading.others = others;
    leading.came = task.came;
    leading.rank = task.rank;
    leading.frame_interval = jobs[task.job].frame_interval;
    leading.loads = loads;
    leading.entry = entry;
    prepare(leading, variant);
    begin_parts(leading);
    leading.opens = leading.done_at = now + move(task.job, leading.core);
    begin(leading);
    const Job& job = jobs[task.job];
    if (job.until != NONE) last_until(leading, job.until);
    set_due(leading);
    if (job.starts != NONE) arrive_at(job.starts, now);
}

/// How long the states of an admitted task's session move to its core; from now on they are there.
i64 Machine::move(i64 job, i64 core) {
    if (homes.empty()) return 0;
    const flat::Session& own = program.sessions[jobs[job].row];
    if (own.session == NONE) return 0;
    const i64 before = std::exchange(homes[own.session], core);
    return before == NONE || before == core ? 0 : own.move;
}

/// Which thread of a mirroring core stands for the next of a task's threads on cores of its own.
i64 Machine::mirrored_thread(Core& core, const Array<i64>& own) const {
    if (core.placed_in != placements) {
        core.placed_in = placements;
        core.placed = 0;
    }
    const Thread& thread = threads[own[core.placed++]];
    return cores[thread.core].before + thread.context;
}

/// The phases and buffers of a task on so many cores, of which the first is of this kind, in a batch of some size.
const flat::Variant& Machine::variant_of(const flat::Profile& profile, const Array<i64>& thread_slots, i64 size) const {
    if (size > 1 + profile.sizes) throw Refusal("a batch is larger than its tasks have variants for");
    const i64 first = profile.first_variant + (size - 1) * profile.variants;
    if (profile.moldables > 0 && thread_slots.size() > 1) {
        for (const flat::Variant& moldable : program.variants.part(profile.first_moldable, profile.moldables)) {
            if (moldable.members == thread_slots.size()) return moldable;
        }
    }
    for (const flat::Variant& variant : program.variants.part(first, profile.variants)) {
        if (variant.kind == cores[thread_slots[0]].kind) return variant;
    }
    throw Fault("a task has no variant for its place");
}

/// Take a thread of a core; `NONE`: the lowest that is free.
Thread& Machine::take_thread(Core& core, i64 context, i64 now) {
    if (context == NONE) context = core.vacant.next(0, 0);
    check_place(context, core.contexts);
    account(core, context, now);
    core.vacant.set(context, NEVER);
    core.occupied += 1;
    Thread& thread = threads[core.first_thread + context];
    thread.admitted = now;
    core.looks = 0;
    core.last.clear();
    return thread;
}

/// Records of a task's phases and buffers. What lies before its boundary counts as done long ago.
void Machine::prepare(Thread& lead, const flat::Variant& variant) {
    const auto phases = program.phases.part(variant.first_phase, variant.phases);
    for (i64 number = phases.size(); number < lead.phases.size(); ++number) lead.phases[number].starts.drop(starts_room);
    lead.phases.resize(phases.size());
    for (i64 number = 0; number < phases.size(); ++number) {
        PhaseState& state = lead.phases[number];
        const flat::Body& body = program.bodies[phases[number].body];
        state.phase = &phases[number];
        set_body(state, phases[number].body);
        state.lag = state.streams->lag;
        state.first = number < lead.entry.phase ? NEVER : number == lead.entry.phase ? lead.entry.iteration : 0;
        if (preempting) {
            Array<i64>& own = echoes.at({variant.first_phase, variant.phases})[number];
            state.echoes = Slice<const i64>(own.data(), own.size());
        }
        const bool whole = looked_back_at[variant.first_phase + number];
        state.starts.begin(phases[number], body.operations, state.first, whole, starts_room);
        if (whole) budget -= phases[number].repeat * body.operations / STEPS_OF_AN_EVENT;
    }
    lead.buffers.fill(variant.buffers, {});
    for (i64 number = 0; number < variant.buffers; ++number) {
        const flat::Buffer& buffer = program.buffers[variant.first_buffer + number];
        lead.buffers[number].slots = buffer.slots;
        lead.buffers[number].cause = buffer.cause;
    }
    lead.stop = NO_BOUNDARY;
    lead.asked = Asked::NO;
    lead.open = lead.crossed = lead.done_at = lead.clear_at = lead.loaded = 0;
    lead.finish = lead.weight_set_at = NEVER;
}

/// The body of a phase, with its streams.
void Machine::set_body(PhaseState& state, i64 number) {
    const flat::Body& body = program.bodies[number];
    if (body.first_word == NONE) {
        state.operations = Operations(program, body);
        state.streams = &streams[number];
        return;
    }
    if (!at_hand[number]) {
        if (spare.empty()) {
            unpacked.emplace_back();
            spare.push(&unpacked.back());
        }
        Unpacked& own = *(at_hand[number] = spare.pop());
        own.body = number;
        own.operations = Operations(program, body);
        own.operations.index(own.places);
        sort_streams(own.operations, own.streams);
        budget -= body.words / STEPS_OF_AN_EVENT;
    }
    state.unpacked = at_hand[number];
    state.unpacked->users += 1;
    state.operations = state.unpacked->operations;
    state.streams = &state.unpacked->streams;
}

/// A task has gone: packed bodies that nobody else runs are forgotten.
void Machine::put_away(Thread& lead) {
    for (PhaseState& state : lead.phases) {
        Unpacked* const own = std::exchange(state.unpacked, nullptr);
        if (!own || --own->users > 0) continue;
        at_hand[own->body] = nullptr;
        spare.push(own);
    }
}

/// Write down which thread a task has beside its first.
void Machine::note_thread_slot(const Thread& thread) {
    tables[THREAD_SLOTS].add({thread.job, thread.member, thread.core, thread.context});
}

/// Free the threads of a core whose tasks finish or pause at `now`, and note the weight sets that are there.
void Machine::leave(Core& core, i64 now) {
    while (core.dues.cycle() == now) {
        Thread& lead = threads[core.first_thread + core.dues.place()];
        if (lead.weight_set_at == now) end_loading(lead);
        if (lead.part_at == now) finish_parts(lead, now);
        if (lead.finish != now) continue;
        if (lead.asked == Asked::PAUSES) {
            pause(lead, now);
        } else {
            finish(lead, now);
        }
        free(lead, now);
    }
}

/// A task is done: where and when it ran.
void Machine::finish(Thread& lead, i64 now) {
    if (lead.profile->weight_set != NONE) let_go(lead);
    if (!lead.parts.empty()) {
        for (const Part& part : lead.parts) {
            if (!part.gone) finish_job(lead, part.job, now, part.job == lead.job);
        }
        // nothing needs the number of the first any more
        if (fed) free_jobs.push(lead.job);
        return;
    }
    const i64 pool = lead.profile->pool;
    const bool again = pool != NONE && program.pools[pool].policy == flat::CONTINUOUS;
    const auto over = [&](i64 job) { again ? wait_again(lead, job, now) : finish_job(lead, job, now); };
    over(lead.job);
    for (const i64 job : lead.others) over(job);
}

/// The same of one task of a thread. stays: it still leads others.
void Machine::finish_job(const Thread& lead, i64 job, i64 now, bool stays) {
    TaskRow& row = rows[job];
    if (lead.profile->pool != NONE) row.batch = jobs[lead.job].number;
    if (job != lead.job) row.taken = 0;
    row.core = lead.core;
    row.context = lead.context;
    row.finish = now;
    let_follow(job, now, 0);
    if (jobs[job].ends != NONE) arrive_at(jobs[job].ends, now);
    note_over(job, stays);
}

/// All threads of a task are free.
void Machine::free(Thread& lead, i64 now) {
    cores[lead.core].dues.set(lead.context, NEVER);
    dues.set(lead.core, cores[lead.core].dues.cycle());
    put_away(lead);
    for (i64 number = lead.number; number != NONE; number = threads[number].next) {
        Thread& thread = threads[number];
        Core& core = cores[thread.core];
        account(core, thread.context, now);
        thread.job = NONE;
        core.vacant.set(thread.context, 0);
        core.occupied -= 1;
    }
}

}  // namespace lstmsim
