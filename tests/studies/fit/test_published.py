"""Published designs: their known resources against the counts and estimates of lstmsim."""

from __future__ import annotations

import pytest

from lstmsim.files.published import hardware
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.row.npu import RowCore, RowNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.studies.fit.device import Device, Packing, device, published_on
from lstmsim.studies.fit.fit import Fit, fit
from lstmsim.studies.fit.needs import BAND

INT8 = Precision()
FIXED16 = Precision(weight_bits=16, vector_bits=16, accumulator_bits=40)
LSTM = Model("lstm-512", (Layer(cell("lstm"), 512, 512),))
ROWS = {row.design: row for row in hardware()}


def first_number(text: str) -> int:
    return int(text.split()[0])


def packing(on: Device, name: str) -> Packing:
    return next(each for each in on.packings if each.name == name)


def test_tensor_blocks_of_the_intel_npu_are_exact() -> None:
    answer = fit(load_chip("intel-npu-rtl"), [LSTM], INT8, device("stratix-10-nx-2100"))
    row = ROWS["Intel NPU"]
    assert f"{answer.array_blocks} of them in the matrix-vector units" in row.dsp
    assert answer.packings[0] is not None
    assert row.macs == answer.packings[0].products * (answer.array_blocks or 0)
    # The whole machine uses 91 % of the device.
    assert first_number(row.dsp) / (answer.multipliers.available or 0) == pytest.approx(0.91, abs=0.005)


@pytest.mark.parametrize(
    ("design", "on"), [("Intel NPU on GX", "stratix-10-gx-2800"), ("Intel NPU on MX", "stratix-10-mx-2100")]
)
def test_intel_npu_without_tensor_blocks_fits_only_with_int8_pairs(design: str, on: str) -> None:
    macs, table = ROWS[design].macs or 0, device(on)
    chip = RowNpu(design, 275, (RowCore(tiles=1, engines=macs // 40, lanes=40),))
    answer = fit(chip, [LSTM], INT8, table)
    assert answer.multipliers.share is not None
    # Between two thirds of the device and all of it: they were built to fill it.
    assert 2 / 3 < answer.multipliers.share <= 1
    alone = packing(table, "sum of two 18x19")
    assert macs / alone.products > (table.multipliers or 0)


def test_full_device_of_int8_multipliers() -> None:
    """Langhammer et al., FPL 2019: 22,400 int8 multipliers as dot products of 32 in a device, most logic untouched."""
    table = device("stratix-10-gx-2800")
    core = ColumnCore(npe=22400, ep=32, vp=700, accumulator_banks=1)
    answer = fit(ColumnNpu("full", 400, (core,)), [LSTM], INT8, table)
    assert answer.array_blocks == 5600 <= (table.multipliers or 0)
    array = answer.parts[0]
    assert array.name == "array"
    assert array.logic < 0.5 * (answer.logic.available or 0)


def hls_lstm() -> Fit:
    # 32 units, 28 inputs: recurrent products unrolled, those of the input reused 9 times.
    recurrent = ColumnCore(npe=32 * 128, ep=32, vp=128, tail_width=32, accumulator_banks=1)
    inputs = ColumnCore(npe=-(-28 * 128 // 9), ep=28, vp=14, tail_width=1, accumulator_banks=1)
    model = Model("mnist", (Layer(cell("lstm"), 32, 28),))
    chip = ColumnNpu("hls", 200, (recurrent, inputs))
    return fit(chip, [model], FIXED16, device("kintex-ku115"))


def test_multipliers_of_the_hls_lstm_are_within_50_percent() -> None:
    published = first_number(ROWS["HLS LSTM"].dsp)
    # The count is higher: constant weights of zero or a power of two need no multiplier there.
    assert 1 < (hls_lstm().multipliers.need or 0) / published < 1.5


def test_logic_of_the_hls_lstm_is_within_the_band() -> None:
    """lstm_csynth.rpt of walkieq/RNN_HLS, c13a7c0: dense_simple_0_0_0_0, the recurrent products, takes 116,317 LUT."""
    table = device("kintex-ku115")
    core = ColumnCore(npe=32 * 128, ep=32, vp=128, accumulator_banks=1)
    model = Model("mnist", (Layer(cell("lstm"), 32, 28),))
    array = fit(ColumnNpu("recurrent", 200, (core,)), [model], FIXED16, table).parts[0]
    assert array.name == "array"
    assert 1 - BAND < array.logic / 116_317 < 1 + BAND


def test_multipliers_of_vollo_are_within_50_percent() -> None:
    """Three cores of block size 64 in bf16, which an Agilex block multiplies two at a time, as 18x19."""
    core = ColumnCore(npe=64 * 64, ep=64, vp=64, tail_width=1)
    answer = fit(ColumnNpu("vollo", 320, (core,) * 3), [LSTM], FIXED16, device("agilex-7-agi-027"))
    assert 0.5 < (answer.array_blocks or 0) / first_number(ROWS["Vollo IA-840F"].dsp) < 1


def test_published_rows_come_in_the_order_of_the_device() -> None:
    assert [row.design for row in published_on(device("stratix-10-gx-2800"))] == ["Intel NPU on GX", "Brainwave BW_S10"]
    assert published_on(device("arria-10-gx-1150")) == ()
