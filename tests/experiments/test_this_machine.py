"""One thread beside a real machine: the recorded figures, their statistics, and the script that measures anew."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import lstmsim
from lstmsim.machines.multicore.words import LEFT_OUT
from tests.machines.multicore.chips import flat

FOLDER = Path(__file__).parents[2] / "experiments" / "gemm_threads"
pytestmark = [
    pytest.mark.needs_core,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the experiments are not part of the installed package"),
]
LEVELS = ({"level": 1, "type": "Data", "sets": 32}, {"level": 1, "type": "Instruction", "sets": 9})
LEVELS += ({"level": 2, "type": "Unified", "sets": 256}, {"level": 3, "type": "Unified", "sets": 4096})


def test_the_recorded_products_are_what_stands_beside_the_script() -> None:
    from experiments.gemm_threads.measured import recorded, summed_up, table

    rows = recorded()
    of = summed_up(rows)
    text = (FOLDER / "expected.md").read_text(encoding="utf-8")
    assert len(rows) == 16
    assert [line for line in table(rows, "least", "10 %") if line and line not in text] == []
    assert (round(of.low, 2), round(of.high, 2), round(of.rank, 3)) == (0.45, 1.02, 0.988)


@pytest.mark.slow
def test_what_the_text_says_of_the_model_before_holds() -> None:
    """Rows of one packed like others, 16 elements packed in a cycle, sets by bits of the address."""
    from experiments.gemm_threads.measured import predicted, recorded, summed_up

    chip = lstmsim.load_chip(FOLDER / "zen4-2core.yaml")
    core = replace(chip.cores[0], gemv=False, pack_per_cycle=16)
    before = replace(chip, cores=(core,) * 2, llc_hash="bits")
    rows = [row._replace(predicted=predicted(before, row.m, row.n, row.k)) for row in recorded()]
    of = summed_up(rows)
    assert tuple(round(each, 2) for each in (of.low, of.high, of.mean)) == (0.28, 2.75, 0.79)
    assert round(of.rank, 3) == 0.944


@pytest.mark.slow
def test_layers_beside_onnx_runtime_are_recorded_and_passes_explain_their_batches() -> None:
    from experiments.gemm_threads import layers

    chip, rows = layers.recorded()
    text = (FOLDER / "expected.md").read_text(encoding="utf-8")
    assert [line for line in layers.table(chip, rows) if line and line not in text] == []
    alone = {row.hidden: row for row in rows if row.batch == 1}
    batches = [row for row in rows if row.batch > 1]
    errors = [layers.by_passes(chip, row, alone[row.hidden]) / row.measured - 1 for row in batches]
    assert (len(batches), round(min(errors), 2), round(max(errors), 2)) == (7, -0.12, 0.08)
    # what the remark of every CPU's report says
    one, eight = alone[512], next(row for row in batches if row.hidden == 512)
    gains = [8 * getattr(one, name) / getattr(eight, name) for name in ("measured", "predicted")]
    (remark,) = (each for each in LEFT_OUT if "ONNX Runtime" in each)
    assert all(f"{gain:.1f} times" in remark for gain in gains)


@pytest.mark.parametrize(("mhz", "product", "line"), [(7537, 3.0, 2.0), (3000, 7.7, 2.0), (3000, 3.0, 901.0)])
def test_what_no_processor_can_be_ends_the_measurement(
    monkeypatch: pytest.MonkeyPatch, mhz: float, product: float, line: float
) -> None:
    """A chain of additions that a processor folds gave 7,537 MHz; wall time on a busy machine 901 cycles a line."""
    from experiments.gemm_threads import machine_at_hand

    lines = {f"{level}_{what}": machine_at_hand.Named(64, "") for level in ("l2", "llc") for what in ("sets", "ways")}
    monkeypatch.setattr(machine_at_hand, "_probed", lambda sizes: [mhz, product, *[line for _ in sizes]])
    with pytest.raises(SystemExit, match=r"this machine cannot be described: .* were measured"):
        machine_at_hand._clock_and_lines({**lines, "line": machine_at_hand.Named(64, "")})


@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="no compiler")
def test_a_measured_clock_and_its_multiplication_fit_together() -> None:
    """The two chains are independent: folded additions would make a multiplication take more than 5 of them."""
    from experiments.gemm_threads import machine_at_hand

    def fits(mhz: float, product: float, line: float) -> bool:
        return 400 < mhz < 6500 and 2.5 < product < 5.5 and 0.4 < line < 200

    # a busy machine may spoil a try
    assert any(fits(*machine_at_hand._probed([1 << 20])) for _ in range(5))


def test_ranks_that_tie_share_theirs() -> None:
    from experiments.gemm_threads.measured import Row, summed_up

    def of(*pairs: tuple[int, int]) -> float:
        return summed_up([Row(1, 1, 1, one, other, other, 5) for one, other in pairs]).rank

    assert of((1, 10), (2, 20), (3, 30)) == pytest.approx(1)
    assert of((1, 30), (2, 20), (3, 10)) == pytest.approx(-1)
    # ranks 0, 1.5, 1.5 against 0, 1, 2
    assert of((1, 1), (2, 2), (2, 3)) == pytest.approx(1.5 / (1.5 * 2) ** 0.5)


def test_without_lscpu_and_a_compiler_assumptions_stand_in_and_the_text_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from experiments.gemm_threads import layers, this_machine

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(this_machine, "SMALL", ((1, 48, 32), (2, 64, 32), (8, 96, 64)))
    text = this_machine.text(small=True)
    assert "the clock is not known here" in " ".join(text.split())
    assert "| `llc_sets` | 32,768 | assumption: as zen4-2core.yaml" in text
    assert text.count("rank correlation") == 4 + 3 * layers.available()
    for line in ("| 1 x 48 x 32 |", "| 8 x 112 x 64 |", "Not modelled: rows a power of two bytes apart"):
        assert line in text


def test_what_lscpu_says_becomes_the_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments.gemm_threads import machine_at_hand

    fields = [{"field": "Model name:", "data": "Some CPU"}, {"field": "Flags:", "data": "fma avx2"}]
    caches = [{**each, "ways": 4, "coherency-size": 128} for each in LEVELS]

    def printed(*command: str) -> str:
        return json.dumps({"caches": caches} if "-B" in command else {"lscpu": fields}) if command[0] == "lscpu" else ""

    monkeypatch.setattr(machine_at_hand, "_printed", printed)
    chip, numbers = machine_at_hand.chip_of(machine_at_hand.found(0.001))
    view = flat(chip)
    assert (view.l1_sets, view.l2_sets, view.llc_sets, view.llc_ways, view.line) == (32, 256, 4096, 4, 128)
    assert (view.lanes, view.mr, view.nr) == (8, 6, 16)
    assert numbers["l1_sets"] == (32, "lscpu")
    assert numbers["pack_per_cycle"].source.startswith("assumption")
    assert machine_at_hand.described()[0].startswith("Some CPU, ")
