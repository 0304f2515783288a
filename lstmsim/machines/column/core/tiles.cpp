// Column groups, what they wait for, and tiles in their order; what a function does is said at the Python function that
// does the same.
#include <algorithm>

#include "bodies.hpp"

namespace lstmsim::column {

/// The column groups of a vector that wait for a frame or for nothing (`column_groups`).
void Bodies::add_groups(i64 width, i64 first, i64 frame) {
    const i64 full = width / core_.ep, rest = width % core_.ep;
    if (full) groups_.push({core_.ep, 0, 0, frame, first, full});
    if (rest) groups_.push({rest, 0, 0, frame, first + full, 1});
}

/// The column groups of a vector that wait for its parts, the reads whose units end at `ends_` (`column_groups`).
void Bodies::add_waiting_groups(i64 width, i64 index) {
    i64 number = 0;
    for (i64 first = 0; first < width;) {
        while (ends_[number] <= first) ++number;
        const i64 end = std::min(first + core_.ep, width);
        Group group{end - first, waits_.size(), 0, 0, index + first / core_.ep, 1};
        i64 last = 0;
        if (end <= ends_[number]) {
            const i64 before = ends_[number] - reads_[number].shape.units;
            waits_.push(wait(number, end - 1 - before, last));
            group.length = std::max(i64{1}, (before + last + 1 - first) / core_.ep);
        } else {
            for (i64 part = number; part < ends_.size(); ++part) {
                const i64 units = reads_[part].shape.units;
                waits_.push(wait(part, std::min(end, ends_[part]) - 1 - (ends_[part] - units), last));
                if (end <= ends_[part]) break;
            }
        }
        group.waits = waits_.size() - group.first_wait;
        groups_.push(group);
        first += group.length * core_.ep;
    }
}

/// The wait of a tile that reads the result of a unit; and the last unit for which it is the same (`Read.wait`).
Wait Bodies::wait(i64 read, i64 unit, i64& last) const {
    const Shape& shape = reads_[read].shape;
    const i64 block = unit / shape.per_block, turn = unit % shape.per_block / core_.tail_width;
    last = block * shape.per_block + std::min((turn + 1) * core_.tail_width, shape.size(block)) - 1;
    return {read, block, turn};
}

/// The groups without their waits, neighbours as one (`_joined`).
void Bodies::join_groups() {
    later_.clear();
    for (const Group& group : groups_) {
        Group* const last = later_.empty() ? nullptr : &later_[later_.size() - 1];
        if (last && last->columns == group.columns && last->first + last->length == group.first) {
            last->length += group.length;
        } else {
            later_.push({group.columns, 0, 0, 0, group.first, group.length});
        }
    }
}

void Bodies::write_tiles(i64 stage) {
    last_.clear();
    if (core_.by_column) {
        by_column(stage);
    } else {
        by_row(stage);
    }
}

/// Row block outer, column group inner (`Tiles._by_row`).
void Bodies::by_row(i64 stage) {
    const i64 blocks = shapes_[stage].blocks;
    if (blocks > 1) join_groups();
    for (i64 block = 0; block < blocks; ++block) {
        i64 takes = 0;
        for (const Group& group : block ? later_ : groups_) tile(stage, block, group, block == 0, std::exchange(takes, NONE));
        last_.push(operations.size() - 1 - own_);
    }
}

/// Column group outer, row block inner (`Tiles._by_column`).
void Bodies::by_column(i64 stage) {
    const Shape& shape = shapes_[stage];
    const i64 blocks = shape.blocks;
    i64 equal = 0, all = 0, number = 0;
    for (i64 block = 1; block < blocks; ++block) equal += shape.size(block) == shape.size(0);
    for (const Group& group : groups_) all += group.length;
    for (const Group& group : groups_) {
        for (i64 i = 0; i < group.length; ++i, ++number) {
            const i64 takes = number == 0 ? 0 : NONE;
            Group one = group;
            one.length = 1;
            tile(stage, 0, one, true, takes);
            i64 block = 1;
            if (number != 0 && number != all - 1 && equal) {
                one.length = equal;
                tile(stage, 1, one, false, NONE);
                one.length = 1;
                block = 1 + equal;
            }
            for (; block < blocks; ++block) {
                one.frame = 0;
                tile(stage, block, one, false, takes);
            }
        }
    }
    for (i64 block = 0; block < blocks; ++block) last_.push(operations.size() - blocks + block - own_);
}

/// A run of tiles of a row block (`Tiles._tiles`).
void Bodies::tile(i64 stage, i64 block, const Group& group, bool waiting, i64 takes) {
    for (i64 i = 0; waiting && i < group.waits; ++i) {
        const Wait& each = waits_[group.first_wait + i];
        const Read& read = reads_[each.read];
        need(each.block, read.home, each.turn + read.visible, read.lag, read.phase, read.mirrored);
    }
    const Shape& shape = shapes_[stage];
    operation(ARRAY, 1, group.length, waiting ? group.frame : 0, takes, NONE, 1, shape.gates * shape.size(block) * group.columns);
}

}  // namespace lstmsim::column
