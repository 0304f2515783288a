"""Kernels that go along the rows of CSR: SpMM, SpMV, SDDMM."""
