"""Write the table of docs/trust.md between its markers: what the rule that makes stamps says of example runs.

`--check` only compares.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lstmsim.machines.target import Evidence
from lstmsim.report.stamp import Stamp
from lstmsim.studies.shared.loading import load_scenario
from lstmsim.studies.shared.stamp import stamp_of_scenario

PAGE = Path(__file__).resolve().parents[1] / "docs" / "trust.md"
_JOB = {"model": "lstm-512", "steps": 4}
_CORE = {"npe": 4096, "ep": 16, "vp": 256}
_OWN: dict[str, Any] = {"kind": "column-npu", "frequency_mhz": 250, "cores": [_CORE]}
_TWO = {**_OWN, "cores": [_CORE, _CORE]}
_STREAMS: dict[str, Any] = {**_OWN, "cores": [_CORE | {"weight_kib": 64}], "memory": {"gb_per_s": 8}}
_BOTH = {**_STREAMS, "cores": _STREAMS["cores"] * 2}
_DELTA = {**_OWN, "cores": [_CORE | {"delta": {"x": 0.1, "h": 0.1}}]}
_PUBLISHED = {**_JOB, "batch": 6}

#: What each example has, its chip, its job, further keys of the scenario, and overrides.
EXAMPLES: tuple[tuple[str, Any, dict[str, Any], dict[str, Any], Sequence[str]], ...] = (
    ("column-wise, any size and latency", _OWN, _JOB, {}, ("chip.cores.0.latency.activation=31",)),
    ("column-wise, `precision`", "column-npu-64k", _JOB, {"precision": {"weight_bits": 8}}, ()),
    ("column-wise, `split: rows`", _TWO, {**_JOB, "split": "rows"}, {}, ()),
    ("column-wise, weights streamed from a memory", _STREAMS, _JOB, {}, ()),
    ("column-wise, `split` and streamed weights together", _BOTH, {**_JOB, "split": "rows"}, {}, ()),
    ("column-wise, a memory faster than its port", _STREAMS, _JOB, {}, ("chip.memory.gb_per_s=2000",)),
    ("column-wise, `batch`", "column-npu-64k", {**_JOB, "batch": 2}, {}, ()),
    ("column-wise, `dispatch: sjf`", "column-npu-64k", _JOB, {"dispatch": "sjf"}, ()),
    ("column-wise, `queue_limit`", "column-npu-64k", {**_JOB, "arrival": 5, "queue_limit": 3}, {}, ()),
    ("column-wise, `delta`", _DELTA, {**_JOB, "density": {"x": 0.3, "h": 0.3}}, {}, ()),
    ("intel-npu-rtl, a batch of 6, up to 8 steps", "intel-npu-rtl", _PUBLISHED, {}, ()),
    ("intel-npu-cpp, a batch of 6, up to 8 steps", "intel-npu-cpp", _PUBLISHED, {}, ()),
    ("intel-npu-rtl, a batch of 1", "intel-npu-rtl", _JOB, {}, ()),
    ("intel-npu-rtl, another latency", "intel-npu-rtl", _PUBLISHED, {}, ("chip.cores.0.latency.product=61",)),
    ("brainwave-s10, an LSTM of 512 units", "brainwave-s10", _JOB, {}, ()),
    ("brainwave-s10, an LSTM of 128 units", "brainwave-s10", {"model": "silero-vad-16k", "steps": 4}, {}, ()),
    ("edgedrnn-8", "edgedrnn-8", {"model": {"layers": [{"cell": "gru", "hidden": 64, "input": 40}]}}, {}, ()),
    ("v100 in FP16, one layer, a batch of 1", "v100", _JOB, {}, ("chip.element_bytes=2",)),
    ("v100, two layers", "v100", {"model": "lstm-2x512", "steps": 2}, {}, ()),
    ("edge", "edge", _JOB, {}, ()),
    ("epyc-7742", "epyc-7742", _JOB, {}, ()),
    ("xeon-gold-5122", "xeon-gold-5122", _JOB, {}, ()),
)


def stamps() -> dict[str, Stamp]:
    """The stamp of each example."""
    found = {}
    for name, chip, job, keys, overrides in EXAMPLES:
        entry = {"chip": chip, "jobs": [{"steps": 4, **job}], **keys}
        found[name] = stamp_of_scenario(load_scenario(entry, overrides))
    return found


def table() -> str:
    """The table, a row for each example; without a final newline."""
    lines = ["| example | compared with | silicon | inside that |", "| --- | --- | --- | --- |"]
    for name, stamp in stamps().items():
        silicon, inside = ("yes" if each else "no" for each in (stamp.silicon, not stamp.outside))
        inside = "-" if stamp.compared.startswith(Evidence.compared) else inside
        lines.append(f"| {name} | {stamp.compared} | {silicon} | {inside} |")
    return "\n".join(lines)


def with_table(page: str) -> str:
    """The text of the page with the table between its markers."""
    begin, end = "<!-- stamps:begin -->", "<!-- stamps:end -->"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{table()}\n\n{end}{rest.partition(end)[2]}"


def main() -> int:
    """Write the page, or compare it; the exit code is 1 if `--check` shows that it is out of date."""
    old = PAGE.read_text(encoding="utf-8")
    new = with_table(old)
    if "--check" in sys.argv[1:]:
        return int(old != new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
