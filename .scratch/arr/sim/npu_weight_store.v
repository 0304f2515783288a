// The memory beside the chip, a model: bandwidth and latency of the scenario. A block takes as many cycles as its
// weights need at this bandwidth, in bursts of BURST_CYCLES; a word is given when its last bit has come,
// MEMORY_LATENCY cycles later.
`default_nettype none

module npu_weight_store (
  clock, reset, m_valid, m_context, m_block, m_burst, m_place, m_ready, m_done, m_done_context, m_write,
  m_write_context, m_write_place, m_word
);
  `include "npu_config.vh"
  input wire clock;
  input wire reset;
  // A burst is asked for in this cycle: by which context, of which block, which of its bursts, and where its first word
  // goes. Only when the memory is ready.
  input wire m_valid;
  input wire [W_CONTEXT-1:0] m_context;
  input wire [W_STREAM-1:0] m_block;
  input wire [W_BURST-1:0] m_burst;
  input wire [W_WEIGHT-1:0] m_place;
  output wire m_ready;
  // All words of the context's block are there in the next cycle.
  output wire m_done;
  output wire [W_CONTEXT-1:0] m_done_context;
  // A word, and where it goes.
  output wire m_write;
  output wire [W_CONTEXT-1:0] m_write_context;
  output wire [W_WEIGHT-1:0] m_write_place;
  output wire [MOST_TILE_BITS-1:0] m_word;

  // Cycles of the burst behind this one; what the burst is of.
  integer rest;
  reg [W_CONTEXT-1:0] of_context;
  reg [W_STREAM-1:0] of_block;
  reg [W_WEIGHT-1:0] of_place;
  integer of_cycle;
  assign m_ready = rest == 0;

  wire busy = !reset && (m_valid || rest != 0);
  wire [W_CONTEXT-1:0] who = m_valid ? m_context : of_context;
  wire [W_STREAM-1:0] block = m_valid ? m_block : of_block;
  wire [W_WEIGHT-1:0] place = m_valid ? m_place : of_place;
  // Cycle of the block's transfer, of how many; words that have come before this cycle, and behind it.
  wire [63:0] cycle = m_valid ? m_burst * BURST_CYCLES : of_cycle;
  wire [63:0] cycles = K_CYCLES[block * K_CYCLES_B +: K_CYCLES_B];
  wire [63:0] words = K_WORDS[block * K_WORDS_B +: K_WORDS_B];
  wire [63:0] there = cycle * words / cycles;
  wire [63:0] behind = (cycle + 1) * words / cycles;
  wire gives = busy && behind != there;
  wire ends = busy && cycle == cycles - 1;
  initial rest = 0;
  always @(posedge clock) begin
    if (reset) rest <= 0;
    else if (m_valid)
      rest <= cycles - cycle > BURST_CYCLES ? BURST_CYCLES - 1 : cycles - cycle - 1;
    else if (rest != 0) rest <= rest - 1;
    of_context <= who;
    of_block <= block;
    of_place <= place;
    of_cycle <= cycle + 1;
  end

`ifndef NPU_TIMING_ONLY
  reg [MOST_TILE_BITS-1:0] store [0:STREAM_WORDS-1];
  initial if (STREAMS != 0) $readmemh("data/stream.hex", store);
  wire [31:0] address = K_ADDRESS[block * K_ADDRESS_B +: K_ADDRESS_B] + there;
  wire [MOST_TILE_BITS-1:0] word = store[address];
`else
  wire [MOST_TILE_BITS-1:0] word = {MOST_TILE_BITS{1'b0}};
`endif
  wire [W_WEIGHT-1:0] to = place + there;
  // Nothing comes before the first burst: a simulator may begin with any bits in the delay line.
  npu_pulse #(.CYCLES(MEMORY_LATENCY)) way_gives (.clock(clock), .reset(reset), .in(gives === 1'b1), .out(m_write));
  npu_pulse #(.CYCLES(MEMORY_LATENCY)) way_ends (.clock(clock), .reset(reset), .in(ends === 1'b1), .out(m_done));
  npu_delay #(.WIDTH(W_CONTEXT + W_WEIGHT + MOST_TILE_BITS), .CYCLES(MEMORY_LATENCY)) way
    (.clock(clock), .in({who, to, word}), .out({m_write_context, m_write_place, m_word}));
  assign m_done_context = m_write_context;
endmodule

`default_nettype wire
