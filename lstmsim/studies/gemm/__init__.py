"""Threads for a matrix product (`lstmsim gemm`)."""
