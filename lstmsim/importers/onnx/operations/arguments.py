"""A node of a network as the rules of its operators see it: attributes, and what stands at its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.importers.onnx.operations.values import UnreadableError, Value

__all__ = ["Arguments"]


@dataclass(frozen=True, eq=False)
class Arguments:
    """What a node is given.

    kind: its operator.
    version: of ONNX's own operators in this file.
    attributes: by name, as ONNX holds them.
    inputs: None where one is left out.
    outputs: how many it has.

    The methods take the name of an attribute or the place of an input, and what holds if it is left out (`default`).
    """

    kind: str
    version: int
    attributes: Mapping[str, Any]
    inputs: Sequence[Value | None]
    outputs: int = 1

    def value(self, place: int) -> Value:
        """What stands at an input; `InputError` if it is left out."""
        value = self.optional(place)
        if value is None:
            raise InputError(f"has no input {place}")
        return value

    def optional(self, place: int) -> Value | None:
        """What stands at an input; None if it is left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def whole(self, name: str, default: int) -> int:
        """An attribute that is a whole number."""
        return int(self.attributes[name].i) if name in self.attributes else default

    def real(self, name: str, default: float) -> float:
        """An attribute that is a number."""
        return float(self.attributes[name].f) if name in self.attributes else default

    def text(self, name: str, default: str) -> str:
        """An attribute that is a text."""
        return bytes(self.attributes[name].s).decode("utf-8", "replace") if name in self.attributes else default

    def list(self, name: str, place: int = -1) -> list[int] | None:
        """Whole numbers: an attribute in old versions, an input in newer ones; None if both are left out.

        place: of the input; `UnreadableError` if it is known at run time alone.
        """
        if name in self.attributes:
            return [int(each) for each in self.attributes[name].ints]
        value = self.optional(place) if place >= 0 else None
        return None if value is None else value.numbers()

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from 0; `InputError` if there is none of that number."""
        if not -rank <= axis < rank:
            raise InputError(f"names axis {axis} of {rank}")
        return axis % rank

    def scalar(self, place: int, default: float) -> float:
        """A stored number at an input; `UnreadableError` if it is known at run time alone, or is no single one."""
        value = self.optional(place)
        if value is None:
            return default
        if value.size != 1:
            raise UnreadableError(f"has {value.size} numbers at input {place}, expected 1")
        return float(value.array.reshape(-1)[0])
