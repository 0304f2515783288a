"""The trust in a machine's numbers: what they agree with exactly, and what is assumed."""

from __future__ import annotations

from lstmsim.base.records import record

__all__ = ["Fidelity"]


@record
class Fidelity:
    """The evidence for the cycles of a kind of machine. Each entry is a sentence without a full stop.

    exact: what the simulation agrees with, and how closely.
    assumed: what no source says.

    >>> Fidelity(("the contract, cycle by cycle",), ("latencies",)).text
    'exact: the contract, cycle by cycle. Assumed: latencies.'
    """

    exact: tuple[str, ...]
    assumed: tuple[str, ...]

    @property
    def text(self) -> str:
        """Both kinds of entries on one line."""
        return f"exact: {'; '.join(self.exact)}. Assumed: {'; '.join(self.assumed)}."
