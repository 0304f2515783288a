"""Runs an experiment of this folder and prints its summary.

`python experiments/ep_vp_sweep/run.py`, or `python experiments/run.py ep_vp_sweep`. `--small` takes a part of the
experiment, in a moment; `--write` refreshes the expected.md beside the script. A script has `text(small)`, which runs
the experiment and returns the summary.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


def load(name: str) -> ModuleType:
    """The script of an experiment as a module."""
    if str(HERE.parent) not in sys.path:
        sys.path.insert(0, str(HERE.parent))
    return importlib.import_module(f"experiments.{name}.run")


def main(name: str | None = None) -> None:
    """Run the experiment of that name (None: the command line says which one) as the command line asks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    if name is None:
        parser.add_argument("experiment", choices=sorted(each.parent.name for each in HERE.glob("*/run.py")))
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--small", action="store_true", help="a part of it, in a moment")
    size.add_argument("--write", action="store_true", help="refresh expected.md")
    arguments = parser.parse_args()
    chosen = name or arguments.experiment
    text = load(chosen).text(arguments.small)
    print(text)
    if arguments.write:
        (HERE / chosen / "expected.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
