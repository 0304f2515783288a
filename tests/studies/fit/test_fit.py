"""The resources that a chip takes of a device, against counts by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.column.hardware import HARDWARE, weight_words
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.hardware import Demand, Hardware, Stored, tree_bits
from lstmsim.machines.row.hardware import HARDWARE as ROW
from lstmsim.machines.row.npu import RowCore, RowNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.report.renderings import text as written
from lstmsim.studies.fit.device import Device, Logic, Memory, Packing, device, device_files, published_on
from lstmsim.studies.fit.fit import Resource, fit, fit_summary
from lstmsim.studies.fit.report import fit_document, fit_json

INT8 = Precision()
LSTM = Model("lstm-512", (Layer(cell("lstm"), 512, 512),))
CORE = ColumnCore(npe=65536, ep=32, vp=2048, threads=2)
CHIP = ColumnNpu("64k", 260, (CORE,))
PLENTY = Device(
    *("plenty", "DSP", 10**6, (Packing("two", 2, (18, 19)),)),
    *((Memory("M20K", 10**6, 20480, 40),), Logic("ALM", 10**9, 2, 4)),
)


def small(**changes: object) -> Device:
    return replace(PLENTY, **changes)


def demands(chip: Hardware, core: ColumnCore | RowCore, model: Model, stored: Stored) -> dict[str, Demand]:
    parts = chip.parts(core, [model], INT8, 1, stored)
    return {each.name: each for part in parts for each in part.memories}


def test_memories_of_a_column_core_by_hand() -> None:
    own = demands(HARDWARE, CORE, LSTM, Stored())
    # One row block of 512 units, 16 column groups of x and 16 of h; a tile has 65,536 weights of 8 bits.
    assert (own["weights"].bits, own["weights"].read_bits) == (32 * 65536 * 8, 65536 * 8)
    # A sum for each row, thread and bank; a tile adds to one while a turn reads another.
    sums = own["sums"]
    assert (sums.bits, sums.memories, sums.words, sums.width, sums.reads) == (2048 * 4 * 32, 2048, 4, 32, 2)
    # h of two steps for each of two threads, in 64 banks, with a word behind the last one.
    vectors = own["vectors h' of lstm"]
    assert (vectors.memories, vectors.words, vectors.width) == (64, 2 * 2 * 512 // 64 + 1, 8)
    # Eight turns of 64 units: a factor, a shift and a bias a sum; c of both threads.
    assert (own["constants"].words, own["constants"].width) == (8, 64 * 4 * (16 + 1 + 32))
    assert (own["state c of lstm"].memories, own["state c of lstm"].words, own["state c of lstm"].width) == (64, 16, 16)
    # An entry and the rise to the next one, for each lane and activation.
    tables = [each for name, each in own.items() if name.startswith("table")]
    assert [(each.memories, each.words, each.width) for each in tables] == [(64, 256, 33)] * 5


def test_steps_are_kept_for_a_layer_above_and_frames_where_the_chip_has_them() -> None:
    layers = (Layer(cell("rnn"), 64, 32), Layer(cell("rnn"), 64, 64))
    core = ColumnCore(npe=64, ep=8, vp=8, tail_width=8)
    deep = Model("deep", layers)
    name = "vectors h' of rnn"
    # All 10 steps of the lower layer, two of the upper one; eight elements a word, and a word behind the last one.
    assert demands(HARDWARE, core, deep, Stored({"deep": 10}))[name].words == (10 + 2) * 8 + 1
    by_step = Model("deep", layers, layer_order="step")
    assert demands(HARDWARE, core, by_step, Stored({"deep": 10}))[name].words == (2 + 2) * 8 + 1
    assert "frames" not in demands(HARDWARE, core, deep, Stored({"deep": 10}))
    assert demands(HARDWARE, core, deep, Stored({"deep": 10}, {"deep": 30}))["frames"].words == 30 * 4


def test_small_memories_are_of_logic_where_the_device_has_such() -> None:
    core = ColumnCore(npe=64, ep=4, vp=16, threads=2, tail_width=2)
    model = Model("m", (Layer(cell("lstm"), 16, 16),))
    chip = ColumnNpu("c", 100, (core,))
    lattice = {each.name: each for each in fit(chip, [model], INT8, device("ecp5-85")).parts}
    # Only the tables are deep enough for blocks: five on each of two lanes.
    assert [name for name, each in lattice.items() if each.memories] == ["lanes"]
    assert lattice["lanes"].memories == 10
    # 16 rows, a sum of 32 bits each: four words, read twice, in 16 memories of 16 x 4 bits of six elements; a tree of
    # three adders of 18 bits, the sum, and its replacement.
    assert lattice["array"].logic == 16 * (16 * 6 + 3 * 18 + 32 + 32)
    blocks = {each.name: each for each in fit(chip, [model], INT8, PLENTY).parts}
    assert blocks["vectors"].memories == 4
    assert blocks["array"].registers - lattice["array"].registers == 16 * 4 * 32


def test_memory_of_a_column_chip_is_bound_by_bandwidth() -> None:
    need = fit(CHIP, [LSTM], INT8, PLENTY).memories[0]
    # Capacity and bandwidth of weights are 819.2 and 13,107.2 blocks; constants of adapters, banks of
    # vectors and tables need the rest; states are of registers, because there are no small memories.
    assert need.bandwidth == 13108 + 314 + 64 + 5 * 64
    assert (need.total, need.bound) == (need.bandwidth, "bandwidth")


def test_many_models_make_capacity_the_bound() -> None:
    large = Model("large", (Layer(cell("lstm"), 4096, 4096),))
    need = fit(CHIP, [LSTM, large], INT8, PLENTY).memories[0]
    # 8 row blocks of 256 column groups; 2,080 tiles in all.
    assert need.bound == "capacity"
    assert need.capacity > -(-2080 * 65536 * 8 // 20480) > need.bandwidth


def test_many_small_memories_make_ports_the_bound() -> None:
    core = RowCore(tiles=4, engines=100, lanes=1)
    tiny = Model("tiny", (Layer(cell("rnn"), 4, 4),))
    wide = small(memories=(Memory("wide", 10**6, 10**6, 10**4, ports=1),))
    need = fit(RowNpu("r", 250, (core,)), [tiny], INT8, wide).memories[0]
    # 400 matrix files that are read; 4 vector files and 3 of the tail that are read and written, by one port a block.
    assert (need.capacity, need.bandwidth, need.ports, need.bound) == (407, 407, 400 + 2 * 7, "ports")


def test_the_weight_memory_of_a_row_core_is_a_word_for_each_engine_of_each_copy() -> None:
    """By hand: 2 tiles of 4 lanes read 8 columns. A gate has 2 groups of 3 rows, 1 word of x and 1 of h: 16 words."""
    core = RowCore(tiles=2, engines=3, lanes=4, replicas=2)
    small = Model("m", (Layer(cell("lstm"), 6, 8),))
    weights = demands(ROW, core, small, Stored())["weights"]
    word = 8 * 3 * 2 * 8
    assert (weights.read_bits, weights.bits, weights.memories) == (word, 16 * word, 2 * 2 * 3)


def test_padding_counts_in_capacity() -> None:
    # 513 units: a second row block of which one unit is used.
    padded = Layer(cell("lstm"), 513, 512)
    assert weight_words(CORE, padded) == 2 * (16 + 17)


def test_both_directions_and_all_cores_hold_weights() -> None:
    both = Layer(cell("lstm"), 512, 512, bidirectional=True)
    assert weight_words(CORE, both) == 2 * weight_words(CORE, LSTM.layers[0])
    one = fit(CHIP, [LSTM], INT8, PLENTY)
    four = fit(ColumnNpu("four", 260, (CORE,) * 4), [LSTM], INT8, PLENTY)
    assert four.memories[0].total == 4 * one.memories[0].total
    assert four.array_blocks == 4 * 32768
    assert [each.logic for each in four.parts] == [4 * each.logic for each in one.parts]


def test_packing_needs_the_operand_that_the_array_shares() -> None:
    by_weight = Packing("by weight", 30, (8, 8), "weight", 3, 10)
    by_vector = Packing("by vector", 6, (8, 8), "vector", 2)
    offered = small(packings=(by_weight, by_vector, Packing("alone", 2, (18, 18))))
    column = fit(CHIP, [LSTM], INT8, offered)
    row = fit(RowNpu("r", 300, (RowCore(7, 40, 40, vectors=3),)), [LSTM], INT8, offered)
    single = fit(RowNpu("r", 300, (RowCore(7, 40, 40),)), [LSTM], INT8, offered)
    lonely = fit(RowNpu("r", 300, (RowCore(7, 1, 40),)), [LSTM], INT8, offered)
    chosen = [each.packings[0] for each in (column, row, single, lonely)]
    assert [each.name for each in chosen if each] == ["by vector", "by weight", "by vector", "alone"]
    wide = fit(CHIP, [LSTM], Precision(weight_bits=16), offered)
    assert [each.name for each in wide.packings if each] == ["alone"]


def test_multipliers_of_the_tail() -> None:
    answer = fit(CHIP, [LSTM], INT8, PLENTY)
    # On each of 64 lanes 13 multipliers: 4 adapters of 32 x 17 bits, each a block of two products of 18x19; 5
    # interpolations, 3 products and 1 quantize, two in a block.
    assert [each.lane for each in answer.tail] == [4, 5, 3, 1]
    assert [each.blocks for each in answer.tail] == [64 * 4, 64 * 5 // 2, 64 * 3 // 2, 64 // 2]
    assert (answer.array_blocks, answer.tail_blocks, answer.multipliers.need) == (32768, 544, 33312)
    row = fit(RowNpu("r", 300, (RowCore(1, 4, 4, replicas=2),)), [LSTM], INT8, PLENTY)
    # On each of 80 lanes an adapter, in both units an interpolation and a product, a quantize.
    assert row.tail_blocks == 80 + 80 + 80 + 40


def test_the_packing_of_a_tail_is_the_one_of_which_its_blocks_are_counted() -> None:
    chip = ColumnNpu("c", 250, (ColumnCore(npe=1024, ep=16, vp=64, tail_width=64),))
    needs = fit(chip, [LSTM], INT8, device("stratix-10-gx-2800")).tail
    used = {each.multiplier.kind: (each.packing.name, each.count, each.blocks) for each in needs if each.packing}
    # Of one product alone a block of 27x27 takes as few blocks as one of two 18x19.
    assert used["product"] == ("two 18x19", 192, 96)


@pytest.mark.parametrize("name", ["stratix-10-gx-2800", "alveo-u250"])
def test_memories_so_small_that_none_needs_a_block(name: str) -> None:
    answer = fit(load_chip("brainwave-s10"), [Model("m", (Layer(cell("rnn"), 256, 256),))], INT8, device(name))
    assert {each.total for each in answer.memories} == {0}
    assert answer.memory.share == 0
    assert "none needed: each memory is so small that it is made of logic" in answer.memory.how


def test_the_multipliers_of_the_tail_follow_the_cell_and_its_widths() -> None:
    lanes = {name: Model(name, (Layer(cell(name), 256, 256),)) for name in ("lstm", "gru", "rnn", "dense")}
    counts = {
        name: [sum(each.lane for each in fit(CHIP, [model], precision, PLENTY).tail) for precision in precisions]
        for precisions in [(INT8, Precision(activation="table"))]
        for name, model in lanes.items()
    }
    assert counts == {"lstm": [13, 8], "gru": [10, 7], "rnn": [3, 2], "dense": [2, 2]}
    # Each cell has lanes of its own behind the adapters that they share.
    both = fit(CHIP, [lanes["gru"], lanes["lstm"]], INT8, PLENTY)
    assert [each.lane for each in both.tail] == [4, 5 + 3, 3 + 2, 1 + 1]
    narrow = fit(CHIP, [lanes["lstm"]], Precision(accumulator_bits=18), PLENTY)
    assert narrow.tail_blocks == 64 * 13 // 2
    normalised = fit(CHIP, [Model("n", (Layer(cell("lstm-layernorm"), 256, 256),))], INT8, PLENTY)
    # A value for all units needs one multiplier: the square of a mean, for each of three statistics.
    assert [each.count - 64 * each.lane for each in normalised.tail] == [0, 0, 3, 0, 0]


def test_a_tail_needs_independent_products() -> None:
    only_sums = small(packings=(Packing("sum of two", 2, (18, 19), summed=2),))
    answer = fit(CHIP, [LSTM], INT8, only_sums)
    assert (answer.array_blocks, answer.tail_blocks, answer.multipliers.need) == (32768, None, 32768)
    # Blocks that suffice for the array may not suffice for the tail; blocks too few for the array are too few.
    assert (answer.multipliers.fits, answer.fits) == (None, None)
    assert answer.verdict == "cannot tell: no source for independent products in a DSP, which the tail needs"
    assert fit(CHIP, [LSTM], INT8, replace(only_sums, multipliers=30000)).fits is False


def test_a_verdict_names_what_is_too_much_or_missing() -> None:
    answer = fit(CHIP, [LSTM], INT8, device("stratix-10-gx-2800"))
    assert answer.verdict == "does not fit: DSP 2.94 times over, M20K 1.18 times over"
    unknown = fit(load_chip("column-npu-16k"), [LSTM], INT8, device("stratix-10-nx-2100"))
    assert unknown.fits is None
    assert "no source for the number of ALM" in unknown.verdict
    assert "no source for the number of M20K blocks" in unknown.verdict
    wide = fit(CHIP, [LSTM], INT8, small(logic=Logic("ALM", 17 * 10**5, 2, 4)))
    assert wide.verdict.startswith("cannot tell: ALM estimated at ")


def lines_of(on: Device) -> str:
    """The whole text about the chip on a device, in one line."""
    return " ".join(fit(CHIP, [LSTM], INT8, on).to_text().split())


def test_a_need_of_which_a_part_is_not_known_is_printed_as_the_least() -> None:
    only_sums = small(packings=(Packing("sum of two", 2, (18, 19), summed=2),), multipliers=80_000)
    only_sums = replace(only_sums, logic=Logic("ALM", 10**12, 2, 4), memories=(Memory("M20K", 10**9, 20480, 40),))
    text = lines_of(only_sums)
    # 40.96 %, rounded down
    assert "DSP at least 32,768 80,000 at least 40 %" in text
    assert "binding: DSP at least 40 % used" in text
    assert "estimated" not in text.split("binding: ")[1].split("DSP: ")[0]
    # The array alone needs more than there is: the share is a lower bound.
    over = fit(CHIP, [LSTM], INT8, replace(only_sums, multipliers=30_000))
    assert over.verdict == "does not fit: DSP at least 1.09 times over"
    assert fit_json(over)["resources"][0]["at_least"] is True


@pytest.mark.parametrize(
    ("multipliers", "words", "share"),
    [
        (33_312, "fits: DSP 100 % used", "100 %"),
        (33_311, "does not fit: DSP 1 block too many", "100.003 %"),
        (33_305, "does not fit: DSP 7 blocks too many", "100.02 %"),
        (33_160, "does not fit: DSP 152 blocks too many", "100.5 %"),
        (33_000, "does not fit: DSP 1.01 times over", "101 %"),
        (33_313, "fits: DSP 100 % used", "100 %"),
    ],
)
def test_what_is_a_little_over_is_not_taken_for_a_fit(multipliers: int, words: str, share: str) -> None:
    on = small(multipliers=multipliers)
    answer = fit(CHIP, [LSTM], INT8, on)
    assert answer.verdict == words
    assert f"DSP 33,312 {multipliers:,} {share} " in lines_of(on)


def test_a_share_without_a_count_shows_the_digits_that_are_over() -> None:
    """Of two kinds of memory together there is no number of blocks."""
    half = (Memory("a", 6903, 20480, 40), Memory("b", 6901, 20480, 40))
    assert fit(CHIP, [LSTM], INT8, small(memories=half)).verdict == "does not fit: a + b 1.0001 times over"


def test_an_estimate_that_is_a_little_over_says_so() -> None:
    assert Resource("ALM", 100_001, 100_000, 1.00001, "", band=0.5).words == (
        "ALM estimated at 50 to 150 % of what there is"
    )
    assert Resource("ALM", 200_100, 100_000, 2.001, "", band=0.5).words == "ALM about 2.00 times over"


def test_a_summary_over_devices() -> None:
    every = [fit(load_chip("column-npu-16k"), [LSTM], INT8, device(name)) for name in device_files()]
    summary = fit_summary(every)
    assert "stratix-10-gx-2800" in dict(summary.fits)
    assert "DSP" in dict(summary.does_not_fit)["arria-10-gx-1150"]
    assert "ALM" in dict(summary.cannot_tell)["stratix-10-nx-2100"]
    assert len(summary.fits) + len(summary.does_not_fit) + len(summary.cannot_tell) == len(device_files())
    assert json.loads(json.dumps(summary.json))["fits"].keys() == dict(summary.fits).keys()
    assert max(map(len, summary.text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("changes", "binds", "fits"),
    [
        ({}, "M20K", True),
        ({"multipliers": 30000}, "DSP", False),
        ({"memories": (Memory("M20K", 13805, 20480, 40),)}, "M20K", False),
        ({"logic": Logic("ALM", 10**5, 2, 4)}, "ALM", False),
        ({"logic": Logic("ALM", 17 * 10**5, 2, 4)}, "ALM", None),
        ({"multipliers": None}, "M20K", None),
        ({"multipliers": None, "memories": (Memory("M20K", 13805, 20480, 40),)}, "M20K", False),
    ],
)
def test_what_binds_and_whether_it_fits(changes: dict[str, object], binds: str, fits: bool | None) -> None:
    start: dict[str, object] = {"memories": (Memory("M20K", 20000, 20480, 40),)}
    answer = fit(CHIP, [LSTM], INT8, small(**(start | changes)))
    assert answer.binds is not None
    assert (answer.binds.name, answer.fits) == (binds, fits)


def test_an_exact_match_fits() -> None:
    exact = small(multipliers=33312, memories=(Memory("M20K", 13806, 20480, 40),))
    assert fit(CHIP, [LSTM], INT8, exact).fits is True


def test_two_kinds_of_memory_share_the_work() -> None:
    half = (Memory("a", 6903, 20480, 40), Memory("b", 6903, 20480, 40))
    answer = fit(CHIP, [LSTM], INT8, small(memories=half))
    assert answer.memory.share == pytest.approx(1.0)
    assert answer.memory.need is None
    unknown = fit(CHIP, [LSTM], INT8, small(memories=(half[0], Memory("b", None, 20480, 40))))
    assert unknown.memory.share is None
    assert "no source for the number of b blocks" in unknown.memory.how


def test_what_has_no_source_is_said() -> None:
    answer = fit(CHIP, [LSTM], Precision(weight_bits=16), device("stratix-10-nx-2100"))
    assert answer.array_blocks is None
    assert [each.share for each in answer.resources] == [None] * 3
    assert (answer.binds, answer.fits) == (None, None)
    text = answer.to_text()
    assert "no source for a packing of 16 x 8 bits in a tensor block" in " ".join(text.split())
    assert "what binds is not known" in text
    assert "cannot tell: " in text


def test_adder_trees_by_hand() -> None:
    # 16 adders of 17 bits, 8 of 18, 4 of 19, 2 of 20, 1 of 21.
    assert tree_bits(32, 16) == 16 * 17 + 8 * 18 + 4 * 19 + 2 * 20 + 21
    assert tree_bits(32, 16, summed=2) == 8 * 18 + 4 * 19 + 2 * 20 + 21
    assert tree_bits(40, 16, summed=10) == 2 * 21 + 22
    assert tree_bits(4, 16, most=16) == 3 * 16


def test_refusals() -> None:
    with pytest.raises(InputError, match="at least one model is expected, got none"):
        fit(CHIP, [], INT8, PLENTY)
    with pytest.raises(InputError, match="needs vp >= 4"):
        fit(ColumnNpu("c", 260, (ColumnCore(8, 4, 2),)), [LSTM], INT8, PLENTY)


@pytest.mark.parametrize("chip", ["column-npu-64k", "column-npu-4x16k", "intel-npu-rtl", "brainwave-s10"])
@pytest.mark.parametrize("name", device_files())
def test_every_chip_on_every_device_can_be_written(chip: str, name: str) -> None:
    on = device(name)
    answer = fit(load_chip(chip), [LSTM], INT8, on)
    lines = written(fit_document(answer, published_on(on))).splitlines()
    assert max(map(len, lines)) <= 100
    # A count of the array never takes more products of a block than it has.
    assert (answer.array_blocks or 0) * max(each.products for each in on.packings) >= 16384
    data = json.loads(json.dumps(fit_json(answer, published_on(on))))
    assert data["device"] == name
    assert data["schema"] == "lstmsim/fit/1"
    assert {row["design"] for row in data["published"]} == set(on.published)
