"""A program that was written as tables, by a target whose operations are too many to be objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from lstmsim.program.flat import FlatProgram
from lstmsim.program.program import Core, Program, Task

__all__ = ["TabledProgram"]


class TabledProgram(Program):
    """A program in its flat form. An engine runs the tables as they are; cores and tasks are made when asked for.

    flat: the tables.
    names: what the tables do not hold (`lstmsim.program.flat_names.FlatNames`).
    whole: makes the program of both, when cores or tasks are asked for (`lstmsim.program.unflatten.program_of`).

    `lstmsim.program.unflatten.tabled` makes one.
    """

    def __init__(self, flat: FlatProgram, names: Any, whole: Callable[[FlatProgram, Any], Program]) -> None:
        # a frozen record takes no assignments; these are not among its fields
        self.__dict__.update(flat=flat, names=names, whole=whole)

    flat: FlatProgram
    names: Any
    whole: Callable[[FlatProgram, Any], Program]

    @cached_property
    def _whole(self) -> Program:
        return self.whole(self.flat, self.names)

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
