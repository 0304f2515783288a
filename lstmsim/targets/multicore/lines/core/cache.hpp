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

class Cache {
  public:
    Cache() = default;
    Cache(i64 sets, i64 ways)
        : sets_(static_cast<u32>(sets)), mask_(sets & (sets - 1) ? 0 : sets_ - 1), ways_(ways),
          entries_(new Entry[static_cast<std::size_t>(sets * ways)]) {
        begun_.fill(sets, 0);
    }

    /// Make a line the youngest of its set, dirty if `dirty` or if it was; whether it is there.
    bool touch(i64 line, bool dirty) {
        const Slice<Entry> own = set_of(line);
        const i64 place = find(own, line);
        if (place == own.size()) return false;
        const Entry entry = own[place] | static_cast<Entry>(dirty);
        shift(own, place, entry);
        return true;
    }

    /// Put a line that is not there in as the youngest; what had to go, or 0.
    Entry push(i64 line, bool dirty) {
        const Slice<Entry> own = set_of(line);
        const Entry victim = own[ways_ - 1];
        shift(own, ways_ - 1, entry_of(line) | static_cast<Entry>(dirty));
        return victim;
    }

    /// Put a line in as the youngest, dirty if `dirty` or if it was; what had to go, or 0.
    Entry put(i64 line, bool dirty) { return touch(line, dirty) ? 0 : push(line, dirty); }

    /// Whether a line is there and dirty.
    bool dirty(i64 line) {
        const Slice<Entry> own = set_of(line);
        const i64 place = find(own, line);
        return place < own.size() && is_dirty(own[place]);
    }

    /// Remove a line if it is there.
    void drop(i64 line) {
        const Slice<Entry> own = set_of(line);
        i64 place = find(own, line);
        if (place == own.size()) return;
        for (; place + 1 < own.size(); ++place) own[place] = own[place + 1];
        own[place] = 0;
    }

  private:
    u32 sets_ = 1, mask_ = 0;
    i64 ways_ = 1;
    /// Of each set its entries. They are nothing before the set is asked for: many products use few sets, and zeros for
    /// all would take longer than their lines.
    std::unique_ptr<Entry[]> entries_;
    /// Of each set whether it was ever asked for.
    Array<std::uint8_t> begun_;

    Slice<Entry> set_of(i64 line) {
        const u32 number = static_cast<u32>(line);
        const u32 set = mask_ || sets_ == 1 ? number & mask_ : number % sets_;
        // inside, as `set` is a place of `begun_`
        const Slice<Entry> own(entries_.get() + static_cast<i64>(set) * ways_, ways_);
        if (std::uint8_t& begun = begun_[set]; !begun) {
            begun = 1;
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

    /// Put an entry first; those before `place` go one further, what was there is gone.
    static void shift(const Slice<Entry>& own, i64 place, Entry entry) {
        for (; place > 0; --place) own[place] = own[place - 1];
        own[0] = entry;
    }
};

}  // namespace lstmsim
