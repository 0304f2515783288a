"""Blocks of each core over time."""

from __future__ import annotations

from lstmsim.report.pictures.figures import plot


def test_the_launch_of_the_first_kernel_is_part_of_the_time() -> None:
    left, _ = plot([(0, 5000, 5600), (1, 5000, 5500)], [10, 9]).axes
    assert left.get_xlim() == (0, 5600)
