"""Arguments of public functions that are of a wrong type or out of range: the sentences, never another exception."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim import InputError
from lstmsim.studies.serve.run import MOST_WINDOW

ANY: Any = lstmsim
ARRIVAL = {"kind": "poisson", "rate_per_second": 1e5}
ENTRIES = [{"model": "lstm-256", "steps": 1, "count": 50, "arrival": ARRIVAL}, {"model": "lstm-256", "steps": 2}]
SCENARIO: dict[str, Any] = {"chip": "column-npu-16k", "jobs": ENTRIES}
SINGLE = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}
SPEC = {"scenario": SCENARIO, "axes": {"ep": {"path": "chip.cores.0.ep", "values": [16, 32, 64, 8]}}}


@pytest.mark.parametrize(
    ("call", "reported"),
    [
        (lambda: ANY.serve(SCENARIO, requests=True), "requests: must be a whole number, got true"),
        (lambda: ANY.serve(SCENARIO, requests="5"), "requests: must be a whole number, got '5'"),
        (lambda: ANY.serve(SCENARIO, requests=2.5), "requests: must be a whole number, got 2.5"),
        (lambda: ANY.serve(SCENARIO, percentiles="99"), "percentiles: must be a list, got '99'"),
        *(
            (lambda window=window: ANY.serve(SCENARIO, window=window), f"window: must be {reported}")
            for window, reported in (
                (0, "at least 2, got 0"),
                (MOST_WINDOW + 1, f"at most {MOST_WINDOW}, got {MOST_WINDOW + 1}"),
                (True, "a whole number, got true"),
                ("x", "a whole number, got 'x'"),
            )
        ),
        *(
            (lambda shard=shard: ANY.sweep(SPEC, "out", shard=shard), f"shard{reported}")
            for shard, reported in (
                ((3, 2), ": must be a pair (i, n) of whole numbers with i from 1 to n, like (3, 20), got (3, 2)"),
                ((0, 2), ": must be a pair (i, n) of whole numbers with i from 1 to n, like (3, 20), got (0, 2)"),
                ("1/2", ": must be a list, got '1/2'"),
                ((1, None), ".1: must be a whole number, got nothing"),
                ((1, 2, 3), ": must be 2 values, got 3"),
            )
        ),
        (lambda: ANY.compare(SCENARIO, [5]), "chips.0: must be text or a path, got 5"),
        (lambda: ANY.compare(SCENARIO, base=5), "base: must be text or a path, got 5"),
        (lambda: ANY.saturate(SCENARIO, bounds_ms=5), "bounds_ms: must be a mapping, got 5"),
        (lambda: ANY.saturate(SCENARIO, bounds_ms={"a": "b"}), "bound of 'a': must be a number, got 'b'"),
        (lambda: ANY.saturate(SCENARIO, 1.0, percentile="99"), "percentile: must be a number, got '99'"),
        (lambda: ANY.load_latency(SCENARIO, loads=0.3), "loads: must be text or a list, got 0.3"),
        (lambda: ANY.load_latency(SCENARIO, policies=5), "policies: must be text or a list, got 5"),
        (lambda: ANY.load_latency(SCENARIO, requests="5"), "requests: must be a whole number of at least 1, got '5'"),
        (lambda: ANY.fit(SCENARIO, 5), "devices: must be text or a path or a list, got 5"),
        (lambda: ANY.validate(5), "groups: must be text or a list, got 5"),
        (lambda: ANY.accuracy(SCENARIO, bits=8), "bits: must be a list, got 8"),
        *(
            (lambda seed=seed: ANY.accuracy(SCENARIO, random_weights=seed), f"random_weights: must be {reported}")
            for seed, reported in (
                ("0", "a whole number from 0 to 4294967295, got '0'"),
                (-1, "at least 0, got -1"),
                (True, "a whole number from 0 to 4294967295, got true"),
            )
        ),
        (lambda: ANY.plot(lstmsim.run(SINGLE), cores=0), "cores: must be a list, got 0"),
        (lambda: ANY.load_trace(None), "path: must be text or a path, got nothing"),
        (
            lambda: ANY.save_model(lstmsim.load_model("lstm-256"), "out.yaml"),
            "save_model: expects an ImportedModel, as lstmsim.import_model gives it; got a value of type Model",
        ),
        (lambda: ANY.run(SINGLE, engine="fst"), "engine: must be fast or reference, got 'fst'; did you mean 'fast'?"),
        (lambda: ANY.sweep(SPEC, "out", jobs=0), "jobs: must be at least 1, got 0"),
        (lambda: ANY.sweep(SPEC, None), "folder: must be text or a path, got nothing"),
        (lambda: ANY.run_fusion("softmax", modes=5), "modes: must be text or a list, got 5"),
        (lambda: ANY.run_fusion("softmax", sizes=7), "sizes: must be a list or a mapping, got 7"),
        (lambda: ANY.run_fusion("softmax", sizes={3: 4}), "size: must have a name, got 3"),
        (lambda: ANY.run_fusion("softmax", settings=7), "settings: must be a list or a mapping, got 7"),
        (lambda: ANY.run_gemm(8, 8, 8, chip=5), "chip: must be a preset's name, a chip's file or a chip, got 5"),
    ],
)
def test_a_wrong_argument_is_told(call: Callable[[], Any], reported: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == reported


def test_a_full_window_says_how_large_it_was() -> None:
    flood = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "count": 90, "arrival": 0}]}
    served = lstmsim.serve(flood, window=7)
    assert (served.ended, served.serving.requests, served.asked, served.window) == ("full", 7, 90, 7)
    assert "more requests than there is room for (7) were in the machine at once" in served.to_text()


@pytest.mark.slow
@pytest.mark.needs_core
@pytest.mark.parametrize("where", ["standard input", pytest.param("file", marks=pytest.mark.long)])
def test_a_script_needs_no_guard_for_workers(where: str, tmp_path: Path) -> None:
    script = f"import lstmsim\nprint(lstmsim.sweep({SPEC!r}, {str(tmp_path / 'out')!r}, jobs=2).progress.done)\n"
    (tmp_path / "script.py").write_text(script)
    words = [str(tmp_path / "script.py")] if where == "file" else ["-"]
    done = subprocess.run([sys.executable, *words], input=script, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("4\n", "")
