"""The memory that an input needs, estimated before any work begins: one rule for all commands."""

from __future__ import annotations

import os
from contextlib import suppress

from lstmsim.base.errors import InputError, Mistake

#: Where Linux keeps the limit of a container, by the version of its control groups.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_limit() -> int:
    """Give the most bytes that a run may take: half of the memory of the machine, its container or its shell's limit.

    >>> memory_limit() > 0
    True
    """
    limits = [2**62]
    with suppress(ImportError, OSError, ValueError):
        import resource

        limits += [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), resource.getrlimit(resource.RLIMIT_AS)[0]]
    for path in _CONTAINER:
        with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            limits.append(int(file.read()))
    return min(each for each in limits if each > 0) // 2


def refuse_memory(place: str, what: str, size: int, instead: str) -> None:
    """Refuse work that is estimated to need more memory than a run may take.

    Args:
        place: Key, option or file that asks for the work.
        what: The work, as the subject of a sentence in the plural.
        size: Estimated memory in bytes.
        instead: What the user can do.

    Raises:
        InputError: If the estimate is above `memory_limit()`; the sentence has both figures.

    >>> refuse_memory("jobs", "the numbers of the jobs", 10**6, "take fewer steps")
    """
    limit = memory_limit()
    if size > limit:
        most = f"at most {limit / 1e9:,.1f} GB (half of what this machine, its container or its shell allows) are taken"
        raise InputError(Mistake(place, f"{what} need about {size / 1e9:,.1f} GB of memory, {most}: {instead}"))
