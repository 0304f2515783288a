// A thread: the loop nest of its job's tiles, the credits of its accumulator banks, the counters of what is visible.
//
// Addresses are running registers: nothing here multiplies. "May issue" compares a counter of visible steps and units
// with the step and the last unit that the tile reads: no list of visibility times (docs/rtl.md section 4).
`default_nettype none

module npu_thread (
  clock, reset,
  admit, admit_job, ended, frames_posted,
  w_valid, w_thread, w_counter, w_units, w_last,
  f_valid, f_thread,
  grant, may, hazard, backpressure, no_frame, draining, tile, block_word
);
  parameter CORE = 0;
  parameter THREAD = 0;
  `include "npu_config.vh"
  localparam integer OUTPUTS = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];
  localparam integer FIRST_MEMORY = C_MEMORY[CORE * C_MEMORY_B +: C_MEMORY_B];
  localparam integer BANKS = C_BANKS[CORE * C_BANKS_B +: C_BANKS_B];
  localparam integer EP = C_EP[CORE * C_EP_B +: C_EP_B];
  localparam integer COLUMN = C_COLUMN_ORDER[CORE * C_COLUMN_ORDER_B +: C_COLUMN_ORDER_B];
  localparam integer FIRST_BANK = THREAD * BANKS;
  localparam TILE = W_JOB + W_ROW + W_READ + W_STEP + W_BLOCK + W_GROUP + W_WEIGHT + W_FRAME + W_ELEMENT + W_UNIT
    + W_BANK + 3;
  localparam BLOCK = W_TURN + 2 * W_UNIT + W_CONSTANT + W_ELEMENT;
  // What R_SOURCE says.
  localparam FRAME = 0;
  localparam TWO = 1;
  localparam ALL_X = 2;
  localparam ALL_H = 3;

  input wire clock;
  input wire reset;
  // The context is taken at the edge that ends this cycle, by this job; the job in it finishes in the next cycle.
  input wire admit;
  input wire [W_JOB-1:0] admit_job;
  input wire ended;
  input wire [JOBS*W_STEP-1:0] frames_posted;
  input wire [OUTPUTS-1:0] w_valid;
  input wire [OUTPUTS*W_THREAD-1:0] w_thread;
  input wire [OUTPUTS*W_COUNTER-1:0] w_counter;
  input wire [OUTPUTS*W_UNIT-1:0] w_units;
  input wire [OUTPUTS-1:0] w_last;
  input wire f_valid;
  input wire [W_THREAD-1:0] f_thread;
  // The tile issues in this cycle.
  input wire grant;
  // Why it may not: at most one of these four is 1.
  output wire may;
  output wire hazard;
  output wire backpressure;
  output wire no_frame;
  output wire draining;
  output wire [TILE-1:0] tile;
  output wire [BLOCK-1:0] block_word;

  // Where the job stands.
  reg occupied;
  reg done;
  reg [W_JOB-1:0] job;
  reg [W_ROW-1:0] row;
  reg [W_ROW-1:0] pass_row;
  reg [W_READ-1:0] read;
  reg [W_STEP-1:0] step;
  reg [W_BLOCK-1:0] block;
  reg [W_GROUP-1:0] group;

  // Running addresses.
  reg [W_WEIGHT-1:0] weight;
  reg [W_FRAME-1:0] frame_base;
  reg [W_FRAME-1:0] frame_stride;
  reg [W_ELEMENT-1:0] x_base;
  reg [W_ELEMENT-1:0] x_stride;
  reg [W_ELEMENT-1:0] write_base;
  reg [W_ELEMENT-1:0] own_base;
  reg [W_UNIT-1:0] offset;
  reg [W_TURN-1:0] turn_offset;
  reg [W_UNIT-1:0] unit;
  reg [W_BANK-1:0] bank;
  reg [W_BANK-1:0] row_bank;
  reg [W_BANK:0] credits;

  // The program's tables at this place.
  wire [W_STEP-1:0] steps = J_STEPS[job * J_STEPS_B +: J_STEPS_B];
  wire [31:0] own_program = CORE * MODELS + J_MODEL[job * J_MODEL_B +: J_MODEL_B];
  wire [W_ROW-1:0] program_row = G_ROW[own_program * G_ROW_B +: G_ROW_B];
  wire interleaved = G_INTERLEAVED[own_program * G_INTERLEAVED_B +: G_INTERLEAVED_B];
  wire last_row = P_LAST_OF_PROGRAM[row * P_LAST_OF_PROGRAM_B +: P_LAST_OF_PROGRAM_B];
  wire [W_READ-1:0] first_read = P_READ[row * P_READ_B +: P_READ_B];
  wire [W_READ-1:0] last_read = P_LAST_READ[row * P_LAST_READ_B +: P_LAST_READ_B];
  wire [W_BLOCK-1:0] blocks = P_BLOCKS[row * P_BLOCKS_B +: P_BLOCKS_B];
  wire [W_UNIT-1:0] full_units = P_UNITS[row * P_UNITS_B +: P_UNITS_B];
  wire [W_UNIT-1:0] last_units = P_LAST_UNITS[row * P_LAST_UNITS_B +: P_LAST_UNITS_B];
  wire [W_TURN-1:0] turns = P_TURNS[row * P_TURNS_B +: P_TURNS_B];
  wire last_of_pass = P_LAST_OF_PASS[row * P_LAST_OF_PASS_B +: P_LAST_OF_PASS_B];
  wire backward = P_BACKWARD[row * P_BACKWARD_B +: P_BACKWARD_B];
  wire [W_GROUP-1:0] groups = R_GROUPS[read * R_GROUPS_B +: R_GROUPS_B];
  wire [W_UNIT-1:0] elements = R_ELEMENTS[read * R_ELEMENTS_B +: R_ELEMENTS_B];
  wire [1:0] source = R_SOURCE[read * R_SOURCE_B +: R_SOURCE_B];
  wire [W_ELEMENT-1:0] stride = R_STRIDE[read * R_STRIDE_B +: R_STRIDE_B];
  wire lag = R_LAG[read * R_LAG_B +: R_LAG_B];

  // Is what the tile reads visible?
  wire first_step = step == 0;
  wire last_step = step == steps - 1'b1;
  wire [W_STEP-1:0] mirrored = steps - 1'b1 - step;
  wire h0 = lag && first_step;
  wire [W_UNIT-1:0] rest = elements - offset;
  wire last_group = group == groups - 1'b1;
  wire [W_UNIT-1:0] width = last_group ? rest : EP;
  wire [W_UNIT-1:0] group_end = offset + width;
  wire [MOST_COUNTERS*W_STEP-1:0] steps_visible;
  wire [MOST_COUNTERS*W_UNIT-1:0] units_visible;
  reg [W_STEP-1:0] steps_there;
  reg [W_UNIT-1:0] units_there;
  reg visible;
  integer need;
  reg [W_COUNTER-1:0] counter;
  reg [W_STEP-1:0] wanted_step;
  reg [W_UNIT-1:0] need_begin;
  reg [W_UNIT-1:0] need_end;
  reg [W_UNIT-1:0] wanted_units;
  integer n;
  always @* begin
    visible = 1'b1;
    counter = 0;
    wanted_step = 0;
    need_begin = 0;
    need_end = 0;
    wanted_units = 0;
    steps_there = 0;
    units_there = 0;
    need = R_NEED[read * R_NEED_B +: R_NEED_B];
    for (n = 0; n < MOST_NEEDS; n = n + 1) begin
      if (n < R_NEEDS[read * R_NEEDS_B +: R_NEEDS_B] && !h0) begin
        counter = N_COUNTER[need * N_COUNTER_B +: N_COUNTER_B];
        wanted_step = N_FLIPPED[need * N_FLIPPED_B +: N_FLIPPED_B] ? mirrored : step - lag;
        need_begin = N_BEGIN[need * N_BEGIN_B +: N_BEGIN_B];
        need_end = N_END[need * N_END_B +: N_END_B];
        wanted_units = (need_end < group_end ? need_end : group_end) - need_begin;
        steps_there = steps_visible[counter * W_STEP +: W_STEP];
        units_there = units_visible[counter * W_UNIT +: W_UNIT];
        if (need_begin < group_end && need_end > offset && steps_there <= wanted_step
            && (steps_there != wanted_step || units_there < wanted_units))
          visible = 1'b0;
      end
      need = need + 1;
    end
  end
  wire [W_STEP-1:0] frames = frames_posted[job * W_STEP +: W_STEP];
  wire from_frame = source == FRAME;
  wire frame_there = frames > (backward ? mirrored : step);

  wire first_tile = read == first_read && group == 0;
  wire last_tile = read == last_read && last_group;
  wire working = occupied && !done;
  wire no_bank = first_tile && credits == 0;
  assign hazard = working && !from_frame && !visible;
  assign no_frame = working && from_frame && !frame_there;
  assign backpressure = working && !hazard && !no_frame && no_bank;
  assign draining = occupied && done;
  assign may = working && !hazard && !no_frame && !no_bank;

  // What the tile reads and where its sums go.
  wire last_block = block == blocks - 1'b1;
  wire has_initial = JC_STARTED[(CORE * JOBS + job) * JC_STARTED_B +: JC_STARTED_B];
  wire [31:0] place = ((CORE * JOBS + job) << JR_SHIFT) + P_NUMBER[row * P_NUMBER_B +: P_NUMBER_B];
  wire [W_FRAME-1:0] h_start = JR_H_START[place * JR_H_START_B +: JR_H_START_B];
  wire [W_FRAME-1:0] frame = (h0 ? h_start : frame_base) + group;
  wire odd = step[0] ^ lag;
  wire [W_ELEMENT-1:0] start = source == ALL_X ? x_base
    : source == ALL_H ? own_base
    : R_BASE[read * R_BASE_B +: R_BASE_B] + (odd ? stride : {W_ELEMENT{1'b0}});
  reg [W_ELEMENT-1:0] own_part;
  integer m;
  always @* begin
    own_part = 0;
    for (m = 0; m < OUTPUTS; m = m + 1)
      if (R_MEMORY[read * R_MEMORY_B +: R_MEMORY_B] == m)
        own_part = THREAD * M_ELEMENTS[(FIRST_MEMORY + m) * M_ELEMENTS_B +: M_ELEMENTS_B];
  end
  wire [W_ELEMENT-1:0] element = start + offset + own_part;
  wire [W_UNIT-1:0] counted = h0 && !has_initial ? {W_UNIT{1'b0}} : width;
  assign tile = {job, row, read, step, block, group, weight, frame, element, counted, bank, first_tile, last_tile, h0};

  wire [W_TURN-1:0] turn_base = P_TURN_BASE[row * P_TURN_BASE_B +: P_TURN_BASE_B];
  wire [W_CONSTANT-1:0] constant_base = P_CONSTANT_BASE[row * P_CONSTANT_BASE_B +: P_CONSTANT_BASE_B];
  wire [W_TURN-1:0] turn = turn_base + turn_offset;
  wire [W_CONSTANT-1:0] constant = constant_base + turn_offset;
  wire [W_UNIT-1:0] units = last_block ? last_units : full_units;
  assign block_word = {turn, unit, units, constant, write_base};

  // Where the loop nest goes from here.
  wire row_order = COLUMN == 0;
  wire next_group = row_order || last_block;
  wire read_ends = next_group && last_group;
  wire row_ends = last_tile && last_block;
  wire next_block = row_order ? last_tile : !last_block;
  wire [W_BANK-1:0] bank_behind = bank == FIRST_BANK + BANKS - 1 ? FIRST_BANK : bank + 1'b1;
  wire new_row = row_ends && (interleaved ? !last_row : !last_of_pass);
  wire step_ends = row_ends && !new_row;
  wire new_step = step_ends && !last_step;
  wire new_pass = step_ends && last_step && !interleaved && !last_row;
  wire all_done = step_ends && last_step && !new_pass;
  wire [W_ROW-1:0] row_behind = new_step ? (interleaved ? program_row : pass_row) : row + 1'b1;
  // In `layer` order a step's end is that of its pass, in `step` order that of all layers.
  wire [W_ELEMENT-1:0] x_move = source == ALL_X ? stride : x_stride;
  wire [W_FRAME-1:0] frame_move = from_frame ? groups : frame_stride;

  // What a job begins with.
  wire [31:0] new_program = CORE * MODELS + J_MODEL[admit_job * J_MODEL_B +: J_MODEL_B];
  wire [W_JOB-1:0] job_next = admit ? admit_job : job;
  wire [W_ROW-1:0] row_next = admit ? G_ROW[new_program * G_ROW_B +: G_ROW_B] : row_behind;
  wire [31:0] job_place = CORE * JOBS + job_next;
  wire [31:0] row_place = (job_place << JR_SHIFT) + P_NUMBER[row_next * P_NUMBER_B +: P_NUMBER_B];
  wire pass_starts = admit || (grant && new_pass);
  wire row_starts = admit || (grant && (new_row || new_step || new_pass));
  wire backward_next = P_BACKWARD[row_next * P_BACKWARD_B +: P_BACKWARD_B];

  always @(posedge clock) begin
    if (reset) occupied <= 1'b0;
    else if (ended) occupied <= 1'b0;
    // The loop nest.
    if (grant) begin
      if (next_block) begin
        block <= block + 1'b1;
        turn_offset <= turn_offset + turns;
        unit <= unit + full_units;
        bank <= bank_behind;
      end else if (!row_order) begin
        block <= 0;
        turn_offset <= 0;
        unit <= 0;
        bank <= row_ends ? bank_behind : row_bank;
      end
      if (next_group) begin
        group <= last_group ? 0 : group + 1'b1;
        offset <= last_group ? 0 : offset + EP;
      end
      if (read_ends) read <= last_tile ? first_read : read + 1'b1;
      weight <= weight + 1'b1;
      if (source == ALL_X) x_stride <= stride;
      if (from_frame) frame_stride <= groups;
      if (all_done) done <= 1'b1;
    end
    if (row_starts) begin
      row <= row_next;
      read <= P_READ[row_next * P_READ_B +: P_READ_B];
      weight <= P_WEIGHT_BASE[row_next * P_WEIGHT_BASE_B +: P_WEIGHT_BASE_B];
      group <= 0;
      offset <= 0;
      block <= 0;
      turn_offset <= 0;
      unit <= 0;
      bank <= admit ? FIRST_BANK : bank_behind;
      row_bank <= admit ? FIRST_BANK : bank_behind;
    end
    if (grant && new_step) begin
      step <= step + 1'b1;
      x_base <= x_base + x_move;
      frame_base <= backward ? frame_base - frame_move : frame_base + frame_move;
      own_base <= write_base;
      write_base <= write_base + P_WRITE_STRIDE[row * P_WRITE_STRIDE_B +: P_WRITE_STRIDE_B];
    end
    if (pass_starts) begin
      pass_row <= row_next;
      step <= 0;
      x_base <= JR_X_START[row_place * JR_X_START_B +: JR_X_START_B];
      write_base <= JR_WRITE_START[row_place * JR_WRITE_START_B +: JR_WRITE_START_B];
      frame_base <= backward_next ? JC_FRAME_END[job_place * JC_FRAME_END_B +: JC_FRAME_END_B]
        : JC_FRAME_START[job_place * JC_FRAME_START_B +: JC_FRAME_START_B];
    end
    credits <= credits - (grant && first_tile) + (f_valid && f_thread == THREAD);
    // A new job, perhaps in the cycle in which the one before it finishes.
    if (admit) begin
      occupied <= 1'b1;
      done <= 1'b0;
      job <= admit_job;
      credits <= BANKS;
    end
  end

  // What is visible of each vector: whole steps, and units of the step under way.
  genvar c;
  generate
    for (c = 0; c < MOST_COUNTERS; c = c + 1) begin : counters
      reg [W_STEP-1:0] whole;
      reg [W_UNIT-1:0] part;
      integer o;
      always @(posedge clock) begin
        for (o = 0; o < OUTPUTS; o = o + 1)
          if (w_valid[o] && w_thread[o*W_THREAD +: W_THREAD] == THREAD && w_counter[o*W_COUNTER +: W_COUNTER] == c) begin
            if (w_last[o]) whole <= whole + 1'b1;
            part <= w_last[o] ? {W_UNIT{1'b0}} : w_units[o*W_UNIT +: W_UNIT];
          end
        if (admit) begin
          whole <= 0;
          part <= 0;
        end
      end
      assign steps_visible[c*W_STEP +: W_STEP] = whole;
      assign units_visible[c*W_UNIT +: W_UNIT] = part;
    end
  endgenerate
endmodule

`default_nettype wire
