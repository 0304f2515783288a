// The lowering of points as one translation unit, so that the compiler sees all of it at once.
#include "bodies.cpp"
#include "tiles.cpp"
#include "interface.cpp"
