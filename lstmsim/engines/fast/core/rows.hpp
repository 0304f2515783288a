// Numbers that a run writes down, row after row.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <new>
#include <utility>

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

    /// Hand the numbers over to somebody who frees them.
    i64* release() {
        if (size_ > 0) have_room(size_);
        size_ = room_ = 0;
        return std::exchange(numbers_, nullptr);
    }

  private:
    void grow(i64 count) { have_room(std::max(2 * room_, size_ + count + 1024)); }

    void have_room(i64 room) {
        constexpr std::size_t PAGE = 4096, LARGE = std::size_t{1} << 21;
        std::size_t bytes = static_cast<std::size_t>(room) * sizeof(i64);
        // whole large pages, with room for what the C library writes before them
        if (bytes > LARGE) bytes = (bytes + PAGE + LARGE - 1) / LARGE * LARGE - PAGE;
        void* const moved = std::realloc(numbers_, bytes);
        if (!moved) throw std::bad_alloc();
        numbers_ = static_cast<i64*>(moved);
        room_ = static_cast<i64>(bytes / sizeof(i64));
#if defined(__linux__)
        // small pages take longer to be had one by one than to be filled; a refusal costs no more than that
        const std::size_t before = reinterpret_cast<std::size_t>(moved) % PAGE;
        if (bytes > LARGE) (void)madvise(static_cast<char*>(moved) - before, bytes + before, MADV_HUGEPAGE);
#endif
    }

    i64* numbers_ = nullptr;
    i64 size_ = 0, room_ = 0;
};

}  // namespace lstmsim
