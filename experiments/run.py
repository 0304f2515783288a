"""Runs an experiment of this folder and prints its summary.

`python experiments/ep_vp_sweep/run.py`, or `python experiments/run.py ep_vp_sweep`. `--small` takes a part of the
experiment, in a moment; `--write` refreshes the expected.md and the figure.png beside the script, which docs show. A
script has `text(small)`, which runs the experiment and returns the summary. Nothing else is written: pictures, and
tables beside them, are drawn by `python experiments/deepbench/pictures.py FOLDER`. Such a script has `figure(path)`,
which draws the one that docs show, and `draw(folder)`, which gives the files that it wrote, if there are others.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


def load(name: str, script: str = "run") -> ModuleType:
    """A script of an experiment as a module."""
    if str(HERE.parent) not in sys.path:
        sys.path.insert(0, str(HERE.parent))
    return importlib.import_module(f"experiments.{name}.{script}")


def main(name: str | None = None) -> None:
    """Run the experiment of that name (None: the command line says which one) as the command line asks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    if name is None:
        parser.add_argument("experiment", choices=sorted(each.parent.name for each in HERE.glob("*/run.py")))
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--small", action="store_true", help="a part of it, in a moment")
    size.add_argument("--write", action="store_true", help="refresh expected.md, and figure.png if there is one")
    arguments = parser.parse_args()
    chosen = name or arguments.experiment
    script = HERE / chosen / "pictures.py"
    drawn = script.exists()
    with readers_may_leave():
        text = load(chosen).text(arguments.small)
        if arguments.write:
            (HERE / chosen / "expected.md").write_text(text, encoding="utf-8")
            if drawn:
                write_figure(chosen)
        print(text)
    if drawn:
        print(f"pictures: `python {os.path.relpath(script)} FOLDER` draws them", file=sys.stderr)


def write_figure(name: str) -> Path:
    """Draw the figure of the experiment of that name, in few colours, which take less room."""
    from PIL import Image

    path: Path = load(name, "pictures").figure(HERE / name / "figure.png")
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)
    path.with_suffix(".csv").unlink(missing_ok=True)
    return path


def draw(name: str) -> None:
    """Draw the pictures of the experiment of that name into the folder that the command line names."""
    module = load(name, "pictures")
    parser = argparse.ArgumentParser(description=(module.__doc__ or "").splitlines()[0])
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where the files go; made if it is not there")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with readers_may_leave():
        every = getattr(module, "draw", None)
        for path in [module.figure(folder / "figure.png")] if every is None else every(folder):
            print(f"wrote {path}")


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """End quietly where a reader of the output, like `head`, has seen enough."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would fail once more at the end of the program.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
