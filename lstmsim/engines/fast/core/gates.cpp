// Gates: operations and tasks arrive there, and when all have come, others go on.
#include "machine.hpp"

namespace lstmsim {

/// One of those that a gate counts arrives there at a cycle, which may be to come.
void Machine::arrive_at(i64 number, i64 cycle) {
    Gate& gate = gates[number];
    if (gate.left == 0) {
        throw Overrun("more than " + std::to_string(program.gates[number].arrivals) + " arrive at gate " +
                      std::to_string(number));
    }
    gate.latest = std::max(gate.latest, cycle);
    if (--gate.left == 0) open(number);
}

/// All have come: operations, tasks that come and tasks that last know when the gate opens.
void Machine::open(i64 number) {
    Gate& gate = gates[number];
    wake(std::exchange(gate.opened, gate.latest));
    auto next = std::lower_bound(behind.begin(), behind.end(), std::pair<i64, i64>(number, NONE));
    for (; next != behind.end() && next->first == number; ++next) {
        const i64 comes = gate.latest + jobs[next->second].release;
        // one that an admission brings at once comes in the next round
        coming.insert({comes, comes == looked_at ? round + 1 : 0, next->second});
        came_behind = true;
    }
    for (const i64 thread : gate.lasting) {
        Thread& lead = threads[thread];
        lead.open -= 1;
        lead.done_at = std::max(lead.done_at, gate.latest);
        set_due(lead);
    }
    gate.lasting.clear();
}

/// A task that begins does not finish before a gate opens.
void Machine::last_until(Thread& lead, i64 number) {
    Gate& gate = gates[number];
    if (gate.left == 0) {
        lead.done_at = std::max(lead.done_at, gate.latest);
    } else {
        lead.open += 1;
        gate.lasting.push(lead.number);
    }
}

}  // namespace lstmsim
