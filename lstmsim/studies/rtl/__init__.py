"""Generated hardware, compiled, simulated, and compared with what the simulator says; it knows no machine."""
