"""`benchmarks/bulk.py`: its program keeps all rules, and is the same on both engines."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import lstmsim
from lstmsim.program.flat import FlatProgram

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "bulk.py"

pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="benchmarks are in the checkout only")


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bulk", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_program_is_the_same_on_both_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    bulk = script()
    monkeypatch.setattr(bulk, "CORES", 2)
    monkeypatch.setattr(bulk, "CONTEXTS", 3)
    flat: FlatProgram = bulk.bulk(40, 2)
    fast, slow = (lstmsim.run_program(flat, engine=engine) for engine in ("fast", "reference"))
    assert fast.totals == slow.totals
    assert fast.totals.issues.sum() == 40 * 2 * bulk.BODY
    # six threads take forty tasks in seven rounds, and each operation waits four cycles for the one before it
    assert fast.makespan_cycles > 7 * bulk.BODY * 4


def test_it_says_how_long_it_takes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["bulk.py", "--tasks", "50", "--operations", "60"])
    script().main()
    assert capsys.readouterr().out.startswith("50 tasks, 3,000 operations on 80 cores of 64 contexts\nmakespan ")
