"""Native libraries of the package, written in C++17: how they are built, found and loaded."""
