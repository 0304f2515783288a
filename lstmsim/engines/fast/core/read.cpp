// Finding the tables of a flat program.
#include "flat.hpp"

namespace lstmsim::flat {

namespace {

/// The tables in their order: where each begins, and how many rows it has, stands in the directory.
class Reader {
  public:
    Reader(const i64* words, i64 count) : words_(words, count) {
        if (count < 2 || words_[0] != FORMAT) {
            throw Refusal("the program is not of format " + std::to_string(FORMAT));
        }
    }

    template <class Row>
    Slice<const Row> table(const char* name) {
        static_assert(sizeof(Row) % sizeof(i64) == 0, "a row has whole numbers alone");
        constexpr i64 columns = sizeof(Row) / sizeof(i64);
        if (entry_ + 2 > words_.size()) throw Refusal(std::string("the directory has no place for table ") + name);
        const i64 first = words_[entry_], rows = words_[entry_ + 1];
        entry_ += 2;
        if (first < 0 || rows < 0 || first > words_.size() || rows > (words_.size() - first) / columns) {
            throw Refusal(std::string("table ") + name + ": " + std::to_string(rows) + " rows from number " +
                          std::to_string(first) + " on do not lie among the " + std::to_string(words_.size()) +
                          " numbers of the program");
        }
        return Slice<const Row>(reinterpret_cast<const Row*>(words_.begin() + first), rows);
    }

  private:
    Slice<const i64> words_;
    i64 entry_ = 1;
};

}  // namespace

Program read(const i64* words, i64 count) {
    Reader reader(words, count);
    Program program;
    program.head = reader.table<Head>("head");
    program.causes = reader.table<Cause>("causes");
    program.cores = reader.table<Core>("cores");
    program.units = reader.table<Unit>("units");
    program.held = reader.table<Held>("held");
    program.weight_sets = reader.table<WeightSet>("weight_sets");
    program.groups = reader.table<Group>("groups");
    program.places = reader.table<Place>("places");
    program.thread_slots = reader.table<ThreadSlot>("thread_slots");
    program.profiles = reader.table<Profile>("profiles");
    program.variants = reader.table<Variant>("variants");
    program.phases = reader.table<Phase>("phases");
    program.extras = reader.table<Extra>("extras");
    program.buffers = reader.table<Buffer>("buffers");
    program.bodies = reader.table<Body>("bodies");
    program.words = reader.table<Word>("words");
    program.operations = reader.table<Operation>("operations");
    program.needs = reader.table<Need>("needs");
    program.tasks = reader.table<Task>("tasks");
    program.barriers = reader.table<Barrier>("barriers");
    program.pools = reader.table<Pool>("pools");
    program.sessions = reader.table<Session>("sessions");
    return program;
}

}  // namespace lstmsim::flat
