"""The timing contract once more, stepped cycle by cycle: slow, without Program or engine, for small scenarios.

Written from the text of the contract (docs/timing.md, by section number); shares only the descriptions with lstmsim.
"""

from tests.oracle.machine import simulate

__all__ = ["simulate"]
