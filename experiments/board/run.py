"""Three recurrent networks on a board with an ECP5-85: clock, time of a frame, and what is used beside `lstmsim fit`.

A keyword spotter, Silero VAD with its own weights on real speech, and two LSTMs at once. Cycles and the numbers of
`fit` are computed here. MHz and what is used are what Yosys and nextpnr say: `python experiments/board/build.py FOLDER`
builds the bitstreams and writes built.csv, which this script reads. No bitstream was loaded: no board was at hand.

Run `python experiments/board/run.py`; `--write` refreshes expected.md beside it.
"""

from __future__ import annotations

import tempfile
from typing import Any

import lstmsim
from experiments.board.build import rows
from experiments.board.designs import BOARD, CLOCK_MHZ, DESIGNS, LATENCY, Design
from lstmsim.base.errors import InputError
from lstmsim.studies.rtl.synthesis import family_of, fitted

#: Arrays on which Silero VAD is tried: multipliers, ep, vp, lanes of the tail.
ARRAYS = ((16, 2, 8, 1), (32, 4, 8, 1), (32, 2, 16, 2), (64, 4, 16, 2), (64, 8, 8, 1), (128, 8, 16, 2))


def frames(design: Design) -> int:
    """Frames of the longest job."""
    return max(job["steps"] for job in design.scenario["jobs"])


def clock_rows() -> list[str]:
    """For each design cycles of a frame, and the time of it at the clock that the placed design reaches."""
    lines, built = [], rows()
    for design in DESIGNS:
        cycles = lstmsim.run(design.scenario).report.makespan_cycles / frames(design)
        row = built.get(design.name)
        said = ["not built yet", "-", "-"]
        if row is not None:
            mhz = float(row["worst_mhz"])
            us = cycles / mhz
            clock = f"{mhz:.1f}" + ("" if row["seeds"] == "1" else f" to {row['best_mhz']} ({row['seeds']} seeds)")
            said = [clock, f"{us:.1f}", f"{us / 1000 / design.frame_ms:.5f}"]
        lines.append(f"| {design.title} | {cycles:,.0f} | {' | '.join(said)} | {design.frame_ms:g} |")
    return lines


def used_rows() -> list[str]:
    """What is used of the FPGA, and in brackets what `fit` counts without the bridge."""
    lines, built = [], rows()
    for design in DESIGNS:
        own = fitted(lstmsim.run(design.scenario).scenario, family_of("ecp5"))
        needs = {key: sum(getattr(each, key) for each in own.parts) for key in ("logic", "registers", "memories")}
        needs["multipliers"] = own.multipliers.need or 0
        row: dict[str, Any] = built.get(design.name, {})
        cells = [
            f"{int(row[column]):,} ({needs[name]:,})" if row else f"- ({needs[name]:,})"
            for column, name in (
                ("lut4", "logic"),
                ("registers", "registers"),
                ("multipliers", "multipliers"),
                ("memories", "memories"),
            )
        ]
        lines.append(f"| {design.name} | {' | '.join(cells)} | {row.get('longest_path', '-')} |")
    return lines


def silero_rows() -> list[str]:
    """Which arrays for Silero VAD fit the board, and what keeps the others from it."""
    lines = []
    chosen = DESIGNS[-1].scenario
    for npe, ep, vp, lanes in ARRAYS:
        core = {"npe": npe, "ep": ep, "vp": vp, "tail_width": lanes, "latency": LATENCY}
        scenario = {**chosen, "chip": {**chosen["chip"], "cores": [core]}}
        cycles = lstmsim.run(scenario).report.makespan_cycles / frames(DESIGNS[-1])
        verdict = "fits"
        with tempfile.TemporaryDirectory() as around:
            try:
                lstmsim.run_rtl(scenario, f"{around}/design", board=BOARD, clock=CLOCK_MHZ)
            except InputError as error:
                verdict = str(error).removeprefix("--board: ")
        lines.append(f"| {npe} (ep {ep}, vp {vp}) | {lanes} | {cycles:,.0f} | {verdict} |")
    return lines


def text(small: bool = False) -> str:
    """The summary; `small`: without the arrays for Silero VAD."""
    lines = [f"# Three networks on {BOARD}", ""]
    lines += [
        "The real-time factor is the time of a frame over the time from one frame to the next: below 1 keeps up.",
        f"The PLL is asked for {CLOCK_MHZ} MHz; MHz are what nextpnr says of the placed design, bridge included (one",
        "seed of placement: a few MHz say nothing). Times are those at this clock. No bitstream was loaded.",
        f"Latencies: `convert: {LATENCY['convert']}`, with which the adapter has all its registers, else the defaults.",
        "No verdict hangs on an assumed latency: the Verilog is written with the latencies of the simulated chip.",
        *(f"Sizes of {design.name}: {design.source}." for design in DESIGNS if design.source),
        "",
        "| design | cycles a frame | MHz | us a frame | real-time factor | ms between frames |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *clock_rows(),
        "",
        "What is used of the FPGA, with bridge, schedule and results. In brackets: `lstmsim fit`, of the chip alone.",
        "",
        "| design | LUT4 | registers | MULT18X18D | memory blocks | longest path |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        *used_rows(),
        "",
    ]
    if not small:
        lines += [
            "## Silero VAD by size of the array",
            "",
            "| multipliers | lanes | cycles a frame | on the board |",
            "| --- | ---: | ---: | --- |",
            *silero_rows(),
            "",
            "The memory of results takes most blocks: it keeps all h of the run until the host reads them, a record",
            "for each cycle in which some are there. Two lanes need half the records of one.",
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from experiments.run import main

    main("board")
