// Whole numbers, and arrays whose bounds are always checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "failures.hpp"

namespace lstmsim {

using i64 = std::int64_t;
using i32 = std::int32_t;

[[noreturn, gnu::noinline, gnu::cold]] inline void out_of_bounds(i64 place, i64 size) {
    throw Fault("place " + std::to_string(place) + " of an array of " + std::to_string(size));
}

inline void check_place(i64 place, i64 size) {
    if (__builtin_expect(static_cast<std::uint64_t>(place) >= static_cast<std::uint64_t>(size), 0)) {
        out_of_bounds(place, size);
    }
}

/// Add to a sum; `Overrun` if the sum does not fit.
inline void add(i64& sum, i64 more) {
    if (__builtin_add_overflow(sum, more, &sum)) throw Overrun("a sum does not fit into 64 bits");
}

/// A part of an array that somebody else owns.
template <class T>
class Slice {
  public:
    Slice() = default;
    Slice(T* first, i64 size) : first_(first), size_(size) {}

    T& operator[](i64 place) const {
        check_place(place, size_);
        return first_[place];
    }
    i64 size() const { return size_; }
    T* begin() const { return first_; }
    T* end() const { return first_ + size_; }

    /// The part of `count` elements from `first` on.
    Slice part(i64 first, i64 count) const {
        if (count < 0 || first < 0 || count > size_ - first) out_of_bounds(first + count, size_);
        return Slice(first_ + first, count);
    }

  private:
    T* first_ = nullptr;
    i64 size_ = 0;
};

/// An array of its own.
template <class T>
class Array {
  public:
    Array() = default;
    explicit Array(i64 size, const T& value = T()) : elements_(static_cast<std::size_t>(size), value) {}

    T& operator[](i64 place) {
        check_place(place, size());
        return elements_[static_cast<std::size_t>(place)];
    }
    const T& operator[](i64 place) const {
        check_place(place, size());
        return elements_[static_cast<std::size_t>(place)];
    }
    i64 size() const { return static_cast<i64>(elements_.size()); }
    bool empty() const { return elements_.empty(); }
    void clear() { elements_.clear(); }
    void fill(i64 size, const T& value) { elements_.assign(static_cast<std::size_t>(size), value); }
    void resize(i64 size) { elements_.resize(static_cast<std::size_t>(size)); }
    void reserve(i64 size) { elements_.reserve(static_cast<std::size_t>(size)); }
    void push(T value) { elements_.push_back(std::move(value)); }
    T pop() {
        check_place(0, size());
        T last = std::move(elements_.back());
        elements_.pop_back();
        return last;
    }
    T* data() { return elements_.data(); }
    auto begin() { return elements_.begin(); }
    auto end() { return elements_.end(); }
    auto begin() const { return elements_.begin(); }
    auto end() const { return elements_.end(); }
    Slice<T> part(i64 first, i64 count) { return Slice<T>(elements_.data(), size()).part(first, count); }
    Slice<const T> part(i64 first, i64 count) const { return Slice<const T>(elements_.data(), size()).part(first, count); }

  private:
    std::vector<T> elements_;
};

}  // namespace lstmsim
