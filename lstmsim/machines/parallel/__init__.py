"""The parallel device: streaming multiprocessors with warps, a load/store unit and an L2 port each, memory partitions.

`docs/parallel_device.md` is its timing contract, `docs/sparse_kernels.md` that of its kernels.
"""
