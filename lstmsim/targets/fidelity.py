"""How far a machine's numbers can be trusted: what they are exact against, and what is assumed."""

from __future__ import annotations

from lstmsim.records import record

__all__ = ["Fidelity"]


@record
class Fidelity:
    """What stands behind the cycles of a kind of machine; each entry is a sentence without a full stop.

    exact: what the simulation agrees with, and how closely.
    assumed: what no source says.

    >>> Fidelity(("the contract, cycle by cycle",), ("latencies",)).text
    'exact: the contract, cycle by cycle. Assumed: latencies.'
    """

    exact: tuple[str, ...]
    assumed: tuple[str, ...]

    @property
    def text(self) -> str:
        """Both in a line."""
        return f"exact: {'; '.join(self.exact)}. Assumed: {'; '.join(self.assumed)}."
