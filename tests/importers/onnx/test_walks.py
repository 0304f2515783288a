"""Walks from a value to what it is made of: which operations are said to move, pick or join values of a layer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from onnx import helper

from lstmsim.importers.onnx.axes import Layouts, Part
from lstmsim.importers.onnx.graph import Scope, Value
from lstmsim.importers.onnx.sizes import _SHARING, Key, _up
from lstmsim.importers.onnx.steps import picked_by


def scope_of(*nodes: tuple[str, list[str], str]) -> Scope:
    made = [helper.make_node(kind, reads, [output]) for kind, reads, output in nodes]
    return Scope(made, {}, ("x", "y"), (), {})


def test_a_frame_is_picked_by_two_operations_at_most() -> None:
    """A slice of the whole tensor before that is an operation of its own."""
    scope = scope_of(("Slice", ["x"], "half"), ("Slice", ["half"], "frame"), ("Squeeze", ["frame"], "row"))
    assert picked_by(Value(scope, "row", 2)) == [(scope, 2), (scope, 1)]


def test_all_parts_of_a_joined_state_are_followed() -> None:
    """Of other operations only the first input is data."""
    scope = scope_of(
        ("Transpose", ["x"], "one"),
        ("Transpose", ["y"], "two"),
        ("Concat", ["one", "two"], "both"),
        ("Reshape", ["both", "two"], "state"),
    )
    seen = set[Key]()
    _up(scope, "state", _SHARING, seen)
    assert seen == {(scope, index) for index in range(4)}
    only = set[Key]()
    _up(scope_of(("Transpose", ["y"], "sizes"), ("Reshape", ["x", "sizes"], "state")), "state", _SHARING, only)
    assert [index for _, index in only] == [1]


def test_the_size_of_one_side_of_a_layer_is_that_of_the_layer() -> None:
    scope = scope_of()
    direction, units = Part(scope, "y", "direction"), Part(scope, "y", "units")
    layouts: Any = SimpleNamespace(_sizes={units: (7, ())})
    one = Part(scope, "y", "units", side=1)
    assert Layouts.one_side(layouts, ((direction,), (units,)), 0, 1, keep=False) == ((one,),)
    assert layouts._sizes == {units: (7, ()), one: (7, ())}
