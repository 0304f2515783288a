"""Generated hardware: written, simulated, and compared with the simulator event for event."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.folder import LIST, Written, check_folder, write_folder
from lstmsim.base.processes import scratch_folder
from lstmsim.machines.registry import generated_of
from lstmsim.machines.rtl import AT_PORTS, Event
from lstmsim.program.accounts import named_cycles
from lstmsim.studies.board.build import build, refuse_tools
from lstmsim.studies.fit.needs import table_stored
from lstmsim.studies.rtl.request import RtlRequest
from lstmsim.studies.rtl.result import RtlReport, Verified, compare, log_text, read_log
from lstmsim.studies.rtl.simulators import Simulator, simulate_rtl, simulator_of
from lstmsim.studies.rtl.synthesis import (
    SIMULATED,
    Synthesis,
    family_of,
    fitted,
    models_folder,
    netlist_models,
    synthesize,
    yosys_program,
)
from lstmsim.studies.shared.request import Path, table_size, takes
from lstmsim.studies.simulate.run import Run, run, simulate

if TYPE_CHECKING:
    from lstmsim.model.numerics.golden import NetworkRun
    from lstmsim.model.numerics.jobs import JobNumbers, Values
    from lstmsim.model.scenario import Scenario
    from lstmsim.studies.board.boards import Board, Pll

#: What the simulator says, in the folder of a design.
GOLDEN = "golden/events.txt"
#: The log that the testbench writes in the folder of a design.
LOG = "events.txt"
#: Cycles after the last one of the simulator's run after which a simulation of hardware is ended.
_MARGIN = 1000
#: Up to how many cycles of all cores numbers within the tail are compared, too, unless asked otherwise: a line of the
#: log for each turn and state, so the log is some three times as long.
DEEP_CYCLES = 20_000
#: About how many seconds compiling and simulating take with all numbers, from multipliers and cycles. Rates of two runs
#: of LSTMs with 256 multipliers on one core; for other sizes that they grow in proportion is an assumption.
_SECONDS: Mapping[str, Callable[[int, int], float]] = {
    "icarus": lambda multipliers, cycles: multipliers * cycles / 22_000,
    "verilator": lambda multipliers, cycles: 10 + multipliers * (0.1 + cycles / 16e6),
}
#: Seconds that Icarus takes beside that for a table of jobs, for each thread and square of the table's bits: it copies
#: the table for every thread whenever the host writes a word. Of 16 multipliers with 256 jobs and two threads, and 64
#: jobs and four threads, 67 and 8 s. With Verilator it was not measured, and is not counted.
_TABLE_SECONDS = 1.3e-8
#: From how many minutes on this is said.
_SLOW_MINUTES = 2


@takes(RtlRequest)
def run_rtl(request: RtlRequest) -> RtlReport:
    """Write a scenario's chip as Verilog, and prove by simulation that it does what lstmsim says.

    `InputError` before a file is written: for a scenario that cannot be built (with the key), without weights, without
    the simulator. A difference is no error: `RtlReport.verified.equal` shows it.

    >>> run_rtl({"chip": "brainwave-s10", "jobs": [{"model": "lstm-256", "steps": 2}]}, "out")
    Traceback (most recent call last):
    lstmsim.InputError: chip brainwave-s10: its machine, the row-wise NPU, cannot be written as RTL; ...
    """
    from lstmsim import __version__

    name, timing_only, synth = os.fspath(request.folder), request.timing_only, request.synth
    _refuse_options(request)
    _refuse_folder(name, request.verify)
    program = simulator_of(request.simulator) if request.verify else None
    placed = None if request.board is None else _board(request.board, request.clock)
    if placed is not None and request.build:
        refuse_tools(placed[0])
    result = run(request.scenario, engine=request.engine, overrides=request.overrides)
    hardware, precision = generated_of(result.scenario.chip), result.scenario.precision
    refuse(hardware.refusals(result.scenario, None if timing_only else precision))
    golden = (None, None, None) if timing_only else _golden_of(result, request.random_weights, request.deep)
    numbers, runs, values = golden
    table = table_size(request.most_jobs, request.most_steps, result.scenario)
    sized = () if table is None else (table,)
    design, simulated = hardware.design(result.scenario, precision, numbers, *sized), (result.program, result.trace)
    refuse(hardware.table_mistakes(design) if sized else ())
    reasons = tuple(named_cycles(*simulated, core).each() for core in range(len(result.program.cores)))
    events = hardware.events(design, *simulated, reasons, runs, values)
    files = dict(hardware.files(design, numbers, __version__, values is not None)) | {GOLDEN: log_text(events)}
    if request.netlist_of is not None:
        _refuse_other_netlist(os.fspath(request.netlist_of), files)
    if placed is not None:
        files |= _board_files(hardware, design, events, files, result.scenario, table, *placed)
    written = write_folder(name, files, replace=request.replace)
    missed = hardware.unexercised(design, *simulated, events, numbers, values)
    verified = _verified(program, hardware, name, files, events, timing_only, request.vcd)
    synthesis = None if synth is None else _synthesized(hardware, name, files, synth, program is not None)
    netlist = _netlist_verified(program, hardware, name, files, events, synthesis)
    built = None
    if placed is not None and request.build:
        built = build(name, placed[0], request.seeds, partial(hardware.path_words, design))
    remarks = _remarks(name, written) + (() if synth is None else hardware.synthesis_remarks(design))
    compared = (not timing_only, values is not None, missed, verified)
    return RtlReport(result, design, name, written, events, *compared, synthesis, remarks, netlist, built, table)


def _refuse_other_netlist(folder: str, files: Mapping[str, str]) -> None:
    """`InputError` if what is synthesized differs from the design in a folder; the testbench's sizes may differ."""
    own = {each for each in files if each.startswith("rtl/")}
    for name in sorted(own - {"rtl/npu_config.vh"}):
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="utf-8") as file:
                same = file.read() == files[name]
        except (OSError, UnicodeDecodeError) as error:
            text = f"{path}: cannot be read; expected a folder that lstmsim rtl wrote"
            raise InputError(Mistake("netlist_of", text)) from error
        if not same:
            text = (
                "chip, models (in this order), their numbers (which precision.calibration keeps), most_jobs and "
                "most_steps must be the same"
            )
            raise InputError(Mistake("netlist_of", f"{path} is another one than this scenario needs: {text}"))
    there = {f"rtl/{each}" for each in os.listdir(os.path.join(folder, "rtl")) if each.endswith((".v", ".vh"))}
    text = "is none of the files that this scenario needs, and tools that take rtl/*.v build it: expected no such file"
    refuse(Mistake("netlist_of", f"{os.path.join(folder, name)} {text}") for name in sorted(there - own))


def _synthesized(hardware: Any, folder: str, files: Mapping[str, str], family: str, netlist: bool) -> Synthesis:
    """Count the cells of the files as they are in the folder; the testbench is no part of the hardware."""
    sources = sorted(each for each in files if each.endswith(".v") and each.startswith("rtl/"))
    kept = netlist and family == SIMULATED
    return synthesize(
        folder, sources, hardware.TOP, family_of(family), hardware.PARTS, netlist=kept, registers=hardware.REGISTERS
    )


#: Files of the hardware from which the testbench takes modules, too; a netlist is flat and has none of their names.
_OF_TESTBENCH = ("rtl/npu_lib.v",)


def _netlist_verified(
    program: Simulator | None,
    hardware: Any,
    folder: str,
    files: Mapping[str, str],
    events: Sequence[Event],
    synthesis: Synthesis | None,
) -> Verified | None:
    """Simulate a netlist with the design's testbench, and compare what its ports show; None without a netlist."""
    if program is None or synthesis is None or not synthesis.netlist:
        return None
    expected = [each for each in events if each.kind in AT_PORTS]
    with scratch_folder("netlist") as around:
        for each in files:
            if each.startswith(("data/", "sim/")) or each.endswith(".vh") or each in _OF_TESTBENCH:
                os.makedirs(os.path.dirname(os.path.join(around, each)), exist_ok=True)
                shutil.copyfile(os.path.join(folder, each), os.path.join(around, each))
        texts = {
            "netlist.v": synthesis.netlist,
            "cells.v": netlist_models(synthesis.netlist, models_folder(yosys_program())),
        }
        for name, text in texts.items():
            with open(os.path.join(around, name), "w", encoding="utf-8") as file:
                file.write(text)
        bench = sorted(each for each in files if each.startswith("sim/") and each.endswith(".v"))
        sources = [*bench, *_OF_TESTBENCH, *texts]
        last = max((each.cycle for each in events), default=0)
        defines = (hardware.NETLIST_DEFINE,)
        done = simulate_rtl(program, around, sources, hardware.TESTBENCH, last + _MARGIN, defines)
    log = read_log(done.log)
    return Verified(program, compare(expected, log), log, done.compile_seconds, done.run_seconds)


def _board(name: str, clock: float | None) -> tuple[Board, float, Pll | None]:
    """A board, the clock of the design on it, and what makes that clock; `InputError` for a board or a clock that is
    none, whatever the design.
    """
    from lstmsim.studies.board.boards import board_named, pll_for
    from lstmsim.studies.board.top import clocks_of

    board = board_named(name)
    mhz = board.clock.mhz if clock is None else clock
    pll = pll_for(board, mhz)
    mhz = mhz if pll is None else pll.mhz
    clocks_of(board, mhz)
    return board, mhz, pll


def _board_files(
    hardware: Any,
    design: Any,
    events: Sequence[Event],
    files: Mapping[str, str],
    scenario: Scenario,
    table: tuple[int, int] | None,
    board: Board,
    mhz: float,
    pll: Pll | None,
) -> dict[str, str]:
    """The files of a board, after everything that would keep the design from running on it is refused."""
    from lstmsim.studies.board.top import board_texts, refuse_board

    refuse(hardware.schedule_mistakes(design))
    modules: dict[str, str]
    modules, data = hardware.board_files(design, events, files)
    own = fitted(scenario, family_of("ecp5"), table)
    needs = {key: sum(getattr(each, key) for each in own.parts) for key in ("memories", "logic")}
    needs["multipliers"] = own.multipliers.need or 0
    # a block is 512 words of 36 bits
    needs["memories"] += -(-data["record"]["bits"] // 32) * -(-data["results"] // 512)
    refuse_board(board, needs)
    return modules | board_texts(board, mhz, pll, data, [*files, *modules])


def _remarks(folder: str, written: Written) -> tuple[str, ...]:
    kept = (
        f"kept {os.path.join(folder, each)}, which was changed since lstmsim wrote it; --replace writes it anew"
        for each in written.kept
    )
    removed = (f"removed {os.path.join(folder, each)}, which is no longer needed" for each in written.removed)
    return (*kept, *removed)


def _verified(
    program: Simulator | None,
    hardware: Any,
    folder: str,
    files: Mapping[str, str],
    events: Sequence[Event],
    timing_only: bool,
    vcd: Path | None,
) -> Verified | None:
    """Simulate the files as they are in the folder, and compare the log; None without a simulator."""
    if program is None:
        return None
    defines = (hardware.TIMING_DEFINE,) * timing_only
    last = max((each.cycle for each in events), default=0)
    sources = sorted(each for each in files if each.endswith(".v") and not each.startswith("board/"))
    with scratch_folder("vcd") as kept:
        waves = None if vcd is None else os.path.join(kept, "rtl.vcd")
        done = simulate_rtl(program, folder, sources, hardware.TESTBENCH, last + _MARGIN, defines, waves)
        log = read_log(done.log)
        compared = compare(events, log)
        if waves is not None and vcd is not None:
            from lstmsim.studies.rtl.waves import merge_waves

            merge_waves(waves, os.fspath(vcd), hardware.TESTBENCH, events, compared.differences)
    return Verified(program, compared, log, done.compile_seconds, done.run_seconds)


def _refuse_options(request: RtlRequest) -> None:
    """`InputError` for options that do not go together, and for a program that is not there."""
    without = {
        "random_weights": (request.random_weights, "it leaves numbers out"),
        "deep": (request.deep or None, "without numbers nothing within the tail can be compared"),
        "most_jobs": (request.most_jobs, "without numbers nothing is loaded"),
        "board": (request.board, "without numbers there is nothing to put on it"),
        "synth": (request.synth, "without numbers there is no datapath to count"),
    }
    wrong = [Mistake("vcd", "only with verify: without it nothing is simulated")]
    wrong = [] if request.vcd is None or request.verify else wrong
    if request.clock is not None and request.board is None:
        wrong.append(Mistake("clock", "only with board: without one nobody needs it"))
    if request.build and request.board is None:
        wrong.append(Mistake("build", "only with board: without one there is nothing to build for"))
    if request.most_jobs is None:
        needy = {"most_steps": request.most_steps, "netlist_of": request.netlist_of}
        wrong += [Mistake(key, "only with most_jobs") for key, value in needy.items() if value is not None]
    if request.seeds > 1 and not request.build:
        wrong.append(Mistake("seeds", "only with build: without it nothing is placed"))
    if request.timing_only:
        given = {name: text for name, (value, text) in without.items() if value is not None}
        wrong += [Mistake(name, f"not with timing_only: {text}") for name, text in given.items()]
    refuse(wrong)
    if request.synth is not None:
        yosys = yosys_program()
        if request.verify and request.synth == SIMULATED:
            models_folder(yosys)


def _golden_of(
    result: Run, random_weights: int | None, deep: bool | None
) -> tuple[Mapping[int, JobNumbers], Mapping[int, NetworkRun], Mapping[int, Values] | None]:
    """Run the golden model of all jobs: their numbers, with one calibration for each model, their runs, and all that
    was computed in them, where numbers within the tail are compared.
    """
    from lstmsim.files.scenario.numbers import job_data
    from lstmsim.model.numerics.jobs import fixed_numbers, run_jobs, run_recorded

    scenario = result.scenario
    if random_weights is None:
        models = dict.fromkeys(job.model for job in scenario.jobs)
        text = "has no weights: --random-weights 0 draws some, --timing-only leaves numbers out"
        refuse(Mistake(f"model {each.name}", text) for each in models if each.network is None and not each.weights)
    numbers = fixed_numbers(job_data(scenario, random_weights), scenario.precision)
    if deep is None:
        deep = result.report.makespan_cycles * len(scenario.chip.cores) <= DEEP_CYCLES
    if not deep:
        return numbers, run_jobs(numbers), None
    kept = {index: run_recorded(own) for index, own in numbers.items()}
    return numbers, {key: run for key, (run, _) in kept.items()}, {key: own for key, (_, own) in kept.items()}


def slow_words(scenario: Scenario, simulator: str, table: tuple[int, int] | None = None) -> str:
    """Say that a simulation with all numbers takes minutes, and what to do; empty: it does not.

    scenario: what is simulated.
    simulator: a key of `lstmsim.studies.rtl.simulators.SIMULATORS`.
    table: the most jobs and steps of a table of jobs; None: jobs are constants.

    >>> from lstmsim.studies.shared.loading import load_scenario
    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> slow_words(scenario, "icarus").split("; ")[0]
    'all bits of 65,536 multipliers over 1,423 cycles take icarus some 71 minutes'
    """
    cycles, multipliers = simulate(scenario).makespan_cycles, sum(each.peak for each in scenario.chip.core_figures)
    minutes = (_SECONDS[simulator](multipliers, cycles) + _loading_seconds(scenario, simulator, table)) / 60
    if minutes < _SLOW_MINUTES:
        return ""
    other = "--timing-only compares cycles alone" if table is None else "fewer --most-jobs take less"
    if minutes > _SECONDS["verilator"](multipliers, cycles) / 30:
        other = f"--simulator verilator takes less, {other}"
    size = f"all bits of {multipliers:,} multipliers over {cycles:,} cycles"
    if table is not None:
        size += f", with a table of {table[0]:,} jobs"
        size += " (not counted)" if simulator != "icarus" else ""
    return f"{size} take {simulator} some {minutes:.0f} minutes; {other}"


def _loading_seconds(scenario: Scenario, simulator: str, table: tuple[int, int] | None) -> float:
    """About how long a simulator takes to have the table of jobs written."""
    if table is None or simulator != "icarus":
        return 0.0
    stored = table_stored(scenario, table)
    threads: int = sum(core.threads for core in scenario.chip.cores)
    bits = stored.row_bits * stored.jobs
    return _TABLE_SECONDS * threads * bits * bits


def _refuse_folder(folder: str, verify: bool) -> None:
    """`InputError` for a folder that cannot be written, and for a log in it that others wrote: it would be lost."""
    check_folder(folder, {LOG: ""} if verify else {}, replace=os.path.exists(os.path.join(folder, LIST)))
