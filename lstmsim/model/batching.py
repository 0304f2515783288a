"""Batching of requests: what an entry says of its pool, and which jobs wait in one. docs/batching.md has the rules."""

from __future__ import annotations

from lstmsim.base.records import record

#: Name -> when a batch is made.
POLICIES = {
    "dynamic": "when a context is free and the pool is full or its oldest has waited; Triton's dynamic batcher",
    "window": "when a window is full or ends, whatever the machine does; TensorFlow Serving's batching",
    "continuous": "step by step: who comes joins at the next step; Orca, OSDI 2022; BatchMaker, EuroSys 2018",
}
#: Name -> what becomes of unequal numbers of steps in a batch.
LENGTHS = {
    "pad": "each member runs as many steps as the longest, on frames of zeros",
    "ragged": "each member leaves after its own last step",
    "equal": "only requests with equal numbers of steps go together",
}


@record
class Batching:
    """How requests wait for company.

    max_batch_size: the most members of a batch.
    policy: when a batch is made, a key of `POLICIES`.
    max_wait_cycles: how long the oldest request may be kept waiting for company.
    lengths: what becomes of unequal numbers of steps, a key of `LENGTHS`.
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

    def pool_of(self, steps: int) -> tuple[Batching, int]:
        """What the jobs of one pool have in common; steps: of such a job."""
        return self, steps if self.lengths == "equal" else 0
