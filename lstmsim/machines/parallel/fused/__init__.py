"""Fused kernels on the parallel device, written instruction by instruction (docs/fusion.md, section 10)."""
