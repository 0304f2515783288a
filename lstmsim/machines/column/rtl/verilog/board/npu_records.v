// The memory of results. It may fill most of an FPGA's block memories, which then lie far apart. So it is cut into
// banks: each block is written from a register and read into one, before a word is chosen.
`default_nettype none

module npu_records #(
  // Words of 32 bits of a record.
  parameter PARTS = 1,
  parameter RECORDS = 2
) (
  input wire clock,
  input wire write,
  input wire [31:0] write_record,
  input wire [32*PARTS-1:0] write_data,
  // A word of a record comes three cycles later.
  input wire [23:0] read_record,
  input wire [23:0] read_part,
  output reg [31:0] read_data
);
  // Records of a bank: a block of 18 kbit has 2,048 words of 9 bits, so that a bank needs no choice between its blocks.
  localparam DEPTH = 2048;
  localparam W_DEPTH = $clog2(RECORDS < DEPTH ? RECORDS : DEPTH);
  localparam BANKS = (RECORDS + DEPTH - 1) / DEPTH;
  // Words of a record and banks at distances that are powers of two.
  localparam W_PART = $clog2(PARTS);
  localparam W_WORD = $clog2(BANKS) + W_PART + 1;

  reg [31:0] to;
  reg [32*PARTS-1:0] word;
  always @(posedge clock) begin
    to <= write_record;
    word <= write_data;
  end

  reg [W_WORD-1:0] wanted;
  reg [W_WORD-1:0] wanted_held;
  wire [(BANKS<<W_PART)*32-1:0] held;
  always @(posedge clock) begin
    wanted <= ((read_record / DEPTH) << W_PART) | read_part;
    wanted_held <= wanted;
    read_data <= held[wanted_held*32 +: 32];
  end

  genvar b;
  genvar p;
  generate
    for (b = 0; b < BANKS; b = b + 1) begin : banks
      localparam HERE = RECORDS - b * DEPTH < DEPTH ? RECORDS - b * DEPTH : DEPTH;
      reg writing;
      always @(posedge clock) writing <= write && write_record / DEPTH == b;
      for (p = 0; p < 1 << W_PART; p = p + 1) begin : parts
        if (p < PARTS) begin : stored
          (* no_rw_check *) reg [31:0] cells [0:HERE-1];
          reg [31:0] from_cells;
          reg [31:0] from_block;
          assign held[((b<<W_PART)+p)*32 +: 32] = from_block;
          always @(posedge clock) begin
            if (writing) cells[to[W_DEPTH-1:0]] <= word[32*p +: 32];
            from_cells <= cells[read_record[W_DEPTH-1:0]];
            from_block <= from_cells;
          end
        end else begin : none
          assign held[((b<<W_PART)+p)*32 +: 32] = 32'd0;
        end
      end
    end
  endgenerate
endmodule

`default_nettype wire
