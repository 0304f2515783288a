// Many programs in one call that differ in their bodies: points of a sweep.
#include <chrono>

#include "interface.hpp"
#include "machine.hpp"

namespace lstmsim {

namespace {

/// A point: its template, and the first of its rows of `body`, one for each body of the template.
struct Point {
    i64 form, first_body;
};

/// Columns of what a point came to; behind them the cycles of each name, work and issues, summed over the cores; then
/// for each task how long it took from its arrival, or `NONE` if it never ran.
enum Came : i64 { OUTCOME, NANOSECONDS, MAKESPAN, COLUMNS };

/// Programs without operations, and the operations of all points.
struct Points {
    Array<flat::Program> forms;
    flat::Program rows;  // operations, needs and bodies of all points
    Slice<const i64> body;
    i64 events = 0;  // for all points that are still to run

    Points(const i64* words, const i64* firsts, i64 templates) {
        for (i64 form = 0; form < templates; ++form) {
            forms.push(flat::read(words + firsts[form], firsts[form + 1] - firsts[form]));
        }
    }

    /// Run a point, and write its row. What a point breaks is told by its outcome; the others go on.
    void run(const Point& point, Slice<i64> row) {
        const auto begin = std::chrono::steady_clock::now();
        char unheard[1];
        row[OUTCOME] = guarded([&] { return static_cast<i64>(came(point, row)); }, unheard, 0);
        const auto taken = std::chrono::steady_clock::now() - begin;
        row[NANOSECONDS] = std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
    }

  private:
    Outcome came(const Point& point, Slice<i64> row) {
        flat::Program program = forms[point.form];
        Array<flat::Body> bodies;
        bodies.reserve(program.bodies.size());
        for (i64 i = 0; i < program.bodies.size(); ++i) bodies.push(rows.bodies[body[point.first_body + i]]);
        program.bodies = {bodies.data(), bodies.size()};
        program.operations = rows.operations;
        program.needs = rows.needs;
        flat::check_tables(program);
        Machine machine(program, false, false, true);
        const Outcome outcome = machine.run(events);
        events = machine.left();
        if (outcome != DONE) return outcome;
        write(program, machine, row);
        return DONE;
    }

    static void write(const flat::Program& program, Machine& machine, Slice<i64> row) {
        const Slice<const i64> tasks = machine.table(TASKS);
        const i64 columns = sizeof(TaskRow) / sizeof(i64), names = program.head[0].names + 2;
        i64 makespan = 0;
        for (i64 task = 0; task < program.tasks.size(); ++task) {
            const auto& each = *reinterpret_cast<const TaskRow*>(&tasks[task * columns]);
            makespan = std::max(makespan, each.finish);
            row[COLUMNS + names + task] = each.core == NONE ? NONE : each.finish - each.arrived;
        }
        row[MAKESPAN] = makespan;
        machine.total(makespan);
        const Slice<const i64> totals = machine.table(TOTALS);
        for (i64 name = 0; name < names; ++name) row[COLUMNS + name] = 0;
        for (i64 place = 0; place < totals.size(); ++place) add(row[COLUMNS + place % names], totals[place]);
    }
};

}  // namespace

}  // namespace lstmsim

using lstmsim::i64;

/// Run points, each a row (`Point`) of `points`, and write a row of `width` numbers for each (`Came`). 0, or more if it
/// failed; a point that fails says so in its row.
///
/// words, firsts: programs without operations (`templates` of them), and where each begins; behind them where they end.
/// tables, sizes: addresses of operations, needs and bodies of all points, and how many rows each table has.
/// body: rows of `bodies`; a point has one for each body of its template, from its `first_body` on.
/// events: after so many the points that are not done are given up; their outcome is then 1.
LSTMSIM_PUBLIC i64 lstmsim_points(
    const i64* words, const i64* firsts, i64 templates, const void* const* tables, const i64* sizes, const i64* body,
    i64 bodies, const i64* points, i64 count, i64 events, i64* rows, i64 width, char* message, i64 room) {
    namespace flat = lstmsim::flat;
    return lstmsim::guarded(
        [&] {
            lstmsim::Points all(words, firsts, templates);
            all.events = events;
            all.body = {body, bodies};
            all.rows.operations = {static_cast<const flat::Operation*>(tables[0]), sizes[0]};
            all.rows.needs = {static_cast<const flat::Need*>(tables[1]), sizes[1]};
            all.rows.bodies = {static_cast<const flat::Body*>(tables[2]), sizes[2]};
            if (templates > 0) {
                // rows of operations and needs name causes alone, and these are the same in all programs
                flat::Program checked = all.rows;
                checked.causes = all.forms[0].causes;
                flat::check_rows(checked);
                for (const flat::Program& form : all.forms) {
                    flat::Program own = form;
                    own.operations = {};
                    own.needs = {};
                    flat::check_rows(own);
                }
            }
            for (i64 point = 0; point < count; ++point) {
                all.run(reinterpret_cast<const lstmsim::Point*>(points)[point], {rows + point * width, width});
            }
            return i64{0};
        },
        message, room);
}
