// Broken rules of a flat program that would lead outside an array, to numbers too large, or to no end.
//
// What a Program says in words, lstmsim/program/validate.py has checked already; this is the last door, for programs
// that come from files or are written by hand.
#include <map>
#include <set>

#include "flat.hpp"

namespace lstmsim::flat {

namespace {

/// Largest number of cycles, and of work, that a row may name. Sums and products of two stay far below 64 bits.
constexpr i64 MOST_CYCLES = i64{1} << 50;
/// Most threads times units of all cores; starts that a task remembers; places for operations of one body.
constexpr i64 MOST_CURSORS = i64{1} << 24, MOST_STARTS = i64{1} << 28, MOST_STREAMS = i64{1} << 24;
/// Most cores of a task that may take several at once: a row of the trace has a bit for each.
constexpr i64 MOST_SPREAD = 60;

/// A row that is looked at: its table, and its number there. Mistakes are told with both.
struct Row {
    const char* table;
    i64 number;

    [[noreturn]] void refuse(const std::string& what) const {
        throw Refusal("table " + std::string(table) + ", row " + std::to_string(number) + ": " + what);
    }
    void between(const char* column, i64 value, i64 low, i64 high) const {
        if (value >= low && value <= high) return;
        refuse(std::string(column) + " is " + std::to_string(value) + ", not " + std::to_string(low) + " to " +
               std::to_string(high));
    }
    void flag(const char* column, i64 value) const { between(column, value, 0, 1); }
    /// A number of a row of another table.
    void row_of(const char* column, i64 value, i64 rows) const {
        if (value < 0 || value >= rows) {
            refuse(std::string(column) + " is " + std::to_string(value) + ", of " + std::to_string(rows) + " rows");
        }
    }
    void row_or_none(const char* column, i64 value, i64 rows) const {
        if (value != NONE) row_of(column, value, rows);
    }
    /// Some rows of another table in a row.
    void rows_of(const char* column, i64 first, i64 count, i64 rows) const {
        if (first < 0 || count < 0 || first > rows || count > rows - first) {
            refuse(std::string(column) + " " + std::to_string(first) + " and " + std::to_string(count) +
                   " more do not lie among " + std::to_string(rows) + " rows");
        }
    }
};

class Checker {
  public:
    explicit Checker(const Program& program) : p(program) {}

    void all() {
        head();
        cores();
        groups();
        bodies();
        units_.fill(p.variants.size(), {});
        for (i64 i = 0; i < p.variants.size(); ++i) variant({"variants", i}, p.variants[i], units_[i]);
        for (i64 i = 0; i < p.profiles.size(); ++i) profile({"profiles", i}, p.profiles[i]);
        for (i64 i = 0; i < p.tasks.size(); ++i) task({"tasks", i}, p.tasks[i], i);
    }

  private:
    void head() const {
        const Row row{"head", 0};
        if (p.head.size() != 1) row.refuse("there are " + std::to_string(p.head.size()) + " rows");
        const Head& head = p.head[0];
        row.between("names", head.names, 1, MOST_NAMES);
        for (const i64 name : {head.busy, head.switching, head.drain, head.idle}) {
            row.between("the number of a name", name, 0, head.names - 1);
        }
        row.between("the number of causes", p.causes.size(), 1, MOST_CAUSES);
        row.row_of("input", head.input, p.causes.size());
        for (const Cause& cause : p.causes) row.between("the name of a cause", cause.name, 0, head.names - 1);
    }

    void cores() const {
        i64 cursors = 0;
        for (i64 i = 0; i < p.cores.size(); ++i) {
            const Row row{"cores", i};
            const Core& core = p.cores[i];
            row.between("contexts", core.contexts, 1, MOST_CURSORS);
            row.rows_of("first_unit", core.first_unit, core.units, p.units.size());
            row.row_of("accounted", core.accounted, core.units);
            row.between("units", core.units, 1, MOST_CURSORS / core.contexts);
            cursors += core.contexts * core.units;
            row.between("threads times units of all cores", cursors, 1, MOST_CURSORS);
            row.between("capacity", core.capacity, NONE, LATEST);
            row.flag("shared", core.shared);
            row.rows_of("first_held", core.first_held, core.held, p.held.size());
            held(row, core);
        }
        if (p.contents.size() > 0 && p.cores.size() > MOST_CURSORS / p.contents.size()) {
            Row{"contents", 0}.refuse("there are too many for so many cores");
        }
        for (i64 i = 0; i < p.units.size(); ++i) {
            const Row row{"units", i};
            row.between("policy", p.units[i].policy, 0, POLICIES - 1);
            row.between("switch_cycles", p.units[i].switch_cycles, 0, MOST_CYCLES);
        }
        for (i64 i = 0; i < p.contents.size(); ++i) {
            Row{"contents", i}.between("size", p.contents[i].size, 0, MOST_CYCLES);
        }
    }

    void held(const Row& row, const Core& core) const {
        i64 sum = 0;
        std::set<i64> known;
        for (const Held& each : p.held.part(core.first_held, core.held)) {
            row.row_of("a content that it holds", each.content, p.contents.size());
            const i64 size = p.contents[each.content].size;
            row.between("size of a content", size, 0, MOST_CYCLES);
            if (!known.insert(each.content).second) row.refuse("it holds a content twice");
            sum += size;
            if (core.capacity != NONE) row.between("the size of what it holds", sum, 0, core.capacity);
        }
    }

    void groups() {
        for (i64 i = 0; i < p.places.size(); ++i) {
            const Row row{"places", i};
            row.rows_of("first_seat", p.places[i].first_seat, p.places[i].seats, p.seats.size());
            row.between("seats", p.places[i].seats, 1, p.seats.size());
            std::map<i64, i64> threads;
            for (const Seat& seat : p.seats.part(p.places[i].first_seat, p.places[i].seats)) {
                row.row_of("the core of a seat", seat.core, p.cores.size());
                row.between("threads of one core", ++threads[seat.core], 1, p.cores[seat.core].contexts);
            }
        }
        for (i64 i = 0; i < p.groups.size(); ++i) {
            const Row row{"groups", i};
            row.rows_of("first_place", p.groups[i].first_place, p.groups[i].places, p.places.size());
            row.between("places", p.groups[i].places, 1, p.places.size());
        }
    }

    void bodies() const {
        for (i64 i = 0; i < p.bodies.size(); ++i) {
            const Row row{"bodies", i};
            row.rows_of("first_operation", p.bodies[i].first_operation, p.bodies[i].operations, p.operations.size());
            i64 members = 0, units = 0;
            for (const Operation& each : p.operations.part(p.bodies[i].first_operation, p.bodies[i].operations)) {
                row.between("member", each.member, 0, MOST_STREAMS);
                row.between("unit", each.unit, 0, MOST_STREAMS);
                members = std::max(members, each.member + 1);
                units = std::max(units, each.unit + 1);
            }
            row.between("members times units", members * units, 0, MOST_STREAMS);
        }
        for (i64 i = 0; i < p.operations.size(); ++i) operation({"operations", i}, p.operations[i]);
        for (i64 i = 0; i < p.needs.size(); ++i) {
            const Row row{"needs", i};
            row.between("delay", p.needs[i].delay, 1, MOST_CYCLES);
            row.row_of("cause", p.needs[i].cause, p.causes.size());
            row.between("lag", p.needs[i].lag, 0, MOST_CYCLES);
            row.flag("mirrored", p.needs[i].mirrored);
        }
        for (i64 i = 0; i < p.extras.size(); ++i) {
            Row{"extras", i}.between("cycles", p.extras[i].cycles, 0, MOST_CYCLES);
        }
        for (i64 i = 0; i < p.buffers.size(); ++i) {
            Row{"buffers", i}.between("slots", p.buffers[i].slots, 1, MOST_CYCLES);
            Row{"buffers", i}.row_of("cause", p.buffers[i].cause, p.causes.size());
        }
    }

    void operation(const Row& row, const Operation& each) const {
        row.between("cycles", each.cycles, 1, MOST_CYCLES);
        row.between("count", each.count, 1, MOST_CYCLES / each.cycles);
        row.between("result_cycles", each.result_cycles, each.cycles, MOST_CYCLES);
        row.between("work", each.work, 0, MOST_CYCLES / each.count);
        row.between("ahead", each.ahead, -MOST_STARTS, MOST_STARTS);
        row.flag("frame", each.frame);
        if (each.extra != NONE) row.between("count with extra cycles", each.count, 1, 1);
        row.rows_of("first_need", each.first_need, each.needs, p.needs.size());
    }

    void variant(const Row& row, const Variant& each, Array<i64>& units) const {
        row.rows_of("first_phase", each.first_phase, each.phases, p.phases.size());
        row.rows_of("first_buffer", each.first_buffer, each.buffers, p.buffers.size());
        row.between("phases", each.phases, 1, p.phases.size());
        row.between("members", each.members, 1, MOST_CURSORS);
        const auto phases = p.phases.part(each.first_phase, each.phases);
        std::map<i64, std::pair<i64, i64>> takers;
        i64 starts = 0;
        for (i64 number = 0; number < phases.size(); ++number) {
            const Phase& phase = phases[number];
            const Row own{"phases", each.first_phase + number};
            own.row_of("body", phase.body, p.bodies.size());
            own.flag("mirrored", phase.mirrored);
            own.between("first_step", phase.first_step, -MOST_STARTS, MOST_STARTS);
            const i64 operations = p.bodies[phase.body].operations;
            own.between("repeat", phase.repeat, 1, MOST_STARTS / std::max(operations, i64{1}));
            starts += phase.repeat * operations;
            own.between("repeats times operations, all phases together", starts, 0, MOST_STARTS);
            own.between("extras", phase.extras, 0, p.extras.size());
            own.rows_of("first_extra", phase.first_extra, phase.extras * phase.repeat, p.extras.size());
        }
        for (i64 number = 0; number < phases.size(); ++number) {
            const Body& body = p.bodies[phases[number].body];
            for (i64 i = 0; i < body.operations; ++i) {
                const Row own{"operations", body.first_operation + i};
                const Operation& operation = p.operations[body.first_operation + i];
                own.between("extra", operation.extra, NONE, phases[number].extras - 1);
                while (units.size() <= operation.member) units.push(0);
                units[operation.member] = std::max(units[operation.member], operation.unit + 1);
                own.row_or_none("takes", operation.takes, each.buffers);
                own.row_or_none("frees", operation.frees, each.buffers);
                if (operation.takes != NONE) {
                    const std::pair<i64, i64> taker(operation.member, operation.unit);
                    if (takers.insert({operation.takes, taker}).first->second != taker) {
                        own.refuse("another unit takes slots of the same buffer");
                    }
                }
                for (i64 k = 0; k < operation.needs; ++k) need(operation.first_need + k, i, number, phases);
            }
        }
    }

    void need(i64 number, i64 operation, i64 phase, const Slice<const Phase>& phases) const {
        const Row row{"needs", number};
        const Need& each = p.needs[number];
        if (each.phase == NONE) {
            row.row_of("operation", each.operation, p.bodies[phases[phase].body].operations);
            if (each.lag == 0 && each.operation >= operation) row.refuse("the other operation comes no earlier");
        } else {
            row.row_of("phase", each.phase, phase);
            row.row_of("operation", each.operation, p.bodies[phases[each.phase].body].operations);
        }
    }

    void profile(const Row& row, const Profile& each) const {
        row.row_of("group", each.group, p.groups.size());
        row.row_or_none("content", each.content, p.contents.size());
        row.flag("affine", each.affine);
        row.flag("preempts", each.preempts);
        row.between("queue_limit", each.queue_limit, NONE, LATEST);
        row.between("patience", each.patience, NONE, LATEST);
        row.between("loading", each.loading, 0, LATEST);
        row.rows_of("first_variant", each.first_variant, each.variants, p.variants.size());
        row.rows_of("first_wide", each.first_wide, each.wides, p.variants.size());
        if (each.wides > 0 && (each.content != NONE || each.preempts)) row.refuse("it is wide, and more than that");
        if (each.content != NONE && each.preempts) row.refuse("it preempts and has a content");
        std::set<i64> firsts;
        const Group& group = p.groups[each.group];
        for (const Place& place : p.places.part(group.first_place, group.places)) {
            const i64 first = p.seats[place.first_seat].core;
            firsts.insert(first);
            if (each.wides > 0 && place.seats > 1) row.refuse("it is wide and has partners");
            if (each.preempts && place.seats > 1) row.refuse("it preempts and has partners");
            this->place(row, each, place);
        }
        if (each.wides == 0) return;
        if (static_cast<i64>(firsts.size()) != group.places || group.places > MOST_SPREAD) {
            row.refuse("it is wide, and its cores are too many or not different ones");
        }
        i64 units = MOST_CURSORS;
        for (const i64 core : firsts) units = std::min(units, p.cores[core].units);
        for (i64 i = 0; i < each.wides; ++i) wide(row, each.first_wide + i, group.places, units);
    }

    /// A place needs a variant for its kind of core, and must have the members and units that its operations are on.
    void place(const Row& row, const Profile& each, const Place& place) const {
        const auto seats = p.seats.part(place.first_seat, place.seats);
        const i64 kind = p.cores[seats[0].core].kind;
        for (i64 i = each.first_variant; i < each.first_variant + each.variants; ++i) {
            const Variant& variant = p.variants[i];
            if (variant.kind != kind) continue;
            if (each.content != NONE) row.between("loading", each.loading, 0, variant.phases - 1);
            const Array<i64>& units = units_[i];
            row.between("members of the operations", units.size(), 0, seats.size());
            for (i64 member = 0; member < units.size(); ++member) {
                row.between("units of the operations", units[member], 0, p.cores[seats[member].core].units);
            }
            return;
        }
        row.refuse("it has no variant for a core of kind " + std::to_string(kind));
    }

    void wide(const Row& row, i64 variant, i64 cores, i64 units) const {
        const Variant& each = p.variants[variant];
        row.between("members", each.members, 2, cores);
        row.between("members of the operations", units_[variant].size(), 0, each.members);
        for (const i64 own : units_[variant]) row.between("units of the operations", own, 0, units);
    }

    void task(const Row& row, const Task& each, i64 number) const {
        row.row_of("profile", each.profile, p.profiles.size());
        row.between("release", each.release, 0, LATEST);
        row.between("frame_interval", each.frame_interval, 0, MOST_CYCLES);
        row.between("key", each.key, -LATEST, LATEST);
        row.flag("key_from_arrival", each.key_from_arrival);
        if (each.after != NONE) row.row_of("after", each.after, number);
    }

    const Program& p;
    Array<Array<i64>> units_;  // of each variant: for each member, how many units its operations need
};

}  // namespace

void check(const Program& program) { Checker(program).all(); }

}  // namespace lstmsim::flat
