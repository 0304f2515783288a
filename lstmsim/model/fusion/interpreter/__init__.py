"""Planned kernels, executed: numbers come out, or a fault says what a plan got wrong (docs/fusion.md, section 8)."""
