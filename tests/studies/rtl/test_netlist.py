"""Netlists of Yosys: the models of cells that are ours, and whole designs after synthesis."""

from __future__ import annotations

import os
import random
import re
import subprocess
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.studies.rtl.run import _OF_TESTBENCH
from lstmsim.studies.rtl.simulators import simulate_rtl, simulator_of
from tests.studies.board.scenarios import TINY
from tests.studies.rtl.directed_bits import BITS
from tests.studies.rtl.needed import needs_icarus, needs_yosys

CELLS = files("lstmsim.studies.rtl") / "ecp5_cells.v"


def ports(cell: str, width: int, value: str) -> str:
    """Connections of ports that have a number each to the bits of a value."""
    return ", ".join(f".{cell}{bit}({value}[{bit}])" for bit in range(width))


def simulated(text: str, folder: Path) -> list[str]:
    """What a testbench prints."""
    (folder / "bench.v").write_text(text)
    words = ["iverilog", "-g2005", "-s", "bench", "-o", "bench.vvp", "bench.v", str(CELLS)]
    subprocess.run(words, cwd=folder, check=True)
    return subprocess.run(
        ["vvp", "-n", "bench.vvp"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.splitlines()


def signed(value: int, bits: int, sign: bool) -> int:
    return value - (1 << bits) if sign and value >> (bits - 1) else value


@needs_icarus
def test_products_are_those_of_integers_for_all_signs(tmp_path: Path) -> None:
    """10,000 of them with LSTMSIM_EXAMPLES=10000."""
    draw = random.Random(0)
    edges = (0, 1, 2**17 - 1, 2**17, 2**18 - 1)
    cases = [(a, b, *signs) for a, b in product(edges, edges) for signs in product((0, 1), (0, 1))]
    count = int(os.environ.get("LSTMSIM_EXAMPLES", "200"))
    cases += [
        (draw.getrandbits(18), draw.getrandbits(18), draw.getrandbits(1), draw.getrandbits(1)) for _ in range(count)
    ]
    (tmp_path / "cases").write_text("".join(f"{a:x} {b:x} {left} {right}\n" for a, b, left, right in cases))
    text = f"""
module bench;
  reg [17:0] a, b;
  reg left, right;
  wire [35:0] p;
  MULT18X18D cell_ ({ports("A", 18, "a")}, {ports("B", 18, "b")}, {ports("P", 36, "p")},
    .SIGNEDA(left), .SIGNEDB(right), .SOURCEA(1'b0), .SOURCEB(1'b0));
  integer file;
  initial begin
    file = $fopen("cases", "r");
    while ($fscanf(file, "%h %h %b %b\\n", a, b, left, right) == 4) #1 $display("%h", p);
  end
endmodule
"""
    expected = [signed(a, 18, bool(left)) * signed(b, 18, bool(right)) % 2**36 for a, b, left, right in cases]
    assert [int(each, 16) for each in simulated(text, tmp_path)] == expected


@needs_icarus
@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(("a", "b"), [(8, 8), (18, 17), (5, 3), (19, 4)])
def test_products_of_blocks_are_those_of_any_tool(before: int, after: int, a: int, b: int, tmp_path: Path) -> None:
    """Both forms of `npu_product`, side by side; the last two sizes are never of blocks."""
    lib = files("lstmsim.machines.column.rtl.verilog") / "npu_lib.v"
    own = lib.read_text(encoding="utf-8")
    text = own[own.index("module npu_product") :]
    text = text[: text.index("endmodule") + len("endmodule")]
    for name, define in (("any_product", ""), ("block_product", "`define NPU_ECP5\n")):
        undone = "`undef NPU_ECP5\n" if define else ""
        (tmp_path / f"{name}.v").write_text(f"{define}{text.replace('npu_product', name)}\n{undone}")
    sizes = f".COUNT(3), .A({a}), .B({b}), .BEFORE({before}), .AFTER({after})"
    bench = f"""
module bench;
  reg clock = 0;
  reg [{3 * a - 1}:0] a;
  reg [{3 * b - 1}:0] b;
  wire [{3 * (a + b) - 1}:0] any, block;
  any_product #({sizes}) one (clock, a, b, any);
  block_product #({sizes}) other (clock, a, b, block);
  integer i;
  initial begin
    for (i = 0; i < 200; i = i + 1) begin
      a = {{$random, $random}}; b = {{$random, $random}};
      #1 clock = 1; #1 clock = 0;
      if (i > 2 && (any !== block || ^any === 1'bx)) $display("%d %h %h", i, any, block);
    end
    $display("done");
  end
endmodule
{own}
"""
    bench += (tmp_path / "any_product.v").read_text() + (tmp_path / "block_product.v").read_text()
    assert simulated(bench, tmp_path) == ["done"]
    assert ("blocks[2]" in (tmp_path / "bench.vvp").read_text()) == (a <= 18 and a + b > 8)


@pytest.mark.slow
@needs_icarus
@pytest.mark.parametrize("name", ["two_sums", "segments"])
def test_a_design_with_registers_in_its_blocks_does_what_lstmsim_says(name: str, tmp_path: Path) -> None:
    """As boards are built, but without Yosys."""
    lstmsim.run_rtl(BITS[name], tmp_path, random_weights=1)
    (tmp_path / "sim" / "cells.v").write_bytes(CELLS.read_bytes())
    sources = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.glob("*/*.v"))
    golden = (tmp_path / "golden" / "events.txt").read_text().splitlines()
    limit = max(int(line.split()[1]) for line in golden) + 100
    done = simulate_rtl(simulator_of("icarus"), str(tmp_path), sources, "npu_tb", limit, ("NPU_ECP5",))
    assert list(done.log) == golden


#: Bits of a port of a memory, and where the word is that they are of: bytes of nine bits.
WIDTHS = (1, 2, 4, 9, 18, 36)


def bits_of(width: int, address: int) -> list[int]:
    """The bits of a memory that a port reaches at an address of 14 bits."""
    if width >= 9:
        first = (address >> {9: 3, 18: 4, 36: 5}[width]) * width
        return list(range(first, first + width))
    byte, place = address >> 3, (address & 7) // width * width
    return [9 * byte + place + bit for bit in range(width)]


@needs_icarus
@pytest.mark.parametrize(
    ("written", "read"), [(36, 36), (18, 18), (9, 9), (4, 4), (2, 2), (1, 1), (36, 9), (9, 36), (18, 1)]
)
def test_memories_keep_what_is_written(written: int, read: int, tmp_path: Path) -> None:
    draw = random.Random(written * 100 + read)
    memory: list[int | None] = [0] * 18432
    expected, lines = list[list[int | None]](), []
    last: list[int | None] = [0] * read
    for _ in range(400):
        # few addresses, so that reads meet writes
        where, asked = (draw.randrange(8) * 32 + draw.randrange(32) for _ in range(2))
        data, enable, writes, reads = (
            draw.getrandbits(36),
            draw.getrandbits(4),
            draw.random() < 0.6,
            draw.random() < 0.8,
        )
        address = where & ~31 | enable if written == 36 else where & ~15 | enable & 3 if written == 18 else where
        lines.append(f"{address:x} {asked:x} {data:x} {writes:d} {reads:d}")
        places = bits_of(written, address) if writes else []
        if written >= 18:
            places = [each for number, each in enumerate(places) if enable >> number // 9 & 1]
        else:
            enable = 15
        taken = {each // 9 for each in places}
        if reads:
            # what is written in the same cycle is read as unknown
            last = [None if each // 9 in taken else memory[each] for each in bits_of(read, asked)]
        expected.append(last)
        own = bits_of(written, address)
        for place in places:
            memory[place] = data >> own.index(place) & 1
    (tmp_path / "cases").write_text("\n".join(lines) + "\n")
    text = f"""
module bench;
  reg clock = 0;
  reg [13:0] where, asked;
  reg [35:0] data;
  reg writes, reads;
  wire [35:0] q;
  wire [35:0] out = {"q" if read == 36 else "{18'b0, q[35:18]}"};
  DP16KD #(.DATA_WIDTH_A({written}), .DATA_WIDTH_B({read})) cell_ (.CLKA(clock), .CLKB(clock), .CEA(1'b1), .CEB(reads),
    .WEA(writes), .WEB(1'b0), .RSTA(1'b0), .RSTB(1'b0), .OCEA(1'b0), .OCEB(1'b1), .CSA0(1'b0), .CSA1(1'b0), .CSA2(1'b0),
    .CSB0(1'b0), .CSB1(1'b0), .CSB2(1'b0), {ports("ADA", 14, "where")}, {ports("ADB", 14, "asked")},
    {ports("DIA", 18, "data")}, {", ".join(f".DIB{bit}(data[{bit + 18}])" for bit in range(18))},
    {ports("DOA", 18, "q")}, {", ".join(f".DOB{bit}(q[{bit + 18}])" for bit in range(18))});
  integer file;
  initial begin
    file = $fopen("cases", "r");
    while ($fscanf(file, "%h %h %h %b %b\\n", where, asked, data, writes, reads) == 5) begin
      #1 clock = 1;
      #1 clock = 0;
      $display("%b", out);
    end
  end
endmodule
"""
    said = [list(reversed(each))[:read] for each in simulated(text, tmp_path)]
    assert said == [["x" if bit is None else str(bit) for bit in each] for each in expected]


#: The smallest design with a block memory: with 64 entries Yosys puts the activation table into a DP16KD, with 32 not.
TABLES = {**TINY, "precision": {**TINY["precision"], "activation_entries": 64}}


@needs_icarus
@needs_yosys
@pytest.mark.long
@pytest.mark.parametrize("name", ["tables", "one_of_all", "parameters", "two_sums", "scaled"])
def test_a_netlist_does_what_lstmsim_says(name: str, tmp_path: Path) -> None:
    """Seconds to minutes each, of Yosys and Icarus."""
    scenario: Any = TABLES if name == "tables" else {**BITS[name]}
    report = lstmsim.run_rtl(scenario, tmp_path / "design", random_weights=1, verify=True, synth="ecp5")
    own = report.netlist
    assert own is not None
    assert own.equal, report.to_text()
    assert own.compared.equal["job"]
    assert own.compared.equal["h"]
    assert report.synthesis is not None
    if name == "tables":
        assert re.search(r"^\s*DP16KD\b", report.synthesis.netlist, re.MULTILINE)


def test_the_testbench_of_a_netlist_has_all_its_modules(tmp_path: Path) -> None:
    lstmsim.run_rtl(TINY, tmp_path / "design", random_weights=1)
    bench = [tmp_path / "design" / each for each in _OF_TESTBENCH] + sorted((tmp_path / "design/sim").glob("*.v"))
    text = "\n".join(each.read_text() for each in bench)
    written = set(re.findall(r"^module (\w+)", text, re.MULTILINE))
    asked = set(re.findall(r"^\s+(npu_\w+) (?:#\(|\w+ \()", text, re.MULTILINE))
    assert {"npu_top", "npu_pulse"} <= asked
    assert asked - written == {"npu_top"}
