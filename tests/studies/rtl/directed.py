"""Scenarios for what random ones may miss: each is here because of one rule that is easy to build wrong."""

from __future__ import annotations

from typing import Any

from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.model.cell import Cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from tests.machines.column.rtl.own_cells import AFTER_H, COARSER, CROSSED, STATES

__all__ = ["DIRECTED"]

#: Short, and all different, so that a wrong one shows.
LATENCY = {
    "read": 2,
    "multiply": 2,
    "accumulate": 1,
    "convert": 3,
    "activation": 5,
    "elementwise_multiply": 2,
    "elementwise_add": 3,
    "quantize": 2,
    "writeback": 1,
}


def _core(**given: Any) -> dict[str, Any]:
    return {"npe": 32, "ep": 4, "vp": 8, "tail_width": 2, "latency": LATENCY, **given}


def _scenario(jobs: list[dict[str, Any]], *cores: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = [{"name": f"j{number}", **job} for number, job in enumerate(jobs)]
    chip = {"kind": "column-npu", "name": "directed", "frequency_mhz": 100, "cores": list(cores), **more}
    return {"name": "directed", "chip": chip, "jobs": named}


def _model(*layers: tuple[str, int, int], order: str = "layer", **more: Any) -> dict[str, Any]:
    name = "-".join(f"{cell}-{hidden}" for cell, hidden, _ in layers)
    made = [{"cell": cell, "hidden": hidden, "input": width, **more} for cell, hidden, width in layers]
    return {"name": name, "layers": made, "layer_order": order}


def _own(cells: tuple[Cell, ...], jobs: int, **given: Any) -> Scenario:
    """Jobs of a stack of cells of a user's own, on one core."""
    core = ColumnCore(**{"npe": 32, "ep": 4, "vp": 8, "tail_width": 2, "threads": 2, **given})
    sizes = [3, *(7 - place for place in range(len(cells)))]
    layers = tuple(Layer(cell, hidden, width) for cell, hidden, width in zip(cells, sizes[1:], sizes[:-1], strict=True))
    model = Model("own", layers)
    return Scenario(ColumnNpu("directed", 100, (core,)), tuple(Job(f"j{n}", model, 3) for n in range(jobs)))


LSTM, GRU, RNN = _model(("lstm", 5, 3)), _model(("gru", 5, 3)), _model(("rnn", 6, 3))
WIDE = _model(("rnn", 30, 9), ("lstm", 3, 30))
BOTH = {
    "layers": [
        {"cell": "rnn", "hidden": 6, "input": 5, "bidirectional": True},
        {"cell": "rnn", "hidden": 3, "input": 12},
    ]
}

DIRECTED: dict[str, dict[str, Any] | Scenario] = {
    # contexts 0 and 3 are free and 2 is active when two jobs come: the ring takes context 3 first
    "two_at_once": _scenario(
        [
            {"model": RNN, "steps": 1},
            {"model": RNN, "steps": 9},
            {"model": LSTM, "steps": 9},
            {"model": RNN, "steps": 1},
            *({"model": LSTM, "steps": 2, "arrival": at} for at in (61, 61, 90, 90, 90)),
        ],
        _core(threads=4),
    ),
    # the next job issues in the very cycle in which the one before it finishes, and begins with h and c of 0
    "next_in_the_same_cycle": _scenario([{"model": LSTM, "steps": steps} for steps in (2, 1, 3)], _core()),
    # frames come while the job still waits for a context
    "frames_of_who_waits": _scenario(
        [{"model": GRU, "steps": 3}, {"model": RNN, "steps": 6, "arrival": 20, "frame_interval": 25}], _core()
    ),
    # a job whose first pass goes backward waits for its last frame, also for its very first tile
    "backward_from_the_last_frame": _scenario(
        [{"model": _model(("rnn", 6, 3), reverse=True), "steps": 2, "frame_interval": gap} for gap in (5, 9)], _core()
    ),
    # a bank is taken with the first tile and free behind the last turn
    # meanwhile a thread waits for frames: that is named only if no other thread lacks a bank
    "one_bank": _scenario(
        [{"model": RNN, "steps": 2}, {"model": RNN, "steps": 2, "frame_interval": 60}],
        _core(accumulator_banks=1, threads=2, vp=2),
    ),
    "columns_first": _scenario(
        [{"model": _model(("gru", 5, 6), ("lstm", 4, 5)), "steps": 3}] * 2,
        _core(block_order="column", accumulator_banks=3, threads=2),
    ),
    # above the first layer h comes first; three vectors of two kinds are kept for two steps
    "step_order": _scenario(
        [{"model": _model(("lstm", 5, 6), ("gru", 6, 5), ("rnn", 3, 6), order="step"), "steps": 4}] * 2,
        _core(threads=2),
    ),
    # a group of four elements has elements of both directions; 2 * hidden is a multiple of the banks of the memory
    "both_ways": _scenario(
        [{"model": {"name": "both", **BOTH}, "steps": 4, "frame_interval": 9}] * 2, _core(threads=2)
    ),
    "backward_alone": _scenario(
        [
            {
                "model": _model(("lstm", 3, 5), ("rnn", 4, 3), reverse=True),
                "steps": 3,
                "arrival": 5,
                "frame_interval": 17,
            }
        ],
        _core(),
    ),
    # all that may be 0 is 0: the unit's h is visible one cycle behind its turn all the same
    "no_latency": _scenario(
        [{"model": _model(("dense", 6, 5), ("lstm", 4, 6), ("dense", 3, 4)), "steps": 3}] * 3,
        _core(threads=2, latency={"read": 0, "convert": 0, "quantize": 0, "writeback": 0}),
    ),
    "slow_switches": _scenario(
        [{"model": GRU, "steps": 3, "frame_interval": gap} for gap in (0, 31, 7)],
        _core(threads=3, switch_cycles=3, thread_policy="fine"),
    ),
    "sticky_switches": _scenario(
        [{"model": GRU, "steps": 3, "frame_interval": gap} for gap in (0, 31, 7)], _core(threads=3, switch_cycles=2)
    ),
    # who must run on one core waits; who comes later for another core overtakes it
    "pinned": _scenario(
        [
            {"model": LSTM, "steps": 4, "cores": [0]},
            {"model": LSTM, "steps": 2, "cores": [0]},
            {"model": RNN, "steps": 2, "cores": [1]},
            {"model": RNN, "steps": 3},
            {"model": GRU, "steps": 2, "arrival": 30},
            {"model": GRU, "steps": 2, "arrival": 30, "cores": [1, 2]},
        ],
        _core(),
        _core(ep=2, vp=12, threads=2, tail_width=1),
        _core(ep=8, vp=4, threads=2),
    ),
    # the core with the fewest occupied contexts, and of those the first one
    "fewest_first": _scenario(
        [{"model": RNN, "steps": 1 + number % 3, "arrival": 11 * (number // 3)} for number in range(9)],
        *[_core(threads=2)] * 3,
    ),
    "tail_of_the_tree": _scenario(
        [{"model": LSTM, "steps": 2}] * 2, _core(ep=4, tree_inputs=8, cat=4, npe=32, vp=8, threads=2)
    ),
    # a narrow tail: several turns a block, the last one not full; blocks queue up
    "narrow_tail": _scenario(
        [{"model": _model(("rnn", 11, 4)), "steps": 3}] * 3,
        _core(tail_width=3, vp=5, npe=20, threads=3, accumulator_banks=3),
    ),
    "projection": _scenario([{"model": _model(("lstm-projection", 6, 3), projection=3), "steps": 3}], _core()),
    "two_stages": _scenario([{"model": _model(("gru-lbr0", 7, 3)), "steps": 3}] * 2, _core(threads=2)),
    # four threads in the tail: whose block has waited longest goes first
    "oldest_first": _scenario(
        [{"model": _model(("lstm-layernorm", 3, 3)), "steps": 2}] * 4,
        _core(threads=4, vp=4, npe=16, tail_width=1, thread_policy="fine"),
    ),
    # blocks of two threads have all that they wait for in one cycle: the lower thread goes first
    "equal_ages": _scenario(
        [{"model": _model(("lstm-layernorm", hidden, 3)), "steps": 2} for hidden in (4, 2)],
        _core(threads=2, vp=4, latency={}),
    ),
    # no product reads h: blocks wait in the tail for states of the step before
    "states_without_h": _scenario(
        [{"model": _model(("mingru", 6, 3)), "steps": 5, "frame_interval": gap} for gap in (0, 3)],
        _core(threads=2, accumulator_banks=3),
    ),
    "values_across_stages": _own((CROSSED, COARSER), 3),
    "states_across_stages": _own((STATES,), 2, accumulator_banks=3),
    # h is visible before the last segment is through
    "end_behind_h": _own((AFTER_H,), 3, tail_width=1),
    # shares of three and two units; column groups that straddle shares and directions; a link that takes one element
    "rows": _scenario(
        [{"model": BOTH, "steps": 3, "split": "rows", "cores": place} for place in ([2, 0, 1], [1, 2])],
        *[_core(threads=2)] * 3,
        exchange={"latency_cycles": 3, "width": 1},
    ),
    # two vectors of each block, and stages that wait for what others send; threads share the link
    "rows_of_two_stages": _scenario(
        [{"model": _model(("gru-lbr0", 12, 3)), "steps": 6, "split": "rows", "arrival": at} for at in (0, 0, 5)],
        *[_core(threads=3, vp=4, npe=16, thread_policy="fine", accumulator_banks=4)] * 2,
        exchange={"latency_cycles": 1, "width": 1},
    ),
    # members on one core see each other's results as their own; nobody stops the first one
    "layers": _scenario(
        [
            {
                "model": _model(("dense-tanh", 6, 3), ("lstm", 5, 6), ("rnn", 4, 5), order="step"),
                "steps": 4,
                "split": "layers",
                "cores": place,
            }
            for place in ([0, 1, 0], [1, 1])
        ],
        *[_core(threads=3)] * 2,
        exchange={"latency_cycles": 0, "width": 1},
    ),
    # alone on all cores, in company on one
    "auto": _scenario(
        [
            {"model": RNN, "steps": 2, "split": "auto", "arrival": at, "cores": [1, 2, 0]}
            for at in (0, 130, 130, 150, 300)
        ],
        *[_core(threads=1)] * 3,
    ),
    # transfers of several bursts, and blocks that stay between those that come; contexts that share the memory
    "streamed": _scenario(
        [{"model": WIDE, "steps": steps, "arrival": at} for steps, at in ((2, 0), (1, 0), (1, 9))],
        *[_core(threads=2, weight_kib=1, weight_bits=12)] * 2,
        memory={"gb_per_s": 0.15, "latency_cycles": 7, "prefetch_blocks": 2},
    ),
    # one slot, free a cycle behind the last tile of its block; jobs drain while others wait for weights
    "streamed_fast": _scenario(
        [{"model": WIDE, "steps": steps} for steps in (3, 1, 2, 1)],
        _core(threads=2, weight_kib=1, thread_policy="fine"),
        memory={"gb_per_s": 1.5, "latency_cycles": 0, "prefetch_blocks": 1},
    ),
    # a job that waits for two cores keeps the one that is free; a job of another core goes before it
    "kept_back": _scenario(
        [
            {"model": RNN, "steps": 3, "cores": [0]},
            {"model": RNN, "steps": 2, "split": "rows", "cores": [0, 1], "arrival": 1},
            {"model": RNN, "steps": 2, "cores": [1], "arrival": 2},
            {"model": RNN, "steps": 2, "cores": [2], "arrival": 3},
        ],
        *[_core(threads=1)] * 3,
    ),
}
