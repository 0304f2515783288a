"""Picture and table of the study: how near real networks in fixed point come to float64.

Run `python experiments/precision/pictures.py FOLDER` (some minutes).
"""

from __future__ import annotations

import csv
from dataclasses import astuple, fields
from pathlib import Path

from experiments.precision.run import Heard, Points, Voices, results, spelled
from lstmsim.studies.accuracy.picture import plot

__all__ = ["draw", "figure", "picture", "table"]


def table(path: Path, axes: Points) -> Path:
    """All points as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        names = [f"silero_{each.name}" for each in fields(Heard)]
        names += ["words_unchanged", *(f"resemblyzer_{each.name}" for each in fields(Voices))]
        rows.writerow(["axis", "setting", *names])
        for axis, points in axes.items():
            for each in points:
                last = [] if each.voices is None else astuple(each.voices)
                rows.writerow([axis, each.title, *astuple(each.heard), each.unchanged, *last])
    return path


def picture(path: Path, axes: Points) -> Path:
    """The networks over the width of weights and vectors."""
    points = axes["Width of weights and vectors"]
    curves = [
        ("silero-vad-16k", [each.heard.sqnr_db for each in points]),
        ("resemblyzer", [each.voices.sqnr_db for each in points if each.voices]),
    ]
    words = [each.unchanged / len(spelled().phonemes) for each in points]
    bits = [int(each.title.split()[0]) for each in points]
    plot(bits, curves, words, path, title="Real networks in fixed point against float64")
    return path


def figure(path: Path) -> Path:
    """What docs show."""
    return picture(path, results())


def draw(folder: Path) -> list[Path]:
    """Draw everything into a folder; give the files."""
    axes = results()
    return [table(folder / "points.csv", axes), picture(folder / "precision.png", axes)]


if __name__ == "__main__":
    from experiments.run import draw as run

    run("precision")
