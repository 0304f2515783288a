"""YAML and JSON as trees with positions, and the checks of their values."""
