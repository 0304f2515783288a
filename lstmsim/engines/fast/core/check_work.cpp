// Broken rules of the work that a flat program describes: operations and what they wait for, in phases that repeat.
#include "check.hpp"

namespace lstmsim::flat {

namespace {

/// An operation of no issue only waits.
void check_quiet(const Row& row, const Operation& each) {
    if (each.frame || each.takes != NONE || each.frees != NONE || each.arrives != NONE) {
        row.refuse("count", 0, "but it waits for a frame, takes or frees a slot, or arrives at a barrier");
    }
}

void check_operation(const Program& p, const Row& row, const Operation& each) {
    row.between("unit", each.unit, 0, MOST_STREAMS);
    row.between("member", each.member, 0, MOST_STREAMS);
    row.between("cycles", each.cycles, 1, MOST_CYCLES);
    row.between("count", each.count, 0, MOST_CYCLES / each.cycles);
    row.between("result_cycles", each.result_cycles, each.cycles, MOST_CYCLES);
    row.between("work", each.work, 0, MOST_CYCLES / std::max(each.count, i64{1}));
    row.between("ahead", each.ahead, -MOST_CYCLES, MOST_CYCLES);
    row.between("frame", each.frame, 0, MOST_CYCLES);
    row.rows_of("first_need", each.first_need, each.needs, p.needs.size());
    row.between("extra", each.extra, NONE, MOST_OPERATIONS);
    row.between("arrives", each.arrives, NONE, MOST_CYCLES);
    row.between("inference", each.inference, 0, MOST_STREAMS);
    if (each.count == 0) check_quiet(row, each);
    if (each.extra != NONE && each.count != 1) row.refuse("count", each.count, "not 1, but it takes extra cycles");
}

}  // namespace

void check_rows(const Program& p) {
    for (i64 i = 0; i < p.operations.size(); ++i) check_operation(p, {"operations", i}, p.operations[i]);
    for (i64 i = 0; i < p.needs.size(); ++i) {
        const Row row{"needs", i};
        row.between("delay", p.needs[i].delay, 1, MOST_CYCLES);
        row.row_of("cause", p.needs[i].cause, p.causes.size());
        row.between("lag", p.needs[i].lag, 0, MOST_CYCLES);
        row.flag("mirrored", p.needs[i].mirrored);
        row.flag("barrier", p.needs[i].barrier);
        if (p.needs[i].barrier && (p.needs[i].phase != NONE || p.needs[i].lag || p.needs[i].mirrored)) {
            row.refuse("barrier", 1, "but it has a phase, a lag or is mirrored");
        }
        row.between("operation", p.needs[i].operation, -MOST_CYCLES, MOST_CYCLES);
    }
    for (i64 i = 0; i < p.extras.size(); ++i) Row{"extras", i}.between("cycles", p.extras[i].cycles, 0, MOST_CYCLES);
    for (i64 i = 0; i < p.buffers.size(); ++i) {
        const Row row{"buffers", i};
        row.between("slots", p.buffers[i].slots, 1, MOST_CYCLES);
        row.row_of("cause", p.buffers[i].cause, p.causes.size());
    }
}

namespace {

Array<PackedShape> check_bodies(const Program& p, Sum& looks) {
    Sum streams("members times units of bodies", MOST_STREAMS), operations("operations of bodies", MOST_OPERATIONS);
    Sum words("words of bodies", MOST_WORDS);
    Array<PackedShape> packed;
    for (i64 i = 0; i < p.bodies.size(); ++i) {
        const Row row{"bodies", i};
        const Body& body = p.bodies[i];
        packed.push({});
        if (body.first_word != NONE) {
            words.add(row, "words", body.words, std::max(body.words, i64{0}));
            packed[i] = check_packed(p, row, body);
            continue;
        }
        row.between("words", body.words, 0, 0);
        row.rows_of("first_operation", body.first_operation, body.operations, p.operations.size());
        operations.add(row, "operations", body.operations, body.operations);
        i64 members = 0, units = 0;
        for (const Operation& each : p.operations.part(body.first_operation, body.operations)) {
            members = std::max(members, each.member + 1);
            units = std::max(units, each.unit + 1);
            looks.add(row, "operations", body.operations, 1 + each.needs);
        }
        streams.add(row, "operations", body.operations, members * units);
    }
    return packed;
}

/// The phases of a variant, one after the other.
class PhaseChecker {
  public:
    PhaseChecker(const Program& program, const Array<PackedShape>& packed, const Variant& variant, Sum& looks)
        : p(program), packed_(packed), variant_(variant), looks_(looks), whole_(variant.phases, 0), takers_(variant.buffers) {}

    Shape all() {
        for (i64 number = 0; number < variant_.phases; ++number) phase(number);
        Sum starts("starts that a task remembers", MOST_STARTS);
        for (i64 number = 0; number < variant_.phases; ++number) {
            if (!whole_[number]) continue;
            const i64 repeat = of(number).repeat, operations = p.bodies[of(number).body].operations;
            const Row row = row_of(number);
            row.between("repeat", repeat, 1, MOST_STARTS / operations);
            starts.add(row, "repeat", repeat, repeat * operations);
        }
        return shape_;
    }

  private:
    const Phase& of(i64 number) const { return p.phases[variant_.first_phase + number]; }
    Row row_of(i64 number) const { return {"phases", variant_.first_phase + number}; }

    void phase(i64 number) {
        const Phase& each = of(number);
        const Row row = row_of(number);
        row.row_of("body", each.body, p.bodies.size());
        row.flag("mirrored", each.mirrored);
        row.between("first_step", each.first_step, -MOST_CYCLES, MOST_CYCLES);
        const Body& body = p.bodies[each.body];
        row.between("repeat", each.repeat, 1, MOST_CYCLES / std::max(body.operations, i64{1}));
        issues_.add(row, "repeat", each.repeat, each.repeat * body.operations);
        row.between("extras", each.extras, 0, p.extras.size());
        if (each.extras > 0) row.between("repeat", each.repeat, 1, p.extras.size() / each.extras);
        row.rows_of("first_extra", each.first_extra, each.extras > 0 ? each.extras * each.repeat : 0, p.extras.size());
        if (body.operations == 0) shape_.last_empty = number;
        row.between("barriers", each.barriers, 0, MOST_CYCLES / each.repeat);
        row.between("first_barrier", each.first_barrier, 0, p.barriers.size());
        if (body.first_word != NONE) return packed(row, each);
        looks_.add(row, "body", each.body, body.operations);
        for (i64 i = 0; i < body.operations; ++i) operation(body, number, i);
    }

    /// A barrier of a body, in all iterations of a phase.
    void barrier(const Row& row, const char* column, i64 barrier, const Phase& each) const {
        if (barrier > p.barriers.size()) row.refuse(column, barrier, "of " + std::to_string(p.barriers.size()) + " barriers");
        const i64 last = each.first_barrier + (each.repeat - 1) * each.barriers + barrier;
        if (last >= p.barriers.size()) row.refuse(column, barrier, "in the last iteration barrier " + std::to_string(last));
    }

    /// A phase whose body is packed: its words have been looked at.
    void packed(const Row& row, const Phase& each) {
        const PackedShape& shape = packed_[each.body];
        if (shape.quiet) quiet(row, each);
        looks_.add(row, "body", each.body, shape.units.size());
        for (i64 member = 0; member < shape.units.size(); ++member) needs_unit(member, shape.units[member]);
        const i64 last = each.first_barrier + (each.repeat - 1) * each.barriers;
        if (shape.last_barrier >= p.barriers.size() - last) {
            row.refuse("first_barrier", each.first_barrier, "and the last barrier of its body is " + std::to_string(shape.last_barrier));
        }
    }

    /// A phase with an operation of no issue is the last one, and does not repeat.
    void quiet(const Row& row, const Phase& each) const {
        const bool last = row.number == variant_.first_phase + variant_.phases - 1;
        if (!last || each.repeat != 1) row.refuse("body", each.body, "with an operation of no issue, which comes last");
    }

    /// Nothing of its stream follows an operation of no issue, and it waits for operations alone.
    void quiet_operation(const Body& body, i64 number, i64 index) const {
        const Row row{"operations", body.first_operation + index};
        const Operation& each = p.operations[row.number];
        quiet(row_of(number), of(number));
        bool follows = each.needs == 0;
        for (i64 i = index + 1; i < body.operations; ++i) {
            const Operation& other = p.operations[body.first_operation + i];
            follows = follows || (other.member == each.member && other.unit == each.unit);
        }
        for (const Need& need : p.needs.part(each.first_need, each.needs)) follows = follows || need.barrier;
        if (follows) row.refuse("count", 0, "but others of its stream follow, or it waits for no operation");
    }

    void needs_unit(i64 member, i64 units) {
        while (shape_.units.size() <= member) shape_.units.push(0);
        shape_.units[member] = std::max(shape_.units[member], units);
    }

    void operation(const Body& body, i64 number, i64 index) {
        const Row row{"operations", body.first_operation + index};
        const Operation& each = p.operations[row.number];
        needs_unit(each.member, each.unit + 1);
        if (each.arrives != NONE) barrier(row, "arrives", each.arrives, of(number));
        if (each.count == 0) quiet_operation(body, number, index);
        row.row_or_none("extra", each.extra, of(number).extras);
        row.row_or_none("takes", each.takes, variant_.buffers);
        row.row_or_none("frees", each.frees, variant_.buffers);
        if (each.takes != NONE) {
            Taker& taker = takers_[each.takes];
            if (taker.unit == NONE) taker = {each.member, each.unit};
            if (taker.member != each.member || taker.unit != each.unit) {
                row.refuse("takes", each.takes, "a buffer of which another unit takes slots too");
            }
        }
        looks_.add(row, "needs", each.needs, each.needs);
        for (i64 i = each.first_need; i < each.first_need + each.needs; ++i) need(i, index, number);
    }

    /// Nothing waits for an operation of no issue.
    void issues(const Row& row, const Phase& phase, i64 operation) const {
        if (p.operations[p.bodies[phase.body].first_operation + operation].count > 0) return;
        row.refuse("operation", operation, "which has no issue");
    }

    /// The operation of a need comes earlier, so that no operation waits for itself.
    void need(i64 place, i64 index, i64 number) {
        const Row row{"needs", place};
        const Need& each = p.needs[place];
        if (each.barrier) {
            barrier(row, "operation", each.operation, of(number));
        } else if (each.phase == NONE) {
            row.row_of("operation", each.operation, p.bodies[of(number).body].operations);
            if (each.lag == 0 && each.operation >= index) {
                row.refuse("operation", each.operation, "which comes no earlier than " + std::to_string(index));
            }
            issues(row, of(number), each.operation);
        } else {
            row.row_of("phase", each.phase, number);
            if (p.bodies[of(each.phase).body].first_word != NONE) row.refuse("phase", each.phase, "whose body is packed");
            row.row_of("operation", each.operation, p.bodies[of(each.phase).body].operations);
            whole_[each.phase] = 1;
        }
    }

    /// The one unit that takes slots of a buffer.
    struct Taker {
        i64 member = NONE, unit = NONE;
    };

    const Program& p;
    const Array<PackedShape>& packed_;
    const Variant& variant_;
    Sum& looks_;
    Sum issues_{"operations in all iterations of a task", MOST_CYCLES};
    Shape shape_;
    Array<char> whole_;  // for each phase, 1 if later phases look at its starts
    Array<Taker> takers_;
};

}  // namespace

Array<const Shape*> check_work(const Program& p, std::map<std::tuple<i64, i64, i64>, Shape>& shapes) {
    Sum looks("rows to look at, one by one", MOST_LOOKS), members("members of variants", MOST_STREAMS);
    const Array<PackedShape> packed = check_bodies(p, looks);
    Array<const Shape*> of_variants;
    for (i64 i = 0; i < p.variants.size(); ++i) {
        const Row row{"variants", i};
        const Variant& each = p.variants[i];
        row.rows_of("first_phase", each.first_phase, each.phases, p.phases.size());
        row.between("phases", each.phases, 1, p.phases.size());
        row.rows_of("first_buffer", each.first_buffer, each.buffers, p.buffers.size());
        looks.add(row, "buffers", each.buffers, each.buffers);
        row.between("members", each.members, 1, MOST_STREAMS);
        // variants often share their phases: these are looked at once
        const auto [place, is_new] = shapes.insert({{each.first_phase, each.phases, each.buffers}, {}});
        if (is_new) {
            looks.add(row, "phases", each.phases, each.phases);
            place->second = PhaseChecker(p, packed, each, looks).all();
            members.add(row, "phases", each.phases, place->second.units.size());
        }
        of_variants.push(&place->second);
    }
    return of_variants;
}

}  // namespace lstmsim::flat
