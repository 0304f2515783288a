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
