"""Numbers that no design can beat, for all points of a space at once: docs/design.md has the proofs."""
