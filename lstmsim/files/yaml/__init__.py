"""YAML and JSON as trees with positions, and the checks of what stands in them."""
