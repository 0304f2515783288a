"""Dense kernels: GEMV, GEMM, cells, recurrent runs."""
