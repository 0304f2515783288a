// What is kept of a stretch of a run: from a cycle at which nothing runs to the next one.
#pragma once

#include "cycles.hpp"

namespace lstmsim {

/// The run of all tasks that came behind one barrier, from a cycle at which they were all still to come, and nothing
/// else could happen, to the cycle at which the last of them was done. steady.cpp says why it may be repeated.
struct Stretch {
    i64 barrier = NONE;            // its tasks come behind it; none: nothing is kept
    i64 begin = 0, end = 0;        // its cycles
    Array<i64> before;             // what the machine was at the beginning, as far as that can matter
    Array<i64> active;             // of each unit at the end: the active thread,
    Array<char> fresh;             // and whether that thread has not issued since the switch
    Array<i64> counted;            // of each core what was added: cycles of each name, work, issues
    i64 last_cycle = 0;            // of any start up to the end
    i64 finished = 0, placements = 0, arrived = 0, stamps = 0, met = 0;  // these numbers of the machine at the beginning
    Array<i64> first_row, end_row;  // of each table of the trace, the numbers that were written
};

/// How many stretches are kept at most: those of a time step of a network have to be among them.
constexpr i64 MOST_STRETCHES = 64;

}  // namespace lstmsim
