"""`lstmsim rtl`: options that do not go together are told by the names that the command has for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import call

SCENARIO = """
chip: {kind: column-npu, name: c, frequency_mhz: 100, cores: [{npe: 16, ep: 2, vp: 8}]}
jobs: [{model: {name: m, layers: [{cell: lstm, hidden: 4, input: 3}]}, steps: 2}]
"""


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("--timing-only", "--synth", "ecp5"), "--synth: not with --timing-only: without numbers there is no datapath"),
        (("--timing-only", "--random-weights", "0"), "--random-weights: not with --timing-only: it leaves numbers out"),
        (("--random-weights", "0", "--vcd", "both.vcd"), "--vcd: only with --verify"),
        (("--random-weights", "0", "--timeline", "both.png"), "--timeline: only with --verify"),
        (("--timing-only", "--set", "chip=v100"), "machines that can: column-wise NPU"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], reported: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SCENARIO, encoding="utf-8")
    result = call("rtl", "small.yaml", "--out", "out", *options)
    assert result.exit_code == 2
    assert reported in result.stderr
    assert not Path("out").exists()


def test_a_folder_below_a_file_is_refused_with_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SCENARIO, encoding="utf-8")
    for name in ("small.yaml", "small.yaml/x"):
        result = call("rtl", "small.yaml", "--out", name)
        assert (result.exit_code, result.stderr.startswith(f"--out {name}: ")) == (2, True), result.stderr
