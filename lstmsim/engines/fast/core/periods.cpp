// What comes again within tasks: iterations of phases that a core runs as it ran earlier ones, only later.
//
// A core that goes on alone (run.cpp) is looked at whenever a stream has come to another iteration. What it is then is
// written down, cycles counted from the present one, iterations from those that its tasks have come to. If it was the
// same at an earlier look, and nothing has come from outside in between, then all that it did since then it will do
// again, later by the cycles between both looks, as often as no stream comes to the end of its phase. So that is done at
// once: sums grow, and all that is left of the present state is put later.
//
// Why this suffices. What a core does follows from what is compared (units, threads, streams, starts that may still be
// looked at, buffers) and from cycles that stay: when its tasks were admitted, when their frames came, when operations
// of earlier phases have started. All of these are past when the core is looked at (`since`), so that they hold nothing
// back any more, neither an issue nor the name of a cycle. They could still tell which of two threads has waited longer
// on a unit that asks for that (`fifo`): where two threads are busy, each operation of such a unit must wait for one of
// its own phase that has started since then.
//
// In a run with a trace the rows are written again (traced_periods.cpp).
//
// Nothing is skipped in tasks that can be paused, that load their weights, whose frames come one after another, or whose
// iterations differ (`Streams::plain`).
#include "machine.hpp"

namespace lstmsim {

namespace {

/// So many looks find a period, if there is one; then a core is looked at now and then.
constexpr i64 FIRST_LOOKS = 24, LOOKS = 6, EACH_LOOKS = 256;
/// So many looks are remembered: a period of so many iterations is found.
constexpr i64 REMEMBERED = 4;
/// Streams of a task that are further apart, in iterations, are not looked at.
constexpr i64 MOST_APART = 64;

/// A cycle counted from another one; those before count as that one.
i64 ahead(i64 cycle, i64 now) { return cycle >= NEVER ? NEVER : std::max(cycle - now, i64{0}); }

}  // namespace

/// Look at a core at the beginning of a cycle, and skip what comes again; true if something was skipped.
bool Machine::skip_periods(Core& core, i64 now, i64 stop) {
    core.wrapped = false;
    const i64 number = core.looks++;
    if (!skipping || (number >= FIRST_LOOKS && number % EACH_LOOKS >= LOOKS)) return false;
    if (!write_look(core, now, present)) {
        core.last.clear();
        return false;
    }
    for (const Look& before : core.last) {
        if (before.state.size() != present.state.size()) continue;
        if (!std::equal(before.state.begin(), before.state.end(), present.state.begin())) continue;
        const i64 times = periods_left(core, before, present, stop);
        if (times > 0) repeat_period(core, before, present, times);
        const i64 then = now + times * (now - before.cycle);
        core.last.clear();
        core.looks = 0;
        // of rows of a trace only so many are written at once
        if (keep && times > 0 && write_look(core, then, present)) {
            core.last.push({});
            std::swap(core.last[core.looks++], present);
        }
        return times > 0;
    }
    if (core.last.size() < REMEMBERED) core.last.push({});
    std::swap(core.last[number % core.last.size()], present);
    return false;
}

/// Write down what a core is; false if its tasks are not such that it may come again.
bool Machine::write_look(const Core& core, i64 now, Look& own) const {
    own.cycle = now;
    own.state.clear();
    own.counted.clear();
    own.iterations.clear();
    own.since.clear();
    own.taken.clear();
    if (preempting || core.dues.cycle() < NEVER) return false;
    for (const Unit& unit : core.units) {
        own.state.push(unit.active);
        own.state.push(unit.fresh);
        own.state.push(ahead(unit.free_at, now));
        own.state.push(unit.accounted ? unit.named - now : 0);
        if (keep && may_go_on(core, unit, now)) return false;
    }
    own.issues = tables[ISSUES].size();
    own.switches = tables[SWITCHES].size();
    for (i64 context = 0; context < core.contexts; ++context) {
        const Thread& thread = threads[core.first_thread + context];
        own.state.push(thread.job);
        if (thread.job != NONE && !write_thread(core, thread, now, core.occupied, own)) return false;
    }
    for (const i64 cycles : core.counted) own.counted.push(cycles);
    own.counted.push(core.worked);
    own.counted.push(core.issued);
    return true;
}

/// Write down what a busy thread is. busy: how many there are on its core.
bool Machine::write_thread(const Core& core, const Thread& thread, i64 now, i64 busy, Look& own) const {
    if (thread.lead != thread.number || thread.next != NONE || thread.loads > 0 || thread.frame_interval != 0) return false;
    if (thread.opens > thread.admitted) return false;
    const auto streams_of = cursors.part(thread.first_cursor, core.kinds);
    i64 phase = NONE, base = NEVER, last = 0;
    for (const Cursor& cursor : streams_of) {
        if (!cursor.operation) continue;
        if (phase != NONE && cursor.phase != phase) return false;
        phase = cursor.phase;
        base = std::min(base, cursor.iteration);
        last = std::max(last, cursor.iteration);
    }
    if (phase == NONE) return false;
    // members of a batch of different lengths leave on the way
    if (!thread.parts.empty() && thread.parts[0].steps != thread.parts[thread.parts.size() - 1].steps) return false;
    const PhaseState& state = thread.phases[phase];
    const Streams& body = *state.streams;
    const i64 since = std::max({thread.admitted, thread.came, thread.crossed + body.far});
    // to write down what streams have done that are far apart takes longer than to run it
    if (last - base > MOST_APART) return false;
    if (!body.plain || since > now || base - state.lag < std::max(state.first, state.starts.oldest())) return false;
    own.iterations.push(base);
    own.since.push(since);
    own.state.push(phase);
    own.state.push(thread.open);
    own.state.push(thread.done_at - now);
    for (const Cursor& cursor : streams_of) {
        const Unit& unit = core.units[cursor.place];
        const bool in_order = unit.policy == flat::FIFO && busy > 1;
        if (in_order && (body.loose >> cursor.unit & 1)) return false;
        if (unit.accounted && unit.named < since) return false;
        const i64 ready = unit.ready.at(thread.context);
        own.state.push(cursor.operation ? cursor.iteration - base : NONE);
        own.state.push(cursor.position);
        own.state.push(cursor.left);
        own.state.push(in_order && ready < NEVER ? ready - now : ahead(ready, now));
        own.state.push(cursor.operation && ready >= NEVER ? cursor.behind : NONE);
        for (i64 cause = 0; (keep || unit.accounted) && cause < program.causes.size(); ++cause) {
            const i64 until = cursor.until[cause];
            own.state.push(!keep ? ahead(until, unit.named) : until <= since ? -NEVER : until < NEVER ? until - now : NEVER);
        }
    }
    if (!write_buffers(thread, now, keep ? since : NONE, own)) return false;
    return write_starts(thread, phase, base - state.lag, last + 1, now, keep || busy > 1 ? since : 0, own);
}

/// Write down what may still matter of a thread's buffers. since: no slot may have been freed sooner, or then.
bool Machine::write_buffers(const Thread& thread, i64 now, i64 since, Look& own) const {
    for (const BufferState& buffer : thread.buffers) {
        const i64 count = buffer.frees.count();
        if (buffer.taken > 0 && buffer.taken < buffer.slots) return false;
        own.taken.push(buffer.taken);
        own.state.push(buffer.taken - count);
        own.state.push(buffer.waiter);
        for (i64 turn = std::max(buffer.taken - buffer.slots, i64{0}); turn < count; ++turn) {
            if (buffer.frees.at(turn) <= since) return false;
            own.state.push(buffer.frees.at(turn) - now);
        }
    }
    return true;
}

/// Write down the starts in iterations that may still be looked at. since: none of them may be sooner.
bool Machine::write_starts(
    const Thread& thread, i64 phase, i64 first, i64 end, i64 now, i64 since, Look& own) const {
    const PhaseState& state = thread.phases[phase];
    own.state.push(end - first);
    for (i64 iteration = first; iteration < end; ++iteration) {
        for (const i64 start : state.starts.row(iteration)) {
            if (start > NOT_STARTED && start < since) return false;
            own.state.push(start > NOT_STARTED ? start - now : NEVER - start);
        }
    }
    return true;
}

/// How many times more the period since an earlier look fits before something else happens.
i64 Machine::periods_left(const Core& core, const Look& before, const Look& own, i64 stop) const {
    const i64 cycles = own.cycle - before.cycle;
    i64 times = cycles > 0 ? (std::min(stop, LATEST) - own.cycle) / cycles : 0, busy = 0;
    for (i64 context = 0; context < core.contexts; ++context) {
        const Thread& thread = threads[core.first_thread + context];
        if (thread.job == NONE) continue;
        const i64 apart = own.iterations[busy] - before.iterations[busy];
        busy += 1;
        if (apart <= 0) return 0;
        for (const Cursor& cursor : cursors.part(thread.first_cursor, core.kinds)) {
            if (!cursor.operation) continue;
            const flat::Phase& phase = *thread.phases[cursor.phase].phase;
            // what a member of a batch does in its last step is counted, and its steps may be fewer than the phase repeats
            const i64 steps = thread.parts.empty() || phase.mirrored ? phase.repeat : thread.parts[0].steps - phase.first_step;
            const i64 last = std::min(phase.repeat, steps) - (thread.parts.empty() ? 1 : 2);
            times = std::min(times, std::max(last - cursor.iteration, i64{0}) / apart);
        }
    }
    // rows are written one by one: not more of them at once than a run may take until it comes back
    const i64 issues = (own.issues - before.issues) / (issue::COLUMNS + program.causes.size());
    if (issues > 0) times = std::min(times, rows_left() / issues + 1);
    for (i64 i = 0; i < own.counted.size(); ++i) {
        i64 sum = 0;
        const i64 more = own.counted[i] - before.counted[i];
        while (times > 0 && (__builtin_mul_overflow(more, times, &sum) || __builtin_add_overflow(sum, own.counted[i], &sum))) times /= 2;
    }
    return times;
}

/// Do at once what a core has done since an earlier look, so many times.
void Machine::repeat_period(Core& core, const Look& before, const Look& own, i64 times) {
    if (keep) repeat_rows(core, before, own, times);
    const i64 cycles = own.cycle - before.cycle, later = times * cycles, names = core.counted.size();
    for (i64 name = 0; name < names; ++name) core.counted[name] += times * (own.counted[name] - before.counted[name]);
    core.worked += times * (own.counted[names] - before.counted[names]);
    core.issued += times * (own.counted[names + 1] - before.counted[names + 1]);
    for (Unit& unit : core.units) {
        unit.free_at += later;
        if (unit.accounted) unit.named += later;
    }
    i64 busy = 0, buffers = 0;
    for (i64 context = 0; context < core.contexts; ++context) {
        Thread& thread = threads[core.first_thread + context];
        if (thread.job == NONE) continue;
        const i64 base = own.iterations[busy], apart = base - before.iterations[busy];
        i64 phase = NONE, end = 0;
        for (Cursor& cursor : cursors.part(thread.first_cursor, core.kinds)) {
            Soonest& ready = core.units[cursor.place].ready;
            if (ready.at(context) < NEVER) ready.set(context, ready.at(context) + later);
            if (cursor.operation) {
                phase = cursor.phase;
                end = std::max(end, cursor.iteration + 1);
                cursor.iteration += times * apart;
                cursor.ended += later;
            }
            for (i64 cause = 0; cause < program.causes.size(); ++cause) {
                i64& until = cursor.until[cause];
                if (until >= NEVER) continue;
                until = until > own.since[busy] ? until + later : cursor.operation ? held_before(thread, cursor, cause) : 0;
            }
        }
        PhaseState& state = thread.phases[phase];
        state.starts.come_again(base - state.lag, end, apart, times, cycles);
        thread.done_at += later;
        for (BufferState& buffer : thread.buffers) {
            const i64 more = own.taken[buffers] - before.taken[buffers];
            buffer.frees.come_again(buffer.taken - buffer.slots, times * more, later);
            buffer.taken += times * more;
            buffers += 1;
        }
        busy += 1;
    }
    for (Unit& unit : core.units) {
        unit.row = NONE;
        core.events.set(unit.place, std::min(NEVER, std::max(unit.ready.cycle(), unit.free_at)));
    }
    budget -= 1;
}

}  // namespace lstmsim
