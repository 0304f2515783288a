// A memory of vector elements: EP of them are read, and up to TAIL_WIDTH written, from any element on, in each cycle.
`default_nettype none

// Elements lie in 2^k banks of single elements, element e in bank e mod 2^k, so a run of 2^k elements touches each bank
// once. Rotators bring the banks into the order of the elements: ranges begin anywhere, because a layer's second
// direction and a row block begin at no multiple of anything.
// What is written in a cycle is read from the next cycle on.
module npu_vector_memory #(
  parameter EP = 4,
  parameter TAIL_WIDTH = 4,
  parameter BITS = 8,
  // Elements of all threads together.
  parameter ELEMENTS = 16,
  // Cycles from the address to the elements; 0: the banks are read asynchronously.
  parameter READ = 1,
  parameter W_ELEMENT = 4,
  parameter W_UNIT = 4
) (
  input wire clock,
  input wire write,
  input wire [W_ELEMENT-1:0] write_element,
  input wire [W_UNIT-1:0] write_count,
  input wire [TAIL_WIDTH*BITS-1:0] write_data,
  input wire [W_ELEMENT-1:0] read_element,
  output wire [EP*BITS-1:0] read_data
);
  localparam WIDEST = EP > TAIL_WIDTH ? EP : TAIL_WIDTH;
  localparam K = $clog2(WIDEST);
  localparam BANKS = 1 << K;
  // A read of EP elements may begin at the last element: the word behind it exists, whatever it holds.
  localparam WORDS = (ELEMENTS + BANKS - 1) / BANKS + 1;
  localparam W_WORD = $clog2(WORDS);
  // Bits of a bank's number; one too many where there is one bank, which then is always 0.
  localparam W_BANK = K > 0 ? K : 1;

  wire [W_WORD+K:0] read_wide = read_element;
  wire [W_WORD+K:0] write_wide = write_element;
  wire [W_WORD-1:0] read_word = read_wide >> K;
  wire [W_WORD-1:0] write_word = write_wide >> K;
  wire [W_BANK-1:0] read_first = read_wide & (BANKS - 1);
  wire [W_BANK-1:0] write_first = write_wide & (BANKS - 1);

  // Lane i goes to bank i + write_first.
  wire [BANKS*BITS-1:0] write_padded = write_data;
  wire [BANKS*BITS-1:0] write_banks;
  npu_rotate #(.COUNT(BANKS), .BITS(BITS), .K(K), .W(W_BANK), .UP(1)) write_rotator
    (.in(write_padded), .by(write_first), .out(write_banks));

  // Behind the register in the banks.
  wire [BANKS*BITS-1:0] banks_read;
  genvar b;
  generate
    for (b = 0; b < BANKS; b = b + 1) begin : banks
      // What is read in the cycle of its writing does not count: no logic is needed around a block memory for that
      // case.
      (* no_rw_check *) reg [BITS-1:0] cells [0:WORDS-1];
      // Which of the written elements comes here.
      wire [W_BANK-1:0] lane = (b - write_first) & (BANKS - 1);
      wire wanted = write && lane < write_count;
      wire [W_WORD-1:0] to = write_word + (b < write_first);
      always @(posedge clock)
        if (wanted) cells[to] <= write_banks[b*BITS +: BITS];
      wire [W_WORD-1:0] from = read_word + (b < read_first);
      if (READ == 0) begin : at_once
        assign banks_read[b*BITS +: BITS] = cells[from];
      end else begin : registered
        reg [BITS-1:0] element_read;
        always @(posedge clock) element_read <= cells[from];
        assign banks_read[b*BITS +: BITS] = element_read;
      end
    end
  endgenerate

  // The register in the banks and, where there are three, another behind it, as a block memory is slow; the rotator;
  // the other registers.
  localparam BANKED = READ > 2 ? 2 : READ > 0 ? 1 : 0;
  wire [W_BANK-1:0] first_read;
  npu_delay #(.WIDTH(W_BANK), .CYCLES(BANKED)) first_register (.clock(clock), .in(read_first), .out(first_read));
  wire [BANKS*BITS-1:0] banks_there;
  npu_delay #(.WIDTH(BANKS * BITS), .CYCLES(BANKED > 1 ? 1 : 0)) bank_register
    (.clock(clock), .in(banks_read), .out(banks_there));
  wire [BANKS*BITS-1:0] rotated;
  npu_rotate #(.COUNT(BANKS), .BITS(BITS), .K(K), .W(W_BANK), .UP(0)) read_rotator
    (.in(banks_there), .by(first_read), .out(rotated));
  npu_delay #(.WIDTH(EP * BITS), .CYCLES(READ - BANKED)) pipe
    (.clock(clock), .in(rotated[EP*BITS-1:0]), .out(read_data));
endmodule

// Rotates COUNT = 2^K elements: element i goes to place i + by (UP 1) or i - by (UP 0). A stage for each bit of the
// distance, so that no address is multiplied.
module npu_rotate #(
  parameter COUNT = 1,
  parameter BITS = 8,
  parameter K = 0,
  parameter W = 1,
  parameter UP = 1
) (
  input wire [COUNT*BITS-1:0] in,
  input wire [W-1:0] by,
  output wire [COUNT*BITS-1:0] out
);
  reg [COUNT*BITS-1:0] moved;
  integer k;
  always @* begin
    moved = in;
    for (k = 0; k < K; k = k + 1)
      if (by[k])
        moved = UP ? moved << (BITS << k) | moved >> ((COUNT - (1 << k)) * BITS)
                   : moved >> (BITS << k) | moved << ((COUNT - (1 << k)) * BITS);
  end
  assign out = moved;
endmodule
