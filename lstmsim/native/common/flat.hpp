// The flat form of a program: tables of whole numbers, one after the other. Their meaning is in
// lstmsim/program/flat.py.
#pragma once

#include "cycles.hpp"

namespace lstmsim::flat {

/// The version of the format. It must be that of lstmsim/program/flat.py.
constexpr i64 FORMAT = 6;

// A row of each table. The order of the fields is that of the columns; a test compares both.
struct Head { i64 names, busy, switching, drain, idle, input; };
struct Cause { i64 name; };
struct Core { i64 kind, contexts, first_unit, units, accounted, capacity, shared, mirrors, first_held, held; };
struct Unit { i64 policy, switch_cycles, instances; };
struct Held { i64 weight_set; };
struct WeightSet { i64 key, size; };
struct Group { i64 first_place, places; };
struct Place { i64 first_thread_slot, thread_slots; };
struct ThreadSlot { i64 core; };
struct Profile {
    i64 group, weight_set, loading, affine, preempts, queue_limit, patience, first_variant, variants, first_moldable, moldables, pool,
        sizes, length;
};
struct Variant { i64 kind, members, first_phase, phases, first_buffer, buffers; };
struct Phase { i64 body, repeat, mirrored, first_step, first_extra, extras, first_barrier, barriers; };
struct Extra { i64 cycles; };
struct Buffer { i64 slots, cause; };
struct Body { i64 first_operation, operations, first_word, words; };
struct Word { i64 word; };
struct Operation {
    i64 unit, cycles, count, frame, takes, frees, result_cycles, work, first_need, needs, ahead, member, extra, arrives, inference;
};
struct Need { i64 operation, delay, cause, lag, phase, mirrored, barrier; };
struct Task {
    i64 profile, release, frame_interval, key, key_from_arrival, after, behind, starts, ends, until;
};
struct Barrier { i64 arrivals; };
struct Pool { i64 most, wait, policy, ragged; };
struct Session { i64 session, move; };

/// The policies of units, numbered as in lstmsim/program/policy.py.
enum Policy : i64 { COARSE, FINE, FIFO, POLICIES };

/// When a pool makes batches, numbered as in lstmsim/program/program.py.
enum PoolPolicy : i64 { DYNAMIC, WINDOW, CONTINUOUS, POOL_POLICIES };

/// The key of a weight set that is room for one task alone, while it runs.
constexpr i64 OWN_ROOM = -1;

/// Most causes of waiting, and most names of cycles.
constexpr i64 MOST_CAUSES = 16;
constexpr i64 MOST_NAMES = 32;
/// Most starts of operations that tasks remember, all running ones together: 1 GB.
constexpr i64 MOST_STARTS = i64{1} << 27;

/// What a word of a packed body says: of an operation, its row of `operations` and how many words of needs follow; of a
/// need, its row of `needs` and what stands in the place of its `operation`.
inline i64 row_of_operation(const Word& word) { return word.word >> 8; }
inline i64 needs_of_operation(const Word& word) { return word.word & 255; }
inline i64 row_of_need(const Word& word) { return word.word >> 32; }
inline i64 operation_of_need(const Word& word) { return (word.word & 0xffffffff) - (i64{1} << 31); }

/// A program: its tables, as slices of numbers that somebody else owns.
struct Program {
    Slice<const Head> head;
    Slice<const Cause> causes;
    Slice<const Core> cores;
    Slice<const Unit> units;
    Slice<const Held> held;
    Slice<const WeightSet> weight_sets;
    Slice<const Group> groups;
    Slice<const Place> places;
    Slice<const ThreadSlot> thread_slots;
    Slice<const Profile> profiles;
    Slice<const Variant> variants;
    Slice<const Phase> phases;
    Slice<const Extra> extras;
    Slice<const Buffer> buffers;
    Slice<const Body> bodies;
    Slice<const Word> words;
    Slice<const Operation> operations;
    Slice<const Need> needs;
    Slice<const Task> tasks;
    Slice<const Barrier> barriers;
    Slice<const Pool> pools;
    Slice<const Session> sessions;  // none, or one for each task
};

/// Find the tables in a row of numbers; `Refusal` if they are not all there.
Program read(const i64* words, i64 count);

/// Look for broken rules that would lead outside an array, to numbers too large, or to no end; `Refusal` for the first one.
///
/// What a Program says in words, lstmsim/program/validate.py has checked already; this is the last door, for programs
/// that come from files or are written by hand. A refusal names the table, the row, the column and its value.
void check(const Program& program);

/// The two parts of that: rows of operations, needs, extras and buffers alone; then all else, for rows that are right.
void check_rows(const Program& program);
void check_tables(const Program& program);

}  // namespace lstmsim::flat
