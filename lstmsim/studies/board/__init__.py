"""Designs on boards: a host program that runs one over a serial line, or over simulated pins."""
