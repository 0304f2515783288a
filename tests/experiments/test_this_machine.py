"""One thread beside a real machine: the recorded figures, their statistics, and the script that measures anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import lstmsim
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
    from experiments.gemm_threads import this_machine

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(this_machine, "SMALL", ((1, 48, 32), (2, 64, 32), (8, 96, 64)))
    text = this_machine.text(small=True)
    assert "the clock is not known here" in " ".join(text.split())
    assert "| `llc_sets` | 32,768 | assumption: as zen4-2core.yaml" in text
    assert text.count("rank correlation") == 4
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
