// Barriers: operations and tasks arrive there, and when all have come, others go on.
#include "machine.hpp"

namespace lstmsim {

/// One of those that a barrier counts arrives there at a cycle, which may be to come.
void Machine::arrive_at(i64 number, i64 cycle) {
    met += 1;
    Barrier& barrier = barriers[number];
    if (barrier.left == 0) {
        throw Overrun("more than " + std::to_string(program.barriers[number].arrivals) + " arrive at barrier " +
                      std::to_string(number));
    }
    barrier.latest = std::max(barrier.latest, cycle);
    if (--barrier.left == 0) open(number);
}

/// All have come: operations, tasks that come and tasks that last know when the barrier opens.
void Machine::open(i64 number) {
    Barrier& barrier = barriers[number];
    wake(std::exchange(barrier.opened, barrier.latest));
    auto next = std::lower_bound(behind.begin(), behind.end(), std::pair<i64, i64>(number, NONE));
    for (; next != behind.end() && next->first == number; ++next) {
        const i64 comes = barrier.latest + jobs[next->second].release;
        // one that an admission brings at once comes in the next round
        coming.insert({comes, comes == looked_at ? round + 1 : 0, next->second});
        came_behind = true;
    }
    for (const i64 thread : barrier.lasting) {
        Thread& lead = threads[thread];
        lead.open -= 1;
        lead.done_at = std::max(lead.done_at, barrier.latest);
        set_due(lead);
    }
    barrier.lasting.clear();
}

/// A task that begins does not finish before a barrier opens.
void Machine::last_until(Thread& lead, i64 number) {
    Barrier& barrier = barriers[number];
    if (barrier.left == 0) {
        lead.done_at = std::max(lead.done_at, barrier.latest);
    } else {
        lead.open += 1;
        barrier.lasting.push(lead.number);
    }
}

}  // namespace lstmsim
