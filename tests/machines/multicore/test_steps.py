"""The steps of threads: together they are the product, and each piece of C has one order of visits."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from lstmsim.machines.gemm import Cut, Division, Product, SubBlocks
from lstmsim.machines.multicore.steps import Step, compute_cycles, steps_of
from tests.machines.multicore.chips import TOY, changed
from tests.machines.multicore.drawn import drawn_division, many_cores
from tests.strategies import examples


def spans(step: Step) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    return step.rows, step.columns, step.ks


def test_steps_multiply_each_pair_once() -> None:
    for seed in range(examples(40)):
        division = drawn_division(seed)
        product = division.product
        times = np.zeros((product.m, product.n, product.k), np.int8)
        for step in (step for steps in steps_of(many_cores(64), division) for step in steps):
            assert all(first < end for first, end in spans(step)[: 2 if step.update else 3]), seed
            times[tuple(slice(*span) for span in spans(step))] += 1
        assert times.min() == times.max() == 1, seed


def test_pieces_are_visited_by_number_then_by_place() -> None:
    for seed in range(examples(40)):
        visited_by_number_then_by_place(drawn_division(seed))


def visited_by_number_then_by_place(division: Division) -> None:
    threads = steps_of(many_cores(64), division)
    buffered = division.buffer and division.cut.p_k > 1
    visits: dict[object, list[Step]] = {}
    for step in (step for steps in threads for step in steps):
        assert threads[step.thread][step.number] is step
        if step.update == buffered:
            visits.setdefault((step.rows, step.columns), []).append(step)
        else:
            assert step.after is None
    for piece in visits.values():
        piece.sort(key=lambda step: (step.number, step.thread))
        assert len({step.thread // division.cut.p_k for step in piece}) == 1
        assert piece[0].after is None
        for one, other in pairwise(piece):
            assert other.after == (None if one.thread == other.thread else (one.thread, one.number))


def test_loops_of_blocks_follow_one_another() -> None:
    """Columns by nc, K by kc, rows by mc; B is packed at the first rows."""
    machine = changed(TOY, l2_sets=1, llc_sets=2)  # mc 2, nc 8, kc 16
    (steps,) = steps_of(machine, Division(Product(3, 10, 20), Cut("MN", 1, 1, 1, 3, 10, 20)))

    assert [(*spans(step), step.packs_b) for step in steps] == [
        ((0, 2), (0, 8), (0, 16), True),
        ((2, 3), (0, 8), (0, 16), False),
        ((0, 2), (0, 8), (16, 20), True),
        ((2, 3), (0, 8), (16, 20), False),
        ((0, 2), (8, 10), (0, 16), True),
        ((2, 3), (8, 10), (0, 16), False),
        ((0, 2), (8, 10), (16, 20), True),
        ((2, 3), (8, 10), (16, 20), False),
    ]


def test_threads_of_a_group_begin_at_different_sub_blocks() -> None:
    """Three threads, of whose block (ragged) 4 of 6 sub-blocks exist: they begin at 0, 1 and 2."""
    division = Division(Product(4, 10, 24), Cut("MK", 1, 1, 3, 6, 10, 8), SubBlocks(2, 8, 3, 2))
    first = [[(step.rows[0], step.columns[0]) for step in steps] for steps in steps_of(TOY, division)]

    assert first == [
        [(0, 0), (0, 8), (2, 0), (2, 8)],
        [(0, 8), (2, 0), (2, 8), (0, 0)],
        [(2, 0), (2, 8), (0, 0), (0, 8)],
    ]
    assert steps_of(TOY, division)[0][1].after == (1, 0)


def test_with_a_buffer_only_updates_wait_for_others() -> None:
    division = Division(Product(4, 8, 40), Cut("MK", 1, 1, 2, 4, 8, 32), SubBlocks(2, 8, 2, 1), buffer=True)
    long, short = steps_of(TOY, division)

    # the second thread has one block of K and comes first to its second sub-block
    assert [(step.update, step.rows, step.after) for step in long] == [
        (False, (0, 4), None),
        (False, (0, 4), None),
        (True, (0, 2), None),
        (True, (2, 4), (1, 1)),
    ]
    assert [(step.update, step.rows, step.after) for step in short] == [
        (False, (0, 4), None),
        (True, (2, 4), None),
        (True, (0, 2), (0, 2)),
    ]


def test_a_buffer_of_a_thread_that_is_alone_is_none() -> None:
    division = Division(Product(4, 8, 40), Cut("MN", 2, 1, 1, 2, 8, 40))

    assert steps_of(TOY, division) == steps_of(TOY, replace(division, buffer=True))


def test_threads_without_work_have_no_steps() -> None:
    """One row for seven threads, and a part of K that is empty."""
    rows = Division(Product(1, 1, 1), Cut("MN", 7, 1, 1, 1, 1, 1))
    ks = Division(Product(4, 8, 10), Cut("MK", 1, 1, 4, 4, 8, 8), SubBlocks(2, 8, 2, 1), buffer=True)

    assert [len(steps) for steps in steps_of(many_cores(), rows)] == [1, 0, 0, 0, 0, 0, 0]
    assert [len(steps) for steps in steps_of(many_cores(), ks)] == [3, 3, 0, 0]


def test_packed_weights_are_not_packed_again() -> None:
    division = Division(Product(4, 8, 40), Cut("MN", 1, 1, 1, 4, 8, 40), packed=True)

    assert not any(step.packs_b for step in steps_of(TOY, division)[0])


def test_one_row_packs_nothing_unless_the_machine_has_no_kernel_for_it() -> None:
    """The same steps, with and without the kernel; a block of one row of a larger product is packed as others are."""
    one, two = (Division(Product(m, 8, 40), Cut("MN", m, 1, 1, 1, 8, 40)) for m in (1, 2))
    gemv, packing = (steps_of(changed(TOY, gemv=has), one)[0] for has in (True, False))

    assert [(step.gemv, step.packs_b) for step in gemv] == [(True, False)] * 3
    assert [(step.gemv, step.packs_b) for step in packing] == [(False, True)] * 3
    assert [step._replace(gemv=False, packs_b=True) for step in gemv] == list(packing)
    assert not any(step.gemv for steps in steps_of(TOY, two) for step in steps)


@pytest.mark.parametrize(
    ("step", "numbers", "cycles"),
    [
        # section 8, example B: 32 + 64 elements packed, two tiles of 16 k
        (Step(0, 0, (0, 2), (0, 4), (0, 16), packs_b=True), {}, 24 + 32 + 4),
        # B is packed already
        (Step(0, 0, (0, 2), (0, 4), (0, 16)), {}, 8 + 32 + 4),
        # 3 rows, 5 columns: tiles of 2 and 1 rows, two panels; columns count whole
        (Step(0, 0, (0, 3), (0, 5), (0, 5), packs_b=True), {}, 14 + 2 * (10 + 4 + 5 + 4)),
        # the tile of 1 row takes the time and the room of 2
        (Step(0, 0, (0, 3), (0, 5), (0, 5), packs_b=True), {"exact_rows": False}, 15 + 2 * (10 + 4 + 10 + 4)),
        # each tile begins with a cycle of its own: up(30, 32) twice
        (Step(0, 0, (0, 3), (0, 4), (0, 5)), {"macs_per_cycle": 64}, 4 + 1 + 4 + 1 + 4),
        (Step(0, 0, (0, 3), (0, 5), (0, 0), update=True), {"update_per_cycle": 8}, 2),
        # section 9: one row, two panels of 5 k each, and nothing packed, whatever a tile of one row would take
        (Step(0, 0, (0, 1), (0, 5), (0, 5), gemv=True), {"exact_rows": False}, 2 * (5 + 4)),
    ],
)
def test_compute_cycles(step: Step, numbers: dict[str, Any], cycles: int) -> None:
    assert compute_cycles(changed(TOY, **numbers), step) == cycles
