"""A multi-core CPU: cores with caches of their own, last-level caches of groups, memories of NUMA domains.

`docs/multicore.md` is its contract.
"""
