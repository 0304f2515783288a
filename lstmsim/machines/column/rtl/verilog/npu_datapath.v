// The numbers of a core: memories that the host fills, vectors, array, adapter and tail lanes.
//
// It decides nothing. A tile comes with its addresses in the cycle in which it issues, a turn in the cycle in which it
// is chosen, a write in the cycle before it is visible; everything between is a fixed number of registers.
`default_nettype none
`ifndef NPU_TIMING_ONLY

module npu_datapath #(
  parameter CORE = 0
) (
  clock, reset,
  host_write, host_address, host_data,
  o_valid, o_read, o_weight, o_frame, o_element, o_elements, o_bank, o_first, o_h0,
  d_valid, d_thread, d_job, d_row, d_segment, d_step, d_block, d_bank, d_turn, d_number, d_unit, d_units, d_constant,
  d_parameter, d_write, d_zero, d_initial, d_last_turn, d_last_block, d_last_step,
  w_valid, w_element, w_count,
  s_write, s_write_place, s_word, o_group, o_cores, s_element, s_output, link_data, r_valid, r_element, r_count,
  links_data, y
);
`include "npu_datapath.vh"
  localparam integer EP = C_EP[CORE * C_EP_B +: C_EP_B];
  localparam integer ARRAY_ROWS = C_ROWS[CORE * C_ROWS_B +: C_ROWS_B];
  localparam integer LEVELS = C_LEVELS[CORE * C_LEVELS_B +: C_LEVELS_B];
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam integer BANKS = THREADS * C_BANKS[CORE * C_BANKS_B +: C_BANKS_B];
  localparam integer WIDTH = C_TAIL_WIDTH[CORE * C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B];
  localparam integer READ = C_READ[CORE * C_READ_B +: C_READ_B];
  localparam integer MULTIPLY = C_MULTIPLY[CORE * C_MULTIPLY_B +: C_MULTIPLY_B];
  localparam integer ADD = C_ADD[CORE * C_ADD_B +: C_ADD_B];
  localparam integer ACCUMULATE = C_ACCUMULATE[CORE * C_ACCUMULATE_B +: C_ACCUMULATE_B];
  localparam integer CONVERT = C_CONVERT[CORE * C_CONVERT_B +: C_CONVERT_B];
  localparam integer WEIGHT_WORDS = C_WEIGHT_WORDS[CORE * C_WEIGHT_WORDS_B +: C_WEIGHT_WORDS_B];
  localparam integer FRAME_WORDS = C_FRAME_WORDS[CORE * C_FRAME_WORDS_B +: C_FRAME_WORDS_B];
  localparam integer CONSTANT_WORDS = C_CONSTANT_WORDS[CORE * C_CONSTANT_WORDS_B +: C_CONSTANT_WORDS_B];
  localparam integer MEMORIES = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];
  localparam integer FIRST_MEMORY = C_MEMORY[CORE * C_MEMORY_B +: C_MEMORY_B];
  localparam integer D = C_DEPTH[CORE * C_DEPTH_B +: C_DEPTH_B];
  localparam integer SUMS = D_SUMS[CORE * D_SUMS_B +: D_SUMS_B];
  localparam integer SLOTS = D_SLOTS[CORE * D_SLOTS_B +: D_SLOTS_B];
  localparam CONSTANT_BITS = MULTIPLIER_BITS + (SHIFTS_STORED ? SHIFT_BITS : 0) + 32;
  localparam W_MEMORY = MEMORIES > 1 ? $clog2(MEMORIES) : 1;

  input wire clock;
  input wire reset;
  input wire host_write;
  input wire [31:0] host_address;
  input wire [31:0] host_data;

  input wire o_valid;
  input wire [W_READ-1:0] o_read;
  input wire [W_WEIGHT-1:0] o_weight;
  input wire [W_FRAME-1:0] o_frame;
  input wire [W_ELEMENT-1:0] o_element;
  input wire [W_UNIT-1:0] o_elements;
  input wire [W_BANK-1:0] o_bank;
  input wire o_first;
  input wire o_h0;

  input wire [D:0] d_valid;
  input wire [(D+1)*W_THREAD-1:0] d_thread;
  input wire [(D+1)*W_JOB-1:0] d_job;
  input wire [(D+1)*W_ROW-1:0] d_row;
  input wire [(D+1)*W_SEGMENT-1:0] d_segment;
  input wire [(D+1)*W_STEP-1:0] d_step;
  input wire [(D+1)*W_BLOCK-1:0] d_block;
  input wire [(D+1)*W_BANK-1:0] d_bank;
  input wire [(D+1)*W_TURN-1:0] d_turn;
  input wire [(D+1)*W_NUMBER-1:0] d_number;
  input wire [(D+1)*W_UNIT-1:0] d_unit;
  input wire [(D+1)*W_UNIT-1:0] d_units;
  input wire [(D+1)*W_CONSTANT-1:0] d_constant;
  input wire [(D+1)*W_TURN-1:0] d_parameter;
  input wire [(D+1)*W_ELEMENT-1:0] d_write;
  input wire [D:0] d_zero;
  input wire [D:0] d_initial;
  input wire [D:0] d_last_turn;
  input wire [D:0] d_last_block;
  input wire [D:0] d_last_step;

  input wire [MEMORIES-1:0] w_valid;
  input wire [MEMORIES*W_ELEMENT-1:0] w_element;
  input wire [MEMORIES*W_UNIT-1:0] w_count;

  // Where weights are streamed: a word of a tile that comes.
  input wire s_write;
  input wire [W_WEIGHT-1:0] s_write_place;
  input wire [MOST_TILE_BITS-1:0] s_word;
  // Where jobs are split: the links of this core and of the others, npu_exchange.v.
  localparam DATA = MOST_RATE * VECTOR_BITS;
  input wire [W_GROUP-1:0] o_group;
  input wire [MOST_MEMBERS*W_CORE-1:0] o_cores;
  input wire [W_ELEMENT-1:0] s_element;
  input wire [W_OUTPUT-1:0] s_output;
  output wire [DATA-1:0] link_data;
  input wire [CORES-1:0] r_valid;
  input wire [CORES*W_ELEMENT-1:0] r_element;
  input wire [CORES*W_UNIT-1:0] r_count;
  input wire [CORES*DATA-1:0] links_data;

  // What is written, a word for each vector memory: the testbench logs it.
  output wire [MEMORIES*WIDTH*VECTOR_BITS-1:0] y;

  // --- the host ---

  wire [3:0] space = host_address[31:28];
  wire mine = host_write && (host_address[27:24] == 4'd15 || host_address[27:24] == CORE);

  // --- operands, READ cycles behind the issue ---

  // From 3 cycles on the addresses are in a register, so that a read does not begin at the choice of the thread. What
  // is read then may be written in the meantime only by tiles that issue later, and those write more than READ cycles
  // later. Weights that are streamed, and what other cores have sent, are read at once: others write them.
  localparam ADDRESS = READ > 2 ? 1 : 0;
  localparam MEMORY_READ = READ - ADDRESS;
  wire [W_FRAME-1:0] a_frame;
  wire [W_ELEMENT-1:0] a_element;
  npu_delay #(.WIDTH(W_FRAME + W_ELEMENT), .CYCLES(ADDRESS)) address_register (
    .clock(clock), .in({o_frame, o_element}), .out({a_frame, a_element})
  );

  localparam STREAMED = STREAMS != 0 ? 1 : 0;
  wire [W_WEIGHT-1:0] a_weight;
  npu_delay #(.WIDTH(W_WEIGHT), .CYCLES(STREAMED ? 0 : ADDRESS)) weight_register
    (.clock(clock), .in(o_weight), .out(a_weight));
  localparam TILE = ARRAY_ROWS * EP * WEIGHT_BITS;
  wire [TILE-1:0] weights;
  wire [TILE-1:0] from_beside;
  generate
    if (STREAMED) assign from_beside = s_word[TILE-1:0];
    else assign from_beside = {TILE{1'b0}};
  endgenerate
  npu_memory #(
    .WIDTH(TILE), .WORDS(WEIGHT_WORDS), .READ(STREAMED ? READ : MEMORY_READ),
    .W_ADDRESS(W_WEIGHT)
  ) weight_memory (
    .clock(clock), .write(mine && space == 4'd1), .write_word(host_address[23:0]), .write_data(host_data),
    .stream(STREAMED && s_write), .stream_address(s_write_place),
    .stream_word(from_beside), .address(a_weight), .data(weights)
  );

  // Word 0 is the frame, word m + 1 comes from vector memory m.
  wire [(MEMORIES+1)*EP*VECTOR_BITS-1:0] sources;
  npu_memory #(.WIDTH(EP * VECTOR_BITS), .WORDS(FRAME_WORDS), .READ(MEMORY_READ), .W_ADDRESS(W_FRAME)) frame_memory (
    .clock(clock), .write(mine && space == 4'd2), .write_word(host_address[23:0]), .write_data(host_data),
    .stream(1'b0), .stream_address({W_FRAME{1'b0}}), .stream_word({EP*VECTOR_BITS{1'b0}}),
    .address(a_frame), .data(sources[0 +: EP*VECTOR_BITS])
  );
  genvar m;
  generate
    for (m = 0; m < MEMORIES; m = m + 1) begin : memories
      npu_vector_memory #(
        .EP(EP), .TAIL_WIDTH(WIDTH), .BITS(VECTOR_BITS), .READ(MEMORY_READ), .W_ELEMENT(W_ELEMENT), .W_UNIT(W_UNIT),
        .ELEMENTS(THREADS * M_ELEMENTS[(FIRST_MEMORY + m) * M_ELEMENTS_B +: M_ELEMENTS_B])
      ) vectors (
        .clock(clock), .write(w_valid[m]), .write_element(w_element[m*W_ELEMENT +: W_ELEMENT]),
        .write_count(w_count[m*W_UNIT +: W_UNIT]), .write_data(y[m*WIDTH*VECTOR_BITS +: WIDTH*VECTOR_BITS]),
        .read_element(a_element), .read_data(sources[(m+1)*EP*VECTOR_BITS +: EP*VECTOR_BITS])
      );
    end
  endgenerate

  // Initial values of h are frames, too.
  wire framed = R_SOURCE[o_read * R_SOURCE_B +: R_SOURCE_B] == 0 || o_h0;
  wire [W_MEMORY-1:0] memory = R_MEMORY[o_read * R_MEMORY_B +: R_MEMORY_B];
  wire framed_read;
  wire [W_MEMORY-1:0] memory_read;
  wire [W_UNIT-1:0] elements_read;
  npu_delay #(.WIDTH(1 + W_MEMORY + W_UNIT), .CYCLES(READ)) operand_delay (
    .clock(clock), .in({framed, memory, o_elements}), .out({framed_read, memory_read, elements_read})
  );
  wire [EP*W_CORE-1:0] from;
  wire [CORES*EP*VECTOR_BITS-1:0] received;
  generate
    if (SPLITS != 0) begin : linked
      npu_exchanged #(.CORE(CORE)) exchanged (
        .clock(clock), .w_valid(w_valid), .w_element(w_element), .w_count(w_count), .y(y), .s_element(s_element),
        .s_output(s_output), .link_data(link_data), .r_valid(r_valid), .r_element(r_element), .r_count(r_count),
        .links_data(links_data), .o_read(o_read), .o_group(o_group), .o_cores(o_cores), .o_element(o_element),
        .from(from), .received(received)
      );
    end else begin : alone
      assign {link_data, from, received} = 0;
    end
  endgenerate
  function [EP*VECTOR_BITS-1:0] elsewhere(
    input [EP*VECTOR_BITS-1:0] own, input [EP*W_CORE-1:0] cores, input [CORES*EP*VECTOR_BITS-1:0] others
  );
    // Elements that other cores have computed instead of the own ones.
    integer e;
    integer c;
    begin
      elsewhere = own;
      if (SPLITS != 0)
        for (c = 0; c < CORES; c = c + 1)
          for (e = 0; e < EP; e = e + 1)
            if (c != CORE && cores[e*W_CORE +: W_CORE] == c)
              elsewhere[e*VECTOR_BITS +: VECTOR_BITS] = others[(c*EP + e)*VECTOR_BITS +: VECTOR_BITS];
    end
  endfunction
  // Elements that do not count are 0, whatever the memories hold there. So no memory needs initial values.
  reg [EP*VECTOR_BITS-1:0] source;
  reg [EP*VECTOR_BITS-1:0] operand;
  integer i;
  always @* begin
    source = sources[0 +: EP*VECTOR_BITS];
    for (i = 0; i < MEMORIES; i = i + 1)
      if (!framed_read && memory_read == i) source = sources[(i+1)*EP*VECTOR_BITS +: EP*VECTOR_BITS];
    source = framed_read ? source : elsewhere(source, from, received);
    for (i = 0; i < EP; i = i + 1)
      operand[i*VECTOR_BITS +: VECTOR_BITS] =
        i < elements_read ? source[i*VECTOR_BITS +: VECTOR_BITS] : {VECTOR_BITS{1'b0}};
  end

  // --- where the adapter's CONVERT registers are, from the choice of a turn to its sums ---

  // The first register reads the constants; one behind each operation comes next. From 4 on there is one between the
  // blocks of the product and their adder, for 4 and 5 instead of that of the whole product: a block takes as long as
  // an adder and a shift. 5 has one behind the memory of constants, 7 one before the saturation, the product the rest.
  localparam SELECTED = CONVERT > 4 ? 2 : CONVERT > 0 ? 1 : 0;
  localparam PARTIAL = CONVERT > 3 ? 1 : 0;
  localparam SHIFTED = CONVERT > 2 ? 1 : 0;
  localparam ADDED = CONVERT > 6 ? 1 : 0;
  localparam SATURATED = CONVERT > 3 ? 1 : 0;
  localparam MULTIPLIED = CONVERT - SELECTED - PARTIAL - SHIFTED - ADDED - SATURATED;
  // Where the constants take two cycles, the sums are chosen by the turn of one cycle ago: their bank is free CONVERT
  // cycles behind the turn.
  localparam PICK = SELECTED > 1 ? 1 : 0;

  // The turn whose sums are chosen in this cycle; the constants of the turn that is chosen in it.
  wire [W_ROW-1:0] p_row = d_row[PICK*W_ROW +: W_ROW];
  wire [W_BANK-1:0] p_bank = d_bank[PICK*W_BANK +: W_BANK];
  wire [W_NUMBER-1:0] p_number = d_number[PICK*W_NUMBER +: W_NUMBER];
  wire [W_CONSTANT-1:0] t_constant = d_constant[W_CONSTANT-1:0];

  // --- array ---

  localparam TO_ADD = READ + MULTIPLY + ADD * LEVELS + ACCUMULATE - 1;
  // Each row has the last of these registers for itself: there are many rows.
  localparam AHEAD = TO_ADD > 0 ? 1 : 0;
  wire add_valid, add_first;
  wire [W_BANK-1:0] add_bank;
  wire [W_READ-1:0] add_read;
  npu_pulse #(.CYCLES(TO_ADD - AHEAD)) valid_delay (.clock(clock), .reset(reset), .in(o_valid), .out(add_valid));
  npu_delay #(.WIDTH(1 + W_BANK + W_READ), .CYCLES(TO_ADD - AHEAD)) add_delay (
    .clock(clock), .in({o_first, o_bank, o_read}), .out({add_first, add_bank, add_read})
  );
  wire [ARRAY_ROWS*SLOTS-1:0] add_slots;
  npu_slots #(.CORE(CORE)) slot_choice (.read(add_read), .slots(add_slots));

  wire [ARRAY_ROWS*SLOTS*ACCUMULATOR_BITS-1:0] totals;
  npu_array #(
    .ROWS(ARRAY_ROWS), .EP(EP), .LEVELS(LEVELS), .SLOTS(SLOTS), .BANKS(BANKS), .W_BANK(W_BANK),
    .WEIGHT_BITS(WEIGHT_BITS), .VECTOR_BITS(VECTOR_BITS), .ACCUMULATOR_BITS(ACCUMULATOR_BITS),
    .MULTIPLY(MULTIPLY), .ADD(ADD), .ACCUMULATE(ACCUMULATE), .AHEAD(AHEAD)
  ) array (
    .clock(clock), .weights(weights), .elements(operand),
    .add_valid(add_valid), .add_first(add_first), .add_bank(add_bank), .add_slots(add_slots),
    .read_bank(p_bank), .sums(totals)
  );

  // --- adapter ---

  wire [WIDTH*SUMS*ACCUMULATOR_BITS-1:0] picked;
  wire [SUMS*SHIFT_BITS-1:0] row_shifts;
  wire [SUMS*SHIFT_BITS-1:0] fixed_shifts;
  npu_pick #(.CORE(CORE)) pick (
    .row(p_row), .number(p_number), .sums(totals), .picked(picked), .shifts(row_shifts)
  );
  npu_delay #(.WIDTH(SUMS * SHIFT_BITS), .CYCLES(SELECTED - PICK)) shift_delay
    (.clock(clock), .in(row_shifts), .out(fixed_shifts));

  wire [WIDTH*SUMS*CONSTANT_BITS-1:0] constants;
  npu_memory #(.WIDTH(WIDTH * SUMS * CONSTANT_BITS), .WORDS(CONSTANT_WORDS), .READ(SELECTED), .W_ADDRESS(W_CONSTANT))
    constant_memory (
      .clock(clock), .write(mine && space == 4'd3), .write_word(host_address[23:0]), .write_data(host_data),
      .stream(1'b0), .stream_address({W_CONSTANT{1'b0}}), .stream_word({WIDTH*SUMS*CONSTANT_BITS{1'b0}}),
      .address(t_constant), .data(constants)
    );

  wire [WIDTH*SUMS*TAIL_BITS-1:0] sums;
  npu_adapter #(
    .SUMS(WIDTH * SUMS), .ACCUMULATOR_BITS(ACCUMULATOR_BITS), .MULTIPLIER_BITS(MULTIPLIER_BITS),
    .SHIFT_BITS(SHIFT_BITS), .SHIFTS_STORED(SHIFTS_STORED), .LEFT(ADAPTER_LEFT), .TAIL_BITS(TAIL_BITS),
    .SELECTED(SELECTED - PICK), .PARTIAL(PARTIAL), .MULTIPLIED(MULTIPLIED), .SHIFTED(SHIFTED), .ADDED(ADDED),
    .SATURATED(SATURATED)
  ) adapter (.clock(clock), .sums(picked), .constants(constants), .fixed_shifts({WIDTH{fixed_shifts}}), .adapted(sums));

  // --- tail ---

  npu_lanes #(.CORE(CORE)) lanes (
    .clock(clock), .reset(reset), .host_write(mine), .host_address(host_address), .host_data(host_data),
    .d_valid(d_valid), .d_thread(d_thread), .d_job(d_job), .d_row(d_row), .d_segment(d_segment), .d_step(d_step),
    .d_block(d_block), .d_bank(d_bank), .d_turn(d_turn), .d_number(d_number), .d_unit(d_unit), .d_units(d_units),
    .d_constant(d_constant), .d_parameter(d_parameter), .d_write(d_write), .d_zero(d_zero), .d_initial(d_initial),
    .d_last_turn(d_last_turn), .d_last_block(d_last_block), .d_last_step(d_last_step),
    .sums(sums), .y(y)
  );
endmodule
`endif
