// The soonest of many cycles, kept up to date while single ones change.
#pragma once

#include <algorithm>

#include "cycles.hpp"

namespace lstmsim {

/// Cycles in a row of places, as the leaves of a tree in which each node is the least of the two below it. So the
/// soonest cycle is at the root, and a change goes up only as far as it makes a difference.
class Soonest {
  public:
    explicit Soonest(i64 places = 0) {
        while (leaves_ < places) leaves_ *= 2;
        tree_.fill(2 * leaves_, NEVER);
    }

    /// The soonest cycle.
    i64 cycle() const { return tree_[1]; }

    /// The cycle of a place.
    i64 at(i64 place) const { return tree_[leaves_ + place]; }

    /// Change the cycle of a place.
    void set(i64 place, i64 cycle) {
        i64 node = leaves_ + place;
        tree_[node] = cycle;
        while (node > 1) {
            node /= 2;
            const i64 least = std::min(tree_[2 * node], tree_[2 * node + 1]);
            if (tree_[node] == least) return;
            tree_[node] = least;
        }
    }

    /// The lowest place that has the soonest cycle.
    i64 place() const { return next(0, cycle()); }

    /// The lowest place from `from` on whose cycle is `limit` at the latest; `NONE` if there is none.
    i64 next(i64 from, i64 limit) const {
        i64 node = leaves_ + from;
        if (from >= leaves_) return NONE;
        while (tree_[node] > limit) {
            // nothing below this node: on to the next one to the right, or up where this one is the right one of two
            while (node % 2 == 1) node /= 2;
            if (node == 0) return NONE;
            node += 1;
        }
        while (node < leaves_) {
            node *= 2;
            if (tree_[node] > limit) node += 1;
        }
        return node - leaves_;
    }

  private:
    i64 leaves_ = 1;
    Array<i64> tree_;
};

}  // namespace lstmsim
