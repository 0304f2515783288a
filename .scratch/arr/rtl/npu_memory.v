// A memory that the host, or a memory beside the chip, fills and the design reads.
`default_nettype none

// A word is written in parts of 32 bits: the host's word number is word * parts + part, with the number of parts
// rounded up to a power of two. Each part is a memory of its own, so that it maps to block RAM without write masks:
// write and registered read in one module and on one clock, as AMD's UG901 ("RAM HDL Coding Techniques", simple dual
// port) and Intel's "Recommended HDL Coding Styles" ("Inferring RAM functions from HDL code") want them.
// Nothing is written before the host does: what was never written reads as unknown.
module npu_memory #(
  parameter WIDTH = 32,
  parameter WORDS = 2,
  // Cycles from the address to the data; 0: the memory is read asynchronously.
  parameter READ = 1,
  parameter W_ADDRESS = 1
) (
  input wire clock,
  input wire write,
  input wire [23:0] write_word,
  input wire [31:0] write_data,
  // A whole word from a memory beside the chip, in place of a part from the host.
  input wire stream,
  input wire [W_ADDRESS-1:0] stream_address,
  input wire [WIDTH-1:0] stream_word,
  input wire [W_ADDRESS-1:0] address,
  output wire [WIDTH-1:0] data
);
  localparam PARTS = (WIDTH + 31) / 32;
  localparam PART_BITS = $clog2(PARTS);
  localparam A = WORDS > 1 ? $clog2(WORDS) : 1;
  // A core whose cells read no x has no frames.
  localparam DEPTH = WORDS > 0 ? WORDS : 1;

  wire [23:0] word = write_word >> PART_BITS;
  wire [23:0] part = write_word & ((24'd1 << PART_BITS) - 24'd1);
  // One bit more than either, so that a narrow address is filled up with zeros.
  wire [W_ADDRESS+A:0] wide = {{(A + 1){1'b0}}, address};
  wire [W_ADDRESS+A:0] to = {{(A + 1){1'b0}}, stream_address};
  wire [WIDTH-1:0] now;

  genvar p;
  generate
    for (p = 0; p < PARTS; p = p + 1) begin : parts
      localparam W = p == PARTS - 1 ? WIDTH - 32 * p : 32;
      // Nobody reads what is being written: a block memory needs no logic for that.
      (* no_rw_check *) reg [W-1:0] cells [0:DEPTH-1];
      always @(posedge clock)
        if (stream || (write && part == p))
          cells[stream ? to[A-1:0] : word[A-1:0]] <= stream ? stream_word[32*p +: W] : write_data[W-1:0];
      if (READ == 0) begin : at_once
        assign now[32*p +: W] = cells[wide[A-1:0]];
      end else begin : registered
        reg [W-1:0] word_read;
        always @(posedge clock) word_read <= cells[wide[A-1:0]];
        assign now[32*p +: W] = word_read;
      end
    end
  endgenerate

  // The next register is the output register of a block memory.
  npu_delay #(.WIDTH(WIDTH), .CYCLES(READ > 0 ? READ - 1 : 0)) pipe (.clock(clock), .in(now), .out(data));
endmodule
