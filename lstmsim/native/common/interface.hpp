// What the plain C interfaces of all libraries share: who may call, how a failure is told, and of what a library was built.
#pragma once

#include <cstring>
#include <new>

#include "array.hpp"

#if defined(_WIN32)
#define LSTMSIM_PUBLIC extern "C" __declspec(dllexport)
#else
#define LSTMSIM_PUBLIC extern "C" __attribute__((visibility("default")))
#endif

namespace lstmsim {
namespace {

/// Why nothing was done or a run came back: what was given breaks a rule, a run grew too large, there is no memory, or the
/// library made a mistake. After any of them what was opened may only be closed. Smaller numbers are no failures.
enum Failure : i64 { REFUSED = 4, TOO_LARGE, NO_MEMORY, BROKEN };

/// Copy a sentence to where the caller has room for it, as far as it goes.
inline void say(const char* text, char* message, i64 room) {
    if (room < 1) return;
    std::strncpy(message, text, static_cast<std::size_t>(room - 1));
    message[room - 1] = 0;
}

/// Do something that may fail; the failure is said in `message`.
template <class Work>
i64 guarded(Work work, char* message, i64 room) {
    try {
        return work();
    } catch (const Refusal& refusal) {
        say(refusal.what(), message, room);
        return REFUSED;
    } catch (const Overrun& overrun) {
        say(overrun.what(), message, room);
        return TOO_LARGE;
    } catch (const std::bad_alloc&) {
        say("there is not enough memory", message, room);
        return NO_MEMORY;
    } catch (const std::exception& failure) {
        say(failure.what(), message, room);
        return BROKEN;
    }
}

}  // namespace
}  // namespace lstmsim

#ifndef LSTMSIM_SOURCES
#define LSTMSIM_SOURCES ""
#endif
/// A digest of the sources from which the library was built.
LSTMSIM_PUBLIC const char* lstmsim_sources() { return LSTMSIM_SOURCES; }
