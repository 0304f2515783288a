// The loop nest of a job's tiles, as a function: from a place in it to the tile that is there, what the tile waits for,
// and the next place. Nothing is stored here: a thread keeps the place two tiles ahead of the tile that may issue.
//
// Addresses are running sums; nothing here multiplies. What is chosen by a constant (the core) costs nothing.
// The thread's parts of the vector memories and of the banks are not in the tile yet.
`default_nettype none

module npu_nest (jobs_table, job, steps, place, tile, block_word, waits, next_place, last_of_job);
  parameter CORE = 0;
  `include "npu_nest.vh"
  localparam integer BANKS = C_BANKS[CORE * C_BANKS_B +: C_BANKS_B];
  localparam integer EP = C_EP[CORE * C_EP_B +: C_EP_B];
  localparam integer COLUMN = C_COLUMN_ORDER[CORE * C_COLUMN_ORDER_B +: C_COLUMN_ORDER_B];
  // What R_SOURCE says, beside 1: of a vector of which two steps are kept.
  localparam FRAME = 0;
  localparam ALL_X = 2;
  localparam ALL_H = 3;

  input wire [W_JOB-1:0] job;
  // Of the job.
  input wire [W_STEP-1:0] steps;
  input wire [W_PLACE-1:0] place;
  output wire [W_TILE-1:0] tile;
  output wire [W_BLOCK_WORD-1:0] block_word;
  output wire [W_WAITS-1:0] waits;
  output wire [W_PLACE-1:0] next_place;
  output wire last_of_job;

  // Where the nest stands: row, first row of the pass, read, step, block, group.
  wire [W_ROW-1:0] row;
  wire [W_ROW-1:0] pass_row;
  wire [W_READ-1:0] read;
  wire [W_STEP-1:0] step;
  wire [W_BLOCK-1:0] block;
  wire [W_GROUP-1:0] group;
  // Running addresses: of weights; of the step's frame and from one to the next; of the step's x, if all steps of it
  // are kept, likewise; of the step's h and of the h before; of the group's first element and the block's first turn
  // and unit from their beginnings; the block's bank and that of the row's first block.
  wire [W_WEIGHT-1:0] weight;
  wire [W_FRAME-1:0] frame_base;
  wire [W_FRAME-1:0] frame_stride;
  wire [W_ELEMENT-1:0] x_base;
  wire [W_ELEMENT-1:0] x_stride;
  wire [W_ELEMENT-1:0] write_base;
  wire [W_ELEMENT-1:0] own_base;
  wire [W_UNIT-1:0] offset;
  wire [W_TURN-1:0] turn_offset;
  wire [W_UNIT-1:0] unit;
  wire [W_BANK-1:0] bank;
  wire [W_BANK-1:0] row_bank;
  // What ends here, so that the next place begins at registers: the read's groups, the row's blocks, its groups of all
  // reads, the row (both of these), the job's steps.
  wire last_group;
  wire last_block;
  wire last_tile;
  wire row_ends;
  wire last_step;
  assign {row, pass_row, read, step, block, group, weight, frame_base, frame_stride, x_base, x_stride, write_base,
    own_base, offset, turn_offset, unit, bank, row_bank,
    last_group, last_block, last_tile, row_ends, last_step} = place;

  // The tables at this place.
  wire [31:0] own_program = CORE * MODELS + J_MODEL[job * J_MODEL_B +: J_MODEL_B];
  wire [W_ROW-1:0] program_row = G_ROW[own_program * G_ROW_B +: W_ROW];
  wire interleaved = G_INTERLEAVED[own_program * G_INTERLEAVED_B +: G_INTERLEAVED_B];
  wire last_row = P_LAST_OF_PROGRAM[row * P_LAST_OF_PROGRAM_B +: P_LAST_OF_PROGRAM_B];
  wire [W_READ-1:0] first_read = P_READ[row * P_READ_B +: W_READ];
  wire [W_READ-1:0] last_read = P_LAST_READ[row * P_LAST_READ_B +: W_READ];
  wire [W_BLOCK-1:0] blocks = P_BLOCKS[row * P_BLOCKS_B +: W_BLOCK];
  wire [W_UNIT-1:0] full_units = P_UNITS[row * P_UNITS_B +: W_UNIT];
  wire [W_UNIT-1:0] last_units = P_LAST_UNITS[row * P_LAST_UNITS_B +: W_UNIT];
  wire [W_TURN-1:0] turns = P_TURNS[row * P_TURNS_B +: P_TURNS_B];
  wire last_of_pass = P_LAST_OF_PASS[row * P_LAST_OF_PASS_B +: P_LAST_OF_PASS_B];
  wire backward = P_BACKWARD[row * P_BACKWARD_B +: P_BACKWARD_B];
  wire [W_ELEMENT-1:0] write_stride = P_WRITE_STRIDE[row * P_WRITE_STRIDE_B +: W_ELEMENT];
  wire [W_GROUP-1:0] groups = R_GROUPS[read * R_GROUPS_B +: W_GROUP];
  wire [W_UNIT-1:0] last_elements = R_LAST_ELEMENTS[read * R_LAST_ELEMENTS_B +: W_UNIT];
  wire [1:0] source = R_SOURCE[read * R_SOURCE_B +: R_SOURCE_B];
  wire [W_ELEMENT-1:0] stride = R_STRIDE[read * R_STRIDE_B +: W_ELEMENT];
  wire lag = R_LAG[read * R_LAG_B +: R_LAG_B];

  // --- the tile ---

  wire first_step = step == 0;
  wire [W_STEP-1:0] mirrored = steps - 1'b1 - step;
  wire from_frame = source == FRAME;
  wire h0 = lag && first_step;
  wire first_tile = read == first_read && group == 0;
  wire [W_UNIT-1:0] width = last_group ? last_elements : EP;

  wire [31:0] job_row = ((CORE * JOBS + job) << JR_SHIFT) + P_NUMBER[row * P_NUMBER_B +: W_ROW];
  wire started = JC_STARTED[(CORE * JOBS + job) * JC_STARTED_B +: JC_STARTED_B];
  wire [W_FRAME-1:0] h_start = JR_H_START[job_row * JR_H_START_B +: W_FRAME];
  wire [W_FRAME-1:0] frame = (h0 ? h_start : frame_base) + group;

  wire odd = step[0] ^ lag;
  // Vectors of split jobs lie by their time step.
  wire timed = SPLITS != 0 && G_TIMED[own_program * G_TIMED_B +: G_TIMED_B] != 0;
  wire [W_STEP-1:0] time_step = backward ? mirrored : step;
  wire [W_STEP-1:0] read_step = !lag ? time_step : backward ? time_step + 1'b1 : time_step - 1'b1;
  wire [W_ELEMENT-1:0] read_time = read_step << STEP_SHIFT;
  wire [W_ELEMENT-1:0] write_time = time_step << STEP_SHIFT;
  wire [W_ELEMENT-1:0] apart = timed ? read_time : odd ? stride : {W_ELEMENT{1'b0}};
  wire [W_ELEMENT-1:0] two = R_BASE[read * R_BASE_B +: W_ELEMENT] + apart;
  wire [W_ELEMENT-1:0] start = source == ALL_X ? x_base : source == ALL_H ? own_base : two;
  wire [W_ELEMENT-1:0] element = start + offset;
  // h before step 0 is 0, if the job does not bring it along.
  wire [W_UNIT-1:0] counted = h0 && !started ? {W_UNIT{1'b0}} : width;
  assign tile = {job, row, read, step, block, group, weight, frame, element, counted, bank, first_tile, last_tile, h0};

  wire [W_TURN-1:0] turn = P_TURN_BASE[row * P_TURN_BASE_B +: W_TURN] + turn_offset;
  wire [W_CONSTANT-1:0] constant = P_CONSTANT_BASE[row * P_CONSTANT_BASE_B +: W_CONSTANT] + turn_offset;
  wire [W_UNIT-1:0] units = last_block ? last_units : full_units;
  wire [W_ELEMENT-1:0] write = timed ? write_time : write_base;
  assign block_word = {turn, unit, units, constant, write};

  // --- what it waits for: of each counter, a step and the last unit that it reads ---

  wire [W_UNIT-1:0] group_end = offset + width;
  wire [31:0] need = R_NEED[read * R_NEED_B +: R_NEED_B];
  wire [31:0] needs = R_NEEDS[read * R_NEEDS_B +: R_NEEDS_B];
  wire [CHECKS*W_CHECK-1:0] checks;
  genvar n;
  generate
    for (n = 0; n < CHECKS; n = n + 1) begin : waited
      wire [W_COUNTER-1:0] counter = N_COUNTER[(need + n) * N_COUNTER_B +: W_COUNTER];
      wire flipped = N_FLIPPED[(need + n) * N_FLIPPED_B +: N_FLIPPED_B];
      wire [W_UNIT-1:0] from = N_BEGIN[(need + n) * N_BEGIN_B +: W_UNIT];
      wire [W_UNIT-1:0] upto = N_END[(need + n) * N_END_B +: W_UNIT];
      wire is_one = n < needs && !h0 && from < group_end && upto > offset;
      wire [W_STEP-1:0] wanted_step = flipped ? mirrored : step - lag;
      wire [W_UNIT-1:0] wanted_units = (upto < group_end ? upto : group_end) - from;
      assign checks[n*W_CHECK +: W_CHECK] = {is_one, counter, wanted_step, wanted_units};
    end
  endgenerate
  // A backward pass begins with the last frame, so it waits in its first tile only, which is not made here.
  assign waits = {from_frame, step, checks};

  // --- the next place ---

  wire row_order = COLUMN == 0;
  wire next_group = row_order || last_block;
  wire read_ends = next_group && last_group;
  wire next_block = row_order ? last_tile : !last_block;
  wire [W_BANK-1:0] bank_behind = bank == BANKS - 1 ? {W_BANK{1'b0}} : bank + 1'b1;
  // In `layer` order a step's end is that of its pass, in `step` order that of all layers.
  wire new_row = row_ends && (interleaved ? !last_row : !last_of_pass);
  wire step_ends = row_ends && !new_row;
  wire new_step = step_ends && !last_step;
  wire new_pass = step_ends && last_step && !interleaved && !last_row;
  assign last_of_job = step_ends && last_step && !new_pass;

  wire [W_ROW-1:0] row_behind = new_step ? (interleaved ? program_row : pass_row) : row + 1'b1;
  wire [31:0] job_row_behind = ((CORE * JOBS + job) << JR_SHIFT) + P_NUMBER[row_behind * P_NUMBER_B +: W_ROW];
  wire backward_behind = P_BACKWARD[row_behind * P_BACKWARD_B +: P_BACKWARD_B];
  wire [W_FRAME-1:0] frame_move = from_frame ? groups : frame_stride;
  wire [W_ELEMENT-1:0] x_move = source == ALL_X ? stride : x_stride;

  reg [W_READ-1:0] to_read;
  reg [W_BLOCK-1:0] to_block;
  reg [W_GROUP-1:0] to_group;
  reg [W_UNIT-1:0] to_offset;
  reg [W_TURN-1:0] to_turn_offset;
  reg [W_UNIT-1:0] to_unit;
  reg [W_BANK-1:0] to_bank;
  always @* begin
    to_read = read;
    to_block = block;
    to_group = group;
    to_offset = offset;
    to_turn_offset = turn_offset;
    to_unit = unit;
    to_bank = bank;
    if (next_block) begin
      to_block = block + 1'b1;
      to_turn_offset = turn_offset + turns;
      to_unit = unit + full_units;
      to_bank = bank_behind;
    end else if (!row_order) begin
      to_block = 0;
      to_turn_offset = 0;
      to_unit = 0;
      to_bank = row_bank;
    end
    if (next_group) begin
      to_group = last_group ? {W_GROUP{1'b0}} : group + 1'b1;
      to_offset = last_group ? {W_UNIT{1'b0}} : offset + EP;
    end
    if (read_ends) to_read = last_tile ? first_read : read + 1'b1;
    if (row_ends) begin
      to_read = P_READ[row_behind * P_READ_B +: W_READ];
      to_block = 0;
      to_group = 0;
      to_offset = 0;
      to_turn_offset = 0;
      to_unit = 0;
      to_bank = bank_behind;
    end
  end
  wire [W_ROW-1:0] to_row = row_ends ? row_behind : row;
  wire [W_ROW-1:0] to_pass_row = new_pass ? row_behind : pass_row;
  wire [W_STEP-1:0] to_step = new_pass ? {W_STEP{1'b0}} : new_step ? step + 1'b1 : step;
  wire [W_WEIGHT-1:0] to_weight = row_ends ? P_WEIGHT_BASE[row_behind * P_WEIGHT_BASE_B +: W_WEIGHT]
    : weight + 1'b1;
  wire [31:0] own_job = CORE * JOBS + job;
  wire [W_FRAME-1:0] frame_there = backward_behind ? JC_FRAME_END[own_job * JC_FRAME_END_B +: W_FRAME]
    : JC_FRAME_START[own_job * JC_FRAME_START_B +: W_FRAME];
  wire [W_FRAME-1:0] to_frame_base = new_pass ? frame_there
    : !new_step ? frame_base
    : backward ? frame_base - frame_move
    : frame_base + frame_move;
  wire [W_ELEMENT-1:0] to_x_base = new_pass ? JR_X_START[job_row_behind * JR_X_START_B +: W_ELEMENT]
    : new_step ? x_base + x_move
    : x_base;
  wire [W_ELEMENT-1:0] to_write_base = new_pass ? JR_WRITE_START[job_row_behind * JR_WRITE_START_B +: W_ELEMENT]
    : new_step ? write_base + write_stride
    : write_base;
  wire [W_ELEMENT-1:0] to_own_base = new_step ? write_base : own_base;
  wire [W_BANK-1:0] to_row_bank = row_ends ? bank_behind : row_bank;

  // What ends there, of every place that may be the next one.
  wire [W_READ-1:0] read_behind = read + 1'b1;
  wire [W_READ-1:0] read_of_row = P_READ[row_behind * P_READ_B +: W_READ];
  wire [W_READ-1:0] last_read_of_row = P_LAST_READ[row_behind * P_LAST_READ_B +: W_READ];
  wire group_before = groups == group + 2'd2;
  wire group_behind = R_GROUPS[read_behind * R_GROUPS_B +: W_GROUP] == 1;
  wire group_first = R_GROUPS[first_read * R_GROUPS_B +: W_GROUP] == 1;
  wire group_of_row = R_GROUPS[read_of_row * R_GROUPS_B +: W_GROUP] == 1;
  wire tile_before = group_before && read == last_read;
  wire tile_behind = group_behind && read_behind == last_read;
  wire tile_first = group_first && first_read == last_read;
  wire tile_of_row = group_of_row && read_of_row == last_read_of_row;
  wire block_before = blocks == block + 2'd2;
  wire block_of_row = P_BLOCKS[row_behind * P_BLOCKS_B +: W_BLOCK] == 1;
  // Behind this group, this tile, this block, if the row goes on.
  wire group_on = !last_group ? group_before : last_tile ? group_first : group_behind;
  wire tile_on = !last_group ? tile_before : last_tile ? tile_first : tile_behind;
  wire block_on = last_block ? blocks == 1 : block_before;
  wire to_last_group = row_ends ? group_of_row : next_group ? group_on : last_group;
  wire to_last_block = row_ends ? block_of_row : !row_order || last_tile ? block_on : last_block;
  wire to_last_tile = row_ends ? tile_of_row : next_group ? tile_on : last_tile;
  wire to_row_ends = to_last_tile && to_last_block;
  wire to_last_step = new_pass ? steps == 1 : new_step ? steps == step + 2'd2 : last_step;
  assign next_place = {to_row, to_pass_row, to_read, to_step, to_block, to_group, to_weight, to_frame_base, frame_move,
    to_x_base, x_move, to_write_base, to_own_base, to_offset, to_turn_offset, to_unit, to_bank, to_row_bank,
    to_last_group, to_last_block, to_last_tile, to_row_ends, to_last_step};
endmodule

`default_nettype wire
