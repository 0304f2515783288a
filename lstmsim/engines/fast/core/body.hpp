// The operations of a body, read where they stand: in rows, or packed into words.
#pragma once

#include "flat.hpp"

namespace lstmsim {

/// A need of an operation: its row, and what stands in the place of its `operation`.
struct NeedOf {
    const flat::Need& row;
    i64 operation;
};

/// A body.
class Operations {
  public:
    Operations() = default;
    Operations(const flat::Program& program, const flat::Body& body)
        : operations_(program.operations), needs_(program.needs), size_(body.operations) {
        if (body.first_word == NONE) {
            operations_ = operations_.part(body.first_operation, size_);
        } else {
            words_ = program.words.part(body.first_word, body.words);
        }
    }

    i64 size() const { return size_; }
    bool packed() const { return words_.size() > 0; }

    /// Where the word of each operation of a packed body stands.
    void index(Array<i32>& places) {
        places.resize(size_);
        i64 place = 0;
        for (i64 i = 0; i < size_; ++i) {
            places[i] = static_cast<i32>(place);
            place += 1 + flat::needs_of_operation(words_[place]);
        }
        places_ = Slice<const i32>(places.data(), size_);
    }

    const flat::Operation& operator[](i64 index) const {
        return packed() ? operations_[flat::row_of_operation(words_[places_[index]])] : operations_[index];
    }

    i64 needs(i64 index) const {
        return packed() ? flat::needs_of_operation(words_[places_[index]]) : operations_[index].needs;
    }

    /// One of the needs of an operation.
    NeedOf need(i64 index, i64 number) const {
        if (packed()) {
            const flat::Word& word = words_[places_[index] + 1 + number];
            return {needs_[flat::row_of_need(word)], flat::operation_of_need(word)};
        }
        const flat::Need& row = needs_[operations_[index].first_need + number];
        return {row, row.operation};
    }

  private:
    Slice<const flat::Operation> operations_;
    Slice<const flat::Need> needs_;
    i64 size_ = 0;
    Slice<const flat::Word> words_;
    Slice<const i32> places_;
};

}  // namespace lstmsim
