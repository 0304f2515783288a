// Numbers that a run writes down, row after row.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <new>

#include "cycles.hpp"

namespace lstmsim {

/// An array that only grows at its end. Large ones grow in place where the system can move pages, so that a trace of
/// gigabytes is not copied again and again.
class Rows {
  public:
    Rows() = default;
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;
    ~Rows() { std::free(numbers_); }

    i64 size() const { return size_; }
    Slice<i64> all() const { return Slice<i64>(numbers_, size_); }
    i64& operator[](i64 place) const { return all()[place]; }

    /// Room for so many more numbers behind the others; what is in it is not defined.
    Slice<i64> extend(i64 count) {
        if (count > room_ - size_) grow(count);
        size_ += count;
        return Slice<i64>(numbers_ + size_ - count, count);
    }

    /// Write numbers behind the others.
    void add(std::initializer_list<i64> numbers) {
        std::copy(numbers.begin(), numbers.end(), extend(static_cast<i64>(numbers.size())).begin());
    }

    void clear() { size_ = 0; }

  private:
    void grow(i64 count) {
        const i64 room = std::max(2 * room_, size_ + count + 1024);
        void* const moved = std::realloc(numbers_, static_cast<std::size_t>(room) * sizeof(i64));
        if (!moved) throw std::bad_alloc();
        numbers_ = static_cast<i64*>(moved);
        room_ = room;
    }

    i64* numbers_ = nullptr;
    i64 size_ = 0, room_ = 0;
};

}  // namespace lstmsim
