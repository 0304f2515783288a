"""Chips and jobs made in Python are held to the same limits as those from files."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from lstmsim import ColumnCore, ColumnNpu, InputError, Job, Latency, Layer, Model, Scenario, cell, run
from lstmsim.machines.column.npu import Delta, Exchange, Memory

CORE = ColumnCore(npe=64, ep=4, vp=16)
MODEL = Model("m", (Layer(cell("lstm"), 8, 4),))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"vp": 17}, "cores.0.vp: ep * vp must not exceed npe: 4 * 17 = 68 > 64"),
        ({"tail_width": 0}, "cores.0.tail_width: must be at least 1, got 0"),
        ({"threads": 0}, "cores.0.threads: must be at least 1, got 0"),
        ({"switch_cycles": -1}, "cores.0.switch_cycles: must be at least 0, got -1"),
        ({"thread_policy": "eager"}, "cores.0.thread_policy: must be coarse or fine, got 'eager'"),
        ({"latency": Latency(add=0)}, "cores.0.latency.add: must be at least 1, got 0"),
        ({"cat": 3}, "cores.0.cat: must be a power of two"),
        ({"cat": 2}, "cores.0.cat: needs tree_inputs"),
        (
            {"tree_inputs": 16, "cat": 2},
            "an adder tree of 16 inputs with CAT-2 gives ep 16, 8; got 4: set `tree_inputs` to 4, "
            "or to null with `cat` 1, which allows any ep",
        ),
        (
            {"tree_inputs": 128, "cat": 32},
            "cores.0.tree_inputs: an adder tree of 128 inputs needs as many multipliers; npe is 64",
        ),
    ],
)
def test_a_core_that_cannot_be_built_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        ColumnNpu("c", 260, (replace(CORE, **changes),))  # type: ignore[arg-type]
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        ({"steps": 0}, "steps: must be at least 1, got 0"),
        ({"arrival": -1}, "arrival: must be at least 0, got -1"),
        ({"cores": (1,)}, "there is no core 1"),
        ({"batch": 65}, "batch: must be at most 64 on a column-wise NPU, got 65"),
        ({"steps": 10**9}, "takes up to 13,000,000,000 operations on this chip, a job may have 2,000,000,000"),
    ],
)
def test_a_job_that_cannot_run_is_refused(job: dict[str, int], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        run(Scenario(ColumnNpu("c", 260, (CORE,)), (Job("j", MODEL, **{"steps": 1, **job}),)))
    assert sentence in str(caught.value)


def test_a_gru_on_vp_2_and_a_scenario_without_jobs_are_refused() -> None:
    chip = ColumnNpu("c", 260, (replace(CORE, vp=2),))
    with pytest.raises(InputError, match="cell 'gru' has 3 gates and needs vp >= 3, got vp 2"):
        run(Scenario(chip, (Job("j", Model("m", (Layer(cell("gru"), 8, 4),)), 1),)))
    with pytest.raises(InputError, match="jobs: must be a list of at least 1 entry, got 0"):
        Scenario(chip, ())


def test_adders_saved_by_the_configurable_tail() -> None:
    # 65536 / 64 = 1024 trees; CAT-4 turns 3 adders of each into accumulators
    assert ColumnCore(npe=65536, ep=32, vp=2048, tree_inputs=64, cat=4).adders_saved == 3 * 1024
    assert ColumnCore(npe=65536, ep=64, vp=1024, tree_inputs=64, cat=1).adders_saved == 0
    assert CORE.adders_saved == 0


def test_cat_changes_no_cycle() -> None:
    jobs = (Job("j", MODEL, 3),)
    plain = run(Scenario(ColumnNpu("c", 260, (CORE,)), jobs)).report
    tree = run(Scenario(ColumnNpu("c", 260, (replace(CORE, tree_inputs=8, cat=2),)), jobs)).report
    assert tree.cores[0].cycles == plain.cores[0].cycles
    assert tree.cores[0].settings["adders_saved"] == 8


def test_the_defaults_are_those_of_the_contract() -> None:
    """Section 1 of docs/timing.md, its table and its sentence about latencies; section 9 for the link."""
    core = ColumnCore(npe=64, ep=4, vp=16)
    assert (core.accumulator_banks, core.tail_width, core.threads) == (2, 64, 1)
    assert (core.thread_policy, core.switch_cycles, core.block_order) == ("coarse", 0, "row")
    assert asdict(core.latency) == {
        "read": 4,
        "multiply": 4,
        "add": 1,
        "accumulate": 2,
        "convert": 4,
        "activation": 8,
        "elementwise_multiply": 4,
        "elementwise_add": 4,
        "quantize": 4,
        "writeback": 4,
        "divide": 16,
        "delta": None,
    }
    assert replace(core, delta=Delta()).delta_cycles == 4
    assert (Exchange().latency_cycles, Exchange().width) == (8, 64)
    assert (Memory(1).latency_cycles, Memory(1).prefetch_blocks) == (64, 2)
