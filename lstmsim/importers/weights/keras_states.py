"""The states that a Keras layer begins with: 0, numbers in its configuration, or states of another layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lstmsim.base.wording import show
from lstmsim.importers.weights.keras_calls import Constant, Output
from lstmsim.importers.weights.keras_graph import Placed

__all__ = ["Beginning", "beginning_of"]

_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "Bidirectional", "RNN")
#: The states that Keras gives, in its order.
_STATES = {"lstm": ("h", "c")}


@dataclass(frozen=True)
class Beginning:
    """The states of a layer before its first step.

    fixed: (direction, state, values of the units) of each state that the configuration fixes.
    states_from: where states come from at run time, in words; empty if none does.
    notes: what else to know.
    origin: the layer whose last states are these states, all of them and in the same order; empty if there is none.
    """

    fixed: tuple[tuple[int, str, tuple[float, ...]], ...] = ()
    states_from: str = ""
    notes: tuple[str, ...] = ()
    origin: str = ""


def beginning_of(placed: Placed, cell: str, units: int, directions: int) -> Beginning | str:
    """Read the initial states off the calls of a layer, or say why they cannot be read.

    placed: the layer.
    cell: name of its cell.
    units: units of each state.
    directions: 1 or 2.
    """
    given = [call for call in placed.calls if call.states]
    if not given:
        return Beginning()
    if len(placed.calls) > 1:
        return Beginning(
            states_from=f"what each of the {len(placed.calls)} calls of layer {placed.names[-1]!r} gives it"
        )
    names = [(side, name) for side in range(directions) for name in _STATES.get(cell, ("h",))]
    states = given[0].states
    if len(states) != len(names):
        return f"begins with {len(states)} states, expected {len(names)}"
    fixed, words, inputs = [], [], []
    for (side, name), state in zip(names, states, strict=True):
        if isinstance(state, Constant):
            values = _values(state, units)
            if isinstance(values, str):
                return f"initial_state {values}"
            fixed.append((side, name, values))
        elif isinstance(state, Output) and placed.kinds.get(state.layer) == "InputLayer" and len(placed.names) == 1:
            inputs.append(state.layer)
        else:
            words.append(_words(state, placed))
    notes = (_input_note(inputs, placed),) if inputs else ()
    return Beginning(tuple(fixed), " and ".join(dict.fromkeys(words)), notes, _origin(states, placed))


def _origin(states: Sequence[Output | Constant | None], placed: Placed) -> str:
    """The layer whose outputs after the first are the states, in the same order; empty if there is none."""
    first = min((each.layer for each in states if isinstance(each, Output)), default="")
    expected = [Output(first, 0, 1 + place) for place in range(len(states))]
    whole = list(states) == expected and placed.kinds.get(first) in _RECURRENT and len(placed.names) == 1
    return first if whole else ""


def _input_note(inputs: Sequence[str], placed: Placed) -> str:
    some = ", ".join(show(each) for each in dict.fromkeys(inputs))
    return f"the states of layer {placed.names[-1]!r} are inputs of the model ({some}); here they begin at 0"


def _words(state: Output | Constant | None, placed: Placed) -> str:
    """Where a state comes from, for a user who has to give it."""
    if not isinstance(state, Output):
        return f"an initial_state of layer {placed.names[-1]!r} that cannot be read"
    kind = placed.kinds.get(state.layer, "")
    if kind == "InputLayer":
        return f"the input {state.layer!r} of model {placed.names[-2]!r}"
    return f"the last states of layer {state.layer!r}" if kind in _RECURRENT else f"the output of layer {state.layer!r}"


def _values(state: Constant, units: int) -> tuple[float, ...] | str:
    """The numbers of a constant, one for each unit, or what is wrong with the constant."""
    try:
        array = np.array(state.value, np.float64)
    except (ValueError, TypeError, OverflowError):
        return "holds something else than numbers"
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    if rows.ndim != 2 or rows.shape[1] != units or not len(rows):
        return f"has shape {list(array.shape)[:4]}, expected [{units}] or [1, {units}]"
    if not np.isfinite(rows).all():
        return "holds a number that is not finite"
    if (rows != rows[0]).any():
        return "has other numbers for each sequence of a batch; one sequence is simulated"
    return tuple(map(float, rows[0]))
