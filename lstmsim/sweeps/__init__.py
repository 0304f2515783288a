"""Design-space sweeps: what is to be varied, every point simulated once, and the table of what came out."""
