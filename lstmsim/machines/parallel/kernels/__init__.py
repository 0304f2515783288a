"""Kernels of sparse and dense layers, written instruction by instruction (docs/sparse_kernels.md)."""
