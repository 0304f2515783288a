"""Is the Verilog of `lstmsim rtl` equal to the simulator, in every cycle and every bit, also at true size?

Worked examples of docs/timing.md and the demo of the README at their true size, 16,384 and 65,536 multipliers: cycles
alone. Chips with every kind of cell, and Silero VAD's LSTM with its own weights on 174 frames of real speech: all bits.
What a design takes of an FPGA by Yosys, beside what `lstmsim fit` says of it.

Needs Icarus Verilog; for the row of real speech Verilator, for resources Yosys. A full run takes some minutes.
Run `python experiments/rtl/run.py`; `--small` the first rows; `--write` refreshes expected.md beside it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lstmsim
from lstmsim.report import renderings
from lstmsim.report.document import Document
from lstmsim.studies.rtl.report import synthesis_sections
from lstmsim.studies.rtl.result import GROUPS

SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"
SMALL_LATENCY = dict.fromkeys(("read", "multiply", "accumulate", "convert", "activation", "quantize", "writeback"), 2)


@dataclass(frozen=True)
class Setting:
    """A scenario whose Verilog is compared.

    title: what it is.
    scenario: a file, or its keys.
    numbers: whether all bits are compared, or cycles alone.
    simulator: what simulates the Verilog.
    options: further arguments of `lstmsim.run_rtl`.
    """

    title: str
    scenario: str | dict[str, Any]
    numbers: bool = False
    simulator: str = "icarus"
    options: dict[str, Any] = field(default_factory=dict)


def _chip(**core: Any) -> dict[str, Any]:
    return {"kind": "column-npu", "name": "chip", "frequency_mhz": 260, "cores": [core]}


def _worked(hidden: int, ep: int, vp: int, threads: int, jobs: int, cell: str = "lstm") -> Setting:
    """A row of docs/timing.md section 6 or 8."""
    layer = {"cell": cell, "hidden": hidden, "input": hidden}
    chip = _chip(npe=65536, ep=ep, vp=vp, threads=threads, tail_width=64)
    job = {"name": "job", "model": {"name": cell, "layers": [layer]}, "steps": 20, "count": jobs}
    count = "one" if jobs == 1 else "two"
    name = "GRU, reset gate before the product," if cell == "gru-lbr0" else cell.upper()
    title = f"{count} {name} {hidden}/{hidden}, ep {ep}, vp {vp}, {threads} thread{'s' * (threads > 1)}"
    return Setting(title, {"name": "worked", "chip": chip, "jobs": [job]})


def _cells(*names: str) -> Setting:
    """Layers of several cells on two threads, small enough for Icarus with all bits."""
    layers, width = [], 5
    for place, name in enumerate(names):
        projection = {"projection": 4} if name == "lstm-projection" else {}
        layers.append({"cell": name, "hidden": 6, "input": width, **projection, "bidirectional": place == 0})
        width = projection.get("projection", 6) * (2 if place == 0 else 1)
    chip = _chip(npe=32, ep=4, vp=8, threads=2, tail_width=2, latency=SMALL_LATENCY)
    jobs = [{"name": "job", "model": {"name": "several", "layers": layers}, "steps": 4, "count": 3}]
    title = f"layers of {', '.join(names)}; three jobs on two threads, ep 4, vp 8"
    return Setting(title, {"name": "cells", "chip": chip, "jobs": jobs}, numbers=True, options={"random_weights": 1})


def _silero(about: str, **precision: str) -> Setting:
    """Silero VAD on real speech."""
    job = {"model": "silero-vad-16k", "steps": 174, "inputs": "silero-speech.safetensors"}
    chip = _chip(npe=256, ep=8, vp=32, tail_width=8)
    scenario = {"name": "silero", "chip": chip, "jobs": [job], "precision": precision}
    title = f"Silero VAD, 174 frames of speech, its own weights, {about}"
    return Setting(title, scenario, numbers=True, simulator="verilator", options={"deep": True})


def _cores() -> Setting:
    """Five jobs of two models, which one dispatcher places on two unlike cores."""
    stack = [{"cell": "lstm", "hidden": 4, "input": 3, "bidirectional": True}, {"cell": "gru", "hidden": 5, "input": 8}]
    models = ({"name": "stack", "layers": stack}, {"name": "one", "layers": [{"cell": "gru", "hidden": 6, "input": 4}]})
    cores = [
        {"npe": 32, "ep": 2, "vp": 16, "threads": 2, "tail_width": 2},
        {"npe": 24, "ep": 3, "vp": 8, "tail_width": 3, "thread_policy": "fine"},
    ]
    jobs = [
        {"name": f"job {place}", "model": models[place % 2], "steps": 2, "arrival": 7 * place} for place in range(5)
    ]
    scenario = {"name": "cores", "chip": {**_chip(), "cores": cores}, "jobs": jobs}
    return Setting("two unlike cores, five jobs of two models", scenario, numbers=True, options={"random_weights": 1})


DEMO = Setting("demo of the README: four LSTMs, two threads", str(SCENARIOS / "demo.yaml"))
SETTINGS = (
    _cells("lstm", "gru", "rnn"),
    _worked(512, 32, 2048, 1, 1),
    _worked(512, 32, 2048, 2, 2),
    _worked(1024, 32, 2048, 1, 1),
    _worked(1024, 16, 4096, 1, 1),
    _worked(512, 32, 2048, 1, 1, cell="gru"),
    _worked(512, 32, 2048, 1, 1, cell="gru-lbr0"),
    DEMO,
    _cores(),
    _cells("lstm-peephole", "lstm-projection", "gru-lbr0"),
    _cells("lstm-layernorm", "slstm", "mingru"),
    _silero("usual formats"),
    _silero("shared formats and a common shift", formats="shared", shift="common"),
)
#: What is counted, in the order of `GROUPS`.
HEADS = ("issues", "turns of the tail", "admissions and finishes", "names", "vectors of h", "adapted sums", "states")
#: The design whose resources are counted.
COUNTED = {
    "name": "counted",
    "chip": _chip(npe=16, ep=2, vp=8, tail_width=1, threads=2),
    "jobs": [{"model": {"name": "lstm", "layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}, "steps": 2}],
}


def compared(setting: Setting, folder: str) -> Any:
    """Write the Verilog of a setting, simulate it, compare."""
    options = setting.options if setting.numbers else {"timing_only": True}
    return lstmsim.run_rtl(setting.scenario, folder, verify=True, simulator=setting.simulator, **options)


def row(setting: Setting) -> str:
    """The row of a setting: what is equal, of how many."""
    with tempfile.TemporaryDirectory() as around:
        report = compared(setting, f"{around}/design")
    verified = report.verified
    assert verified is not None
    counts = [f"{verified.compared.equal[group]:,}" if verified.compared.equal[group] else "-" for group in GROUPS]
    multipliers = sum(core.npe for core in report.run.scenario.chip.cores)
    verdict = "all equal" if verified.equal else "DIFFERENT"
    cells = (setting.title, f"{multipliers:,}", setting.simulator, *counts, verdict)
    return f"| {' | '.join(cells)} |"


def resources() -> list[str]:
    """What Yosys counts for a small design, beside `lstmsim fit`."""
    with tempfile.TemporaryDirectory() as around:
        report = lstmsim.run_rtl(COUNTED, f"{around}/design", random_weights=1, synth="ecp5")
    assert report.synthesis is not None
    title = "An LSTM 16/16 on 16 multipliers (ep 2, vp 8), two threads, one lane:"
    rendered = renderings.text(Document.of("", *synthesis_sections(report.run.scenario, report.synthesis)))
    return [title, "", "```text", *rendered.splitlines(), "```"]


def text(small: bool = False) -> str:
    """The summary; `small`: the first two rows."""
    lines = ["# Verilog and simulator", "", "How many events are equal, of all there are; names: one a cycle.", ""]
    lines += [
        "No verdict hangs on an assumed latency: the Verilog is written with the latencies of the simulated chip.",
        "",
    ]
    lines += [f"| scenario | multipliers | simulated by | {' | '.join(HEADS)} | verdict |"]
    lines += [f"| --- | ---: | --- |{' ---: |' * len(GROUPS)} --- |"]
    lines += [row(each) for each in SETTINGS[: 2 if small else None]]
    if not small:
        lines += ["", "## Resources", "", *resources()]
    return "\n".join((*lines, ""))


if __name__ == "__main__":
    from experiments.run import main

    main("rtl")
