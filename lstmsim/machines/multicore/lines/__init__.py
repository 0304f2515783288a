"""Which lines a step touches, and what the caches make of that."""
