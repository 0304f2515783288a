// When the operations of a phase have started, for as many iterations as may still matter.
#pragma once

#include <algorithm>

#include "flat.hpp"

namespace lstmsim {

/// In the place of a start: the operation has not started, and no cursor waits for it. If cursor c waits for it, that is
/// `NOT_STARTED - 1 - c`.
constexpr i64 NOT_STARTED = -1;

/// Room for starts, all running tasks together.
struct StartsRoom {
    i64 left = flat::MOST_STARTS;  // so many more can be remembered
    i64 given_back = 0;            // how many times a thread may have got less room than it had
};

/// A ring of rows, one for each iteration from `oldest` on, with a place for each operation of the body. It grows where
/// streams of a task are far apart.
class Starts {
  public:
    /// Begin anew at an iteration of a phase. whole: all of its iterations are remembered from now on, and none is
    /// forgotten.
    void begin(const flat::Phase& phase, i64 operations, i64 first, bool whole, StartsRoom& all) {
        operations_ = operations;
        oldest_ = end_ = whole ? 0 : std::min(first, phase.repeat);
        rows_ = 1;
        while (rows_ < std::min(phase.repeat, FEWEST)) rows_ *= 2;
        mask_ = rows_ - 1;
        if (whole) {
            // each iteration has a row of its own
            rows_ = end_ = phase.repeat;
            mask_ = NEVER - 1;
        }
        if (rows_ * operations_ > room_) take(rows_ * operations_, all);
        cells_.fill(rows_ * operations_, NOT_STARTED);
    }

    /// Give back the room for starts.
    void drop(StartsRoom& all) {
        all.given_back += room_ > 0;
        take(0, all);
    }

    /// The start of an operation in an iteration that is remembered.
    i64& at(i64 iteration, i64 operation) {
        check_place(iteration - oldest_, end_ - oldest_);
        return cells_[(iteration & mask_) * operations_ + operation];
    }

    /// Whether an iteration is remembered, or was.
    bool reaches(i64 iteration) const { return iteration < end_; }

    /// Whether there is room for an iteration without forgetting any.
    bool has_room(i64 iteration) const { return iteration < oldest_ + rows_; }

    /// Remember all iterations up to this one. needed: the first one that still matters, if there is no room.
    void reach(i64 iteration, i64 needed, StartsRoom& all) {
        if (!has_room(iteration)) {
            oldest_ = std::max(oldest_, std::min(needed, end_));
            // at least half of the rows are new each time, so the search for what is needed costs little
            while (2 * (iteration - oldest_) >= rows_) grow(all);
        }
        for (; end_ <= iteration; ++end_) {
            const auto row = cells_.part((end_ & mask_) * operations_, operations_);
            std::fill(row.begin(), row.end(), NOT_STARTED);
        }
    }

    /// The first iteration that is remembered, and the starts of one.
    i64 oldest() const { return oldest_; }
    Slice<const i64> row(i64 iteration) const {
        check_place(iteration - oldest_, end_ - oldest_);
        return cells_.part((iteration & mask_) * operations_, operations_);
    }

    /// The iterations from one up to `end` have come again so many `times`, each time `apart` iterations and `cycles`
    /// cycles later.
    void come_again(i64 from, i64 end, i64 apart, i64 times, i64 cycles) {
        Array<i64> window;
        for (i64 iteration = from; iteration < end; ++iteration) {
            for (const i64 start : cells_.part((iteration & mask_) * operations_, operations_)) window.push(start);
        }
        const i64 on = apart * times;
        if (mask_ == NEVER - 1) {
            for (i64 iteration = from; iteration < from + on; ++iteration) {
                for (i64 operation = 0; operation < operations_; ++operation) {
                    cells_[iteration * operations_ + operation] = cells_[(iteration - apart) * operations_ + operation] + cycles;
                }
            }
        } else {
            oldest_ = from + on;
            end_ = end + on;
        }
        for (i64 iteration = from; iteration < end; ++iteration) {
            for (i64 operation = 0; operation < operations_; ++operation) {
                const i64 start = window[(iteration - from) * operations_ + operation];
                cells_[((iteration + on) & mask_) * operations_ + operation] = start <= NOT_STARTED ? start : start + times * cycles;
            }
        }
    }

  private:
    static constexpr i64 FEWEST = 8;

    /// Have room for so many starts, in place of those that there was room for.
    void take(i64 starts, StartsRoom& all) {
        if (starts - room_ > all.left) {
            throw Overrun("the running tasks remember the starts of more than " + std::to_string(flat::MOST_STARTS) +
                          " operations: one stream of a task runs too far ahead of another one, or later phases look "
                          "back at too many iterations");
        }
        all.left -= starts - room_;
        room_ = starts;
    }

    void grow(StartsRoom& all) {
        // a ring that grows takes the room that it needs, even if there was more
        all.given_back += 1;
        take(2 * rows_ * operations_, all);
        Array<i64> larger(2 * rows_ * operations_, NOT_STARTED);
        for (i64 iteration = oldest_; iteration < end_; ++iteration) {
            const auto from = cells_.part((iteration & mask_) * operations_, operations_);
            const auto to = larger.part((iteration & (2 * rows_ - 1)) * operations_, operations_);
            std::copy(from.begin(), from.end(), to.begin());
        }
        cells_ = std::move(larger);
        rows_ *= 2;
        mask_ = rows_ - 1;
    }

    i64 operations_ = 0, rows_ = 0, mask_ = 0;
    i64 room_ = 0;  // starts for which there is room
    i64 oldest_ = 0, end_ = 0;  // remembered are the iterations from the one up to the other
    Array<i64> cells_;
};

}  // namespace lstmsim
