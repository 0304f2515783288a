// Caches are made of tables: the last door, where whatever would lead outside an array is refused.
#include <cstring>

#include "caches.hpp"

namespace lstmsim {
namespace {

/// Most lines that all caches together have room for: 8 GB.
constexpr i64 MOST_ENTRIES = i64{1} << 31;

void between(const char* what, i64 value, i64 low, i64 high) {
    if (value >= low && value <= high) return;
    throw Refusal(std::string(what) + " is " + std::to_string(value) + ", not " + std::to_string(low) + " to " +
                  std::to_string(high));
}

Shape read(Slice<const i64> numbers) {
    Shape shape;
    constexpr i64 fields = sizeof(Shape) / sizeof(i64);
    between("how many numbers a machine has", numbers.size(), fields, fields);
    std::memcpy(&shape, numbers.begin(), sizeof(Shape));
    for (const i64 number : numbers) between("a number of the machine", number, 1, i64{1} << 31);
    between("how many cores there are", shape.cores, 1, i64{1} << 20);
    if (shape.page % shape.line) throw Refusal("a page is no whole number of lines");
    return shape;
}

/// Lines of some caches, each within bounds so that the product is.
i64 room(i64 caches, i64 sets, i64 ways) {
    between("how many lines a cache has", sets * ways, 1, MOST_ENTRIES);
    return caches * (sets * ways);
}

template <bool LAZY>
void open(Array<Cache<LAZY>>& caches, i64 count, i64 sets, i64 ways) {
    caches.reserve(count);
    for (i64 number = 0; number < count; ++number) caches.push(Cache<LAZY>(sets, ways));
}

}  // namespace

Caches::Caches(Slice<const i64> numbers, Slice<const i64> homes, Slice<const i64> kinds) : shape_(read(numbers)) {
    const Shape& s = shape_;
    const i64 groups = (s.cores + s.cores_per_llc - 1) / s.cores_per_llc;
    domains_ = (s.cores + s.cores_per_domain - 1) / s.cores_per_domain;
    lines_of_page_ = s.page / s.line;
    line_ = Divider(s.line);
    page_ = Divider(lines_of_page_);
    words_ = (s.cores + 63) / 64;
    const i64 all = room(s.cores, s.l1_sets, s.l1_ways) + room(s.cores, s.l2_sets, s.l2_ways) +
                    room(groups, s.llc_sets, s.llc_ways);
    between("how many lines all caches have", all, 1, MOST_ENTRIES);
    read_pages(homes, kinds);
    open(l1_, s.cores, s.l1_sets, s.l1_ways);
    open(l2_, s.cores, s.l2_sets, s.l2_ways);
    open(llc_, groups, s.llc_sets, s.llc_ways);
}

void Caches::read_pages(Slice<const i64> homes, Slice<const i64> kinds) {
    between("how many pages have a kind", kinds.size(), homes.size(), homes.size());
    between("how many pages there are", homes.size(), 0, MOST_LINES / lines_of_page_);
    i64 own = 0, shared = 0;
    pages_.reserve(homes.size());
    for (i64 number = 0; number < homes.size(); ++number) {
        between("the memory of a page", homes[number], 0, domains_ - 1);
        between("the kind of a page", kinds[number], 0, KINDS - 1);
        Page page{homes[number], NONE, NONE};
        if (kinds[number] & OWN) {
            page.own = own;
            own += lines_of_page_;
        }
        if (kinds[number] & SHARED) {
            page.shared = shared;
            shared += lines_of_page_;
        }
        pages_.push(page);
    }
    written_.fill(own, 0);
    writer_.fill(shared, static_cast<i32>(NONE));
    holders_.fill(shared * words_, 0);
}

}  // namespace lstmsim
