"""The best chip for a scenario's jobs, or the front, among all designs of a space: with a proof, and what it costs."""
