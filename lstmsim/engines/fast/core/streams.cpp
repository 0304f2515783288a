// The streams of a body: its operations by members and units, and what is known of all of them.
#include "machine.hpp"

namespace lstmsim {

/// Sort the operations of a body, in their order, by member and unit.
void sort_streams(const Operations& operations, Streams& streams) {
    streams.members = streams.units = streams.lag = streams.far = streams.loose = 0;
    streams.plain = !operations.packed();
    for (i64 i = 0; i < operations.size(); ++i) {
        streams.members = std::max(streams.members, operations[i].member + 1);
        streams.units = std::max(streams.units, operations[i].unit + 1);
    }
    const auto place = [&](const flat::Operation& each) { return each.member * streams.units + each.unit; };
    streams.first.fill(streams.members * streams.units + 1, 0);
    for (i64 i = 0; i < operations.size(); ++i) streams.first[place(operations[i]) + 1] += 1;
    for (i64 i = 1; i < streams.first.size(); ++i) streams.first[i] += streams.first[i - 1];
    Array<i64> next = streams.first;
    streams.order.resize(operations.size());
    for (i64 i = 0; i < operations.size(); ++i) {
        streams.order[next[place(operations[i])]++] = static_cast<i32>(i);
        // needs of packed bodies have no lag
        bool loose = true;
        for (i64 number = 0; !operations.packed() && number < operations.needs(i); ++number) {
            const flat::Need& need = operations.need(i, number).row;
            if (need.barrier) {
                streams.plain = false;
            } else if (need.phase == NONE) {
                streams.lag = std::max(streams.lag, need.lag);
                loose = false;
            } else {
                streams.far = std::max(streams.far, need.delay);
            }
        }
        const flat::Operation& each = operations[i];
        if (each.extra != NONE || each.arrives != NONE || each.count == 0 || each.unit > 62) streams.plain = false;
        if (loose) streams.loose |= i64{1} << std::min(each.unit, i64{62});
    }
}

}  // namespace lstmsim
