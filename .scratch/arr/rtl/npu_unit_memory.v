// A memory of numbers of units, read and written from any unit on: where a unit is in another lane of the reader.
//
// There are 2^K >= WIDTH banks of single numbers. Unit u of a vector is in bank u mod 2^K at the vector's base + u /
// 2^K.
`default_nettype none

module npu_unit_memory #(
  // Lanes, bits of a number, words of a bank, ways to read, bits of a unit's number and of an address.
  parameter WIDTH = 2,
  parameter BITS = 16,
  parameter WORDS = 4,
  parameter READS = 1,
  parameter W_UNIT = 4,
  parameter W_ADDRESS = 2
) (
  input wire clock,
  input wire write,
  input wire [W_ADDRESS-1:0] write_base,
  // The first unit, and how many count.
  input wire [W_UNIT-1:0] write_unit,
  input wire [W_UNIT-1:0] write_units,
  input wire [WIDTH*BITS-1:0] write_data,
  input wire [READS*W_ADDRESS-1:0] read_base,
  input wire [READS*W_UNIT-1:0] read_unit,
  // What was written in an earlier cycle, in the cycle in which base and unit are given.
  output wire [READS*WIDTH*BITS-1:0] read_data
);
  localparam K = $clog2(WIDTH);
  localparam BANKS = 1 << K;
  // One bit more than a lane's number, so that a single lane has one too.
  localparam W = K + 1;

  // What each way reads of each bank.
  wire [READS*BANKS*BITS-1:0] words;

  genvar b, l, r;
  generate
    for (r = 0; r < READS; r = r + 1) begin : g_read
      wire [W_UNIT+W-1:0] unit = {{W{1'b0}}, read_unit[r*W_UNIT +: W_UNIT]};
      wire [W-1:0] first = unit[W-1:0] & (BANKS - 1);
      wire [BANKS*BITS-1:0] own = words[r*BANKS*BITS +: BANKS*BITS];
      for (l = 0; l < WIDTH; l = l + 1) begin : g_lane
        wire [W-1:0] bank = (first + l) & (BANKS - 1);
        assign read_data[(r*WIDTH + l)*BITS +: BITS] = own[bank*BITS +: BITS];
      end
    end
    for (b = 0; b < BANKS; b = b + 1) begin : g_bank
      reg [BITS-1:0] cells [0:WORDS-1];
      wire [W_UNIT+W-1:0] unit = {{W{1'b0}}, write_unit};
      wire [W-1:0] first = unit[W-1:0] & (BANKS - 1);
      wire [W-1:0] lane = (b - first) & (BANKS - 1);
      wire [W_ADDRESS-1:0] place = write_base + (unit >> K) + (b < first ? 1'b1 : 1'b0);
      wire [(BANKS+1)*BITS-1:0] data = write_data;
      always @(posedge clock)
        if (write && lane < WIDTH && lane < write_units) cells[place] <= data[lane*BITS +: BITS];
      for (r = 0; r < READS; r = r + 1) begin : g_way
        wire [W_UNIT+W-1:0] from = {{W{1'b0}}, read_unit[r*W_UNIT +: W_UNIT]};
        wire [W-1:0] from_bank = from[W-1:0] & (BANKS - 1);
        wire [W_ADDRESS-1:0] where = read_base[r*W_ADDRESS +: W_ADDRESS] + (from >> K)
          + (b < from_bank ? 1'b1 : 1'b0);
        assign words[(r*BANKS + b)*BITS +: BITS] = cells[where];
      end
    end
  endgenerate
endmodule
