"""What happened in a sparse product, cycle by cycle."""

from __future__ import annotations

from lstmsim import engines
from lstmsim.api.programs import operations_of
from lstmsim.api.run import refuse_long_trace
from lstmsim.errors import InputError, Mistake, ProgramError
from lstmsim.metrics.spans import build_timeline
from lstmsim.metrics.timeline import Timeline
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flat_names import FlatNames
from lstmsim.program.unflatten import program_of

__all__ = ["timeline_of"]


def timeline_of(flat: FlatProgram, names: FlatNames, engine: str) -> Timeline:
    """The timeline of a product: schedulers and warps of each core, and the memory behind them.

    flat, names: its program.
    engine: a key of `lstmsim.engines.ENGINES`.

    `InputError` if it has more operations than are recorded.
    """
    refuse_long_trace(operations_of(flat))
    try:
        program = program_of(flat, names)
    except ProgramError as error:
        raise InputError(Mistake("trace", f"is too long to record, because {error}")) from None
    trace = engines.run(program, engine, check=False)
    return build_timeline(program, trace, names.tasks, names.chip, names.frequency_mhz, names.unit)
