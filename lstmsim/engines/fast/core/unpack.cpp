// Packed bodies are written out while a task runs them.
#include "machine.hpp"

namespace lstmsim {

/// Write out the operations of a packed body, what they need, and their streams.
void unpack(const flat::Program& program, const flat::Body& body, Unpacked& own) {
    const auto words = program.words.part(body.first_word, body.words);
    own.operations.resize(body.operations);
    own.needs.resize(body.words - body.operations);
    i64 place = 0, needs = 0;
    for (i64 number = 0; number < body.operations; ++number) {
        const flat::Word& word = words[place++];
        flat::Operation& operation = own.operations[number];
        operation = program.operations[flat::row_of_operation(word)];
        operation.first_need = needs;
        operation.needs = flat::needs_of_operation(word);
        for (i64 i = 0; i < operation.needs; ++i) {
            const flat::Word& other = words[place++];
            flat::Need& need = own.needs[needs++];
            need = program.needs[flat::row_of_need(other)];
            need.operation = flat::operation_of_need(other);
        }
    }
    const Slice<const flat::Operation> all(own.operations.data(), own.operations.size());
    sort_streams(all, Slice<const flat::Need>(own.needs.data(), own.needs.size()), own.streams);
}

}  // namespace lstmsim
