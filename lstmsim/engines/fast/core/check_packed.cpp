// Broken rules of packed bodies: what their words name must be there.
#include <set>

#include "check.hpp"

namespace lstmsim::flat {

namespace {

/// The row of a table that a word names.
void check_row(const Row& row, const Word& word, const char* table, i64 number, i64 rows) {
    if (number >= 0 && number < rows) return;
    row.refuse("word", word.word, "of row " + std::to_string(number) + " of " + table + ", which has " + std::to_string(rows));
}

/// A prototype has nothing that a packed body cannot have.
void check_prototype(const Row& row, const Operation& each) {
    for (const auto& [column, value] : {std::pair<const char*, i64>{"takes", each.takes}, {"frees", each.frees},
                                        {"extra", each.extra}}) {
        if (value != NONE) row.refuse(column, value, "but a packed body names it");
    }
}

/// The operations of no issue of a body: nothing of their streams follows, and nothing waits for them.
struct Quiet {
    std::set<i64> operations;
    std::set<std::pair<i64, i64>> streams;

    void look(const Row& row, const Operation& each, i64 index, const Word& word, PackedShape& shape) {
        if (!streams.empty() && streams.count({each.member, each.unit})) {
            row.refuse("word", word.word, "of an operation behind one of no issue");
        }
        if (each.count > 0) return;
        if (needs_of_operation(word) == 0) {
            row.refuse("word", word.word, "of an operation of no issue that waits for nothing");
        }
        operations.insert(index);
        streams.insert({each.member, each.unit});
        shape.quiet = true;
    }
    bool has(i64 operation) const { return !operations.empty() && operations.count(operation); }
};

/// What an operation, the `index`-th of its body, waits for.
void check_need(const Program& p, const Row& row, const Word& word, i64 index, PackedShape& shape) {
    check_row(row, word, "needs", row_of_need(word), p.needs.size());
    const Need& need = p.needs[row_of_need(word)];
    const i64 operation = operation_of_need(word);
    if (need.phase != NONE) row.refuse("word", word.word, "of a need with a phase");
    if (need.lag != 0) row.refuse("word", word.word, "of a need with a lag");
    if (need.barrier) {
        shape.last_barrier = std::max(shape.last_barrier, operation);
    } else if (operation < 0 || operation >= index) {
        row.refuse("word", word.word, "of a need of operation " + std::to_string(operation) + ", which is not before " +
                                          std::to_string(index));
    }
}

}  // namespace

PackedShape check_packed(const Program& p, const Row& row, const Body& body) {
    row.between("first_operation", body.first_operation, NONE, NONE);
    row.between("words", body.words, 0, MOST_WORDS);
    row.rows_of("first_word", body.first_word, body.words, p.words.size());
    row.between("operations", body.operations, 0, body.words);
    PackedShape shape;
    Quiet quiet;
    i64 index = 0;
    for (i64 place = body.first_word; place < body.first_word + body.words; ++index) {
        const Row own{"words", place};
        const Word& word = p.words[place++];
        check_row(own, word, "operations", row_of_operation(word), p.operations.size());
        const Operation& each = p.operations[row_of_operation(word)];
        check_prototype({"operations", row_of_operation(word)}, each);
        while (shape.units.size() <= each.member) shape.units.push(0);
        shape.units[each.member] = std::max(shape.units[each.member], each.unit + 1);
        if (each.arrives != NONE) shape.last_barrier = std::max(shape.last_barrier, each.arrives);
        quiet.look(own, each, index, word, shape);
        const i64 last = place + needs_of_operation(word);
        if (last > body.first_word + body.words) own.refuse("word", word.word, "and its needs go beyond the body");
        for (; place < last; ++place) {
            const Row row_of_word{"words", place};
            check_need(p, row_of_word, p.words[place], index, shape);
            const bool barrier = p.needs[row_of_need(p.words[place])].barrier;
            if (barrier ? each.count == 0 : quiet.has(operation_of_need(p.words[place]))) {
                row_of_word.refuse("word", p.words[place].word, "of a need of, or for, an operation of no issue");
            }
        }
    }
    if (index != body.operations) {
        row.refuse("operations", body.operations, "but its words have " + std::to_string(index));
    }
    return shape;
}

}  // namespace lstmsim::flat
