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
void open(Array<Cache<LAZY>>& caches, i64 count, i64 sets, i64 ways, Slice<const u32> order = {}) {
    caches.reserve(count);
    for (i64 number = 0; number < count; ++number) caches.push(Cache<LAZY>(sets, ways, order));
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
    order_blocks(homes.size() * lines_of_page_);
    const Array<u32>& order = order_;
    open(llc_, groups, s.llc_sets, s.llc_ways, order.part(0, order.size()));
}

/// As `order_of_blocks` of lstmsim/machines/multicore/lines/caches.py. A set stays below the number of sets, because
/// that is a multiple of the power of two below which all images are.
void Caches::order_blocks(i64 lines) {
    const i64 polynomial = shape_.llc_polynomial, top = i64{1} << (63 - __builtin_clzll(polynomial));
    if (polynomial == 1) return;
    if (shape_.llc_sets % top) throw Refusal("the sets of a last-level cache are no multiple of " + std::to_string(top));
    const i64 blocks = lines / shape_.llc_sets + 1;
    order_.fill(blocks, 0);
    i64 image = polynomial ^ top;
    for (i64 bit = 1; bit < blocks; bit *= 2) {
        const i64 end = std::min(2 * bit, blocks);
        for (i64 block = bit; block < end; ++block) order_[block] = order_[block - bit] ^ static_cast<u32>(image);
        image *= 2;
        if (image & top) image ^= polynomial;
    }
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
