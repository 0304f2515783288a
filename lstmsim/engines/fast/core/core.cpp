// The native core of the fast engine: the one translation unit, which includes what it needs.

#include <cstdint>

// A digest of these sources and of the compiler's flags, by which the loader tells of what a library was built.
#ifndef LSTMSIM_SOURCES
#define LSTMSIM_SOURCES ""
#endif

// The version of the flat format that this library runs.
extern "C" std::int64_t lstmsim_format() { return 1; }

extern "C" const char *lstmsim_sources() { return LSTMSIM_SOURCES; }
