"""How far a reader walks who follows one scenario through `lstmsim.simulate`.

    python tools/walk.py [SCENARIO]

The walk lists each function when it is first called. A stay is a run of such functions in one module. A return is a
stay in a module that was left before. The last line counts modules, stays and returns; the lines before it are the
stays. A second simulation is followed, so that imports and caches are not part of the walk.
"""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# so that the tool runs from everywhere
sys.path.insert(0, str(ROOT))

__all__ = ["main", "walk"]


def walk(scenario: str) -> list[tuple[str, list[str]]]:
    """Give the stays: each a module and the functions that are first called in it."""
    import lstmsim

    lstmsim.simulate(scenario)
    seen, path = set(), []

    def follow(frame: FrameType, event: str, _: Any) -> None:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        made = "<" in code.co_qualname or code.co_qualname.startswith("__create_fn__")
        if event == "call" and not made and module.startswith("lstmsim") and code not in seen:
            seen.add(code)
            path.append((module, code.co_qualname))

    sys.setprofile(follow)
    try:
        lstmsim.simulate(scenario)
    finally:
        sys.setprofile(None)
    return [(module, [name for _, name in group]) for module, group in groupby(path, key=lambda each: each[0])]


def main() -> None:
    """Print the stays and their number."""
    parser = argparse.ArgumentParser(description="How far a reader walks through lstmsim.simulate.")
    parser.add_argument("scenario", nargs="?", default=str(ROOT / "experiments" / "scenarios" / "demo.yaml"))
    stays = walk(parser.parse_args().scenario)
    for module, names in stays:
        print(f"{module}: {', '.join(names)}")
    modules = len({module for module, _ in stays})
    print(f"{modules} modules, {len(stays)} stays, {len(stays) - modules} returns")


if __name__ == "__main__":
    main()
