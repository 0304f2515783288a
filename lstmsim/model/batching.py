"""Batching of requests: what an entry says of its pool, and which jobs wait in one. docs/batching.md has the rules."""

from __future__ import annotations

from lstmsim.base.records import record


@record
class Batching:
    """How requests wait for company.

    max_batch_size: the most members of a batch.
    policy: when a batch is made: `dynamic`, when a context is free and the pool is full or its oldest has waited
        (Triton); `window`, when a window is full or ends (TensorFlow Serving); `continuous`, step by step (Orca).
    max_wait_cycles: how long the oldest request may be kept waiting for company.
    lengths: what becomes of unequal numbers of steps: `pad`, all run as many as the longest; `equal`, only equal
        ones go together; `ragged`, each leaves after its own last one.
    pool: name of the pool that entries share; empty: the entry is a pool of its own.
    entry: name of that entry; empty with `pool`.

    >>> Batching(4).policy
    'dynamic'
    """

    max_batch_size: int
    policy: str = "dynamic"
    max_wait_cycles: int = 0
    lengths: str = "pad"
    pool: str = ""
    entry: str = ""

    @property
    def in_rounds(self) -> bool:
        """Whether requests wait again between two steps."""
        return self.policy == "continuous"

    @property
    def ragged(self) -> bool:
        """Whether each request leaves its batch after its own last step. In rounds all have the same step."""
        return self.lengths == "ragged" and not self.in_rounds

    @property
    def alone(self) -> Batching | None:
        """What is left of it for a request by itself: nothing, but in rounds it still stops after each step."""
        return Batching(1, "continuous") if self.in_rounds else None

    @property
    def idle_keys(self) -> str:
        """A sentence on keys that are given and have no effect; empty if there are none."""
        given = ["max_wait_cycles"] * (self.max_wait_cycles > 0) + ["lengths"] * (self.lengths != "pad")
        if not self.in_rounds or not given:
            return ""
        return f"{' and '.join(f'`{key}`' for key in given)} of `batching` mean nothing where `policy` is continuous"

    def pool_of(self, steps: int) -> tuple[Batching, int]:
        """What the jobs of one pool have in common; steps: of such a job."""
        return self, steps if self.lengths == "equal" and not self.in_rounds else 0
