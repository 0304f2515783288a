"""The writer of kernels: instructions of many warps at once."""
