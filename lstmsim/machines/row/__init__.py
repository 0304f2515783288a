"""The row-wise NPU: its description, and how jobs become a Program on it."""
