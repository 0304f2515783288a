"""The column-wise NPU: its description, and how jobs become a Program on it."""
