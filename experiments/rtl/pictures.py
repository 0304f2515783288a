"""A picture of the study: what the simulator and the Verilog did over time, one above the other.

Run `python experiments/rtl/pictures.py FOLDER`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import lstmsim
from experiments.rtl.run import DEMO, compared

__all__ = ["both", "draw", "figure"]


def both(path: Path) -> Path:
    """The demo of the README: four LSTMs on two threads, as simulated and as the Verilog did it."""
    with tempfile.TemporaryDirectory() as around:
        lstmsim.plot_rtl(compared(DEMO, f"{around}/design"), path)
    return path


#: What docs show.
figure = both


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    return [both(folder / "rtl.png")]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("rtl")
