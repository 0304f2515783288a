"""Steps on the way to generated hardware that is proved: what is refused, numbers, simulation, synthesis."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.folder import LIST, check_folder
from lstmsim.base.processes import scratch_folder
from lstmsim.base.records import record
from lstmsim.base.wording import listed
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.program.accounts import named_cycles
from lstmsim.studies.rtl.comparison import Compared, compare
from lstmsim.studies.rtl.families import family_of
from lstmsim.studies.rtl.log import read_log
from lstmsim.studies.rtl.simulators import Simulator, simulate_rtl
from lstmsim.studies.rtl.synthesis import Synthesis, synthesize, yosys_program
from lstmsim.studies.shared.arguments import refuse
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.simulate.run import Run, simulate

if TYPE_CHECKING:
    from lstmsim.machines.rtl import Event, GeneratedHardware
    from lstmsim.model.numerics.golden import NetworkRun
    from lstmsim.model.numerics.jobs import JobNumbers
    from lstmsim.model.numerics.recorded import Values
    from lstmsim.model.scenario import Scenario

__all__ = [
    "Golden",
    "Verified",
    "golden_of",
    "hardware_of",
    "names_of",
    "refuse_folder",
    "refuse_options",
    "synthesized",
    "verified",
]

#: The log that the testbench writes in the folder of a design.
LOG = "events.txt"
#: Cycles after the last one of the simulator's run after which a simulation of hardware is ended.
_MARGIN = 1000
#: Up to how many cycles of all cores numbers within the tail are compared, too, unless asked otherwise: a line of the
#: log for each turn and state, so the log is some three times as long.
_DEEP_CYCLES = 20_000
#: About how many seconds compiling and simulating take with all numbers, from multipliers and cycles. Rates of two runs
#: of LSTMs with 256 multipliers on one core; for other sizes that they grow in proportion is an assumption.
_SECONDS: Mapping[str, Callable[[int, int], float]] = {
    "icarus": lambda multipliers, cycles: multipliers * cycles / 22_000,
    "verilator": lambda multipliers, cycles: 10 + multipliers * (0.1 + cycles / 16e6),
}
#: From how many minutes on this is said.
_SLOW_MINUTES = 2


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


def verified(
    program: Simulator | None,
    hardware: GeneratedHardware,
    folder: str,
    files: Mapping[str, str],
    events: Sequence[Event],
    timing_only: bool,
    vcd: Path | None,
) -> Verified | None:
    """Simulate the files as they are in the folder, and compare the log; None: nothing shall simulate them."""
    if program is None:
        return None
    defines = (hardware.timing_define,) * timing_only
    last = max((each.cycle for each in events), default=0)
    sources = sorted(each for each in files if each.endswith(".v"))
    with scratch_folder("vcd") as kept:
        waves = None if vcd is None else os.path.join(kept, "rtl.vcd")
        done = simulate_rtl(program, folder, sources, hardware.testbench, last + _MARGIN, defines, waves)
        log = read_log(done.log)
        compared = compare(events, log)
        if waves is not None and vcd is not None:
            from lstmsim.studies.rtl.waves import merge_waves

            merge_waves(waves, os.fspath(vcd), hardware.testbench, events, compared.differences)
    return Verified(program, compared, log, done.compile_seconds, done.run_seconds)


def synthesized(hardware: GeneratedHardware, folder: str, files: Mapping[str, str], family: str) -> Synthesis:
    """Count the cells of the files as they are in the folder; the testbench is no part of the hardware."""
    sources = sorted(each for each in files if each.endswith(".v") and each.startswith("rtl/"))
    return synthesize(folder, sources, hardware.top, family_of(family), hardware.parts)


def refuse_options(
    verify: bool, vcd: object, timing_only: bool, random_weights: int | None, synth: str | None, deep: bool | None
) -> None:
    """`InputError` for options that do not go together, and for a family or a program that is not there."""
    wrong = [] if vcd is None or verify else [Mistake("vcd", "only with verify: without it nothing is simulated")]
    if timing_only and random_weights is not None:
        wrong.append(Mistake("random_weights", "not with timing_only, which leaves numbers out"))
    if deep and timing_only:
        wrong.append(Mistake("deep", "not with timing_only: without numbers there is nothing within the tail"))
    if synth is not None and timing_only:
        wrong.append(Mistake("synth", "not with timing_only: without numbers there is no datapath to count"))
    refuse(wrong)
    if synth is not None:
        family_of(synth)
        yosys_program()


def hardware_of(result: Run) -> GeneratedHardware:
    """How the machine of a run is written; `InputError` if it is not."""
    chip = result.scenario.chip
    hardware = target_of(chip.kind).generated_hardware()
    if hardware is None:
        written = [each.title for each in map(target_of, KINDS) if each.generated_hardware() is not None]
        text = f"its machine, the {target_of(chip.kind).title}, cannot be written as RTL"
        raise InputError(Mistake(f"chip {chip.name}", f"{text}; machines that can: {listed(written, 'and')}"))
    return hardware


@record
class Golden:
    """The numbers of all jobs, and what the golden model makes of them.

    numbers: by place of the job in the scenario, with one calibration for each model.
    runs: the golden runs.
    values: all that was computed in them; None: it was not kept.
    """

    numbers: Mapping[int, JobNumbers]
    runs: Mapping[int, NetworkRun]
    values: Mapping[int, Values] | None


def golden_of(result: Run, random_weights: int | None, deep: bool | None) -> Golden:
    """Run the golden model of all jobs.

    deep: whether all that is computed is kept; None: where the run is small.
    """
    from lstmsim.files.scenario.numbers import job_data
    from lstmsim.model.numerics.jobs import fixed_numbers, run_jobs
    from lstmsim.model.numerics.recorded import run_recorded

    scenario = result.scenario
    if random_weights is None:
        models = dict.fromkeys(job.model for job in scenario.jobs)
        text = "has no weights: --random-weights 0 draws some, --timing-only leaves numbers out"
        refuse(Mistake(f"model {each.name}", text) for each in models if each.network is None and not each.weights)
    numbers = fixed_numbers(job_data(scenario, random_weights), scenario.precision)
    if deep is None:
        deep = result.report.makespan_cycles * len(scenario.chip.cores) <= _DEEP_CYCLES
    if not deep:
        return Golden(numbers, run_jobs(numbers), None)
    kept = {index: run_recorded(own) for index, own in numbers.items()}
    return Golden(numbers, {key: run for key, (run, _) in kept.items()}, {key: own for key, (_, own) in kept.items()})


def names_of(result: Run) -> tuple[tuple[str, ...], ...]:
    """For each core the name of each of its cycles."""
    cores = range(len(result.program.cores))
    return tuple(named_cycles(result.program, result.trace, core).each() for core in cores)


def slow_words(scenario: Scenario, simulator: str) -> str:
    """Say that a simulation with all numbers takes minutes, and what to do; empty: it does not.

    scenario: what is simulated.
    simulator: a key of `lstmsim.studies.rtl.simulators.SIMULATORS`.

    >>> from lstmsim.studies.shared.loading import load_scenario
    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> slow_words(scenario, "icarus").split("; ")[0]
    'all bits of 65,536 multipliers over 1,423 cycles take icarus some 71 minutes'
    """
    cycles, multipliers = simulate(scenario).makespan_cycles, sum(each.peak for each in scenario.chip.core_figures)
    minutes = _SECONDS[simulator](multipliers, cycles) / 60
    if minutes < _SLOW_MINUTES:
        return ""
    other = "--timing-only compares cycles alone"
    if minutes > _SECONDS["verilator"](multipliers, cycles) / 30:
        other = f"--simulator verilator takes less, {other}"
    size = f"all bits of {multipliers:,} multipliers over {cycles:,} cycles"
    return f"{size} take {simulator} some {minutes:.0f} minutes; {other}"


def refuse_folder(folder: str, verify: bool) -> None:
    """`InputError` for a folder that cannot be written, and for a log in it that others wrote: it would be lost."""
    own = os.path.exists(os.path.join(folder, LIST))
    check_folder(folder, {LOG: ""} if verify else {}, replace=own)
