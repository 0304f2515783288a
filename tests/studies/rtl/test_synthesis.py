"""Counts of Yosys on small modules whose cells are known."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lstmsim.base.errors import InputError, LstmsimError
from lstmsim.studies.rtl.synthesis import FAMILIES, synthesize, yosys_program
from tests.studies.rtl.needed import needs_yosys

#: Two multipliers of 8 x 8 bits and one of 32 x 17 (two blocks on ECP5), a memory of 1024 x 32 (two blocks of 18 Kbit),
#: and registers around all of them.
_VERILOG = """`default_nettype none
module times #(parameter W = 8) (
  input wire clock, input wire signed [W-1:0] a, input wire signed [16:0] b, output reg signed [W+16:0] y
);
  reg signed [W-1:0] c;
  reg signed [16:0] d;
  always @(posedge clock) begin
    c <= a;
    d <= b;
    y <= c * d;
  end
endmodule
module memory (input wire clock, input wire write, input wire [9:0] address, input wire [31:0] d, output reg [31:0] q);
  reg [31:0] words [0:1023];
  always @(posedge clock) begin
    if (write) words[address] <= d;
    q <= words[address];
  end
endmodule
module whole (
  input wire clock, input wire write, input wire signed [50:0] b, input wire [31:0] d, output wire [31:0] q,
  output wire [24:0] y0, output wire [24:0] y1, output wire [48:0] y2
);
  // what a part ends with has no name of the whole
  wire [24:0] n0;
  wire [24:0] n1;
  wire [48:0] n2;
  assign y0 = n0 ^ {25{write}};
  assign y1 = n1 ^ {25{write}};
  assign y2 = n2 ^ {49{write}};
  times m0 (.clock(clock), .a(d[7:0]), .b(b[16:0]), .y(n0));
  times m1 (.clock(clock), .a(d[15:8]), .b(b[33:17]), .y(n1));
  times #(.W(32)) m2 (.clock(clock), .a(~d), .b(b[50:34]), .y(n2));
  memory m (.clock(clock), .write(write), .address(b[9:0]), .d(d), .q(q));
endmodule
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "whole.v").write_text(_VERILOG, encoding="utf-8")
    return tmp_path


@needs_yosys
def test_cells_are_shared_out_by_instance_and_add_up(folder: Path) -> None:
    made = synthesize(folder, ["whole.v"], "whole", FAMILIES["ecp5"], {"m0": "products", "m2": "wide product"})
    parts = {each.name: made.family.counts(each.cells) for each in made.parts}
    assert list(parts) == ["products", "wide product", "rest"]
    assert [each["multipliers"] for each in parts.values()] == [1, 2, 1]
    assert [each["registers"] for each in parts.values()] == [50, 98, 50]
    # `m` and `m1` are no parts: their cells are those of the rest.
    assert [each["memories"] for each in parts.values()] == [0, 0, 2]
    assert (made.counts["multipliers"], made.counts["memories"], made.counts["registers"]) == (4, 2, 198)
    assert sorted(each.name for each in folder.iterdir()) == ["whole.v"]


@needs_yosys
@pytest.mark.parametrize(
    ("family", "multipliers", "memories"),
    [
        ("xilinx", 4, 2),
        # Twice 17 x 8 bits in half a block each, a whole block and what is left of 32 bits in half a block.
        ("intel-alm", 3, 4),
    ],
)
def test_other_families_have_blocks_of_their_own(folder: Path, family: str, multipliers: int, memories: int) -> None:
    counts = synthesize(folder, ["whole.v"], "whole", FAMILIES[family], {}).counts
    assert (counts["multipliers"], counts["memories"]) == (multipliers, memories)


@needs_yosys
def test_what_yosys_says_is_told(folder: Path) -> None:
    (folder / "broken.v").write_text("module broken (input wire a;\nendmodule\n", encoding="utf-8")
    with pytest.raises(LstmsimError, match=r"(?s)failed.*broken\.v:1"):
        synthesize(folder, ["broken.v"], "broken", FAMILIES["ecp5"], {})


@needs_yosys
def test_a_run_has_a_limit(folder: Path) -> None:
    with pytest.raises(LstmsimError, match="was ended after 0 seconds"):
        synthesize(folder, ["whole.v"], "whole", FAMILIES["ecp5"], {}, limit=0)


def test_a_missing_yosys_names_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(InputError, match=r"apt install yosys\), or pip install 'lstmsim\[rtl\]'"):
        yosys_program()
