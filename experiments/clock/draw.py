"""The designs from which the clock model is made: drawn by a seed, in an order that no build has changed.

The first `FIT` of the draw are those on which the model is fitted, the next `HELD_OUT` those by which it is judged. The
former were built more than once while the Verilog was made faster; none of the latter was built before the Verilog and
the features were fixed. Whoever looks at them and then changes either draws new ones.
`SEEDS` of placement are tried for the first design of each kind of cell, too, to see how far placement alone moves the
clock.
"""

from __future__ import annotations

import random
from typing import Any

SEED, FIT, HELD_OUT = 36, 80, 20
#: Further seeds of placement.
SEEDS = (2, 3)

#: Cells of the designs, again and again, so that each part of the draw has its share of them. Most are of the kind
#: that takes least time to build.
CELLS = ("rnn", "lstm", "rnn", "gru", "rnn")
#: What is drawn of each design, and how often a value comes in the list is how likely it is. A design of two lanes
#: takes twice as long to build, and so does a cell with more multipliers: they are drawn less often.
VALUES: dict[str, tuple[Any, ...]] = {
    "layers": (1, 1, 1, 1, 1, 2),
    "hidden": (8, 16, 24, 32),
    "input": (8, 16, 32),
    "ep": (2, 2, 2, 4, 4),
    "vp": (4, 4, 4, 4, 4, 8),
    "threads": (1, 2, 4),
    "tail_width": (1, 1, 1, 1, 2),
    "convert": (4, 5, 6, 7),
    "formats": ("own", "shared"),
    "shift": ("row", "common"),
    "accumulator_bits": (24, 32),
    "jobs": (1, 4, 16),
    "steps": (4, 16, 64),
}
#: Most multipliers of an array, and of all lanes of a tail together: what has more takes minutes to build.
MOST, MOST_OF_TAIL = 32, 17
#: Multipliers of a lane.
LANE = {"lstm": 17, "gru": 13, "rnn": 4}
Keys = dict[str, Any]


def drawn() -> list[Keys]:
    """All designs in the order of the draw, each once."""
    rng, designs = random.Random(SEED), list[Keys]()
    while len(designs) < FIT + HELD_OUT:
        keys: Keys = {"cell": CELLS[len(designs) % len(CELLS)]}
        keys |= {name: rng.choice(values) for name, values in VALUES.items()}
        fits = keys["ep"] * keys["vp"] <= MOST and keys["tail_width"] * LANE[keys["cell"]] <= MOST_OF_TAIL
        if fits and keys not in designs:
            designs.append(keys)
    return designs


def repeated() -> list[int]:
    """The numbers of the designs that are placed with further seeds: the first of each kind of cell."""
    cells = [keys["cell"] for keys in drawn()]
    return sorted(cells.index(each) for each in set(cells))


def scenario_of(keys: Keys) -> dict[str, Any]:
    """The scenario of a design: one core, and jobs of one model that are all there at the start."""
    core = {
        "npe": keys["ep"] * keys["vp"],
        **{name: keys[name] for name in ("ep", "vp", "threads", "tail_width")},
        "latency": {"convert": keys["convert"]},
    }
    layers = [{"cell": keys["cell"], "hidden": keys["hidden"], "input": keys["input"]}]
    layers += [{**layers[0], "input": keys["hidden"]}] * (keys["layers"] - 1)
    return {
        "name": "drawn",
        "chip": {"kind": "column-npu", "name": "drawn", "frequency_mhz": 100, "cores": [core]},
        "precision": {name: keys[name] for name in ("formats", "shift", "accumulator_bits")},
        "jobs": [{"model": {"name": "m", "layers": layers}, "steps": keys["steps"], "count": keys["jobs"]}],
    }
