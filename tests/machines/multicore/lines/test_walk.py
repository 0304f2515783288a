"""Runs of steps that the worked examples do not have: rows of A from two arrays, packed weights, buffers; the space."""

from __future__ import annotations

import pytest

from lstmsim.machines.gemm import Cut, Division, Product
from lstmsim.machines.multicore.lines.space import Array, Places, Runs, Segment, Space, operands, runs_of
from lstmsim.machines.multicore.steps import Step
from tests.machines.multicore.chips import TOY


def of(runs: Runs) -> list[tuple[int, int, bool]]:
    return list(zip(runs.address.tolist(), runs.size.tolist(), runs.write.tolist(), strict=True))


def laid(division: Division, **kind: object) -> tuple[Places, dict[str, Array]]:
    space = Space(TOY)
    places = operands(space, TOY, division, **kind)  # type: ignore[arg-type]
    return places, {array.name: array for array in space.arrays}


def test_weights_that_were_packed_and_a_row_of_a_from_two_arrays() -> None:
    """K = 24 is x (10 elements) and h (14); the step has elements 8 to 24, of two rows; N = 6 has a padded panel."""
    division = Division(Product(2, 6, 24), Cut("MN", 1, 1, 1, 2, 6, 24), packed=True)
    places, arrays = laid(division, job=True)
    assert arrays["B"].size == 24 * 8 * 4, "two panels of four columns"
    assert arrays["C"].shared, "in a job C is shared whatever the cut is"
    b, c, packed_a = (arrays[name].first for name in ("B", "C", "packed A of 0"))
    places = places._replace(a=(Segment(0, 10, 100_000, 40), Segment(10, 24, 200_000, 80)))
    whole, panel = 24 * 4 * 4, 16 * 4 * 4
    assert of(runs_of(TOY, division, places, Step(0, 0, (0, 2), (0, 6), (8, 24)))) == [
        *((100_000 + 32, 8, False), (200_000, 56, False)),
        *((100_000 + 32 + 40, 8, False), (200_000 + 80, 56, False)),
        (packed_a, 128, True),
        *((b + 8 * 4 * 4, panel, False), (packed_a, 128, False), (c, 16, True), (c + 24, 16, True)),
        *((b + whole + 8 * 4 * 4, panel, False), (packed_a, 128, False), (c + 16, 8, True), (c + 40, 8, True)),
    ]
    only_h = runs_of(TOY, division, places, Step(0, 0, (1, 2), (0, 6), (16, 24)))
    assert of(only_h)[0] == (200_000 + 80 + 24, 32, False)


@pytest.mark.parametrize("packed", [False, True])
def test_one_row_is_multiplied_where_a_and_b_lie(packed: bool) -> None:
    """One row, elements 8 to 24 of K from two arrays; N = 6: rows of B one by one, or two panels of four columns."""
    division = Division(Product(1, 6, 24), Cut("MN", 1, 1, 1, 1, 6, 24), packed=packed)
    places, arrays = laid(division)
    b, c = arrays["B"].first, arrays["C"].first
    places = places._replace(a=(Segment(0, 10, 100_000, 40), Segment(10, 24, 200_000, 80)))
    rows = [(b + k * 24, 24, False) for k in range(8, 24)]
    panels = [(b + (panel * 24 + 8) * 16, 256, False) for panel in range(2)]
    assert of(runs_of(TOY, division, places, Step(0, 0, (0, 1), (0, 6), (8, 24), gemv=True))) == [
        *((100_000 + 32, 8, False), (200_000, 56, False)),
        *(panels if packed else rows),
        (c, 24, True),
    ]


def test_a_buffer_is_added_into_in_place_of_c_and_then_added_into_c() -> None:
    """Thread 3 of four has rows 4 to 7 and the second half of K; its buffer has 4 rows of 8 columns."""
    division = Division(Product(7, 8, 32), Cut("MK", 2, 1, 2, 4, 8, 16), buffer=True)
    places, arrays = laid(division)
    assert (arrays["C"].shared, arrays["buffer of 3"].own, arrays["buffer of 3"].size) == (True, True, 128)
    buffer, c = arrays["buffer of 3"].first, arrays["C"].first
    written = [each for each in of(runs_of(TOY, division, places, Step(3, 0, (6, 7), (0, 8), (16, 32)))) if each[2]]
    assert written[1:] == [(buffer + 2 * 32, 16, True), (buffer + 2 * 32 + 16, 16, True)]
    assert of(runs_of(TOY, division, places, Step(3, 1, (5, 7), (4, 8), (0, 0), update=True))) == [
        *((buffer + 32 + 16, 16, False), (c + 5 * 32 + 16, 16, True)),
        *((buffer + 64 + 16, 16, False), (c + 6 * 32 + 16, 16, True)),
    ]


def test_a_buffer_that_is_not_there() -> None:
    division = Division(Product(2, 4, 16), Cut("MN", 1, 1, 1, 2, 4, 16), buffer=True)
    with pytest.raises(ValueError, match="thread 0 has no buffer: K is not cut"):
        runs_of(TOY, division, laid(division)[0], Step(0, 0, (0, 2), (0, 4), (0, 16), packs_b=True))


def test_blocks_larger_than_the_product_have_room_for_the_largest_step() -> None:
    """mc, nc and kc of this machine are 32, 256 and 16: packed A has at most 32 rows of 16, packed B 256 columns."""
    _, arrays = laid(Division(Product(100, 1000, 40), Cut("MN", 1, 1, 1, 100, 1000, 40)))
    assert [arrays[name].size for name in ("packed A of 0", "packed B of 0")] == [32 * 16 * 4, 256 * 16 * 4]
    _, arrays = laid(Division(Product(3, 5, 7), Cut("MN", 1, 1, 1, 3, 5, 7)))
    assert [arrays[name].size for name in ("packed A of 0", "packed B of 0")] == [4 * 7 * 4, 8 * 7 * 4]
