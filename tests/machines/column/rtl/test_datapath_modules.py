"""Modules of the datapath, each by itself: against sums, arrays and the fixed-point rules in Python."""

from __future__ import annotations

import random
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from lstmsim.model.numerics.fixed_point import QFormat, saturate, shifted, wrap
from tests.machines.column.rtl.bench import numbers, simulated
from tests.studies.rtl.needed import needs_icarus

pytestmark = needs_icarus


@pytest.mark.parametrize(
    ("ep", "slots", "bits", "multiply", "add", "accumulate"), [(3, 2, 12, 1, 2, 1), (4, 1, 20, 3, 1, 3)]
)
def test_a_row_adds_tiles_to_its_banks(
    tmp_path: Path, ep: int, slots: int, bits: int, multiply: int, add: int, accumulate: int
) -> None:
    rng = random.Random(ep)
    levels = (ep - 1).bit_length()
    delay = multiply + add * levels + accumulate - 1
    parameters = {
        "EP": ep,
        "LEVELS": levels,
        "SLOTS": slots,
        "BANKS": 3,
        "W_BANK": 2,
        "WEIGHT_BITS": 6,
        "VECTOR_BITS": 5,
    }
    parameters |= {"ACCUMULATOR_BITS": bits, "MULTIPLY": multiply, "ADD": add, "ACCUMULATE": accumulate}
    banks: list[list[int | None]] = [[None] * slots for _ in range(3)]
    cycles: list[dict[str, int]] = [{} for _ in range(60 + delay)]
    expected: list[tuple[int, int, int | None]] = []
    for s in range(60):
        weights = [rng.choice((-32, 31, rng.randint(-32, 31))) for _ in range(ep)]
        elements = [rng.choice((-16, 15, rng.randint(-16, 15))) for _ in range(ep)]
        bank, first, slot = rng.randrange(3), s < 3 or rng.random() < 0.1, rng.randrange(slots)
        bank = s if s < 3 else bank
        valid = s < 3 or rng.random() < 0.8
        cycles[s] |= {"weights": _together(weights, 6), "elements": _together(elements, 5)}
        cycles[s + delay] |= {
            "add_valid": valid,
            "add_first": first,
            "add_bank": bank,
            "add_slots": 1 << slot,
            "read_bank": bank,
        }
        # what is read is what was there before this tile
        expected += [(s + delay, k, banks[bank][k]) for k in range(slots)]
        if valid:
            total = sum(w * x for w, x in zip(weights, elements, strict=True))
            for k in range(slots):
                before = 0 if first else banks[bank][k]
                assert before is not None
                banks[bank][k] = int(wrap(np.array(before + total * (k == slot)), bits))
    inputs = {
        "weights": 6 * ep,
        "elements": 5 * ep,
        "add_valid": 1,
        "add_first": 1,
        "add_bank": 2,
        "add_slots": slots,
        "read_bank": 2,
    }
    ran = simulated(tmp_path, "npu_row", parameters, inputs, {"sums": bits * slots}, cycles)
    for cycle, k, value in expected:
        assert numbers(ran[cycle]["sums"], bits, sign=True)[k] == value, (cycle, k)


def _together(values: list[int], bits: int) -> int:
    return sum((value & ((1 << bits) - 1)) << (place * bits) for place, value in enumerate(values))


@pytest.mark.parametrize(("ep", "width", "read"), [(3, 4, 0), (8, 1, 1), (1, 1, 3), (2, 5, 2)])
def test_vectors_are_read_and_written_from_any_element_on(tmp_path: Path, ep: int, width: int, read: int) -> None:
    rng = random.Random(ep)
    size = 37
    parameters = {"EP": ep, "TAIL_WIDTH": width, "BITS": 5, "ELEMENTS": size, "READ": read, "W_ELEMENT": 7, "W_UNIT": 4}
    memory: list[int | None] = [None] * size
    cycles: list[dict[str, int]] = []
    expected: list[list[int | None]] = []
    for cycle in range(200):
        at, count = rng.randrange(size), rng.randint(0, width)
        count = min(count, size - at)
        values = [rng.randrange(32) for _ in range(width)]
        start = rng.randrange(size)
        write = rng.random() < 0.6 and cycle < 190
        cycles.append(
            {
                "write": write,
                "write_element": at,
                "write_count": count,
                "write_data": _together(values, 5),
                "read_element": start,
            }
        )
        expected.append(memory[start : start + ep])
        if write:
            memory[at : at + count] = values[:count]
    inputs = {"write": 1, "write_element": 7, "write_count": 4, "write_data": 5 * width, "read_element": 7}
    ran = simulated(tmp_path, "npu_vector_memory", parameters, inputs, {"read_data": 5 * ep}, cycles)
    for cycle, each in enumerate(expected[: 200 - read]):
        # what is behind the last element may hold anything
        assert numbers(ran[cycle + read]["read_data"], 5)[: len(each)] == each, cycle


_ADAPTER_REGISTERS = ("SELECTED", "PARTIAL", "MULTIPLIED", "SHIFTED", "ADDED", "SATURATED")


@pytest.mark.parametrize(
    ("bits", "factor_bits", "tail_bits", "shifts", "registers"),
    [
        (16, 8, 10, (5, 24), (1, 0, 1, 1, 0, 1)),
        (8, 4, 24, (-20, 3), (0, 0, 0, 0, 0, 0)),
        (12, 6, 4, (15, 18), (2, 0, 3, 0, 0, 1)),
        (8, 4, 4, (-1, 1), (1, 0, 0, 0, 0, 0)),
        # the product in two parts, and in one that is too short for them
        (32, 16, 16, (8, 30), (1, 1, 1, 1, 0, 1)),
        (18, 5, 12, (2, 9), (2, 1, 2, 1, 1, 1)),
        (17, 16, 12, (9, 9), (1, 1, 1, 1, 1, 1)),
    ],
)
def test_the_adapter_rounds_half_up_and_saturates_behind_the_bias(
    tmp_path: Path, bits: int, factor_bits: int, tail_bits: int, shifts: tuple[int, int], registers: tuple[int, ...]
) -> None:
    rng = random.Random(bits)
    low, high = shifts
    shift_bits = max(1, (high - low).bit_length())
    parameters = {"ACCUMULATOR_BITS": bits, "MULTIPLIER_BITS": factor_bits, "SHIFT_BITS": shift_bits, "LEFT": -low}
    parameters |= dict(zip(_ADAPTER_REGISTERS, registers, strict=True))
    parameters["TAIL_BITS"] = tail_bits
    selected, delay = registers[0], sum(registers)
    cycles: list[dict[str, int]] = [{} for _ in range(300 + delay)]
    expected = []
    top = 1 << (bits - 1)
    for cycle in range(300):
        total = rng.choice((-top, top - 1, rng.randrange(-top, top), rng.randrange(-8, 8)))
        factor = rng.choice((0, (1 << factor_bits) - 1, rng.randrange(1 << factor_bits), 1 << (factor_bits - 1)))
        shift = rng.randint(low, high)
        bias = rng.choice((0, 0, rng.randrange(-40, 40), -(1 << 31), (1 << 31) - 1))
        cycles[cycle]["total"] = total
        cycles[cycle + selected] |= {"factor": factor, "shift": shift - low, "bias": bias}
        exact = shifted(np.array([total * factor]), np.array([shift])) + bias
        expected.append(int(saturate(exact, QFormat(tail_bits, 0))[0][0]))
    inputs = {"total": bits, "factor": factor_bits, "shift": shift_bits, "bias": 32}
    ran = simulated(tmp_path, "npu_adapter_lane", parameters, inputs, {"result": tail_bits}, cycles)
    for cycle, value in enumerate(expected):
        assert numbers(ran[cycle + delay]["result"], tail_bits, sign=True) == [value], (cycle, cycles[cycle])


@pytest.mark.parametrize(("parts", "records"), [(3, 4_100), (1, 2), (4, 2_048), (5, 2_049)])
def test_a_word_of_a_result_comes_three_cycles_behind_its_address(tmp_path: Path, parts: int, records: int) -> None:
    rng = random.Random(records)
    # the first and last records of each bank, and some between
    own = sorted({at for at in (0, 1, 2_047, 2_048, 4_095, 4_096, records - 1) if at < records})
    stored = {at: [rng.getrandbits(32) for _ in range(parts)] for at in own}
    cycles = [{"write": 1, "write_record": at, "write_data": _together(stored[at], 32)} for at in own]
    # what is not written changes nothing
    cycles += [{"write_record": at, "write_data": 1} for at in own] + [{}]
    asked = [(at, part) for at in own for part in range(parts)]
    rng.shuffle(asked)
    first = len(cycles)
    cycles += [{"read_record": at, "read_part": part} for at, part in asked] + [{}] * 3
    inputs = {"write": 1, "write_record": 32, "write_data": 32 * parts, "read_record": 24, "read_part": 24}
    module = files("lstmsim.machines.column.rtl") / "verilog" / "board" / "npu_records.v"
    written = {"npu_records.v": module.read_text()}
    sizes = {"PARTS": parts, "RECORDS": records}
    ran = simulated(tmp_path, "npu_records", sizes, inputs, {"read_data": 32}, cycles, written=written)
    for number, (at, part) in enumerate(asked):
        assert numbers(ran[first + number + 3]["read_data"], 32) == [stored[at][part]], (at, part)


@pytest.mark.parametrize(("width", "read"), [(70, 1), (8, 0), (33, 3)])
def test_the_host_writes_a_word_in_parts(tmp_path: Path, width: int, read: int) -> None:
    rng = random.Random(width)
    parts = -(-width // 32)
    step = 1 << (parts - 1).bit_length()
    words = [rng.randrange(1 << width) for _ in range(5)]
    cycles = [
        {"write": 1, "write_word": number * step + part, "write_data": (word >> (32 * part)) & 0xFFFFFFFF}
        for number, word in enumerate(words)
        for part in range(parts)
    ]
    order = [rng.randrange(5) for _ in range(10)]
    begin = len(cycles)
    cycles += [{"address": number} for number in order] + [{}] * read
    inputs = {"write": 1, "write_word": 24, "write_data": 32, "address": 4}
    inputs |= {"stream": 1, "stream_address": 4, "stream_word": width}
    parameters = {"WIDTH": width, "WORDS": 5, "READ": read, "W_ADDRESS": 4}
    ran = simulated(tmp_path, "npu_memory", parameters, inputs, {"data": width}, cycles)
    for place, number in enumerate(order):
        assert numbers(ran[begin + place + read]["data"], width) == [words[number]]
