"""Flat programs without their scenarios, of jobs, products and fused kernels: kept in files, loaded and run again."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from lstmsim import engines
from lstmsim.analysis.timeline import Timeline, build_timeline, named_groups
from lstmsim.base.errors import InputError, Mistake, ProgramError, refuse
from lstmsim.model.scenario import Chip
from lstmsim.program.accounts import totals_of
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import FlatNames, check_rows, default_names, flat_of, names_of
from lstmsim.program.program import Program
from lstmsim.program.trace import Totals, Trace
from lstmsim.program.unflatten import program_of
from lstmsim.program.validate import validate
from lstmsim.report.results import Table
from lstmsim.studies.shared.request import Path, takes, wrong_value
from lstmsim.studies.simulate.request import ProgramRequest
from lstmsim.studies.simulate.run import Run, expect, refuse_long_trace


@dataclass(frozen=True, eq=False)
class SavedProgram:
    """A program as a file holds it.

    flat: its tables.
    names: what people read of it.
    place: the file, for messages.
    """

    flat: FlatProgram
    names: FlatNames
    place: str = "program"

    @cached_property
    def program(self) -> Program:
        """The program as objects."""
        try:
            made = program_of(self.flat, self.names)
            validate(made)
        except ProgramError as error:
            raise _refusal(self.place, error) from None
        return made


@dataclass(frozen=True, eq=False)
class ProgramRun(Table, forms="lstmsim.studies.program.report"):
    """A program that was run.

    saved: the program.
    engine: a key of `lstmsim.engines.ENGINES`.
    totals: cycles by name, work and issues of each core; what became of each task.
    """

    saved: SavedProgram
    engine: str
    totals: Totals

    @property
    def makespan_cycles(self) -> int:
        """The cycle from which every task is finished."""
        return self.totals.makespan_cycles

    @cached_property
    def trace(self) -> Trace:
        """What every unit did, event for event; the program runs once more for it."""
        refuse_long_trace(operations_of(self.saved.flat))
        return engines.run(self.saved.program, self.engine, check=False)

    @cached_property
    def timeline(self) -> Timeline:
        """What happened cycle by cycle, for pictures and trace files; `InputError` for names that no row can have."""
        names = self.saved.names
        tasks = (names.tasks, names.chip, names.frequency_mhz, names.unit)
        try:
            return build_timeline(self.saved.program, self.trace, *tasks, named_groups(names.tasks))
        except ProgramError as error:
            raise _refusal(self.saved.place, error) from None


def save_program(program: Run | Program | FlatProgram | SavedProgram, path: Path) -> None:
    """Keep a program in a file (`.npz`), whole or not at all. The file says all that a run of it depends on.

    program: a run of a scenario, a Program, or a flat program that was written with NumPy.
    path: the file.

    `InputError` for a path that cannot be written, and for a program that breaks a rule.

    >>> import tempfile
    >>> from lstmsim import load_program, run, run_program, save_program
    >>> path = f"{tempfile.mkdtemp()}/lowered.npz"
    >>> save_program(run({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}), path)
    >>> run_program(load_program(path)).makespan_cycles
    226
    """
    from lstmsim.files import program_file

    expect(program, (Run, Program, FlatProgram, SavedProgram), "save_program", "a Run, a Program or a FlatProgram")
    refuse(wrong_value("path", path, Path))
    saved = _saved(program)
    program_file.save_program(path, saved.flat, saved.names)


def load_program(path: Path) -> SavedProgram:
    """Read a program that `save_program` or `lstmsim simulate --program` kept.

    path: the file.

    `InputError` if the file is no program, is damaged or of another version.

    >>> load_program("no-such-file.npz")
    Traceback (most recent call last):
    lstmsim.InputError: no-such-file.npz: no such file or folder
    """
    from lstmsim.files import program_file

    refuse(wrong_value("path", path, Path))
    flat, names = program_file.load_program(path)
    return SavedProgram(flat, names, os.fspath(path))


@takes(ProgramRequest)
def run_program(request: ProgramRequest) -> ProgramRun:
    """Run a program to its end: cycles by name for each core, and when each task finished.

    `InputError` if the program breaks a rule. `DeadlockError` if it gets stuck.

    >>> from lstmsim.program.operations import Operation
    >>> from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
    >>> task = Task("t", ((0, (Phase(Body((Operation(0, count=3),)), repeat=2),)),), (), cores=(0,))
    >>> run_program(Program((Core(0, (Unit("array", "coarse"),)),), (task,))).makespan_cycles
    6
    """
    program = request.program
    if isinstance(program, str | os.PathLike):
        program = load_program(program)
    kinds = (SavedProgram, Program, FlatProgram)
    expect(program, kinds, "run_program", "a file's path, a Program or what lstmsim.load_program gives")
    saved = _saved(program)
    ready, engine = saved.program, engines.running(request.engine)
    try:
        if engine == "fast":
            # not the tables themselves: a deadlock is told with the names
            return ProgramRun(saved, engine, engines.totals(ready, check=False))
        trace = engines.run(ready, engine)
        made = ProgramRun(saved, engine, totals_of(ready, trace))
    except ProgramError as error:
        # it keeps the rules, but its numbers are too large
        raise _refusal(saved.place, error) from None
    made.__dict__["trace"] = trace
    return made


def _refusal(place: str, error: ProgramError) -> InputError:
    """What is wrong with a program, as a mistake of whoever gave it."""
    return InputError([Mistake(place, each) for each in str(error).splitlines()])


def _saved(program: Run | Program | FlatProgram | SavedProgram) -> SavedProgram:
    if isinstance(program, SavedProgram):
        return program
    try:
        if isinstance(program, FlatProgram):
            check_rows(program)
            return SavedProgram(program, default_names(program))
        if isinstance(program, Program):
            validate(program)
            return SavedProgram(flat_of(program), names_of(program))
    except ProgramError as error:
        raise _refusal("program", error) from None
    chip = program.scenario.chip
    unit = chip.core_figures[0].unit.name
    names = replace(names_of(program.program), chip=chip.name, frequency_mhz=float(chip.frequency_mhz), unit=unit)
    return SavedProgram(flat_of(program.program), names)


def operations_of(flat: FlatProgram) -> int:
    """How many operations all tasks of a checked program run, each in its first variant.

    >>> from lstmsim.program.operations import Operation
    >>> from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
    >>> task = Task("t", ((0, (Phase(Body((Operation(0, count=3),)), repeat=2),)),), (), cores=(0,))
    >>> operations_of(flat_of(Program((Core(0, (Unit("array", "coarse"),)),), (task, task))))
    4
    """
    sizes = flat.column("bodies", "operations").tolist()
    # sums of whole numbers of Python: a damaged program may name any number of iterations
    phases = zip(flat.column("phases", "body").tolist(), flat.column("phases", "repeat").tolist(), strict=True)
    upto = [0, *accumulate(sizes[body] * repeat for body, repeat in phases)]
    variants = [upto[first + count] - upto[first] for _, _, first, count, _, _ in flat.table("variants").tolist()]
    firsts = zip(
        flat.column("profiles", "first_variant").tolist(), flat.column("profiles", "variants").tolist(), strict=True
    )
    profiles = [variants[first] if count else 0 for first, count in firsts]
    return sum(profiles[profile] for profile in flat.column("tasks", "profile").tolist())


def totals_of_flat(flat: FlatProgram, names: FlatNames, engine: str) -> Totals:
    """The totals of a run of a program."""
    if engines.running(engine) == "fast":
        return engines.totals(flat, check=False)
    program = program_of(flat, names)
    return totals_of(program, engines.run(program, engine, check=False))


def timeline_of(flat: FlatProgram, names: FlatNames, chip: Chip, engine: str) -> Timeline:
    """The timeline of a run: schedulers and warps of each core, and their memory; `InputError` if it is too long."""
    refuse_long_trace(operations_of(flat))
    try:
        program = program_of(flat, names)
    except ProgramError as error:
        raise InputError(Mistake("trace", f"is too long to record, because {error}")) from None
    trace = engines.run(program, engine, check=False)
    unit = chip.core_figures[0].unit.name
    return build_timeline(program, trace, names.tasks, chip.name, chip.frequency_mhz, unit)
