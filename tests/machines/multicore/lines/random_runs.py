"""Random machines, spaces and runs, for comparisons of caches."""

from __future__ import annotations

from random import Random

import numpy as np

from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.lines.space import Array, Runs, Space
from tests.machines.multicore.chips import TOY, changed

__all__ = ["random_case"]

#: Sets and ways of small caches: also one way, one set, and sets that are no power of two.
_SETS, _WAYS = (1, 2, 3, 4, 7, 16, 100), (1, 2, 3, 4, 8, 11)


def random_case(seed: int, steps: int = 40) -> tuple[MulticoreCpu, tuple[Array, ...], list[int], list[Runs]]:
    """A machine, a space of arrays of all kinds, and steps that touch it: of each its core and its runs.

    Many lines are touched again, by the same core and by others. Groups and memories may be ragged at the end.
    seed: of the case.
    steps: how many.
    """
    random = Random(seed)
    line = random.choice((16, 48, 64))
    machine = changed(
        TOY,
        cores=random.choice((1, 2, 3, 5, 8, 70)),
        cores_per_llc=random.choice((1, 2, 3, 4)),
        cores_per_domain=random.choice((1, 2, 5, 6)),
        line=line,
        page=line * random.choice((1, 4, 5)),
        llc_hash=random.choice(("bits", "xor")),
        **{
            f"{cache}_{what}": random.choice(some)
            for cache in ("l1", "l2", "llc")
            for what, some in (("sets", _SETS), ("ways", _WAYS))
        },
    )
    space = Space(machine)
    for number in range(random.randint(1, 6)):
        kind = random.choice(({}, {"shared": True}, {"own": True, "domain": random.randrange(machine.domains)}))
        space.add(f"array {number}", random.choice((0, 1, 300, 3000)), **kind)
    cores, runs = [], []
    for _ in range(steps):
        cores.append(random.randrange(len(machine.cores)) if random.random() < 0.7 else 0)
        runs.append(_random_runs(random, space.arrays))
    return machine, space.arrays, cores, runs


def _random_runs(random: Random, arrays: tuple[Array, ...]) -> Runs:
    """Some runs; a step may have none."""
    rows = []
    for _ in range(random.choice((0, 1, 5, 12))):
        array = random.choice(arrays)
        first = random.randint(0, array.size)
        size = min(array.size - first, random.choice((0, 1, 60, 64, 65, 700)))
        rows.append((array.first + first, size, random.random() < 0.4))
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Runs(table[:, 0], table[:, 1], table[:, 2].astype(np.bool_))
