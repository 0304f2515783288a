"""The study of fusion: its claims hold, and what it prints is what stands beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "experiments"
pytestmark = [
    pytest.mark.needs_core,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the experiments are not part of the installed package"),
]


def recorded() -> str:
    return (FOLDER / "fusion" / "expected.md").read_text(encoding="utf-8")


def cells(title: str) -> list[list[str]]:
    """The rows of a section's first table, without its head."""
    section = recorded().split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return [line.strip("| ").split(" | ") for line in lines[1:]]


def cycles(cell: str) -> int:
    return int(cell.split()[0].replace(",", ""))


def gain(cell: str) -> float:
    return float(cell.split("(")[1].rstrip(")"))


@pytest.mark.slow
def test_what_is_simulated_anew_stands_beside_the_script() -> None:
    from experiments.fusion import beside, grid, shapes

    lines = grid.cycles_table("ln-lstm", [(64, 1)]) + grid.bytes_table("ln-lstm", [(64, 1)])
    lines += grid.cycles_table("lstm-tail", [(64, 1)]) + shapes.shapes_table([(4, 2048)])
    lines += beside.kinds_table(beside.KINDS[4:5]) + beside.ablation_table(beside.ABLATED[2:3])
    text = recorded()
    assert len(lines) == 18
    assert [line for line in lines if line not in text] == []


@pytest.mark.long
def test_larger_graphs_and_what_is_refused_stand_beside_the_script() -> None:
    """`tests/cli/test_fuse.py` holds in the usual run what is refused, and what a split rule loses."""
    from experiments.fusion import beside, grid

    lines = grid.cycles_table("ln-lstm", [(512, 1)]) + beside.kinds_table(beside.KINDS[5:6]) + beside.refused()
    text = recorded()
    assert [line for line in lines if line not in text] == []


def test_the_published_split_loses_for_long_rows_and_the_costed_one_wins() -> None:
    rows = cells("Cycles of a layer-normalised LSTM")
    assert len(rows) == 20
    for sizes, *_, paper, barriers, costed, none in rows:
        hidden, batch = map(int, sizes.split(", "))
        # rows of 4 x hidden are split where they are longer than 1,024 and fewer than the blocks of a wave
        split = 4 * hidden > 1024 and batch < 160
        assert (int(barriers) > 0, int(none)) == (split, 0)
        assert gain(costed) > 1.7
        assert gain(paper) < 0.55 if split and batch == 1 else gain(paper) > 0.85
    assert rows[2][4:] == ["77,119 (0.54)", "7", "13,325 (3.11)", "0"]


def test_a_plain_tail_gains_a_launch_and_attention_loses() -> None:
    assert all(1.0 < gain(row[4]) < 1.75 for row in cells("A plain LSTM")[:4])
    losers = [row[0].split()[0] for row in cells("Other graphs") if gain(row[-1]) < 1]
    assert losers == ["attention"]
    assert [row[0].split()[0] for row in cells("Other graphs") if gain(row[-2]) < 1] == ["lstm-layernorm", "attention"]


def test_the_steps_of_the_paper_do_not_all_pay_here() -> None:
    rows = [[cycles(cell) for cell in row[1:]] for row in cells("Mechanism after mechanism")]
    assert sum(mapped > xla for xla, mapped, *_ in rows) == 3
    # sharing threads pays for figure 7 alone, for which it was drawn, and a little where rows are split anyway
    assert [stitch < stored for *_, stored, stitch in rows] == [False, True, False, False, False, True]


@pytest.mark.skipif("LSTMSIM_EXAMPLES" not in os.environ, reason="takes seconds: LSTMSIM_EXAMPLES")
def test_a_picture_is_drawn(tmp_path: Path) -> None:
    from experiments.fusion import pictures

    assert pictures.cycles(tmp_path / "fusion.png", (64, 256), (1,)).stat().st_size > 2000
