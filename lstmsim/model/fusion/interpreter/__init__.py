"""Planned kernels, executed: numbers come out, or a fault says what a plan got wrong; docs/fusion.md, section 8.

`lstmsim.model.fusion.interpreter.run` executes, `lstmsim.model.fusion.interpreter.checks` compares with numpy.
"""
