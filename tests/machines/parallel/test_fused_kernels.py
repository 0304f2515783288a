"""Fused kernels on the device: streams worked out by hand, figures, settings; docs/fusion.md, section 10.

`test_fused_oracle.py` compares the streams of random graphs, the golden cases compare cycles.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lstmsim import engines, load_chip
from lstmsim.base.errors import DeadlockError, InputError
from lstmsim.machines.parallel import fusion
from lstmsim.machines.parallel.fused import kernels as writing
from lstmsim.machines.parallel.fused.kernels import fused_run
from lstmsim.machines.parallel.kernel import CLASSES, Kernel
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.library import row_sum
from lstmsim.model.fusion.plan import FusionDevice
from lstmsim.model.fusion.planner import planned
from lstmsim.program.accounts import totals_of
from lstmsim.program.unflatten import tabled
from tests.model.fusion.random_graphs import random_graph

CHIP, V100 = load_chip("v100"), FusionDevice()
#: Fewer processors, so that the slow engine is quick.
SMALL = replace(CHIP, cores=CHIP.cores[:2], launch=100)


def kernels(graph: Graph, mode: str = "stitch", device: FusionDevice = V100):
    """The planned kernels of a graph."""
    return kernels_of(graph, planned(graph, device), device, mode)


def stream(kernel: Kernel, number: int) -> list[str]:
    """A stream in words: class, what it waits for, sectors."""
    text, words = kernel.instructions, []
    for row in range(text.first[number], text.first[number + 1]):
        waits = text.wait[text.first_wait[row] : text.first_wait[row + 1]].tolist()
        sectors = kernel.sector[kernel.first_sector[row] : kernel.first_sector[row + 1]].tolist()
        words.append(" ".join(map(str, [CLASSES[text.kind[row]], *waits, *(["at", *sectors] if sectors else [])])))
    return words


def cycles(graph: Graph, mode: str, device: FusionDevice) -> int:
    """What the kernels of a graph take."""
    work = fusion.lower(CHIP, graph, kernels(graph, mode, device), mode)
    return fusion.figures(CHIP, work, engines.totals(work.flat)).makespan


def test_a_row_of_two_warps() -> None:
    """The second warp leaves its sum in scratch; the first one adds them: one shuffle, since two are halved once."""
    (kernel,) = fused_run(row_sum(1, 64), kernels(row_sum(1, 64)), CHIP).kernels
    place, halving = 1, ["ldg at 0 1 2 3", "fma 0"]
    for _ in range(5):
        halving += [f"shfl {place}", f"fma {place + 1}"]
        place += 2
    assert stream(kernel, 0) == [*halving, "sts 11", "bar 12", "lds", "shfl 14", "fma 15", "stg 16 at 0"]
    assert stream(kernel, 1) == ["ldg at 4 5 6 7", *halving[1:], "sts 11", "bar 12"]


def test_values_stay_as_long_as_a_thread_has_room_for_them() -> None:
    """A sum reads exp(x) as its row maximum does not: x stays in registers, or is loaded anew by a long row."""

    def nodes(length: int) -> Graph:
        x, m = Node("x", "input", (), (1, length)), Node("m", "reduce_max", ("x",), (1,), (1,))
        b, d = Node("b", "broadcast", ("m",), (1, length), (0,)), Node("d", "subtract", ("x", "b"), (1, length))
        return Graph("g", (x, m, b, d, Node("s", "reduce_sum", ("d",), (1,), (1,))), ("s",))

    def loads(length: int) -> int:
        # of two: the row has a second element for each thread
        device = FusionDevice(block_threads=32, split_length=1 << 20, register_elements=1)
        (kernel,) = fused_run(nodes(length), kernels(nodes(length), "stitch", device), CHIP).kernels
        return stream(kernel, 0).count("ldg at 0 1 2 3")

    assert (loads(32), loads(64)) == (1, 2)


@pytest.mark.parametrize("mode", ["stitch", "xla"])
def test_blocks_may_be_written_together_or_one_by_one(mode, monkeypatch) -> None:
    device = FusionDevice(sms=2, split_length=16, shared_limit=256)
    for seed in (1, 3, 6):
        graph = random_graph(seed)
        some = kernels(graph, mode, device)
        whole = fused_run(graph, some, SMALL).kernels
        with monkeypatch.context() as patch:
            patch.setattr(writing, "_WARPS", 1)
            pieces = fused_run(graph, some, SMALL).kernels
        for one, other in zip(whole, pieces, strict=True):
            assert np.array_equal(one.instructions.wait, other.instructions.wait)
            assert np.array_equal(one.instructions.kind, other.instructions.kind)
            assert np.array_equal(one.sector, other.sector)


def test_engines_agree_and_figures_add_up() -> None:
    device = fusion.numbers(SMALL, {"split_length": 16})
    graph = random_graph(1)
    for mode in ("stitch", "tvm"):
        work = fusion.lower(SMALL, graph, kernels(graph, mode, device), mode)
        program = tabled(work.flat, work.names)
        fast = fusion.figures(SMALL, work, engines.totals(work.flat))
        assert fast == fusion.figures(SMALL, work, totals_of(program, engines.run(program, "reference")))
        assert sum(fast.accounts.values()) == fast.account_cycles == 8 * fast.makespan
        assert len(fast.blocks) == sum(each.blocks for each in fast.kernels)
        assert fast.makespan == fast.kernels[-1].ends


def test_a_split_row_costs_a_grid_barrier() -> None:
    """[4 x 2048] on V100: two thousand elements are not worth one, which `costed` knows."""
    graph = row_sum(4, 2048)
    assert cycles(graph, "stitch", FusionDevice()) == 16594
    assert cycles(graph, "stitch", FusionDevice(split_rule="costed")) == cycles(graph, "xla", FusionDevice()) == 6543


def test_blocks_that_meet_must_be_there_at_once() -> None:
    (one,) = kernels(row_sum(4, 2048))
    with pytest.raises(DeadlockError):
        fusion.lower(SMALL, row_sum(4, 2048), [one], "too many")


def test_more_nodes_than_a_byte_counts() -> None:
    nodes = [Node("n0", "input", (), (32,))]
    nodes += [Node(f"n{number}", "tanh", (f"n{number - 1}",), (32,)) for number in range(1, 141)]
    graph = Graph("chain", tuple(nodes), ("n140",))
    run = fused_run(graph, kernels(graph, "op"), CHIP)
    assert [int(kernel.array.max()) for kernel in run.kernels] == list(range(1, 141))
    (kernel,) = fused_run(graph, kernels(graph), CHIP).kernels
    assert stream(kernel, 0)[-2:] == ["sfu 139", "stg 140 at 0 1 2 3"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"split_rul": "paper"}, "is no setting of the pass; did you mean 'split_rule'"),
        ({"shared_limit": 98305}, "from 0 to 98304, got 98305"),
        ({"element_threads": 48}, "must be a multiple of 32"),
        (
            {"block_threads": 1024, "assumed_registers": 65},
            "^block_threads: a block of 1024 threads with 65 registers each does not fit an SM, which has 65536$",
        ),
        (
            {"assumed_registers": 255},
            "^assumed_registers: 255 for each of the 1024 threads of a block do not fit an SM, which has 65536: "
            "expected at most 64, or fewer block_threads$",
        ),
        (
            {"block_threads": 2048},
            r"^block_threads: must be a whole number from 32 to 1024, got 2048; a block of CUDA has no more threads "
            r"\(CUDA C Programming Guide\)$",
        ),
        ({"element_threads": 1056}, "^element_threads: must be a whole number from 32 to 1024, got 1056; a block of"),
        ({"block_threads": 0}, "^block_threads: must be a whole number from 32 to 1024, got 0$"),
        ({"split_length": True}, "must be a whole number"),
    ],
)
def test_settings_that_do_not_fit(settings, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        fusion.numbers(CHIP, settings)


def test_a_chip_without_room_for_a_warp_is_blamed_itself() -> None:
    core = replace(CHIP.cores[0], registers=512)
    with pytest.raises(InputError) as refused:
        fusion.numbers(replace(CHIP, cores=(core,)), {})
    assert str(refused.value) == (
        "registers: a block of 32 threads with 32 registers each does not fit an SM, which has 512; "
        "expected at least 1024"
    )


def test_numbers_follow_the_chip() -> None:
    assert fusion.numbers(CHIP, {}) == FusionDevice()
    edge = fusion.numbers(load_chip("edge"), {"split_rule": None})
    assert (edge.sms, edge.turn_cycles, edge.grid_cycles, edge.split_rule) == (8, 601, 3830, "paper")
    core = replace(CHIP.cores[0], max_warps=16)
    few = fusion.numbers(replace(CHIP, cores=(core,) * 4), {})
    assert (few.block_threads, few.wave(few.block_threads, 0)) == (512, 4)
