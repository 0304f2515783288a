// What the checks of a flat program have in common: how a mistake is told, and how large a program may be.
#pragma once

#include <map>
#include <tuple>

#include "flat.hpp"

namespace lstmsim::flat {

/// Largest number of cycles, of issues and of work that a row may name. Sums and products of two stay far below 64 bits.
constexpr i64 MOST_CYCLES = i64{1} << 50;
/// Largest rank of a task. A cycle may be added to it.
constexpr i64 MOST_KEY = i64{1} << 61;
/// Most threads times units of all cores, each with a cursor: some hundred MB.
constexpr i64 MOST_CURSORS = i64{1} << 20;
/// Most cores times weight sets, and most thread slots of the places of all groups.
constexpr i64 MOST_HELD = i64{1} << 23, MOST_THREAD_SLOTS = i64{1} << 21;
/// Most streams (members times units), and most operations, of all bodies.
constexpr i64 MOST_STREAMS = i64{1} << 23, MOST_OPERATIONS = i64{1} << 25;
/// How many rows are looked at, at most, where many rows name the same ones: about a second.
constexpr i64 MOST_LOOKS = i64{1} << 28;
/// Most cores of a task that may take several at once: a row of the trace has a bit for each.
constexpr i64 MOST_SPREAD = 60;

/// A row that is looked at: its table, and its number there. Mistakes are told with both.
struct Row {
    const char* table;
    i64 number;

    /// A column has a value that it may not have.
    [[noreturn]] void refuse(const char* column, i64 value, const std::string& why) const {
        throw Refusal("table " + std::string(table) + ", row " + std::to_string(number) + ": " + column + " is " +
                      std::to_string(value) + ", " + why);
    }
    void between(const char* column, i64 value, i64 low, i64 high) const {
        if (value >= low && value <= high) return;
        if (high < low) refuse(column, value, "and no value would do");
        refuse(column, value, "not " + std::to_string(low) + " to " + std::to_string(high));
    }
    void flag(const char* column, i64 value) const { between(column, value, 0, 1); }
    /// A number of a row of another table.
    void row_of(const char* column, i64 value, i64 rows) const {
        if (value < 0 || value >= rows) refuse(column, value, "of " + std::to_string(rows) + " rows");
    }
    void row_or_none(const char* column, i64 value, i64 rows) const {
        if (value != NONE) row_of(column, value, rows);
    }
    /// Some rows of another table in a row.
    void rows_of(const char* column, i64 first, i64 count, i64 rows) const {
        if (first >= 0 && count >= 0 && first <= rows && count <= rows - first) return;
        refuse(column, first, "and " + std::to_string(count) + " rows from there on do not lie among " +
                                  std::to_string(rows));
    }
};

/// A sum over many rows that has a bound.
class Sum {
  public:
    Sum(const char* what, i64 most) : what_(what), most_(most) {}

    /// A row adds so much, by the value of this column.
    void add(const Row& row, const char* column, i64 value, i64 more) {
        if (more > most_ - sum_) {
            row.refuse(column, value, "so with the rows before it there are more than " + std::to_string(most_) + " " +
                                          what_);
        }
        sum_ += more;
    }
    i64 sum() const { return sum_; }

  private:
    const char* what_;
    i64 most_, sum_ = 0;
};

/// Most operations and needs of packed bodies, which take 8 bytes each.
constexpr i64 MOST_WORDS = i64{1} << 29;

/// What is known of a packed body.
struct PackedShape {
    Array<i64> units;                    // for each member, how many units its operations need
    i64 last_barrier = NONE;  // the highest of its barriers
    bool quiet = false;    // whether an operation has no issue
};

/// What is known of the phases of a variant.
struct Shape {
    Array<i64> units;        // for each member, how many units its operations need
    i64 last_empty = NONE;   // the last phase without operations
};

/// The machine: head, cores, units, weight sets, places (check_machine.cpp).
void check_machine(const Program& program);
/// A packed body (check_packed.cpp).
PackedShape check_packed(const Program& program, const Row& row, const Body& body);
/// Bodies and phases (check_work.cpp), whose rows have been looked at (`check_rows`); gives the shape of each variant.
Array<const Shape*> check_work(const Program& program, std::map<std::tuple<i64, i64, i64>, Shape>& shapes);
/// Profiles and tasks (check_tasks.cpp).
void check_tasks(const Program& program, const Array<const Shape*>& shapes);

}  // namespace lstmsim::flat
