"""Numbers that a machine computes: weights, the golden model in floating and in fixed point, accuracy."""
