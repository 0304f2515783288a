// The caches as one translation unit, so that the compiler sees all of it at once.
#include "open.cpp"
#include "fetch.cpp"
#include "share.cpp"
#include "drive.cpp"
#include "interface.cpp"
