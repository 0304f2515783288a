"""Sparse matrices: their formats, their statistics, and test data that anyone can draw again.

`docs/sparse_kernels.md` has the exact rules. No machine is known here.
"""
