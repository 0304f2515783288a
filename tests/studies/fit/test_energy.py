"""Operations of an inference counted by hand, and their energy."""

from __future__ import annotations

import json

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.machines.column.hardware import HARDWARE as COLUMN
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.row.hardware import HARDWARE as ROW
from lstmsim.machines.row.npu import RowCore, RowNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.studies.fit.energy import HOROWITZ_2014, EnergyTable, energy, operations

LSTM = Model("lstm-512", (Layer(cell("lstm"), 512, 512),))
CORE = ColumnCore(npe=65536, ep=32, vp=2048)
CHIP = ColumnNpu("64k", 260, (CORE,))
#: Every operation 1 pJ, every access 1 pJ a bit.
ONES = EnergyTable("ones", {8: 1.0, 32: 1.0}, {8: 1.0, 32: 1.0}, {8192: 1.0}, access_bits=1)


def test_operations_of_lstm_512_by_hand() -> None:
    counts = operations(COLUMN, CORE, LSTM, steps=3)
    # Four gates of 512 rows, 512 columns of x and 512 of h.
    assert counts.macs == 3 * 4 * 512 * 1024
    assert counts.sums == 3 * 4 * 512
    # One row block reads each of 1,024 elements once; x and h are written once.
    assert (counts.vector_reads, counts.vector_writes) == (3 * 1024, 3 * 1024)
    assert (counts.state_reads, counts.state_writes) == (3 * 512, 3 * 512)
    # Sigmoid of i, f, o, tanh of g and c; i * g, f * c, o * tanh c; one sum; h rounded.
    assert dict(counts.tail) == {
        "activation": 3 * 5 * 512,
        "elementwise_add": 3 * 512,
        "elementwise_multiply": 3 * 3 * 512,
        "quantize": 3 * 512,
    }


def test_row_blocks_and_row_groups_read_vectors_again() -> None:
    half = ColumnCore(npe=32768, ep=32, vp=1024)
    assert operations(COLUMN, half, LSTM, 1).vector_reads == 2 * 1024
    row = RowCore(tiles=7, engines=40, lanes=40, vectors=3)
    # 13 groups of 40 rows for each of four gates and two vectors.
    counts = operations(ROW, row, LSTM, 1)
    assert (counts.vector_reads, counts.weight_sharing) == (13 * 4 * 1024, 3)


def test_both_directions_count() -> None:
    both = Model("both", (Layer(cell("lstm"), 512, 512, bidirectional=True),))
    one, two = operations(COLUMN, CORE, LSTM, 2), operations(COLUMN, CORE, both, 2)
    assert two.macs == 2 * one.macs
    assert {name: 2 * number for name, number in one.tail.items()} == dict(two.tail)
    assert (two.sums, two.vector_reads, two.vector_writes) == (
        2 * one.sums,
        2 * one.vector_reads,
        2 * one.vector_writes,
    )
    assert two.state_reads == 2 * one.state_reads


def test_reductions_add_all_that_they_read() -> None:
    model = Model("ln", (Layer(cell("lstm-layernorm"), 8, 8),))
    tail = operations(COLUMN, ColumnCore(64, 4, 16), model, 1).tail
    # Two reductions over four sums, twice, and two over c; squares are multiplied, too.
    nodes = cell("lstm-layernorm").nodes
    scalar = ("mux", "sqx", "mmx", "vax", "vex", "rsx")
    scalars = {name[:-1] + tag for name in scalar for tag in "xhc"}
    adds = sum(8 if n.name not in scalars else 1 for n in nodes if n.operation in ("add", "subtract"))
    multiplies = sum(8 if n.name not in scalars else 1 for n in nodes if n.operation == "multiply")
    assert tail["elementwise_add"] == adds + 2 * (32 + 32 + 8)
    assert tail["elementwise_multiply"] == multiplies + 32 + 32 + 8


def test_energy_of_ones_is_the_number_of_operations_and_bits() -> None:
    parts = energy(CHIP, LSTM, 1, Precision(), ONES).parts
    macs = 4 * 512 * 1024
    assert parts == pytest.approx(
        {
            "multiply": macs,
            "accumulate": macs,
            "weight reads": 8 * macs,
            "vectors": 8 * 2048,
            "sums": 2 * 2048,
            # A linear activation reads two numbers of 16 bits, multiplies and adds.
            "tail": 512 + 3 * 512 + 512 + 5 * 512 * (32 + 2),
            "states": 16 * 1024,
        }
    )
    table = energy(CHIP, LSTM, 1, Precision(activation="table"), ONES).parts["tail"]
    assert table == pytest.approx(512 + 3 * 512 + 512 + 5 * 512 * 16)


def test_energies_of_the_table_come_out_as_printed() -> None:
    assert [HOROWITZ_2014.add(bits) for bits in (8, 32)] == pytest.approx([0.03, 0.1])
    assert [HOROWITZ_2014.multiply(bits, bits) for bits in (8, 32)] == pytest.approx([0.2, 3.1])
    assert [HOROWITZ_2014.access(64, size) for size in (1, 8192, 8193, 2**20, 2**30)] == [10, 10, 20, 100, 100]
    spent = energy(CHIP, LSTM, 1, Precision())
    macs = 4 * 512 * 1024
    assert spent.parts["multiply"] == pytest.approx(0.2 * macs)
    assert spent.parts["accumulate"] == pytest.approx(0.1 * macs)
    assert spent.parts["weight reads"] == pytest.approx(10 / 64 * 8 * macs)


def test_a_shared_weight_is_read_for_all() -> None:
    core = RowCore(tiles=7, engines=40, lanes=40, vectors=3)
    row = energy(RowNpu("r", 300, (core,)), LSTM, 1, Precision())
    column = energy(CHIP, LSTM, 1, Precision())
    assert column.parts["weight reads"] == pytest.approx(3 * row.parts["weight reads"])
    assert column.parts["multiply"] == row.parts["multiply"]


def test_what_the_table_does_not_have_is_left_out_and_said() -> None:
    model = Model("x", (Layer(cell("slstm"), 16, 16),))
    spent = energy(ColumnNpu("c", 260, (ColumnCore(64, 4, 16),)), model, 5, Precision())
    assert dict(spent.left_out) == {"divide": 5 * 16}
    assert "left out, no energy in the table: 80 of divide" in spent.to_text()


def test_energy_is_labelled_relative_with_its_source() -> None:
    spent = energy(CHIP, LSTM, 25, Precision())
    text = spent.to_text()
    assert text.startswith("ENERGY of lstm-512, 25 steps: ")
    assert max(map(len, text.splitlines())) <= 100
    assert "relative" in text
    assert "ISSCC 2014" in text
    data = json.loads(json.dumps(spent.to_dict()))
    assert data["total_nj"] == pytest.approx(sum(data["parts_pj"].values()) / 1000)
    assert data["label"].startswith("relative")


def test_a_batch_counts_every_inference() -> None:
    """As many operations as its jobs simulate, whatever jobs stand together."""
    one = {"model": "lstm-256", "steps": 20}
    jobs = [one, one | {"batch": 3}, one | {"batch": 3, "arrival": 7}, one | {"batch": 2}]
    for chip in ("intel-npu-cpp", "intel-npu-rtl", "brainwave-s10"):
        able = [job for job in jobs if chip != "brainwave-s10" or "batch" not in job]
        spent = lstmsim.energy({"chip": chip, "jobs": able})
        assert [each.batch for each in spent] == ([1, 3, 2] if len(able) > 1 else [1])
        for each in spent:
            assert each.operations.macs == each.batch * spent[0].operations.macs
            assert dict(each.operations.tail) == {
                name: each.batch * number for name, number in spent[0].operations.tail.items()
            }
            assert each.total_nj == pytest.approx(each.batch * spent[0].total_nj)
    three = lstmsim.energy({"chip": "intel-npu-cpp", "jobs": [jobs[1] | {"steps": 40}]})[0]
    (job,) = lstmsim.simulate({"chip": "intel-npu-cpp", "jobs": [jobs[1] | {"steps": 40}]}).jobs
    assert three.operations.macs == job.macs == 62_914_560
    assert three.to_text().startswith("ENERGY of lstm-256, 40 steps, a batch of 3: ")
    assert three.to_dict()["batch"] == 3


def test_refusals() -> None:
    with pytest.raises(InputError, match="core: must be 0 to 0, got 1"):
        energy(CHIP, LSTM, 1, Precision(), core=1)
    with pytest.raises(InputError, match="steps: must be at least 1, got 0"):
        energy(CHIP, LSTM, 0, Precision())
    with pytest.raises(InputError, match="needs vp >= 4"):
        operations(COLUMN, ColumnCore(8, 4, 2), LSTM, 1)
