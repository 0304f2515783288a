// One cache: sets of lines, of each set the youngest first.
#pragma once

#include <algorithm>
#include <memory>

#include "array.hpp"

namespace lstmsim {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// A line in a cache with its dirty mark in the lowest bit; 0: there is none. Lines are counted from 1 in it.
using Entry = u32;

/// Most lines of a space: one more, and twice that, must fit into an entry.
constexpr i64 MOST_LINES = (i64{1} << 31) - 2;

inline Entry entry_of(i64 line) { return static_cast<Entry>(line + 1) << 1; }
inline i64 line_of(Entry entry) { return static_cast<i64>(entry >> 1) - 1; }
inline bool is_dirty(Entry entry) { return entry & 1; }

/// Divides by a number that is often a power of two.
class Divider {
  public:
    Divider() = default;
    explicit Divider(i64 by) : by_(static_cast<u64>(by)) {
        if (!(by_ & (by_ - 1))) shift_ = __builtin_ctzll(by_);
    }
    i64 quotient(i64 of) const {
        const u64 number = static_cast<u64>(of);
        return static_cast<i64>(shift_ < 0 ? number / by_ : number >> shift_);
    }
    i64 divisor() const { return static_cast<i64>(by_); }
    i64 rest(i64 of) const {
        const u64 number = static_cast<u64>(of);
        return static_cast<i64>(shift_ < 0 ? number % by_ : number & (by_ - 1));
    }

  private:
    u64 by_ = 1;
    int shift_ = -1;
};

/// Whether a line was in a cache; if not, what had to go for it, or 0.
struct Taken {
    bool there;
    Entry victim;
};

/// `LAZY`: sets are emptied when they are first asked for. Most products use few sets of a large cache, and zeros for all
/// would take longer than their lines; in a small one, asking each time takes longer. Only such a cache may be hashed.
template <bool LAZY>
class Cache {
  public:
    Cache() = default;
    /// `order`: of each block of `sets` lines what its sets are XORed with; empty: nothing.
    Cache(i64 sets, i64 ways, Slice<const u32> order = {})
        : sets_(sets), ways_(ways), entries_(new Entry[static_cast<std::size_t>(sets * ways)]), order_(order) {
        if (LAZY) {
            begun_.fill(sets, 0);
        } else {
            std::fill_n(entries_.get(), sets * ways, Entry{0});
        }
    }

    /// Make a line the youngest of its set, dirty if `dirty` or if it was. If it was not there, what had to go, or 0.
    ///
    /// One pass: entries go one further until the place of the line is reached, or the end.
    Taken take(i64 line, bool dirty) {
        const Slice<Entry> own = set_of(line);
        const Entry wanted = entry_of(line);
        Entry before = wanted | static_cast<Entry>(dirty);
        for (Entry& entry : own) {
            const Entry here = entry;
            entry = before;
            if ((here & ~Entry{1}) == wanted) {
                own[0] |= here & Entry{1};
                return {true, 0};
            }
            before = here;
        }
        return {false, before};
    }

    /// Remove a line if it is there; with `if_dirty` only if it is dirty. Whether it was removed.
    bool drop(i64 line, bool if_dirty = false) {
        const Slice<Entry> own = set_of(line);
        i64 place = find(own, line);
        if (place == own.size() || (if_dirty && !is_dirty(own[place]))) return false;
        for (; place + 1 < own.size(); ++place) own[place] = own[place + 1];
        own[place] = 0;
        return true;
    }

  private:
    Divider sets_;
    i64 ways_ = 1;
    /// Of each set its entries.
    std::unique_ptr<Entry[]> entries_;
    Slice<const u32> order_;
    /// Of each set of a lazy cache whether it was ever asked for.
    Array<std::uint8_t> begun_;

    Slice<Entry> set_of(i64 line) {
        i64 set = sets_.rest(line);
        if (LAZY && order_.size()) set ^= order_[sets_.quotient(line)];
        const Slice<Entry> own = Slice<Entry>(entries_.get(), sets_.divisor() * ways_).part(set * ways_, ways_);
        if (LAZY && !begun_[set]) {
            begun_[set] = 1;
            std::fill(own.begin(), own.end(), Entry{0});
        }
        return own;
    }

    /// Where a line is in its set; the set's size if it is not there.
    static i64 find(const Slice<Entry>& own, i64 line) {
        const Entry wanted = entry_of(line);
        i64 place = 0;
        while (place < own.size() && (own[place] & ~Entry{1}) != wanted) ++place;
        return place;
    }
};

}  // namespace lstmsim
