"""A machine that is no part of the package: it shows that one is added by its folder and a line in the registry.

It is a scalar processor without an array: one in-order pipeline that does some multiply-accumulates at a time, then
the element-wise operations one by one. The files are those that DESIGN.md names under "How to add a target".
"""
