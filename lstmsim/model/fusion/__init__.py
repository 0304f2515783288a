"""Fusion of the memory-intensive part of a graph: its kernels, their threads, and where values lie.

`docs/fusion.md` has the exact rules. No machine is known here; `lstmsim.model.fusion.plan` has the numbers that
plans need.
"""
