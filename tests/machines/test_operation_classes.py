"""Each machine maps the operations of cells to classes of its own, all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.assembly import OperationClasses
from lstmsim.machines.column import hardware as column_hardware
from lstmsim.machines.column import shape
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Latency
from lstmsim.machines.multicore import chip as multicore_cells
from lstmsim.machines.row.hardware import HARDWARE as ROW
from lstmsim.machines.row.npu import RowCore, RowNpu
from lstmsim.model.cell import OPERATIONS
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.fusion.cells import cell_graph
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.studies.fit.energy import energy

COLUMN = column_hardware.HARDWARE
MODEL = Model("m", (Layer(cell("lstm"), 24, 16),))
CHIPS = {
    "column": ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=16),)),
    "row": RowNpu("r", 260, (RowCore(tiles=2, engines=4, lanes=4),)),
}
ALL = {
    "latencies of the column-wise NPU": shape.LATENCIES,
    "energies of the column-wise NPU": COLUMN.energies,
    "energies of the row-wise NPU": ROW.energies,
    "cycles of the CPU": multicore_cells._CLASSES,
}


def spent() -> dict[str, object]:
    """What the machines say of a model: energy, and operations of the CPU's tail."""
    own: dict[str, object] = {name: energy(chip, MODEL, 3, Precision()).parts for name, chip in CHIPS.items()}
    own["multicore"] = [multicore_cells.cell_work.__wrapped__(cell(name)) for name in ("lstm", "gru", "rnn")]
    return own


def column_depth() -> int:
    return shape._depths.__wrapped__(cell("lstm"), tuple(vars(Latency()).items()), 64)["h'"]


@pytest.mark.parametrize("name", ALL)
def test_every_operation_has_a_class(name: str) -> None:
    assert set(ALL[name].of) == set(OPERATIONS)


def test_every_class_of_the_column_npu_is_a_latency() -> None:
    assert set(shape.LATENCIES.of.values()) <= set(vars(Latency()))


def test_the_parallel_device_draws_every_operation() -> None:
    """Its kernels are made of operations of graphs, and each operation of a cell is written as some of these."""
    drawn = {
        node.operation
        for each in CELLS.values()
        if cell_graph(each, 8, 8, 1, 4 if each.projected else None)
        for node in each.nodes
    }
    assert {"log_sigmoid", "divide", "rsqrt"} < drawn


def test_a_class_of_the_column_npu_alone_changes_no_other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class `sigmoid` with 30 cycles more; of the other machines no cycle, of all machines no energy."""
    before, depth = spent(), column_depth()
    classes = replace(shape.LATENCIES, of={**shape.LATENCIES.of, "sigmoid": "sigmoid"})
    monkeypatch.setattr(shape, "LATENCIES", classes)
    latency = {**vars(Latency()), "sigmoid": Latency().activation + 30}
    assert shape._depths.__wrapped__(cell("lstm"), tuple(latency.items()), 64)["h'"] == depth + 30
    assert spent() == before


def test_a_class_without_latency_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = replace(shape.LATENCIES, of={**shape.LATENCIES.of, "sigmoid": "sigmoid"})
    monkeypatch.setattr(shape, "LATENCIES", classes)
    with pytest.raises(InputError, match="operation 'sigmoid': class 'sigmoid' of a column-npu has no value"):
        column_depth()


def test_an_operation_without_class_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = OperationClasses("some-npu", {})
    text = "a some-npu has no class for operation '\\w+', so what it takes is unknown"
    for owner, name in ((shape, "LATENCIES"), (multicore_cells, "_CLASSES")):
        monkeypatch.setattr(owner, name, empty)
    monkeypatch.setattr(type(COLUMN), "energies", empty)
    with pytest.raises(InputError, match=text):
        column_depth()
    with pytest.raises(InputError, match=text):
        multicore_cells.cell_work.__wrapped__(cell("lstm"))
    with pytest.raises(InputError, match=text):
        energy(CHIPS["column"], MODEL, 1, Precision())


def test_a_class_without_energy_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = replace(COLUMN.energies, of={**COLUMN.energies.of, "sigmoid": "sigmoid"})
    monkeypatch.setattr(type(COLUMN), "energies", classes)
    with pytest.raises(InputError, match="Horowitz 2014 has no energy for operations of class 'sigmoid'"):
        energy(CHIPS["column"], MODEL, 1, Precision())
    energy(CHIPS["row"], MODEL, 1, Precision())
