// A line comes from below, and what has no room any more goes down.
#include "caches.hpp"

namespace lstmsim {

void Caches::fetch(i64 line, bool write, const Page& page) {
    const Entry victim = l1_[core_].push(line, write);
    if (is_dirty(victim)) {
        ++count_.l1_l2;
        into_l2(line_of(victim));
    }
    ++count_.l1_l2;
    ++count_.l2;
    if (l2_[core_].touch(line, false)) {
        ++count_.l2_hit;
        return;
    }
    ++count_.l2_llc;
    ++count_.llc;
    if (llc_[group_].touch(line, false)) {
        ++count_.llc_hit;
    } else {
        if (page.own == NONE || written_[page.own + line % lines_of_page_]) memory_line(line, count_.memory_read);
        const Entry gone = llc_[group_].push(line, false);
        if (is_dirty(gone)) memory_line(line_of(gone), count_.memory_write);
    }
    // putting a victim of L1 into L2 does not bring this line there
    const Entry gone = l2_[core_].push(line, false);
    if (is_dirty(gone)) {
        ++count_.l2_llc;
        into_llc(group_, line_of(gone));
    }
}

void Caches::into_l2(i64 line) {
    const Entry victim = l2_[core_].put(line, true);
    if (is_dirty(victim)) {
        ++count_.l2_llc;
        into_llc(group_, line_of(victim));
    }
}

void Caches::into_llc(i64 group, i64 line) {
    const Entry victim = llc_[group].put(line, true);
    if (is_dirty(victim)) memory_line(line_of(victim), count_.memory_write);
}

void Caches::memory_line(i64 line, i64& way) {
    const i64 home = pages_[line / lines_of_page_].home;
    ++way;
    ++memory_[home];
    count_.remote += home != core_ / shape_.cores_per_domain;
}

}  // namespace lstmsim
