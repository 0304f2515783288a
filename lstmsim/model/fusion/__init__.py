"""Fusion of the memory-intensive part of a graph: what becomes one kernel, who computes what, where values lie.

`docs/fusion.md` has the exact rules. No machine is known here; `lstmsim.model.fusion.plan` has the numbers that
plans need.
"""
