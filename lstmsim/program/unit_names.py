"""The rule for the names of units, which become names of rows in timelines, traces and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lstmsim.program.program import Core

#: The name of the unit of a memory that cores share. No unit of a core has it.
MEMORY = "memory"

#: Trace formats use names as words in lines, paths and identifiers. So a name is one that all of them can hold.
_UNIT = re.compile(r"(?!array$|thread$)[a-z][a-z0-9_]{0,29}")
_RULE = "a name is 1 to 30 lower-case letters, digits and _, begins with a letter, and is not array or thread"


def beside_cores(kind: str) -> str:
    """What a unit of that name is beside the cores that share it: a memory or a link; empty if it belongs to a core.

    >>> beside_cores("link0"), beside_cores("memory"), beside_cores("tail")
    ('link', 'memory', '')
    """
    word = kind.rstrip("0123456789")
    return word if word == "link" or kind == MEMORY else ""


def is_unit(kind: str) -> bool:
    """Whether a unit other than a core's main unit may have that name, which its row in timelines has as kind."""
    return _UNIT.fullmatch(kind) is not None


def name_faults(cores: tuple[Core, ...]) -> Iterator[str]:
    """Yield what is wrong with the names of the units of cores.

    The accounted unit of a core, whose row is called `array`, may have that name. Units of one core have different
    names. Only a shared core may have a unit called `memory`, or `link` and a number.
    """
    for index, core in enumerate(cores):
        names = [unit.name for unit in core.units]
        for place, name in enumerate(names):
            accounted = place == core.accounted and not core.shared
            if not is_unit(name) and not (accounted and name == "array"):
                yield f"core {index}: no unit can be called {name!r}: {_RULE}"
            elif beside_cores(name) and not core.shared:
                text = f"which is what a {beside_cores(name)} shared by cores is called"
                yield f"core {index}: no unit can be called {name!r}, {text}"
            elif names.index(name) < place:
                yield f"core {index}: two units are called {name!r}"
