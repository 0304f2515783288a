// Broken rules of the tasks of a flat program: their places must have the cores, threads and units that they need.
#include <set>

#include "check.hpp"

namespace lstmsim::flat {

namespace {

class TaskChecker {
  public:
    TaskChecker(const Program& program, const Array<const Shape*>& shapes) : p(program), shapes_(shapes) {}

    void all() {
        for (i64 i = 0; i < p.profiles.size(); ++i) profile({"profiles", i}, p.profiles[i]);
        for (i64 i = 0; i < p.pools.size(); ++i) {
            const Row row{"pools", i};
            row.between("most", p.pools[i].most, 1, MOST_CYCLES);
            row.between("wait", p.pools[i].wait, 0, LATEST);
            row.between("policy", p.pools[i].policy, 0, POOL_POLICIES - 1);
            row.flag("ragged", p.pools[i].ragged);
        }
        for (i64 i = 0; i < p.tasks.size(); ++i) task({"tasks", i}, p.tasks[i]);
        if (p.sessions.size() != 0 && p.sessions.size() != p.tasks.size()) {
            throw Refusal("table sessions has neither no row nor one for each task");
        }
        for (i64 i = 0; i < p.sessions.size(); ++i) session({"sessions", i}, p.sessions[i], p.profiles[p.tasks[i].profile]);
        for (i64 i = 0; i < p.barriers.size(); ++i) Row{"barriers", i}.between("arrivals", p.barriers[i].arrivals, 1, MOST_CYCLES);
        if (preempting_ && (p.barriers.size() || p.words.size())) {
            throw Refusal("where tasks preempt others, there are no barriers and no packed bodies");
        }
        if (preempting_) echoes();
    }

  private:
    void profile(const Row& row, const Profile& each) {
        row.row_of("group", each.group, p.groups.size());
        row.row_or_none("weight_set", each.weight_set, p.weight_sets.size());
        row.flag("affine", each.affine);
        row.flag("preempts", each.preempts);
        row.between("queue_limit", each.queue_limit, NONE, LATEST);
        row.between("patience", each.patience, NONE, LATEST);
        const bool loads = each.weight_set != NONE && p.weight_sets[each.weight_set].key != OWN_ROOM;
        row.between("loading", each.loading, 0, loads ? p.phases.size() : 0);
        if (each.affine && !loads && each.weight_set != NONE) row.refuse("affine", 1, "but its weight set is room of its own");
        row.rows_of("first_variant", each.first_variant, each.variants, p.variants.size());
        row.row_or_none("pool", each.pool, p.pools.size());
        row.between("length", each.length, 0, LATEST);
        row.between("sizes", each.sizes, 0, each.variants > 0 ? p.variants.size() / each.variants - 1 : 0);
        row.rows_of("first_variant", each.first_variant, each.variants * (1 + each.sizes), p.variants.size());
        if (each.pool != NONE && p.pools[each.pool].policy == CONTINUOUS) in_rounds(row, each);
        if (each.pool != NONE && (each.preempts || each.moldables > 0)) row.refuse("pool", each.pool, "but it preempts or is moldable");
        row.rows_of("first_moldable", each.first_moldable, each.moldables, p.variants.size());
        if (each.preempts && each.weight_set != NONE) row.refuse("preempts", 1, "but it has a weight set");
        std::set<i64> kinds;
        for (const Variant& variant : p.variants.part(each.first_variant, each.variants)) {
            looks_.add(row, "variants", each.variants, 1);
            if (kinds.insert(variant.kind).second) continue;
            row.refuse("variants", each.variants, "but two of them are for kind " + std::to_string(variant.kind));
        }
        if (each.moldables > 0 && each.weight_set != NONE) row.refuse("moldables", each.moldables, "but it has a weight set");
        if (each.moldables > 0 && each.preempts) row.refuse("moldables", each.moldables, "but it preempts");
        preempting_ = preempting_ || each.preempts;
        const Group& group = p.groups[each.group];
        for (const Place& one : p.places.part(group.first_place, group.places)) {
            if (one.thread_slots > 1 && each.moldables > 0) row.refuse("moldables", each.moldables, "but it has a gang");
            if (one.thread_slots > 1 && each.preempts) row.refuse("preempts", 1, "but it has a gang");
            place(row, each, one);
        }
        if (each.moldables > 0) moldables(row, each, group);
    }

    /// What a task runs in rounds is on one core, and loads nothing.
    void in_rounds(const Row& row, const Profile& each) const {
        if (each.length < 1) row.refuse("length", each.length, "but a task that goes on step by step has a step");
        if (each.weight_set != NONE) row.refuse("pool", each.pool, "which goes on step by step, but it has a weight set");
        const Group& group = p.groups[each.group];
        for (const Place& one : p.places.part(group.first_place, group.places)) {
            if (one.thread_slots > 1) row.refuse("pool", each.pool, "which goes on step by step, but it has a gang");
        }
    }

    /// A place needs a variant for its kind of core, and must have the members and units that its operations are on.
    void place(const Row& row, const Profile& each, const Place& place) {
        const auto thread_slots = p.thread_slots.part(place.first_thread_slot, place.thread_slots);
        for (i64 size = 0; size <= each.sizes; ++size) place_of(row, each, thread_slots, size);
    }

    void place_of(const Row& row, const Profile& each, const Slice<const ThreadSlot>& thread_slots, i64 size) {
        const i64 kind = p.cores[thread_slots[0].core].kind, first = each.first_variant + size * each.variants;
        looks_.add(row, "group", each.group, thread_slots.size());
        for (i64 i = first; i < first + each.variants; ++i) {
            looks_.add(row, "variants", each.variants, 1);
            if (p.variants[i].kind != kind) continue;
            const Row own{"variants", i};
            const Shape& shape = *shapes_[i];
            row.between("loading", each.loading, 0, p.variants[i].phases - 1);
            phases(own, i, each.loading);
            members(own, shape, thread_slots.size());
            for (i64 member = 0; member < shape.units.size(); ++member) {
                units(own, shape, member, p.cores[thread_slots[member].core].units);
            }
            if (each.weight_set != NONE) room(row, each, thread_slots);
            return;
        }
        row.refuse("variants", each.variants, "but none of them is for a core of kind " + std::to_string(kind));
    }

    /// Beside phases that load a weight set, each has something to do.
    void phases(const Row& row, i64 variant, i64 loading) const {
        const i64 empty = shapes_[variant]->last_empty;
        // a task may have no operation at all
        if (empty < loading || (empty == 0 && p.variants[variant].phases == 1)) return;
        row.refuse("phases", p.variants[variant].phases, "but phase " + std::to_string(empty) + " has no operation");
    }

    void members(const Row& row, const Shape& shape, i64 thread_slots) const {
        if (shape.units.size() <= thread_slots) return;
        row.refuse("phases", p.variants[row.number].phases, "and their operations are on " +
                   std::to_string(shape.units.size()) + " members, but a place has " + std::to_string(thread_slots));
    }

    void units(const Row& row, const Shape& shape, i64 member, i64 units) const {
        if (shape.units[member] <= units) return;
        row.refuse("phases", p.variants[row.number].phases, "and their operations on member " + std::to_string(member) +
                   " need " + std::to_string(shape.units[member]) + " units, but a core has " + std::to_string(units));
    }

    void room(const Row& row, const Profile& each, const Slice<const ThreadSlot>& thread_slots) const {
        const i64 size = p.weight_sets[each.weight_set].size;
        for (const ThreadSlot& thread_slot : thread_slots) {
            const i64 capacity = p.cores[thread_slot.core].capacity;
            if (capacity == NONE || size <= capacity) continue;
            row.refuse("weight_set", each.weight_set, "of size " + std::to_string(size) + ", more than core " +
                       std::to_string(thread_slot.core) + " holds");
        }
    }

    /// A task that may take several cores at once: these are different ones, and each may be any of its members.
    void moldables(const Row& row, const Profile& each, const Group& group) {
        std::set<i64> cores;
        i64 least = MOST_CURSORS;
        if (group.places > MOST_SPREAD) {
            row.refuse("moldables", each.moldables, "but it has " + std::to_string(group.places) + " cores, not at most " +
                       std::to_string(MOST_SPREAD));
        }
        for (const Place& place : p.places.part(group.first_place, group.places)) {
            const i64 core = p.thread_slots[place.first_thread_slot].core;
            if (!cores.insert(core).second) row.refuse("moldables", each.moldables, "but one of its cores comes twice");
            least = std::min(least, p.cores[core].units);
        }
        for (i64 i = each.first_moldable; i < each.first_moldable + each.moldables; ++i) {
            const Row own{"variants", i};
            const Shape& shape = *shapes_[i];
            looks_.add(row, "moldables", each.moldables, 1 + shape.units.size());
            own.between("members", p.variants[i].members, i > each.first_moldable ? p.variants[i - 1].members + 1 : 2,
                        group.places);
            phases(own, i, 0);
            members(own, shape, p.variants[i].members);
            for (i64 member = 0; member < shape.units.size(); ++member) units(own, shape, member, least);
        }
    }

    void session(const Row& row, const Session& each, const Profile& profile) const {
        row.between("session", each.session, NONE, p.tasks.size() - 1);
        row.between("move", each.move, 0, MOST_CYCLES);
        if (each.session == NONE) return;
        if (profile.pool != NONE || profile.moldables > 0) row.refuse("session", each.session, "but its task has a pool or is moldable");
        if (preempting_) row.refuse("session", each.session, "but tasks preempt others");
    }

    void task(const Row& row, const Task& each) const {
        row.row_of("profile", each.profile, p.profiles.size());
        row.between("release", each.release, 0, LATEST);
        row.between("frame_interval", each.frame_interval, 0, MOST_CYCLES);
        row.between("key", each.key, -MOST_KEY, MOST_KEY);
        row.flag("key_from_arrival", each.key_from_arrival);
        row.row_or_none("after", each.after, row.number);
        for (const auto& [column, barrier] : {std::pair<const char*, i64>{"behind", each.behind}, {"starts", each.starts},
                                           {"ends", each.ends}, {"until", each.until}}) {
            row.row_or_none(column, barrier, p.barriers.size());
        }
        const i64 pool = p.profiles[each.profile].pool;
        if (pool != NONE && p.pools[pool].policy == CONTINUOUS && (each.starts != NONE || each.until != NONE)) {
            row.refuse("profile", each.profile, "which goes on step by step, but it has barriers");
        }
        if (each.after != NONE && each.behind != NONE) row.refuse("behind", each.behind, "but it comes after a task");
    }

    /// Where tasks may pause, each phase of a variant has a number for each of its operations.
    void echoes() const {
        Sum operations("operations of phases", 2 * MOST_OPERATIONS);
        std::set<std::pair<i64, i64>> known;
        for (const Variant& variant : p.variants) {
            if (!known.insert({variant.first_phase, variant.phases}).second) continue;
            for (i64 i = variant.first_phase; i < variant.first_phase + variant.phases; ++i) {
                operations.add({"phases", i}, "body", p.phases[i].body, p.bodies[p.phases[i].body].operations);
            }
        }
    }

    const Program& p;
    const Array<const Shape*>& shapes_;
    Sum looks_{"rows to look at, one by one", MOST_LOOKS};
    bool preempting_ = false;
};

}  // namespace

void check_tasks(const Program& program, const Array<const Shape*>& shapes) { TaskChecker(program, shapes).all(); }

void check(const Program& program) {
    check_rows(program);
    check_tables(program);
}

void check_tables(const Program& program) {
    check_machine(program);
    std::map<std::tuple<i64, i64, i64>, Shape> shapes;
    check_tasks(program, check_work(program, shapes));
}

}  // namespace lstmsim::flat
