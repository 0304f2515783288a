"""What accesses cost, against the contract written out in loops; and golden cases of caches by hand."""

from __future__ import annotations

import os
from copy import deepcopy
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel import traffic as cohorts
from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice
from lstmsim.machines.parallel.kernel import CLASSES, KernelShape, Priced, Run, residency
from lstmsim.machines.parallel.lowering.program import traffic_of
from lstmsim.machines.parallel.traffic import priced
from lstmsim.machines.parallel.writing import streams as writer
from tests.machines.parallel.golden_traffic import issues_by_class, loads_by_array
from tests.oracle import parallel_traffic as oracle
from tests.oracle.parallel_traffic import Access, Grid
from tests.parallel_runs import Arrays, device_with, kernel_of, memories, random_arrays, random_device, random_grid
from tools.parallel_outcome import fits

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "30"))
Row = tuple[int, dict[int, int], bool, bool]


def rows_of(each: Priced) -> list[Row]:
    """What each access of a kernel costs, in the order of its rows."""
    numbers = each.numbers
    result = []
    for row in np.flatnonzero(np.isin(each.instructions.kind, [CLASSES.index(op) for op in ("ldg", "stg", "atom")])):
        part = slice(numbers.first_miss[row], numbers.first_miss[row + 1])
        misses = dict(zip(numbers.partition[part].tolist(), numbers.missing[part].tolist(), strict=True))
        assert list(misses) == sorted(misses)
        result.append((int(numbers.sectors[row]), misses, bool(numbers.in_l1[row]), bool(numbers.in_l2[row])))
    return result


def expected(arrays: Arrays, grids: list[Grid], device: ParallelDevice) -> list[list[Row]]:
    """The same by the oracle, for each kernel of the run."""
    own = [deepcopy(grid) for grid in grids]
    oracle.cost(list(arrays), own, device)
    return [
        [
            (access.through, access.misses, access.in_l1, access.in_l2)
            for block in grid.blocks
            for stream in block
            for access in stream
            if access
        ]
        for grid in own
    ]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 40, 1 << 20]))
def test_random_runs_cost_what_the_contract_written_out_says(seed: int, batch: int) -> None:
    random = Random(seed)
    device, arrays = random_device(random), random_arrays(random)
    texts = [random_grid(random, arrays, device.sms) for _ in range(random.randint(1, 3))]
    order = [random.randrange(len(texts)) for _ in range(random.randint(1, 5))]
    kernels = [kernel_of(grid, arrays) for grid in texts]
    run = Run(memories(arrays), tuple(kernels[place] for place in order))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohorts, "_BATCH", batch)
        result = priced(run, device)
    assert [rows_of(each) for each in result] == expected(arrays, [texts[place] for place in order], device)
    for place, kernel in zip(order, run.kernels, strict=True):
        assert residency(kernel.shape, device) == oracle.resident_of(texts[place], device)


def one_warp(*accesses: Access | None) -> Grid:
    return Grid(1, 32, 0, set(), [-1], [[list(accesses)]])


def costs(grids: list[Grid], arrays: Arrays, device: ParallelDevice) -> list[list[Row]]:
    """Costs of the kernels of a run, each grid a kernel of its own."""
    return [rows_of(each) for each in priced(Run(memories(arrays), tuple(kernel_of(g, arrays) for g in grids)), device)]


def test_a_second_load_of_a_warp_is_answered_by_l1() -> None:
    grid = one_warp(Access("ldg", "a", [0, 1]), Access("ldg", "a", [1, 2]), Access("ldg", "a", [0]))
    assert costs([grid], [("a", 100)], device_with(partitions=1)) == [
        [(2, {0: 2}, False, False), (1, {0: 1}, True, False), (0, {}, True, False)]
    ]


def test_l1_answers_nothing_of_an_array_that_the_kernel_writes() -> None:
    grid = one_warp(Access("ldg", "a", [0]), Access("ldg", "a", [0]), Access("stg", "a", [9]))
    (rows,) = costs([grid], [("a", 100)], device_with(partitions=1))
    assert rows[1] == (1, {}, False, True)


def test_an_array_larger_than_l2_keeps_an_even_share_of_its_lines_counted_from_its_start() -> None:
    # 8 lines of 4 sectors, all touched: f = 1024; L2 has 512: line l is kept if l * 512 mod 1024 < 512: every second.
    device = device_with(l2_bytes=512, partitions=1, l1_bytes=0)
    loads = [Access("ldg", "b", [4 * line]) for line in range(8)] * 2
    touch_all = Access("ldg", "b", list(range(32)))
    (rows,) = costs([one_warp(touch_all, *loads)], [("a", 70), ("b", 256)], device)
    # The first access touches every sector first; later only lines that are not kept miss.
    assert rows[0] == (32, {0: 32}, False, False)
    assert [misses for _, misses, _, _ in rows[1:]] == [{}, {0: 1}] * 8


def test_the_partition_of_a_line_follows_from_its_address_not_from_its_array() -> None:
    grid = one_warp(Access("ldg", "b", [0, 4, 8]))
    # a takes one line, b begins at 256: line 2 of the device.
    assert costs([grid], [("a", 3), ("b", 100)], device_with(partitions=3)) == [[(3, {0: 1, 1: 1, 2: 1}, False, False)]]


def test_an_atomic_serves_every_lane_and_never_misses() -> None:
    grid = one_warp(Access("atom", "a", [0, 0, 0, 5]), Access("ldg", "a", [0]))
    (rows,) = costs([grid], [("a", 100)], device_with())
    assert rows == [(2, {0: 3, 1: 1}, False, False), (1, {}, False, True)]


def test_kernels_find_what_earlier_ones_touched_only_if_the_run_fits() -> None:
    grid = one_warp(Access("ldg", "a", [0, 1]))
    again = [(2, {}, False, True)]
    first = [(2, {0: 2}, False, False)]
    for device, rows in (
        (device_with(l2_bytes=64), [first, again]),
        (device_with(l2_bytes=63), [[(2, {0: 2}, False, False)]] * 2),
        (device_with(l2_bytes=64, l2_state="warm"), [again, again]),
    ):
        # More than L2 holds: the array is larger than L2, of its only line all is kept.
        assert costs([grid, grid], [("a", 16)], device) == rows
        run = Run(memories([("a", 16)]), (kernel_of(grid, [("a", 16)]),))
        assert fits(run, device) == (device.l2_bytes >= 64)


def test_a_kernel_that_runs_again_is_priced_once_for_each_state() -> None:
    grid, arrays = one_warp(Access("ldg", "a", [0])), [("a", 8)]
    kernel, other = kernel_of(grid, arrays), kernel_of(grid, arrays)
    one, two, three, four = priced(Run(memories(arrays), (kernel, kernel, other, kernel)), device_with())
    assert two is four
    assert one is not two
    assert one.instructions is two.instructions is kernel.instructions
    assert rows_of(three) == rows_of(two) != rows_of(one)


def test_a_sector_behind_the_end_of_its_array_is_refused() -> None:
    grid = one_warp(Access("ldg", "a", [2]))
    with pytest.raises(ValueError, match="kernel 'k' touches what lies behind the end of array 0"):
        costs([grid], [("a", 16), ("b", 99)], device_with())


def test_an_array_with_more_elements_than_lanes_can_name_is_refused() -> None:
    with pytest.raises(InputError, match="array 'a' has 2147483648 elements, at most 2147483647 can be simulated"):
        fits(Run(memories([("a", 1 << 31)]), ()), device_with())


def test_a_block_that_no_multiprocessor_has_room_for_is_refused() -> None:
    device = device_with()
    assert residency(KernelShape("k", 4, 40, 8192), device) == 12
    assert residency(KernelShape("k", 4, 0, 0), device) == 16
    # 33 registers of 32 lanes are 1056: 1280 in whole pieces.
    assert residency(KernelShape("k", 2, 33), device) == 25
    for shape, name, needed in (
        (KernelShape("k", 65, 1), "max_warps", 65),
        (KernelShape("k", 4, 600), "registers", 76800),
        (KernelShape("k", 1, 32, 98305), "shared_bytes", 98560),
    ):
        with pytest.raises(InputError, match=f"{name}: a block of kernel 'k' needs {needed}, a multiprocessor has"):
            residency(shape, device)
    with pytest.raises(InputError, match="max_blocks"):
        residency(KernelShape("k", 1), SimpleNamespace(core=ParallelCore(max_blocks=0)))  # type: ignore[arg-type]


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(st.integers(0, 2**32))
def test_the_traffic_of_a_run_is_the_sum_over_its_accesses(seed: int) -> None:
    random = Random(seed)
    device, arrays = random_device(random), random_arrays(random)
    texts = [random_grid(random, arrays, device.sms) for _ in range(2)]
    kernels = [kernel_of(grid, arrays) for grid in texts]
    order = [0, 1, 0, 0]
    run = Run(memories(arrays), tuple(kernels[place] for place in order))
    each = [deepcopy(texts[place]) for place in order]
    oracle.cost(arrays, each, device)
    accesses = [access for grid in each for block in grid.blocks for stream in block for access in stream if access]
    loads = [access for access in accesses if access.op == "ldg"]
    traffic = traffic_of(run, priced(run, device))
    assert (traffic.counts["load_requests"], traffic.counts["requests"]) == (len(loads), len(accesses))
    assert traffic.counts["l2_sectors"] == sum(access.through for access in accesses)
    assert traffic.counts["dram_sectors"] == sum(
        sum(access.misses.values()) for access in accesses if access.op != "atom"
    )
    for name, _ in arrays:
        own = [access for access in loads if access.array == name]
        found = sum(len(access.sectors) - access.through for access in own)
        dram = sum(sum(access.misses.values()) for access in own)
        through = sum(access.through for access in own)
        assert loads_by_array(traffic)[name] == [len(own), through, found, dram]
    assert traffic.counts["l1_sectors"] == sum(load.sectors["L1"] for load in traffic.loads)


def test_issues_count_each_time_that_a_kernel_runs() -> None:
    arrays = [("a", 8)]
    kernel = kernel_of(one_warp(None, Access("ldg", "a", [0])), arrays)
    assert issues_by_class(priced(Run(memories(arrays), (kernel,) * 3), device_with())) == {"alu": 3, "ldg": 3}


def test_a_product_with_a_vector_by_hand() -> None:
    # Two rows of 130 elements, a warp each, two elements a lane. Warp 1's row begins in the middle of warp 0's last
    # sector; warp 0 has loaded all of x when warp 1 does.
    lane, warp = np.arange(32), np.arange(2)[:, None]
    grid = writer.Grid(32, {"W": 0, "x": 1, "y": 2})
    warps = grid.warps([0, 1])
    start, last = warps.alu(4), None
    for k in range(0, 130, 64):
        on = k + 2 * lane < 130
        loads = [warps.ldg("W", 130 * warp + k + 2 * lane, on, [start], 2)]
        loads.append(warps.ldg("x", k + 2 * lane, on, [start], 2))
        last = warps.fma(1, [*loads, warps.fma(1, [*loads, last])])
    warps.stg("y", warp, lane == 0, [last])
    kernel = grid.kernel(KernelShape("product", 4), [-1])
    run = Run(memories([("W", 260), ("x", 130), ("y", 2)]), (kernel,))
    (each,) = priced(run, device_with())
    first, second = np.split(np.flatnonzero(kernel.array >= 0), 2)
    assert kernel.lsu[first].tolist() == [2, 2, 2, 2, 1, 1, 1]
    assert kernel.lsu[second].tolist() == [3, 2, 3, 2, 1, 1, 1]
    rows = rows_of(each)
    assert rows[:7] == [
        (8, {0: 4, 1: 4}, False, False),
        (8, {0: 4, 1: 4}, False, False),
        (8, {0: 4, 1: 4}, False, False),
        (8, {0: 4, 1: 4}, False, False),
        (0, {}, True, False),  # Warp 1 loads this sector at an earlier place of its stream.
        (1, {0: 1}, False, False),
        (1, {0: 1}, False, False),
    ]
    assert [row[:3] for row in rows[7:]] == [
        (9, {0: 5, 1: 4}, False),
        (0, {}, True),
        (8, {0: 4, 1: 4}, True),
        (0, {}, True),
        (0, {}, True),
        (0, {}, True),
        (1, {}, False),
    ]
    traffic = traffic_of(run, (each,))
    assert loads_by_array(traffic) == {"W": [6, 33, 3, 33], "x": [6, 17, 17, 17], "y": [0, 0, 0, 0]}
    assert (traffic.counts["l2_sectors"], traffic.counts["dram_sectors"]) == (52, 51)
