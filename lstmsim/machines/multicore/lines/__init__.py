"""The lines that a step touches, and the hits and misses of the caches."""
