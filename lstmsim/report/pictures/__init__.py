"""Pictures, the only place that knows matplotlib (never pyplot: no windows, no global state)."""
