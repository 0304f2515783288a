// Members of a ragged batch: each leaves out the steps beyond its own, and finishes with its own last result.
#include "machine.hpp"

namespace lstmsim {

namespace {

/// The last iteration of a phase that a member runs; negative if there is none.
i64 last_iteration(const flat::Phase& phase, i64 steps) {
    if (!phase.mirrored) return std::min(phase.repeat, steps - phase.first_step) - 1;
    return phase.first_step - (phase.repeat - 1) < steps ? phase.repeat - 1 : NONE;
}

}  // namespace

/// The members of a ragged batch begin, the longest first.
void Machine::begin_parts(Thread& lead) {
    lead.parts.clear();
    lead.part_at = NEVER;
    const i64 pool = lead.profile->pool;
    if (pool == NONE || !program.pools[pool].ragged || program.pools[pool].policy == flat::CONTINUOUS) return;
    lead.parts.push({lead.job, lead.profile->length});
    for (const i64 job : lead.others) lead.parts.push({job, profile_of(job).length});
    // weights that are there are not loaded
    for (i64 number = lead.entry.phase; number < lead.phases.size(); ++number) {
        const PhaseState& state = lead.phases[number];
        for (i64 i = 0; i < state.operations.size(); ++i) {
            const i64 inference = state.operations[i].inference;
            if (inference >= lead.parts.size()) continue;
            Part& part = lead.parts[inference];
            if (last_iteration(*state.phase, part.steps) >= 0) part.left += 1;
        }
        budget -= state.operations.size() / STEPS_OF_AN_EVENT;
    }
}

/// Whether an operation is beyond the steps of its inference.
bool Machine::left_out(const Thread& lead, i64 phase, i64 iteration, i64 inference) const {
    const flat::Phase& row = *lead.phases[phase].phase;
    const i64 step = row.first_step + (row.mirrored ? -iteration : iteration);
    return inference >= lead.parts.size() || step >= lead.parts[inference].steps;
}

/// An operation has its result at a cycle. Those of earlier iterations have theirs before.
void Machine::complete_part(Thread& lead, const Cursor& cursor, i64 done) {
    Part& part = lead.parts[cursor.operation->inference];
    if (cursor.iteration != last_iteration(*lead.phases[cursor.phase].phase, part.steps)) return;
    part.done_at = std::max(part.done_at, done);
    if (--part.left == 0) lead.part_at = std::min(lead.part_at, part.done_at);
}

/// Members whose last results are there now finish.
void Machine::finish_parts(Thread& lead, i64 now) {
    lead.part_at = NEVER;
    for (Part& part : lead.parts) {
        if (part.gone || part.left > 0) continue;
        if (part.done_at > now) {
            lead.part_at = std::min(lead.part_at, part.done_at);
            continue;
        }
        part.gone = true;
        finish_job(lead, part.job, now, part.job == lead.job);
    }
    set_due(lead);
}

}  // namespace lstmsim
