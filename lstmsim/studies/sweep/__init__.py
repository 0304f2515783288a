"""Design-space sweeps: what varies, every point simulated once, and the table of results."""
