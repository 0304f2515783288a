"""Kernels on hashed blocks (HBP), and the conversion to them."""
