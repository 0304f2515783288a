"""`lstmsim fit`: devices, energy, mistakes."""

from __future__ import annotations

import json

import pytest

from lstmsim.formats.devices_file import device_files
from tests.cli.runner import call

SCENARIO = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 5, "count": 2}]}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps(SCENARIO))


def test_all_devices_unless_one_is_named() -> None:
    found = json.loads(call("fit", "s.json", "--json", "-").stdout)
    assert [each["device"] for each in found["fits"]] == list(device_files())
    assert found["energy"] == []
    one = call("fit", "s.json", "--device", "stratix-10-gx-2800", "--energy")
    assert one.exit_code == 0
    assert one.stdout.startswith("FIT of column-npu-16k on stratix-10-gx-2800: fits")
    assert one.stdout.count("ENERGY of lstm-256, 5 steps") == 1


def test_an_unknown_device_is_a_sentence() -> None:
    result = call("fit", "s.json", "--device", "stratix-10-gx-280")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no device called 'stratix-10-gx-280'; did you mean 'stratix-10-gx-2800'?" in result.stderr
