// A line comes from below, and what has no room any more goes down.
#include "caches.hpp"

namespace lstmsim {

void Caches::fetch(i64 line, Entry victim, const Page& page) {
    if (is_dirty(victim)) {
        ++count_.l1_l2;
        const Taken put = l2_[core_].take(line_of(victim), true);
        if (is_dirty(put.victim)) leave_l2(put.victim);
    }
    ++count_.l1_l2;
    ++count_.l2;
    const Taken l2 = l2_[core_].take(line, false);
    if (l2.there) {
        ++count_.l2_hit;
        return;
    }
    ++count_.l2_llc;
    ++count_.llc;
    const Taken llc = llc_[group_].take(line, false);
    if (llc.there) {
        ++count_.llc_hit;
    } else {
        if (page.own == NONE || written_[page.own + page_.rest(line)]) memory_line(line, count_.memory_read);
        if (is_dirty(llc.victim)) memory_line(line_of(llc.victim), count_.memory_write);
    }
    if (is_dirty(l2.victim)) leave_l2(l2.victim);
}

void Caches::leave_l2(Entry victim) {
    ++count_.l2_llc;
    into_llc(group_, line_of(victim));
}

void Caches::into_llc(i64 group, i64 line) {
    const Taken put = llc_[group].take(line, true);
    if (is_dirty(put.victim)) memory_line(line_of(put.victim), count_.memory_write);
}

void Caches::memory_line(i64 line, i64& way) {
    const i64 home = pages_[page_.quotient(line)].home;
    ++way;
    ++memory_[home];
    count_.remote += home != core_ / shape_.cores_per_domain;
}

}  // namespace lstmsim
