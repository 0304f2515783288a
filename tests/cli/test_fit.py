"""`lstmsim fit`: devices, energy, mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lstmsim.studies.fit.device import device_files
from tests.cli.runner import call

DEMO = Path(__file__).parents[2] / "experiments" / "scenarios" / "demo.yaml"
SCENARIO = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 5, "count": 2}]}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps(SCENARIO))


def test_all_devices_unless_one_is_named() -> None:
    answer = json.loads(call("fit", "s.json", "--json", "-").stdout)
    assert [each["device"] for each in answer["fits"]] == list(device_files())
    assert answer["energy"] == []
    one = call("fit", "s.json", "--device", "stratix-10-gx-2800", "--energy")
    assert one.exit_code == 0
    assert one.stdout.startswith("FIT of column-npu-16k on stratix-10-gx-2800: fits")
    assert one.stdout.count("ENERGY of lstm-256, 5 steps") == 1


def test_an_unknown_device_is_a_sentence() -> None:
    result = call("fit", "s.json", "--device", "stratix-10-gx-280")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no device called 'stratix-10-gx-280'; did you mean 'stratix-10-gx-2800'?" in result.stderr


def test_the_last_lines_say_on_which_devices_the_chip_fits() -> None:
    summary = call("fit", "s.json", "--energy").stdout.split("SUMMARY of column-npu-16k\n")[1]
    assert summary.startswith("fits: agilex-7-agi-027 (DSP ")
    data = json.loads(call("fit", "s.json", "--json", "-").stdout)
    assert set(data["summary"]["fits"]) == {each["device"] for each in data["fits"] if each["fits"] is True}
    assert "stratix-10-gx-2800" in data["summary"]["fits"]
    assert set(data["summary"]["cannot_tell"]) == {each["device"] for each in data["fits"] if each["fits"] is None}
    assert all(each["verdict"] for each in data["fits"])
    one = call("fit", "s.json", "--device", "arria-10-gx-1150").stdout
    assert "fits: none of these devices" in one


@pytest.mark.skipif(not DEMO.is_file(), reason="the demo is in the checkout only")
def test_the_chip_of_the_demo_fits_a_device() -> None:
    data = json.loads(call("fit", str(DEMO), "--json", "-").stdout)
    assert "stratix-10-gx-2800" in data["summary"]["fits"]
