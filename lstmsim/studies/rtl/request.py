"""Options of generated hardware."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Engine, MostJobs, MostSteps, Overrides, Path, RandomWeights, Source

Simulator = Annotated[
    str,
    Key("Simulator: icarus compiles at once, verilator runs about 40 times faster.", choices=("icarus", "verilator")),
]


@record
class RtlRequest:
    """A scenario whose chip is written as Verilog, and what is done with the files."""

    scenario: Source
    folder: Annotated[Path, Key("Folder that gets the files.", flag="--out", metavar="DIR")]
    _: KW_ONLY
    verify: Annotated[bool, Key("Simulate the Verilog and compare it; the exit code is 1 if it differs.")] = False
    simulator: Simulator = "icarus"
    deep: Annotated[
        bool | None, Key("Compare adapted sums and states within the tail, too.", follows="if the run is short")
    ] = None
    synth: Annotated[
        str | None,
        Key(
            "Family of FPGAs whose cells Yosys counts, beside the numbers of `lstmsim fit`; "
            "ecp5 with --verify also simulates the netlist.",
            choices=("ecp5", "xilinx", "intel-alm"),
        ),
    ] = None
    most_jobs: MostJobs = None
    most_steps: MostSteps = None
    netlist_of: Annotated[
        Path | None,
        Key("With --most-jobs: folder of a design; refuse a scenario that needs another netlist.", metavar="DIR"),
    ] = None
    timing_only: Annotated[bool, Key("Compare cycles only: no numbers are computed, no weights are needed.")] = False
    random_weights: RandomWeights = None
    overrides: Overrides = ()
    replace: Annotated[bool, Key("Replace also files in DIR that were changed since lstmsim wrote them.")] = False
    vcd: Annotated[
        Path | None,
        Key("File for the signals of the RTL, and lstmsim's with them (.vcd); only with verify.", metavar="FILE"),
    ] = None
    board: Annotated[
        str | None,
        Key(
            "Board for the design: top module, constraints, host bridge and build script are written as well.",
            metavar="NAME",
        ),
    ] = None
    clock: Annotated[
        float | None,
        Key(
            "With --board: clock of the design in MHz.",
            above=0,
            high=1000,
            follows="that of the board's oscillator",
            metavar="MHZ",
        ),
    ] = None
    build: Annotated[bool, Key("With --board: make the bitstream, by Yosys and nextpnr.")] = False
    seeds: Annotated[int, Key("With --build: number of seeds of placement to try.", low=1, high=100, metavar="N")] = 1
    engine: Engine = "fast"
