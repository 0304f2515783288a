"""Runs of flat programs, which machines make of single products and of fused kernels."""

from __future__ import annotations

from lstmsim import engines
from lstmsim.analysis.spans import build_timeline
from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError, Mistake, ProgramError
from lstmsim.model.scenario import Chip
from lstmsim.program.accounts import totals_of
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import FlatNames
from lstmsim.program.trace import Totals
from lstmsim.program.unflatten import program_of
from lstmsim.studies.program.run import operations_of
from lstmsim.studies.simulate.run import refuse_long_trace

__all__ = ["timeline_of", "totals_of_flat"]


def totals_of_flat(flat: FlatProgram, names: FlatNames, engine: str) -> Totals:
    """What a run came to.

    flat, names: the program.
    engine: a key of `lstmsim.engines.ENGINES`.
    """
    if engines.running(engine) == "fast":
        return engines.totals(flat, check=False)
    program = program_of(flat, names)
    return totals_of(program, engines.run(program, engine, check=False))


def timeline_of(flat: FlatProgram, names: FlatNames, chip: Chip, engine: str) -> Timeline:
    """The timeline of a run: schedulers and warps of each core, and the memory behind them.

    flat, names: the program.
    chip: whose name and clock the timeline has.
    engine: a key of `lstmsim.engines.ENGINES`.

    `InputError` if it has more operations than are recorded.
    """
    refuse_long_trace(operations_of(flat))
    try:
        program = program_of(flat, names)
    except ProgramError as error:
        raise InputError(Mistake("trace", f"is too long to record, because {error}")) from None
    trace = engines.run(program, engine, check=False)
    unit = chip.core_figures[0].unit.name
    return build_timeline(program, trace, names.tasks, chip.name, chip.frequency_mhz, unit)
