"""Validation: every published figure that a model claims to reproduce, simulated again and compared."""
