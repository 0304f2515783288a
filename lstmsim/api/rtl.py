"""Generated hardware as a function: written, simulated, and compared with the simulator event for event."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lstmsim.api.arguments import refuse, wrong_path, wrong_whole
from lstmsim.api.loading import Path, Source
from lstmsim.api.run import Run, run
from lstmsim.errors import InputError, Mistake
from lstmsim.formats.folder import Written, check_folder, write_folder
from lstmsim.metrics.accounts import named_cycles
from lstmsim.results import Table
from lstmsim.rtl.comparison import Compared, compare
from lstmsim.rtl.log import log_text, read_log
from lstmsim.rtl.simulators import Simulator, simulate_rtl, simulator_of
from lstmsim.targets.registry import KINDS, target_of
from lstmsim.wording import listed

if TYPE_CHECKING:
    from lstmsim.numerics.golden import NetworkRun
    from lstmsim.numerics.jobs import JobNumbers
    from lstmsim.targets.rtl import Event, GeneratedHardware

__all__ = ["GOLDEN", "LOG", "RtlReport", "Verified", "run_rtl"]

#: What the simulator says, and what the testbench writes, in the folder of a design.
GOLDEN, LOG = "golden/events.txt", "events.txt"
#: Cycles after the last one of the simulator's run after which a simulation of hardware is ended.
_MARGIN = 1000


@dataclass(frozen=True, eq=False)
class Verified:
    """Generated hardware, simulated and compared.

    simulator: what simulated it.
    compared: what is equal, and the first differences.
    log: all events of the hardware.
    compile_seconds, run_seconds: how long compiling and running took.
    """

    simulator: Simulator
    compared: Compared
    log: tuple[Event, ...]
    compile_seconds: float
    run_seconds: float

    @property
    def equal(self) -> bool:
        """Whether every line of the log is what the simulator says."""
        return not self.compared.differences


@dataclass(frozen=True, eq=False)
class RtlReport(Table, forms="lstmsim.api.rtl_text"):
    """A scenario's chip, written as RTL.

    run: the simulation that it is compared with.
    hardware, design: how the machine is written, and what is built for this scenario.
    folder: where its files are.
    written: what was done to that folder.
    events: what the simulator says, in the order of the log.
    with_numbers: whether the numbers of the jobs are part of it; else cycles alone.
    verified: the comparison with a simulation of the RTL; None: it was not asked for.
    remarks: further sentences.
    """

    run: Run
    hardware: GeneratedHardware
    design: Any
    folder: str
    written: Written
    events: tuple[Event, ...]
    with_numbers: bool
    verified: Verified | None
    remarks: tuple[str, ...]

    @property
    def wrong(self) -> str:
        """The sentence for RTL that does not do what the simulator says; empty: it does, or nobody has looked."""
        if self.verified is None or self.verified.equal:
            return ""
        first = min(self.verified.compared.differences, key=lambda each: each.cycle)
        return f"the RTL in {self.folder} differs from the simulator, first in cycle {first.cycle:,}"


def run_rtl(
    scenario: Source,
    folder: Path,
    *,
    verify: bool = False,
    simulator: str = "icarus",
    timing_only: bool = False,
    random_weights: int | None = None,
    replace: bool = False,
    vcd: Path | None = None,
    overrides: Sequence[str] = (),
    engine: str = "fast",
) -> RtlReport:
    """Write a scenario's chip as Verilog, and prove by simulation that it does what lstmsim says.

    scenario: a path, a mapping, or a `Scenario`.
    folder: gets the files; what stands there and is not from lstmsim stays, or is refused.
    verify: whether the RTL is simulated and compared: every issue, turn, admission, finish, name of a cycle, and h.
    simulator: `icarus`, or `verilator` for long runs.
    timing_only: whether numbers are left out: no weights are needed, no h is computed.
    random_weights: the seed to draw weights with, for models that have none.
    replace: whether files are replaced that were changed since lstmsim wrote them; else they stay and are simulated.
    vcd: a file for the signals of the RTL with lstmsim's events beside them; only with `verify`.
    overrides: texts like `"chip.cores.0.ep=16"`.
    engine: a key of `lstmsim.engines.ENGINES`; all give the same cycles.

    `InputError` before a file is written: for a scenario that cannot be built (with the key), without weights, without
    the simulator. A difference is no error: `RtlReport.verified.equal` tells.

    >>> run_rtl({"chip": "brainwave-s10", "jobs": [{"model": "lstm-256", "steps": 2}]}, "out")
    Traceback (most recent call last):
    lstmsim.errors.InputError: chip brainwave-s10: its machine cannot be written as RTL
    """
    refuse(wrong_path("folder", folder), wrong_whole("random_weights", random_weights, 0))
    name = os.fspath(folder)
    _refuse_options(verify, vcd, timing_only, random_weights)
    program = simulator_of(simulator) if verify else None
    result = run(scenario, engine=engine, overrides=overrides)
    hardware = _hardware(result)
    refuse(hardware.refusals(result.scenario, None if timing_only else result.scenario.precision))
    numbers, runs = (None, None) if timing_only else _numbers(result, random_weights)
    design = hardware.design(result.scenario, result.scenario.precision, numbers)
    events = hardware.events(design, result.program, result.trace, _names(result), runs)
    files = {**hardware.files(design, numbers), GOLDEN: log_text(events)}
    _refuse_foreign_log(name, verify)
    written = write_folder(name, files, replace=replace)
    defines = (hardware.timing_define,) * timing_only
    return RtlReport(
        run=result,
        hardware=hardware,
        design=design,
        folder=name,
        written=written,
        events=events,
        with_numbers=not timing_only,
        verified=None if program is None else _verified(program, hardware, name, files, events, defines, vcd),
        remarks=_remarks(name, written),
    )


def _names(result: Run) -> tuple[tuple[str, ...], ...]:
    """For each core the name of each of its cycles."""
    cores = range(len(result.program.cores))
    return tuple(named_cycles(result.program, result.trace, core).each() for core in cores)


def _verified(
    program: Simulator,
    hardware: GeneratedHardware,
    folder: str,
    files: Mapping[str, str],
    events: Sequence[Event],
    defines: Sequence[str],
    vcd: Path | None,
) -> Verified:
    """Simulate the files as they are in the folder, and compare the log."""
    import tempfile

    last = max((each.cycle for each in events), default=0)
    sources = sorted(each for each in files if each.endswith(".v"))
    with tempfile.TemporaryDirectory(prefix="lstmsim-vcd-") as kept:
        waves = None if vcd is None else os.path.join(kept, "rtl.vcd")
        done = simulate_rtl(program, folder, sources, hardware.testbench, last + _MARGIN, defines, waves)
        log = read_log(done.log)
        compared = compare(events, log)
        if waves is not None and vcd is not None:
            from lstmsim.rtl.waves import merge_waves

            merge_waves(waves, os.fspath(vcd), hardware.testbench, events, compared.differences)
    return Verified(program, compared, log, done.compile_seconds, done.run_seconds)


def _refuse_options(verify: bool, vcd: object, timing_only: bool, random_weights: int | None) -> None:
    wrong = [] if vcd is None or verify else [Mistake("vcd", "only with verify: without it nothing is simulated")]
    if timing_only and random_weights is not None:
        wrong.append(Mistake("random_weights", "not with timing_only, which leaves numbers out"))
    refuse(wrong)


def _hardware(result: Run) -> GeneratedHardware:
    """How the machine of a run is written; `InputError` if it is not."""
    chip = result.scenario.chip
    hardware = target_of(chip.kind).generated_hardware()
    if hardware is None:
        written = [each.title for each in map(target_of, KINDS) if each.generated_hardware() is not None]
        text = f"its machine, the {target_of(chip.kind).title}, cannot be written as RTL"
        raise InputError(Mistake(f"chip {chip.name}", f"{text}; of {listed(written, 'and')} it can"))
    return hardware


def _numbers(result: Run, random_weights: int | None) -> tuple[Mapping[int, JobNumbers], Mapping[int, NetworkRun]]:
    """The numbers of all jobs with one calibration for each model, and their golden runs."""
    from lstmsim.formats.scenario.numbers import job_data
    from lstmsim.numerics.jobs import fixed_numbers, run_jobs

    scenario = result.scenario
    if random_weights is None:
        models = dict.fromkeys(job.model for job in scenario.jobs)
        text = "has no weights: --random-weights 0 draws some, --timing-only leaves numbers out"
        refuse(Mistake(f"model {each.name}", text) for each in models if each.network is None and not each.weights)
    numbers = fixed_numbers(job_data(scenario, random_weights), scenario.precision)
    return numbers, run_jobs(numbers)


def _refuse_foreign_log(folder: str, verify: bool) -> None:
    """`InputError` for a log in a folder into which lstmsim has written nothing: it would be lost."""
    from lstmsim.formats.folder import LIST

    if verify and not os.path.exists(os.path.join(folder, LIST)):
        check_folder(folder, {LOG: ""})


def _remarks(folder: str, written: Written) -> tuple[str, ...]:
    kept = (
        f"kept {os.path.join(folder, each)}, which was changed since lstmsim wrote it; --replace writes it anew"
        for each in written.kept
    )
    removed = (f"removed {os.path.join(folder, each)}, which is no longer needed" for each in written.removed)
    return (*kept, *removed)
