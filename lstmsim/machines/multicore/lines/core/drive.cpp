// Steps touch their lines, run after run.
#include <algorithm>
#include <cstring>

#include "caches.hpp"

namespace lstmsim {

void Caches::drive(const Steps& steps, Slice<i64> rows) {
    check(steps, rows);
    const i64 width = COLUMNS + domains_;
    i64 number = 0;
    for (i64 step = 0; step < steps.core.size(); ++step) {
        const Slice<i64> row = rows.part(step * width, width);
        core_ = steps.core[step];
        group_ = group_of(core_);
        count_ = Counts{};
        memory_ = row.part(COLUMNS, domains_);
        std::fill(row.begin(), row.end(), 0);
        for (; number < steps.end[step]; ++number) {
            const i64 address = steps.address[number], size = steps.size[number];
            if (size) run(line_.quotient(address), line_.quotient(address + size - 1), steps.write[number]);
        }
        std::memcpy(row.part(0, COLUMNS).begin(), &count_, sizeof count_);
    }
}

void Caches::check(const Steps& steps, Slice<i64> rows) const {
    if (rows.size() != steps.core.size() * (COLUMNS + domains_)) throw Refusal("there is no row for each step");
    i64 before = 0;
    for (i64 step = 0; step < steps.core.size(); ++step) {
        const i64 core = steps.core[step], end = steps.end[step];
        if (core < 0 || core >= shape_.cores) {
            throw Refusal("there is no core " + std::to_string(core) + " among " + std::to_string(shape_.cores));
        }
        if (end < before || end > steps.address.size()) throw Refusal("runs of a step end at no run");
        before = end;
    }
    if (before != steps.address.size()) throw Refusal("there are runs of no step");
    const i64 space = pages_.size() * shape_.page;
    for (i64 number = 0; number < steps.address.size(); ++number) {
        const i64 address = steps.address[number], size = steps.size[number];
        if (address < 0 || size < 0 || address > space || size > space - address) {
            throw Refusal("a run is not inside the space of " + std::to_string(space) + " bytes");
        }
    }
}

/// Touch the lines from `first` to `last`, page after page.
void Caches::run(i64 first, i64 last, bool write) {
    Cache<false>& l1 = l1_[core_];
    count_.l1 += last - first + 1;
    while (first <= last) {
        const i64 number = page_.quotient(first);
        const Page page = pages_[number];
        const i64 begin = number * lines_of_page_, end = std::min(last, begin + lines_of_page_ - 1);
        for (; first <= end; ++first) {
            if (page.shared != NONE) share(first, page.shared + first - begin, write);
            const Taken taken = l1.take(first, write);
            if (taken.there) {
                ++count_.l1_hit;
            } else {
                fetch(first, taken.victim, page);
            }
            if (write && page.own != NONE) written_[page.own + first - begin] = 1;
        }
    }
}

}  // namespace lstmsim
