// The plain C interface: whole numbers and addresses of arrays of whole numbers.
#include "interface.hpp"

#include "bodies.hpp"

using lstmsim::i64;
using lstmsim::column::Asked;
using lstmsim::column::Bodies;

/// The version of what is passed.
LSTMSIM_PUBLIC i64 lstmsim_format() { return 1; }

/// Write the bodies of pairs, each a row (`Asked`) of places in `words`. 0, or more if it failed, for the reason in `message`.
///
/// made: is set to what was written, which the caller closes; null if it failed.
/// tables: is set to the addresses of operations, needs, bodies and pairs; sizes: to how many rows each of them has.
LSTMSIM_PUBLIC i64 lstmsim_bodies(
    const i64* words, i64 count, const i64* asked, i64 pairs, Bodies** made, const void** tables, i64* sizes,
    char* message, i64 room) {
    *made = nullptr;
    return lstmsim::guarded(
        [&] {
            auto* const bodies = *made = new Bodies({words, count});
            for (i64 pair = 0; pair < pairs; ++pair) bodies->write(reinterpret_cast<const Asked*>(asked)[pair]);
            tables[0] = bodies->operations.data();
            tables[1] = bodies->needs.data();
            tables[2] = bodies->bodies.data();
            tables[3] = bodies->pairs.data();
            sizes[0] = bodies->operations.size();
            sizes[1] = bodies->needs.size();
            sizes[2] = bodies->bodies.size();
            sizes[3] = bodies->pairs.size();
            return i64{0};
        },
        message, room);
}

/// Forget what was written.
LSTMSIM_PUBLIC void lstmsim_close(Bodies* bodies) { delete bodies; }
