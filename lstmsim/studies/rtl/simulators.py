"""Simulators of Verilog: Icarus and Verilator, looked for on the PATH, and run in a folder of their own."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence

from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.processes import Ran, missing, run_program, scratch_folder
from lstmsim.base.records import record

#: Verilator compiles a testbench with delays from this version on.
_OLDEST_VERILATOR = (5, 2)


@record
class Simulator:
    """A simulator that is there."""

    name: str  # a key of `SIMULATORS`
    version: str  # what it says of itself


@record
class Simulated:
    """A simulation that has run to its end."""

    log: tuple[str, ...]  # the lines of `events.txt`
    said: str  # what the testbench has printed
    compile_seconds: float  # compile_seconds, run_seconds: how long that took on the clock of the wall
    run_seconds: float


#: The simulators, and the programs that each needs with the package of each.
SIMULATORS: dict[str, tuple[tuple[str, str], ...]] = {
    "icarus": (("iverilog", "iverilog"), ("vvp", "iverilog")),
    "verilator": (("verilator", "verilator"), ("make", "make"), ("g++", "g++")),
}


def simulator_of(name: str) -> Simulator:
    """Look for a simulator."""
    from lstmsim.base.wording import must_be

    if name not in SIMULATORS:
        raise InputError(Mistake("--simulator", must_be(name, tuple(SIMULATORS))))
    option = f"--simulator {name}"
    missing(option, SIMULATORS[name])
    if name == "icarus":
        return Simulator(name, run_program(["iverilog", "-V"]).output.split("\n", 1)[0].removesuffix(" ()"))
    version = run_program(["verilator", "--version"]).output.strip()
    numbers = re.search(r"(\d+)\.(\d+)", version)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < _OLDEST_VERILATOR:
        raise InputError(Mistake(option, f"must be Verilator 5.002 or newer, got {version}"))
    return Simulator(name, version)


def simulate_rtl(
    simulator: Simulator,
    folder: str,
    sources: Sequence[str],
    testbench: str,
    limit: int,
    defines: Sequence[str] = (),
    waves: str | None = None,
    seconds: float = 3600,
) -> Simulated:
    """Compile hardware with its testbench, and run it."""
    events = os.path.join(folder, "events.txt")
    arguments = [f"+limit={limit}", *([] if waves is None else [f"+vcd={os.path.abspath(waves)}"])]
    with scratch_folder("rtl") as built:
        compiling, running = compile_command(
            simulator.name, built, sources, testbench, ("rtl", "sim"), {}, defines, waves is not None
        )
        start = time.perf_counter()
        run_program(compiling, folder, seconds)
        middle = time.perf_counter()
        if os.path.lexists(events):
            os.unlink(events)
        ran = run_program([*running, *arguments], folder, seconds)
        end = time.perf_counter()
    if not os.path.isfile(events):
        raise LstmsimError(f"{testbench} has written no events.txt; it said: {_said(ran) or 'nothing'}")
    with open(events, encoding="utf-8", errors="replace") as file:
        return Simulated(tuple(file.read().splitlines()), _said(ran), middle - start, end - middle)


def _said(ran: Ran) -> str:
    return (ran.output + ran.errors).strip()


def compile_command(
    simulator: str,
    built: str,
    sources: Sequence[str],
    testbench: str,
    includes: Sequence[str],
    parameters: Mapping[str, int],
    defines: Sequence[str] = (),
    traced: bool = False,
) -> tuple[list[str], list[str]]:
    """What compiles, and what runs it.

    Verilator knows no x: what was never written gets random values, so that nobody can rely on zeros.
    built: folder of what is compiled; includes: folders of headers; parameters: of the testbench.
    """
    found = [f"-I{each}" for each in includes]
    if simulator == "icarus":
        target = os.path.join(built, "simulation.vvp")
        flags = ["-g2005", *found, "-s", testbench, "-o", target, *(f"-D{each}" for each in defines)]
        flags += [f"-P{testbench}.{name}={value}" for name, value in parameters.items()]
        return ["iverilog", *flags, *sources], ["vvp", "-n", target]
    flags = ["--binary", "--timing", *found, "--top-module", testbench, "--Mdir", built, "-o", "simulation"]
    flags += ["-Wno-fatal", "-Wno-lint", "-Wno-style", "--x-assign", "unique", "--x-initial", "unique"]
    flags += ["-CFLAGS", "-O1", "--build-jobs", str(min(2, os.cpu_count() or 1))]
    flags += [f"-G{name}={value}" for name, value in parameters.items()]
    flags += [*(["--trace"] if traced else []), *(f"+define+{each}" for each in defines)]
    run = [os.path.join(built, "simulation"), "+verilator+rand+reset+2", "+verilator+seed+1"]
    return ["verilator", *flags, *sources], run
