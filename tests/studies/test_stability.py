"""Conclusions that hold: flips whose truth is known, and what cannot be asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim import ColumnCore, ColumnNpu, InputError
from lstmsim.machines.column.npu import Latency, Memory
from lstmsim.model.scenario import Chip
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary, assumptions, moved, stability
from lstmsim.studies.sweep import stability as of_sweep
from tests.cli import runner

CHIP = ColumnNpu("c", 250, (ColumnCore(npe=1024, ep=8, vp=128, latency=Latency(activation=8)),))
ALL = {"latency": "measured", "tail_width": "measured", "exchange": "measured", "switch_cycles": "measured"}


def only(*paths: str) -> ColumnNpu:
    """The chip with these assumptions, and no others."""
    return replace(CHIP, sources=ALL | dict.fromkeys(paths, "assumption, because nobody knows"))


def above(limit: int, path: str = "activation") -> Any:
    """Whether a latency is so large."""

    def ask(vary: Vary) -> Conclusions:
        value = getattr(vary(only(f"latency.{path}")).cores[0].latency, path)
        return {"is it slow": "yes" if value >= limit else "no", "is it a chip": "yes"}

    return ask


@pytest.mark.parametrize("limit", [9, 10, 11, 12])
def test_a_flip_is_found_at_the_value_at_which_it_is(limit: int) -> None:
    found = stability([only("latency.activation")], above(limit), 0.5)
    assert [each.path for each in found.tested] == ["cores.latency.activation"]
    (flip,) = found.flips
    assert (flip.question, flip.answer, flip.other) == ("is it slow", "no", "yes")
    assert flip.at == f"column-npu latency.activation is {limit} cycles (assumed: 8)"
    assert found.headline.endswith("; 2 conclusions, of which 1 flips")


@pytest.mark.parametrize("limit", [5, 6, 7, 8])
def test_a_flip_downwards_is_found_too(limit: int) -> None:
    (flip,) = stability([only("latency.activation")], above(limit), 0.5).flips
    assert flip.at.startswith(f"column-npu latency.activation is {limit - 1} cycles")


@pytest.mark.parametrize("limit", [4, 13])
def test_what_lies_beyond_the_ends_does_not_flip(limit: int) -> None:
    found = stability([only("latency.activation")], above(limit), 0.5)
    assert not found.flips
    assert found.headline.endswith("; 2 conclusions, none flips")


def test_keys_with_a_source_are_not_moved() -> None:
    seen: set[Chip] = set()

    def ask(vary: Vary) -> Conclusions:
        seen.add(vary(only()))
        return {"q": "a"}

    assert stability([only()], ask, 0.5).tested == ()
    assert seen == {only()}


def test_a_bandwidth_is_followed_in_steps_of_a_percent() -> None:
    chip = replace(only("memory.gb_per_s"), memory=Memory(gb_per_s=20.0, latency_cycles=0))

    def ask(vary: Vary) -> Conclusions:
        changed: Any = vary(chip)
        return {"q": "enough" if changed.memory.gb_per_s > 15.5 else "too little"}

    (flip,) = stability([chip], ask, 0.5).flips
    assert flip.at == "column-npu memory.gb_per_s is 15.4 GB/s (assumed: 20)"


def test_together_latencies_grow_and_bandwidths_fall() -> None:
    chip = only("latency.activation", "tail_width")
    seen = []

    def ask(vary: Vary) -> Conclusions:
        core: Any = vary(chip).cores[0]
        seen.append((core.latency.activation, core.tail_width))
        return {"q": "flipped" if (core.latency.activation, core.tail_width) == (12, 32) else "a"}

    found = stability([chip], ask, 0.5)
    assert {(4, 96), (12, 32)} <= set(seen)
    assert (12, 96) not in seen
    (flip,) = found.flips
    assert flip.at == "all 2 of column-npu together are 50 % slower"
    assert set(flip.keys) == {"cores.latency.activation", "cores.tail_width"}


def test_what_cannot_move_is_named() -> None:
    chip = only("switch_cycles", "latency.add")
    found = stability([chip], lambda vary: {"q": "a"}, 0.2)
    # a tree level takes 1 cycle: a fifth of it is no cycle
    assert (found.tested, set(found.unmoved)) == ((), {"cores.switch_cycles", "cores.latency.add"})
    assert found.headline.startswith("STABILITY: 0 assumptions ")


def test_a_key_moves_on_all_chips_that_have_it_as_an_assumption() -> None:
    first = only("latency.activation")
    slow = replace(first, cores=(replace(CHIP.cores[0], latency=Latency(activation=20)),))
    (each,) = assumptions([first, slow])
    assert each.values == (8, 20)
    chips = (first, slow, only())
    assert [moved(chip, [(each, 0.5)]).cores[0].latency.activation for chip in chips] == [12, 30, 8]


def test_a_move_that_is_refused_is_said() -> None:
    def ask(vary: Vary) -> Conclusions:
        if vary(only("latency.activation")) != CHIP:
            raise InputError("cannot be built")
        return {"q": "a"}

    found = stability([only("latency.activation")], ask, 0.5)
    assert len(found.refused) == 2
    assert "as far as it could be asked" in found.headline


def file(path: Path, **keys: Any) -> str:
    """A chip as a file."""
    import json

    core = {"npe": 1024, "ep": 8, "vp": 128, "latency": {"activation": keys.pop("activation")}}
    path.write_text(json.dumps({"kind": "column-npu", "frequency_mhz": 250, "cores": [core], **keys}), encoding="utf-8")
    return str(path)


def compared(folder: Path, other: int) -> Any:
    """A chip whose activation is assumed to take 8 cycles, against one in which it takes so many for certain."""
    base = file(folder / "assumed.json", activation=8, sources=ALL | {"latency.activation": "assumption, because"})
    sure = file(folder / "sure.json", activation=other, sources=ALL)
    scenario = {"chip": base, "jobs": [{"model": "lstm-256", "steps": 3}]}
    return lstmsim.compare(scenario, [sure], stability=0.5, jobs=1).stability


@pytest.mark.parametrize("other", [10, 12])
def test_a_comparison_flips_where_the_assumed_latency_reaches_the_other(other: int, tmp_path: Path) -> None:
    found = compared(tmp_path, other)
    assert found.conclusions["assumed against sure on scenario"] == "faster"
    flips = {each.question: each for each in found.flips}
    first = flips["assumed against sure on scenario"]
    assert first.other == "as fast"
    assert first.at == f"column-npu latency.activation is {other} cycles (assumed: 8)"
    assert flips["fastest on scenario"].other == "assumed and sure"


def test_a_comparison_that_no_value_turns_holds(tmp_path: Path) -> None:
    found = compared(tmp_path, 13)
    assert not found.flips
    assert len(found.conclusions) == 2


SPEC = {
    "scenario": {
        "chip": {"kind": "column-npu", "frequency_mhz": 250, "cores": [{"npe": 65536, "ep": 16, "vp": 4096}]},
        "jobs": [{"model": {"layers": [{"cell": "lstm", "hidden": 1024, "input": 1024}]}, "steps": 6}],
    },
    "axes": {
        "ep": {"path": "chip.cores.0.ep", "values": [16, 32]},
        "vp": {"path": "chip.cores.0.vp", "expression": "65536 // ep"},
    },
}


def cycles(ep: int, activation: int) -> int:
    core = ColumnCore(npe=65536, ep=ep, vp=65536 // ep, latency=Latency(activation=activation))
    chip = ColumnNpu("c", 250, (core,))
    scenario = lstmsim.load_scenario(SPEC["scenario"])
    return lstmsim.simulate(replace(scenario, chip=chip)).makespan_cycles


@pytest.mark.slow
def test_a_sweep_flips_where_simulation_says(tmp_path: Path) -> None:
    result = lstmsim.sweep(SPEC, tmp_path / "a", stability=0.5, jobs=1)
    assert result.stability is not None
    best = min((16, 32), key=lambda ep: cycles(ep, 8))
    (answer,) = result.stability.conclusions.values()
    assert answer.startswith(f"ep {best}, ")
    at = [each for each in result.stability.flips if each.keys == ("cores.latency.activation",)]
    turned = [value for value in range(7, 3, -1) if min((16, 32), key=lambda ep: cycles(ep, value)) != best]
    assert turned, "the case is chosen so that it flips"
    assert [each.at for each in at] == [f"column-npu latency.activation is {turned[0]} cycles (assumed: 8)"]
    data = result.to_dict()["stability"]
    assert data["flips"]
    assert "STABILITY: " in result.to_text()


def test_a_large_sweep_asks_its_best_points_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_sweep, "MOST_SIMULATIONS", 1)
    axes = {"ep": {"path": "chip.cores.0.ep", "values": [8, 16, 32]}, "vp": SPEC["axes"]["vp"]}
    found = lstmsim.sweep({**SPEC, "axes": axes}, tmp_path / "a", stability=0.1, jobs=1).stability
    assert found is not None
    assert found.left_out.startswith("only the 2 best of 3 points were asked again")


def test_a_shard_has_no_answer(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="stability: needs all points"):
        lstmsim.sweep(SPEC, tmp_path / "a", stability=0.5, shard=(1, 2))
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("text", ["0%", "200%", "100%", "text", "-5%", "nan", "", "50"])
@pytest.mark.parametrize("command", ["compare", "sweep"])
def test_shares_that_are_none_are_refused(text: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("x: 1", encoding="utf-8")
    more = ["--chip", "v100"] if command == "compare" else ["--out", str(tmp_path / "out")]
    outcome = runner.call(command, str(tmp_path / "s.yaml"), *more, f"--stability={text}")
    assert outcome.exit_code == 2
    assert f"{text!r} is not a share above 0 and below 1, like 5% or 0.05" in outcome.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("share", [0, 1, 2.0, -0.5, float("nan"), "50%"])
def test_so_are_they_in_python(share: Any) -> None:
    with pytest.raises(InputError, match="stability: must be"):
        lstmsim.compare({"chip": "v100", "jobs": []}, ["edge"], stability=share)
