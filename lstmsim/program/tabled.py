"""A program that was written as tables, by a target whose operations are too many to be objects."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lstmsim.program.flat import FlatProgram
from lstmsim.program.program import Core, Program, Task

if TYPE_CHECKING:
    from lstmsim.program.flat_names import FlatNames

__all__ = ["TabledProgram"]


class TabledProgram(Program):
    """A program in its flat form. An engine runs the tables as they are; cores and tasks are made when asked for.

    flat: the tables.
    names: what the tables do not hold.

    `ProgramError`, when cores or tasks are asked for, as of `lstmsim.program.unflatten.program_of`.

    >>> from lstmsim.program.flat_names import names_of
    >>> from lstmsim.program.flatten import flat_of
    >>> from lstmsim.program.program import Body, Operation, Phase, Unit
    >>> task = Task("t", ((0, (Phase(Body((Operation(0, count=3),)), 2),)),), (), (0,))
    >>> program = Program((Core(0, (Unit("array", "coarse"),)),), (task,))
    >>> TabledProgram(flat_of(program), names_of(program)) == program
    True
    """

    def __init__(self, flat: FlatProgram, names: FlatNames) -> None:
        # a frozen record takes no assignments; these two are not among its fields
        self.__dict__.update(flat=flat, names=names)

    flat: FlatProgram
    names: FlatNames

    @cached_property
    def _whole(self) -> Program:
        from lstmsim.program.unflatten import program_of

        return program_of(self.flat, self.names)

    @property
    def cores(self) -> tuple[Core, ...]:
        """The cores."""
        return self._whole.cores

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, with all their operations."""
        return self._whole.tasks

    @property
    def gates(self) -> tuple[int, ...]:
        """The gates."""
        return self._whole.gates

    def __eq__(self, other: object) -> bool:
        return self._whole == (other._whole if isinstance(other, TabledProgram) else other)

    __hash__ = None  # type: ignore[assignment]
