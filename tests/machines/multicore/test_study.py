"""Threads for matrix products as a chip answers for them: the worked examples, reliefs, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lstmsim import engines
from lstmsim.base.errors import InputError
from lstmsim.engines import ENGINES
from lstmsim.machines.gemm import CONDITIONS, Cut, Division, GemmFigures, GemmTask, Product, SubBlocks
from lstmsim.machines.multicore import gemm
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.lines.caches import OWN_LIBRARY
from tests.machines.multicore.chips import TOY
from tests.machines.multicore.drawn import drawn_division, many_cores
from tests.machines.multicore.test_golden import CASES
from tools.contract_gemm import machine_of

#: The preset, as the golden cases write it.
EPYC = machine_of(next(case["machine"] for case in CASES if case["machine"]["name"] == "epyc-7742"))


def figures(division: Division, caches: str = "cold", engine: str = "fast", machine: MulticoreCpu = TOY) -> GemmFigures:
    task = GemmTask(division.product, division.cut.threads, caches)
    work = gemm.lower(machine, task, division)
    return gemm.figures(machine, work, engines.run(work.program, engine))


@pytest.mark.parametrize("engine", ENGINES)
def test_worked_example_b(engine: str) -> None:
    result = figures(Division(Product(2, 4, 16), Cut("MN", 1, 1, 1, 2, 4, 16)), engine=engine)

    assert (result.makespan, result.finish, result.compute, result.buffer_bytes) == (72, (72,), 60, 0)
    assert set(result.waits.values()) == {0}


@pytest.mark.parametrize("engine", ENGINES)
def test_worked_example_c(engine: str) -> None:
    """Two threads add into one block: the second one waits for it; then sub-blocks, buffers, both."""
    chip, cut = TOY, Cut("MK", 1, 1, 2, 2, 4, 16)
    result = figures(Division(Product(2, 4, 32), cut), engine=engine)

    assert (result.makespan, result.finish, result.waits["contention"]) == (171, (72, 161), 92)
    assert result.counts.transfers == 1
    task, cut = GemmTask(Product(4, 4, 32), 2, "cold", packed="each"), replace(cut, mb=4)
    reliefs = {relief: gemm.division(chip, task, cut, relief) for relief in ("none", "sub", "buffer", "both")}
    assert {name: figures(each, engine=engine).makespan for name, each in reliefs.items()} == {
        "none": 238,
        "sub": 180,
        "buffer": 192,
        "both": 191,
    }
    assert figures(reliefs["both"]).buffer_bytes == 2 * 4 * 4 * 4


def test_the_planned_relief_is_that_of_the_plan() -> None:
    chip, task = TOY, GemmTask(Product(4, 8, 64), 2)
    made = gemm.plan(chip, task)

    assert gemm.division(chip, task, made.division.cut) == made.division
    assert gemm.mn_cuts(task)[0].kind == "MN"


@pytest.mark.halved
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("caches", ["cold", "warm"])
def test_engines_agree_on_any_division(seed: int, caches: str) -> None:
    """Threads without steps too; the end of the last one and the barrier make the makespan."""
    division, machine = drawn_division(seed, most=24), many_cores(80)
    fast, reference = (figures(division, caches, engine, machine) for engine in ENGINES)

    assert fast == reference
    assert fast.makespan == max(fast.finish) + machine.barrier(division.cut.threads)
    empty = [
        not all(first < end for first, end in division.cut.owned(thread, division.product))
        for thread in range(division.cut.threads)
    ]
    assert [end == 0 for end in fast.finish] == empty


def test_sub_blocks_that_all_begin_at_the_first_would_wait_longer() -> None:
    """Rotation is what sub-blocks are for: with it threads are in different sub-blocks at a time."""
    machine = many_cores(4)
    cut, product = Cut("MK", 1, 1, 4, 8, 16, 16), Product(8, 16, 64)
    rotated = figures(Division(product, cut, SubBlocks(2, 16, 4, 1)), machine=machine)
    whole = figures(Division(product, cut), machine=machine)

    assert rotated.waits["contention"] < whole.waits["contention"] / 4
    assert rotated.makespan < whole.makespan


@pytest.mark.slow
@pytest.mark.parametrize(
    ("product", "threads"),
    [
        (Product(1, 1, 1), 64),
        (Product(1, 1, 1), 61),
        (Product(3, 50, 7), 64),
        (Product(256, 64, 300), 61),
        (Product(4, 64, 20_000), 64),
    ],
)
def test_unusual_sizes_run_with_every_relief(product: Product, threads: int) -> None:
    """One element, fewer elements of K than threads, a prime number of threads, a very long K."""
    chip = EPYC
    task = GemmTask(product, threads)
    made = gemm.plan(chip, task)
    for relief in ("plan", "none", "both"):
        result = figures(gemm.division(chip, task, made.division.cut, relief), machine=EPYC)

        assert result.makespan == max(result.finish) + EPYC.barrier(threads)
        assert result.counts.l1 == result.counts.l1_hit + result.counts.l2


@pytest.mark.skipif(OWN_LIBRARY.absence is not None, reason="takes a minute without the library of the caches")
@pytest.mark.parametrize(
    ("product", "threads", "blis", "best", "planned"),
    [
        (Product(8, 512, 512), 64, 7228, 4876, 4666),
        (Product(1, 512, 1024), 64, 4796, 4796, 3404),
        pytest.param(Product(64, 32, 8192), 16, 167_000, 92_552, 80_738, marks=pytest.mark.long),
    ],
)
def test_threads_along_k_win_as_measured(product: Product, threads: int, blis: int, best: int, planned: int) -> None:
    """Warm caches, plans as the document has them: most of what they win against BLIS's pair a better pair wins too."""
    chip, task = EPYC, GemmTask(product, threads, "warm", {"cycles": 0, "mn": "blis"}, "each")
    pairs = [figures(gemm.division(chip, task, cut), "warm", machine=EPYC).makespan for cut in gemm.mn_cuts(task)]

    assert (pairs[0], min(pairs)) == (blis, best)
    assert figures(gemm.plan(chip, task).division, "warm", machine=EPYC).makespan == planned


def test_the_executor_in_numbers() -> None:
    division = drawn_division(2)
    draw = np.random.default_rng(1)
    a = draw.integers(-9, 9, (division.product.m, division.product.k))
    b = draw.integers(-9, 9, (division.product.k, division.product.n))

    assert np.array_equal(gemm.computed(TOY, division, a, b), a @ b)


def test_what_threads_say_of_themselves() -> None:
    assert gemm.PARAMETERS["traffic"] == 8.0
    assert {*CONDITIONS, *gemm.PARAMETERS} <= set(gemm.MEANINGS)
    assert gemm.line_bytes(TOY) == 64


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (
            GemmTask(Product(0, 4, 4), 3),
            r"m: must be at least 1, got 0\nthreads: must be at most 2, the number of cores",
        ),
        (GemmTask(Product(4, 4, -1), 0), r"k: must be at least 1, got -1\nthreads: must be at least 1, got 0"),
        (GemmTask(Product(4, 4, 4), 1, settings={"trafic": 1}), "trafic: unknown key; did you mean 'traffic'"),
    ],
)
def test_tasks_that_cannot_be_are_refused(task: GemmTask, said: str) -> None:
    with pytest.raises(InputError, match=said):
        gemm.plan(TOY, task)


def test_words_that_are_not_known_are_refused() -> None:
    chip, product, cut = TOY, Product(4, 4, 4), Cut("MN", 1, 1, 1, 4, 4, 4)

    with pytest.raises(InputError, match="caches: must be cold or warm, got 'hot'"):
        gemm.lower(chip, GemmTask(product, 1, "hot"), Division(product, cut))
    with pytest.raises(InputError, match=r"relief: must be .* got 'bufer'; did you mean 'buffer'"):
        gemm.division(chip, GemmTask(product, 1), cut, "bufer")
