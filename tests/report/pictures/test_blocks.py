"""Blocks of each core over time."""

from __future__ import annotations

from lstmsim.report.pictures.figures import plot


def test_the_launch_of_the_first_kernel_is_part_of_the_time() -> None:
    left, _ = plot([(0, 5000, 5600), (1, 5000, 5500)], [10, 9]).axes
    assert left.get_xlim() == (0, 5600)


def test_cores_without_a_block_have_no_row() -> None:
    left, right = plot([(5, 0, 600), (70, 0, 500)], [0] * 5 + [10] + [0] * 64 + [9] + [0] * 9).axes
    assert left.get_ylim() == (1.5, -0.5)
    assert left.get_title(loc="left") == "\n78 of 80 cores run no block, and have no row"
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["5", "70"]
    assert [bar.get_width() for bar in right.patches] == [10, 9]
