"""The reference engine: SimPy processes, one issue at a time, written to be read."""
