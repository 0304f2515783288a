"""What goes wrong when a planned kernel runs."""

from __future__ import annotations

from lstmsim.base.errors import LstmsimError

__all__ = ["Fault"]


class Fault(LstmsimError):
    """A kernel reads what it cannot have, waits for ever, or leaves something out: its plan is wrong.

    >>> print(Fault("it lies in a register of thread 3", "k", "y", "x", 7, 0, 5))
    kernel k, stage y: block 0, thread 5 reads element 7 of x: it lies in a register of thread 3
    """

    def __init__(
        self,
        why: str,
        kernel: str = "",
        stage: str = "",
        node: str = "",
        element: int = -1,
        block: int = -1,
        thread: int = -1,
    ) -> None:
        """Say where and why.

        why: a sentence without a full stop.
        kernel, stage: names of the kernel, and of the node that it computes there; empty: not in one.
        node: name of what is read; empty: nothing is read.
        element, block, thread: which element, by whom; -1: none.
        """
        self.why, self.kernel, self.stage, self.node = why, kernel, stage, node
        self.element, self.block, self.thread = element, block, thread
        where = ", ".join(f"{what} {name}" for what, name in (("kernel", kernel), ("stage", stage)) if name)
        read = f"block {block}, thread {thread} reads element {element} of {node}: " if node else ""
        super().__init__(f"{where}: {read}{why}" if where else why)
