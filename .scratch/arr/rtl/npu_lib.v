// Small parts that several modules share.
`default_nettype none

// A delay line: what went in CYCLES cycles ago comes out. With CYCLES 0 it is a wire.
// Nothing is reset: what must not be seen carries a valid bit, which npu_pulse delays.
module npu_delay #(
  parameter WIDTH = 1,
  parameter CYCLES = 1
) (
  input wire clock,
  input wire [WIDTH-1:0] in,
  output wire [WIDTH-1:0] out
);
  generate
    if (CYCLES == 0) begin : wire_only
      assign out = in;
    end else if (CYCLES == 1) begin : one_register
      reg [WIDTH-1:0] stage;
      always @(posedge clock) stage <= in;
      assign out = stage;
    end else begin : registers
      // One vector, the youngest word lowest: simulators move it in one piece, twice as fast as words of an array.
      reg [WIDTH*CYCLES-1:0] stages;
      always @(posedge clock) stages <= {stages[WIDTH*(CYCLES-1)-1:0], in};
      assign out = stages[WIDTH*(CYCLES-1) +: WIDTH];
    end
  endgenerate
endmodule

// COUNT products of two signed numbers each, with a register of their own before them (BEFORE) and one behind them
// (AFTER), or none.
//
// With NPU_ECP5 these registers are those of the blocks MULT18X18D, which Yosys does not use by itself: Lattice's guide
// FPGA-TN-02205 has the cell. From its input to its output register a block takes no longer than from the former to its
// pins. What is so small that Yosys builds it of logic, or wider than a block, is left to the tool.
module npu_product #(
  parameter COUNT = 1,
  parameter A = 8,
  parameter B = 8,
  parameter BEFORE = 0,
  parameter AFTER = 1
) (
  input wire clock,
  input wire [COUNT*A-1:0] a,
  input wire [COUNT*B-1:0] b,
  output wire [COUNT*(A+B)-1:0] product
);
`ifdef NPU_ECP5
  localparam BLOCK = A > 1 && B > 1 && A + B > 8 && A < 19 && B < 19 && BEFORE + AFTER > 0;
`else
  localparam BLOCK = 0;
`endif
  generate
    if (!BLOCK) begin : any
      wire [COUNT*A-1:0] left;
      wire [COUNT*B-1:0] right;
      if (BEFORE > 0) begin : own
        // No tool makes one register of those of several rows: it is near its products.
        reg [COUNT*(A+B)-1:0] operands;
        (* keep *) always @(posedge clock) operands <= {a, b};
        assign {left, right} = operands;
      end else begin : none
        assign {left, right} = {a, b};
      end
      reg [COUNT*(A+B)-1:0] now;
      integer n;
      always @*
        for (n = 0; n < COUNT; n = n + 1)
          now[n*(A+B) +: A+B] = $signed(left[n*A +: A]) * $signed(right[n*B +: B]);
      npu_delay #(.WIDTH(COUNT * (A + B)), .CYCLES(AFTER)) product_register
        (.clock(clock), .in(now), .out(product));
    end
`ifdef NPU_ECP5
    genvar g;
    for (g = 0; g < (BLOCK ? COUNT : 0); g = g + 1) begin : blocks
      wire signed [A-1:0] one = a[g*A +: A];
      wire signed [B-1:0] other = b[g*B +: B];
      wire signed [17:0] wide = one;
      wire signed [17:0] other_wide = other;
      // Of signed ones Yosys would look at the block again when all is one module.
      wire [17:0] left = wide;
      wire [17:0] right = other_wide;
      wire [35:0] all;
      assign product[g*(A+B) +: A+B] = all[A+B-1:0];
      MULT18X18D #(
        .REG_INPUTA_CLK(BEFORE > 0 ? "CLK0" : "NONE"), .REG_INPUTA_CE("CE0"), .REG_INPUTA_RST("RST0"),
        .REG_INPUTB_CLK(BEFORE > 0 ? "CLK0" : "NONE"), .REG_INPUTB_CE("CE0"), .REG_INPUTB_RST("RST0"),
        .REG_OUTPUT_CLK(AFTER > 0 ? "CLK0" : "NONE"), .REG_OUTPUT_CE("CE0"), .REG_OUTPUT_RST("RST0")
      ) block (
        .A0(left[0]), .A1(left[1]), .A2(left[2]), .A3(left[3]), .A4(left[4]), .A5(left[5]), .A6(left[6]), .A7(left[7]),
        .A8(left[8]), .A9(left[9]), .A10(left[10]), .A11(left[11]), .A12(left[12]), .A13(left[13]), .A14(left[14]),
        .A15(left[15]), .A16(left[16]), .A17(left[17]),
        .B0(right[0]), .B1(right[1]), .B2(right[2]), .B3(right[3]), .B4(right[4]), .B5(right[5]), .B6(right[6]),
        .B7(right[7]), .B8(right[8]), .B9(right[9]), .B10(right[10]), .B11(right[11]), .B12(right[12]),
        .B13(right[13]), .B14(right[14]), .B15(right[15]), .B16(right[16]), .B17(right[17]),
        .P0(all[0]), .P1(all[1]), .P2(all[2]), .P3(all[3]), .P4(all[4]), .P5(all[5]), .P6(all[6]), .P7(all[7]),
        .P8(all[8]), .P9(all[9]), .P10(all[10]), .P11(all[11]), .P12(all[12]), .P13(all[13]), .P14(all[14]),
        .P15(all[15]), .P16(all[16]), .P17(all[17]), .P18(all[18]), .P19(all[19]), .P20(all[20]), .P21(all[21]),
        .P22(all[22]), .P23(all[23]), .P24(all[24]), .P25(all[25]), .P26(all[26]), .P27(all[27]), .P28(all[28]),
        .P29(all[29]), .P30(all[30]), .P31(all[31]), .P32(all[32]), .P33(all[33]), .P34(all[34]), .P35(all[35]),
        .SIGNEDA(1'b1), .SIGNEDB(1'b1), .SOURCEA(1'b0), .SOURCEB(1'b0),
        .CLK0(clock), .CE0(1'b1), .RST0(1'b0)
      );
    end
`endif
  endgenerate
endmodule

// A delay line of which every entry is seen: entry i, i words up, is what came in i cycles ago. `clear` empties it.
module npu_line #(
  parameter WIDTH = 1,
  parameter D = 1
) (
  input wire clock,
  input wire clear,
  input wire [WIDTH-1:0] now,
  output wire [(D+1)*WIDTH-1:0] line
);
  reg [D*WIDTH-1:0] past;
  assign line = {past, now};
  always @(posedge clock) past <= clear ? {D*WIDTH{1'b0}} : line[D*WIDTH-1:0];
endmodule

// One of several words side by side. The words are spread to a distance that is a power of two, because an index times
// another width would be a multiplier.
module npu_choose #(
  parameter WIDTH = 1,
  parameter COUNT = 2,
  parameter INDEX = 1
) (
  input wire [COUNT*WIDTH-1:0] words,
  input wire [INDEX-1:0] index,
  output wire [WIDTH-1:0] word
);
  localparam STRIDE = 1 << $clog2(WIDTH);
  wire [COUNT*STRIDE-1:0] spread;
  genvar i;
  generate
    for (i = 0; i < COUNT; i = i + 1) begin : places
      wire [STRIDE-1:0] padded = words[i*WIDTH +: WIDTH];
      assign spread[i*STRIDE +: STRIDE] = padded;
    end
  endgenerate
  wire [STRIDE-1:0] there = spread[index*STRIDE +: STRIDE];
  assign word = there[WIDTH-1:0];
endmodule

// Where a thread's part of a memory begins: so many times PART, as a choice of constants.
module npu_part #(
  parameter WIDTH = 1,
  parameter COUNT = 2,
  parameter INDEX = 1,
  parameter PART = 1
) (
  input wire [INDEX-1:0] index,
  output wire [WIDTH-1:0] word
);
  wire [COUNT*WIDTH-1:0] words;
  genvar i;
  generate
    for (i = 0; i < COUNT; i = i + 1) begin : parts
      assign words[i*WIDTH +: WIDTH] = i * PART;
    end
  endgenerate
  npu_choose #(.WIDTH(WIDTH), .COUNT(COUNT), .INDEX(INDEX)) one (.words(words), .index(index), .word(word));
endmodule

// A delay line of a bit that is 0 after a reset.
module npu_pulse #(
  parameter CYCLES = 1
) (
  input wire clock,
  input wire reset,
  input wire in,
  output wire out
);
  generate
    if (CYCLES == 0) begin : wire_only
      assign out = in;
    end else begin : registers
      reg [CYCLES-1:0] stages;
      wire [CYCLES:0] moved = {stages, in};
      always @(posedge clock)
        if (reset) stages <= {CYCLES{1'b0}};
        else stages <= moved[CYCLES-1:0];
      assign out = stages[CYCLES-1];
    end
  endgenerate
endmodule

`default_nettype wire
