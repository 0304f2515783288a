// The plain C interface: whole numbers and addresses of arrays of whole numbers.
#include "interface.hpp"

#include "caches.hpp"

using lstmsim::Caches;
using lstmsim::i64;

/// The version of what is passed.
LSTMSIM_PUBLIC i64 lstmsim_format() { return lstmsim::FORMAT; }

/// Open the caches of a machine of `numbers` numbers (`Shape`) for a space of pages, of which each has a memory and a
/// kind. 0, or more if it failed.
///
/// caches: is set to the caches; null if it failed.
/// message: room for the reason of a failure.
LSTMSIM_PUBLIC i64 lstmsim_open(
    const i64* shape, i64 numbers, const i64* homes, const i64* kinds, i64 pages, Caches** caches, char* message,
    i64 room) {
    *caches = nullptr;
    return lstmsim::guarded(
        [&] {
            *caches = new Caches({shape, numbers}, {homes, pages}, {kinds, pages});
            return i64{0};
        },
        message, room);
}

/// Let steps touch their lines. 0, or more if it failed; after `REFUSED` nothing has changed.
///
/// core, end: of each step its core, and the number of the run behind its last one.
/// address, size, write: of each run.
/// rows: room for what is counted for each step, `words` numbers in all.
LSTMSIM_PUBLIC i64 lstmsim_drive(
    Caches* caches, const i64* core, const i64* end, i64 steps, const i64* address, const i64* size,
    const std::uint8_t* write, i64 runs, i64* rows, i64 words, char* message, i64 room) {
    return lstmsim::guarded(
        [&] {
            caches->drive({{core, steps}, {end, steps}, {address, runs}, {size, runs}, {write, runs}}, {rows, words});
            return i64{0};
        },
        message, room);
}

/// Forget caches.
LSTMSIM_PUBLIC void lstmsim_close(Caches* caches) { delete caches; }
