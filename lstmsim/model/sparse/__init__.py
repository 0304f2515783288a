"""Sparse matrices: formats, statistics, test data (docs/sparse_kernels.md). No machine is known here."""
