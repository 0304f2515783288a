"""Few kernels for the memory-intensive part of a graph (`lstmsim fuse`)."""
