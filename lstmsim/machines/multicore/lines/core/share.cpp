// Lines that one core writes and others use.
#include "caches.hpp"

namespace lstmsim {

void Caches::share(i64 line, i64 mark, bool write) {
    const i64 writer = writer_[mark];
    if (writer != NONE && writer != core_) {
        take_from(writer, line);
        // from the memory on nobody has it dirty
        if (group_of(writer) != group_) writer_[mark] = static_cast<i32>(NONE);
    }
    const Slice<u64> holders = holders_.part(mark * words_, words_);
    if (write) {
        drop_others(line, holders);
        writer_[mark] = static_cast<i32>(core_);
    }
    holders[core_ / 64] |= u64{1} << (core_ % 64);
}

/// What its last writer has dirty goes to the last-level cache of its group, and from there, if that is another group's,
/// to memory.
void Caches::take_from(i64 writer, i64 line) {
    const i64 group = group_of(writer);
    const bool in_l1 = l1_[writer].drop(line, true), in_l2 = l2_[writer].drop(line, true);
    if (in_l1 || in_l2) {
        // a clean copy at the other level goes too
        if (!in_l1) l1_[writer].drop(line);
        if (!in_l2) l2_[writer].drop(line);
        ++count_.transfers;
        into_llc(group, line);
    }
    if (group != group_ && llc_[group].drop(line, true)) memory_line(line, count_.memory_write);
}

/// Nobody but this core and its group keeps a line.
void Caches::drop_others(i64 line, Slice<u64> holders) {
    for (i64 word = 0; word < holders.size(); ++word) {
        u64 bits = holders[word];
        if (word == core_ / 64) bits &= ~(u64{1} << (core_ % 64));
        for (; bits; bits &= bits - 1) {
            const i64 other = word * 64 + __builtin_ctzll(bits);
            l1_[other].drop(line);
            l2_[other].drop(line);
            if (group_of(other) != group_) llc_[group_of(other)].drop(line);
        }
        holders[word] = 0;
    }
}

}  // namespace lstmsim
