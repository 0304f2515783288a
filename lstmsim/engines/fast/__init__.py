"""The fast engine: a core in C++17 (`core/`) that reads flat programs, and its binding to Python."""
