// The least that an engine can do: read the rows of each operation, or of each issue. No machine, no clock.
//
// Built and called by bare_loop.py. What the core needs beyond this time is what its model of a machine costs.
#include "read.cpp"

using namespace lstmsim;

/// Read an operation's row once in each iteration or, with `each_issue`, once for each issue. `reads`: how often that
/// was. Returns a sum over all that is read, so that nothing can be left out, or -1 for a program that is refused.
extern "C" i64 bare_loop(const i64* words, i64 count, i64 each_issue, i64* reads) try {
    const flat::Program program = flat::read(words, count);
    i64 sum = 0;
    *reads = 0;
    for (const flat::Task& task : program.tasks) {
        const flat::Profile& profile = program.profiles[task.profile];
        const flat::Variant& variant = program.variants[profile.first_variant];
        for (const flat::Phase& phase : program.phases.part(variant.first_phase, variant.phases)) {
            const flat::Body& body = program.bodies[phase.body];
            const flat::Operation* first = program.operations.begin() + body.first_operation;
            for (i64 iteration = 0; iteration < phase.repeat; ++iteration) {
                for (const flat::Operation* each = first; each != first + body.operations; ++each) {
                    const i64 times = each_issue ? each->count : 1;
                    for (i64 issue = 0; issue < times; ++issue) {
                        asm volatile("" ::: "memory");  // the row is read again
                        const i64* numbers = reinterpret_cast<const i64*>(each);
                        for (std::size_t place = 0; place < sizeof(*each) / sizeof(i64); ++place) sum += numbers[place];
                        *reads += 1;
                    }
                    const flat::Need* needs = program.needs.begin() + each->first_need;
                    for (i64 place = 0; place < each->needs; ++place) {
                        sum += needs[place].operation + needs[place].delay + needs[place].cause + needs[place].lag;
                    }
                }
            }
        }
    }
    return sum < 0 ? 0 : sum;
} catch (const std::exception&) {
    return -1;
}
