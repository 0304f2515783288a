// All caches of a machine, and the pages of the space that they are for: the table of contents.
//
// The rules are section 5 of docs/multicore.md, rule for rule as in lstmsim/machines/multicore/lines/caches.py. Two things
// are quicker here than there, and the same. A line is taken into L1, and into L2, before it is looked for below: nothing
// below asks the cache that it is taken into, and what has left it goes down where the rules say. And of shared lines it is known who wrote them last, and who may have them, so that nobody
// else is asked: a line is dirty nowhere but at its last writer, or in the last-level cache of that core's group.
#pragma once

#include "cache.hpp"

namespace lstmsim {

/// The version of what passes between Python and this library (lstmsim/machines/multicore/lines/caches.py).
constexpr i64 FORMAT = 2;

/// Numbers of a machine, in the order in which Python gives them.
struct Shape {
    i64 cores, cores_per_llc, cores_per_domain, line, page;
    i64 l1_sets, l1_ways, l2_sets, l2_ways, llc_sets, llc_ways, llc_polynomial;
};

/// What is counted for a step, in the order of `COLUMNS` of lstmsim/machines/multicore/lines/space.py; then come the lines
/// of each memory.
struct Counts {
    i64 l1, l1_hit, l2, l2_hit, llc, llc_hit, l1_l2, l2_llc, memory_read, memory_write, remote, transfers;
};
constexpr i64 COLUMNS = sizeof(Counts) / sizeof(i64);

/// Bits of a page's kind.
enum Kind : i64 { OWN = 1, SHARED = 2, KINDS = 4 };

/// A page: its memory, and where the marks of its first line are among those of own and of shared lines; `NONE` if it
/// is none.
struct Page {
    i64 home, own, shared;
};
constexpr i64 NONE = -1;

/// Runs of bytes that some steps touch.
struct Steps {
    Slice<const i64> core, end;
    Slice<const i64> address, size;
    Slice<const std::uint8_t> write;
};

class Caches {
  public:
    // open.cpp
    /// Empty caches; `Refusal` if a number would lead outside an array, or to caches too large.
    Caches(Slice<const i64> shape, Slice<const i64> homes, Slice<const i64> kinds);

    // drive.cpp
    /// Let steps touch their lines, and count in a row for each; `Refusal` before anything is touched.
    void drive(const Steps& steps, Slice<i64> rows);

  private:
    Shape shape_;
    i64 domains_ = 0, lines_of_page_ = 0;
    Divider line_, page_;
    Array<Page> pages_;
    Array<Cache<false>> l1_, l2_;
    Array<Cache<true>> llc_;
    /// Of each block of lines what the lowest bits of its sets in a last-level cache are XORed with.
    Array<u32> order_;
    /// Of own lines whether they were ever written.
    Array<std::uint8_t> written_;
    /// Of shared lines who wrote them last, or `NONE`, and bits of those who may have them, `words_` for each line.
    Array<i32> writer_;
    Array<u64> holders_;
    i64 words_ = 0;
    /// Of the step that is under way.
    i64 core_ = 0, group_ = 0;
    Counts count_{};
    Slice<i64> memory_;

    // open.cpp
    void read_pages(Slice<const i64> homes, Slice<const i64> kinds);
    void order_blocks(i64 lines);

    // drive.cpp
    void check(const Steps& steps, Slice<i64> rows) const;
    void run(i64 first, i64 last, bool write);

    // fetch.cpp
    /// A line was missing in L1, and `victim` has left L1 for it.
    void fetch(i64 line, Entry victim, const Page& page);
    /// A dirty line leaves L2.
    void leave_l2(Entry victim);
    /// A dirty line is put into a last-level cache.
    void into_llc(i64 group, i64 line);
    void memory_line(i64 line, i64& way);

    // share.cpp
    /// What others have of a shared line goes where this core finds it; if it writes, others keep nothing.
    void share(i64 line, i64 mark, bool write);
    void take_from(i64 writer, i64 line);
    void drop_others(i64 line, Slice<u64> holders);

    i64 group_of(i64 core) const { return core / shape_.cores_per_llc; }
};

}  // namespace lstmsim
