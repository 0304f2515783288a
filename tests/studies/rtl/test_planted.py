"""Changes that a comparison of h alone, on a short run of 8 bits, does not see; and what a run never did is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.studies.rtl.result import RtlReport
from tests.cli.runner import call
from tests.studies.rtl.directed import DIRECTED
from tests.studies.rtl.needed import needs_icarus
from tests.studies.rtl.scenarios import drawn, step_of
from tests.studies.rtl.verified import verify

SHORT: dict[str, Any] = {
    "name": "short",
    "chip": {
        "kind": "column-npu",
        "name": "small",
        "frequency_mhz": 100,
        "cores": [{"npe": 16, "ep": 2, "vp": 8, "tail_width": 1}],
    },
    "jobs": [{"name": "a", "model": {"name": "m", "layers": [{"cell": "lstm", "hidden": 2, "input": 2}]}, "steps": 2}],
}


def verified(folder: Path, **options: Any) -> RtlReport:
    return lstmsim.run_rtl(SHORT, folder, verify=True, random_weights=4, **options)


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def groups(report: RtlReport) -> list[str]:
    assert report.verified is not None
    return [each.group for each in report.verified.compared.differences]


@pytest.mark.slow
@needs_icarus
def test_a_port_that_never_tells_a_host_of_the_end_is_seen(tmp_path: Path) -> None:
    assert groups(verified(tmp_path / "out")) == []
    change(
        tmp_path / "out/rtl/npu_top.v",
        "jobs_ended <= reset ? {CONTEXTS{1'b0}} : SPLITS != 0 ? ended & first : ended;",
        "jobs_ended <= 0;",
    )
    assert "job" in groups(verified(tmp_path / "out"))


@pytest.mark.slow
@needs_icarus
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("npu_adapter.v", "bias_shifted, shifted[0]}", "bias_shifted, 1'b0}"),
        ("npu_tail_lane.v", "wire signed [15:0] n_c_s0 = zero_", "wire signed [15:0] n_c_s0 = 1'b1 ^ zero_"),
    ],
)
def test_numbers_within_the_tail_are_compared(file: str, old: str, new: str, tmp_path: Path) -> None:
    """What h rounds away: the last bit of an adapted sum; the state of the step before."""
    out = tmp_path / "out"
    lstmsim.run_rtl(SHORT, out, random_weights=4, deep=True)
    change(out / "rtl" / file, old, new)
    assert {"adapted sum", "state"} & {*groups(verified(out, deep=True))}
    assert groups(verified(out, deep=False)) == ([] if file == "npu_adapter.v" else ["h"])


@pytest.mark.slow
@needs_icarus
def test_states_of_one_cycle_have_an_order(tmp_path: Path) -> None:
    """A cell whose nodes read its states in another order than it names them; two are computed in one cycle."""
    report = verify(drawn(123, step_of(123)), tmp_path)
    assert groups(report) == []
    places = [(each.cycle, each.fields[:2]) for each in report.events if each.kind == "V"]
    assert len({cycle for cycle, _ in places}) < len(set(places))


@pytest.mark.slow
def test_what_a_run_never_did_is_said(tmp_path: Path) -> None:
    alone = lstmsim.run_rtl(SHORT, tmp_path / "alone", random_weights=4).unexercised
    several = lstmsim.run_rtl(DIRECTED["two_at_once"], tmp_path / "several", random_weights=1).unexercised
    for text in ("a job that waits for a context", "an adapted sum that saturates", "an argument above its table"):
        assert text in alone
    assert "a job that waits for a context" not in several
    cycles = lstmsim.run_rtl(SHORT, tmp_path / "cycles", timing_only=True).unexercised
    assert not [each for each in cycles if "satur" in each or "table" in each]


def test_deep_needs_numbers(tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text("chip: column-npu-16k\njobs: [{model: lstm-256, steps: 1}]\n")
    done = call("rtl", str(scenario), "--out", str(tmp_path / "out"), "--timing-only", "--deep")
    assert done.exit_code == 2
    assert "--deep: not with --timing-only" in done.stderr
