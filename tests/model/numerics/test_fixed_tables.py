"""Activation tables: entries against the functions, reading against exact rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.model.model import ACTIVATIONS, Precision
from lstmsim.model.numerics.fixed_point import TABULATED, ActivationTable, QFormat

EXACT = {
    "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "tanh": math.tanh,
    "exp": math.exp,
    "log_sigmoid": lambda v: -math.log1p(math.exp(-v)) if v > -600 else v,
}


@st.composite
def tables(draw: st.DrawFn) -> ActivationTable:
    precision = Precision(
        activation=draw(st.sampled_from(ACTIVATIONS)),
        activation_entries=2 ** draw(st.integers(1, 10)),
        activation_range=2 ** draw(st.integers(1, 6)),
    )
    function = draw(st.sampled_from(TABULATED))
    source = QFormat(draw(st.integers(4, 24)), draw(st.one_of(st.integers(0, 23), st.integers(-40, 130))))
    result = QFormat(draw(st.integers(4, 24)), draw(st.integers(-8, 40)))
    return ActivationTable(function, precision, source, result, function == "exp" and draw(st.booleans()))


def ends(table: ActivationTable) -> tuple[int, int]:
    reach = table.precision.activation_range
    return (-2 * reach, 0) if table.negative else (-reach, reach)


def test_every_operation_that_has_a_table_is_known() -> None:
    assert set(TABULATED) == set(EXACT)


@given(tables())
def test_entries_are_the_function_at_middles_or_edges(table: ActivationTable) -> None:
    low, high = ends(table)
    linear, cells = table.precision.activation == "linear", table.precision.activation_entries
    assert len(table.entries) == cells + linear
    for number, entry in enumerate(table.entries.tolist()):
        value = EXACT[table.function](low + (high - low) * (number + (0 if linear else 0.5)) / cells)
        units = math.ldexp(value, table.result.fraction)
        wanted = max(table.result.lowest, min(units, table.result.highest))
        # half a unit, and a difference in the last bits of two libraries
        assert abs(entry - wanted) <= 0.5 + 1e-12 * abs(units)


@given(tables(), st.data())
def test_reading_is_exact(table: ActivationTable, data: st.DataObject) -> None:
    raw = data.draw(st.lists(st.integers(table.source.lowest, table.source.highest), min_size=1, max_size=8))
    results, lost = table(np.array([*raw, table.source.lowest, table.source.highest]))
    low, high = ends(table)
    cells, entries = table.precision.activation_entries, table.entries.tolist()
    outside = 0
    for each, value in zip([*raw, table.source.lowest, table.source.highest], results.tolist(), strict=True):
        place = (each * Fraction(2) ** -table.source.fraction - low) * cells / (high - low)
        outside += (table.function == "log_sigmoid" and place <= -1) or (table.function == "exp" and place >= cells + 1)
        place = max(Fraction(0), min(place, Fraction(cells)))
        cell = min(math.floor(place), cells - 1)
        if table.precision.activation == "table":
            assert value == entries[cell]
        else:
            within = Fraction(math.floor((place - cell) * 2**24), 2**24)
            assert value == entries[cell] + math.floor((entries[cell + 1] - entries[cell]) * within + Fraction(1, 2))
    assert outside <= lost <= len(results)


def test_the_place_within_a_cell_counts_to_the_last_of_24_bits() -> None:
    precision = Precision(activation_entries=2, activation_range=8)
    table = ActivationTable("log_sigmoid", precision, QFormat(24, 21), QFormat(24, 20))
    raw = np.arange(-3 * 2**21, -3 * 2**21 + 50)
    rise, place = int(table.entries[1] - table.entries[0]), raw + 8 * 2**21
    assert table(raw)[0].tolist() == [int(table.entries[0]) + (rise * int(at) + 2**23) // 2**24 for at in place]


@pytest.mark.parametrize("function", ["sigmoid", "tanh", "log_sigmoid"])
@pytest.mark.parametrize(("entries", "reach"), [(64, 8), (512, 8), (1024, 16)])
def test_errors_stay_below_the_bounds_of_calculus(function: str, entries: int, reach: int) -> None:
    """Steps err by half a cell times the steepest slope, straight pieces by an eighth of its square times the bend."""
    source, result = QFormat(24, 18), QFormat(24, 19)
    raw = np.arange(-reach * 2**18, reach * 2**18, 997)
    exact = np.array([EXACT[function](each) for each in source.real(raw).tolist()])
    width, slope, bend = 2 * reach / entries, 1.0, {"sigmoid": 0.0963, "tanh": 0.7699, "log_sigmoid": 0.25}[function]
    bounds = {"table": width / 2 * slope, "linear": width**2 / 8 * bend}
    for kind, bound in bounds.items():
        precision = Precision(activation=kind, activation_entries=entries, activation_range=reach)
        values, lost = ActivationTable(function, precision, source, result)(raw)
        assert lost == 0
        assert np.abs(result.real(values) - exact).max() <= bound + 1.01 * 2**-19


def test_arguments_outside_get_the_nearest_end_and_count_where_that_is_wrong() -> None:
    precision, source = Precision(activation_entries=16, activation_range=8), QFormat(16, 8)
    raw = np.array([-20 * 256, 20 * 256])
    for function, lost in {"sigmoid": 0, "tanh": 0, "log_sigmoid": 1, "exp": 1}.items():
        table = ActivationTable(function, precision, source, QFormat(24, 8))
        values, counted = table(raw)
        assert values.tolist() == [table.entries[0], table.entries[-1]]
        assert counted == lost


def test_entries_that_do_not_fit_count_when_used() -> None:
    precision = Precision(activation_entries=16, activation_range=8)
    table = ActivationTable("exp", precision, QFormat(16, 8), QFormat(16, 10))
    values, lost = table(np.array([0, 2 * 256, 5 * 256, 6 * 256]))
    assert (values[0], values[-1], lost) == (1024, 2**15 - 1, 2)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_arguments_count_as_outside_from_a_whole_cell_on(kind: str) -> None:
    """docs/numerics.md, section 12: a cell or more outside, where the function goes on. A cell is 1 wide here."""
    precision, source = Precision(activation=kind, activation_entries=16, activation_range=8), QFormat(16, 8)

    def lost(function: str, raw: int, negative: bool = False) -> int:
        result = QFormat(24, 8)
        return ActivationTable(function, precision, source, result, negative)(np.array([raw]))[1]

    a_cell_above, a_cell_below = 9 * 256, -9 * 256
    assert [lost("exp", a_cell_above + off) for off in (-1, 0, 1)] == [0, 1, 1]
    assert [lost("log_sigmoid", a_cell_below + off) for off in (-1, 0, 1)] == [1, 1, 0]
    # arguments count only on the side where the function goes on: exp is flat below, log_sigmoid above
    assert lost("exp", a_cell_below) == lost("log_sigmoid", a_cell_above) == 0
    # a table with all cells below zero ends at 0
    assert [lost("exp", 256 + off, negative=True) for off in (-1, 0, 1)] == [0, 1, 1]
    for function in ("sigmoid", "tanh"):
        assert lost(function, a_cell_above) == lost(function, a_cell_below) == 0


@pytest.mark.parametrize(("fraction", "counted"), [(15, 0), (16, 1)])
def test_one_unit_lost_by_an_entry_is_not_saturation(fraction: int, counted: int) -> None:
    """docs/numerics.md, section 12: 1.0 in a format that ends just below it loses one unit and does not count."""
    precision = Precision(activation_entries=16, activation_range=8)
    # tanh(7.5) is 1 - 6e-7: in units of 2**-15 that is 2**15, one above the highest
    table = ActivationTable("tanh", precision, QFormat(16, 8), QFormat(16, fraction))
    values, lost = table(np.array([7 * 256 + 128]))
    assert (values.tolist(), lost) == ([2**15 - 1], counted)
