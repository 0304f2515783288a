// The order of blocks where some wait for values: later segments of a stage, and states of the step before.
//
// Each thread has its own order (stage, segment, block); its first block that has not started is its head. Of the heads
// that have all that they wait for, the one for which this came first starts; ties go to the lowest thread. What a
// block waits for is the arrival of its sums, or the start of another block some cycles ago, so starts and arrivals are
// stamped with the cycle.
`default_nettype none

module npu_tail_ages #(
  parameter CORE = 0,
  parameter W_STAMP = 32
) (
  clock, reset, free,
  b_valid, b_thread, b_job, b_row, b_step, b_block, b_bank, b_turn, b_unit, b_units, b_constant, b_write,
  s_valid, s_thread, s_job, s_row, s_segment, s_step, s_block, s_bank, s_turn, s_unit, s_units, s_constant, s_write,
  t_valid, t_thread, t_parameter, t_unit, t_units
);
`include "npu_tail_ages.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];

  input wire clock;
  input wire reset;
  // A block may start in this cycle.
  input wire free;

  input wire b_valid;
  input wire [W_THREAD-1:0] b_thread;
  input wire [W_JOB-1:0] b_job;
  input wire [W_ROW-1:0] b_row;
  input wire [W_STEP-1:0] b_step;
  input wire [W_BLOCK-1:0] b_block;
  input wire [W_BANK-1:0] b_bank;
  input wire [W_TURN-1:0] b_turn;
  input wire [W_UNIT-1:0] b_unit;
  input wire [W_UNIT-1:0] b_units;
  input wire [W_CONSTANT-1:0] b_constant;
  input wire [W_ELEMENT-1:0] b_write;

  output wire s_valid;
  output wire [W_THREAD-1:0] s_thread;
  output wire [W_JOB-1:0] s_job;
  output wire [W_ROW-1:0] s_row;
  output wire [W_SEGMENT-1:0] s_segment;
  output wire [W_STEP-1:0] s_step;
  output wire [W_BLOCK-1:0] s_block;
  output wire [W_BANK-1:0] s_bank;
  output wire [W_TURN-1:0] s_turn;
  output wire [W_UNIT-1:0] s_unit;
  output wire [W_UNIT-1:0] s_units;
  output wire [W_CONSTANT-1:0] s_constant;
  output wire [W_ELEMENT-1:0] s_write;

  // The turn of this cycle: a later segment goes on behind it.
  input wire t_valid;
  input wire [W_THREAD-1:0] t_thread;
  input wire [W_TURN-1:0] t_parameter;
  input wire [W_UNIT-1:0] t_unit;
  input wire [W_UNIT-1:0] t_units;

  localparam W_HEAD = W_JOB + W_ROW + W_SEGMENT + W_STEP + W_BLOCK + W_BANK + W_TURN + 2 * W_UNIT + W_CONSTANT
    + W_ELEMENT;

  reg [W_STAMP-1:0] now;
  always @(posedge clock) now <= reset ? {W_STAMP{1'b0}} : now + 1'b1;

  wire [THREADS-1:0] ready;
  wire [THREADS*W_STAMP-1:0] age;
  wire [THREADS*W_HEAD-1:0] heads;

  reg any;
  reg [W_THREAD-1:0] oldest;
  reg [W_STAMP-1:0] most;
  integer i;
  always @* begin
    any = 1'b0;
    oldest = 0;
    most = 0;
    for (i = 0; i < THREADS; i = i + 1)
      if (ready[i] && (!any || age[i*W_STAMP +: W_STAMP] > most)) begin
        any = 1'b1;
        oldest = i;
        most = age[i*W_STAMP +: W_STAMP];
      end
  end

  assign s_valid = any;
  assign s_thread = oldest;
  assign {s_job, s_row, s_segment, s_step, s_block, s_bank, s_turn, s_unit, s_units, s_constant, s_write}
    = heads[oldest*W_HEAD +: W_HEAD];

  genvar g;
  generate
    for (g = 0; g < THREADS; g = g + 1) begin : g_thread
      npu_tail_head #(.CORE(CORE), .W_STAMP(W_STAMP)) thread (
        .clock(clock), .reset(reset), .now(now),
        .push(b_valid && b_thread == g), .b_job(b_job), .b_row(b_row), .b_step(b_step), .b_block(b_block),
        .b_bank(b_bank), .b_turn(b_turn), .b_unit(b_unit), .b_units(b_units), .b_constant(b_constant),
        .b_write(b_write),
        .ready(ready[g]), .age(age[g*W_STAMP +: W_STAMP]), .head(heads[g*W_HEAD +: W_HEAD]),
        .start(free && any && oldest == g), .turn(t_valid && t_thread == g), .t_parameter(t_parameter),
        .t_unit(t_unit), .t_units(t_units)
      );
    end
  endgenerate
endmodule

// The head of one thread: the next block in its own order, and since when it has all that it waits for.
module npu_tail_head #(
  parameter CORE = 0,
  parameter W_STAMP = 32
) (
  clock, reset, now,
  push, b_job, b_row, b_step, b_block, b_bank, b_turn, b_unit, b_units, b_constant, b_write,
  ready, age, head, start, turn, t_parameter, t_unit, t_units
);
`include "npu_tail_head.vh"
  localparam integer BANKS = C_BANKS[CORE * C_BANKS_B +: C_BANKS_B];
  localparam integer STAMPS = C_STAMPS[CORE * C_STAMPS_B +: C_STAMPS_B];
  localparam W_HEAD = W_JOB + W_ROW + W_SEGMENT + W_STEP + W_BLOCK + W_BANK + W_TURN + 2 * W_UNIT + W_CONSTANT
    + W_ELEMENT;
  localparam W_TOKEN = W_JOB + W_ROW + W_STEP + W_BLOCK + W_BANK + W_TURN + 2 * W_UNIT + W_CONSTANT + W_ELEMENT
    + W_STAMP;
  // A thread that was quiet for long has nothing to wait for; its stamps are then of an older era.
  localparam W_ERA = 4;

  input wire clock;
  input wire reset;
  input wire [W_STAMP-1:0] now;

  input wire push;
  input wire [W_JOB-1:0] b_job;
  input wire [W_ROW-1:0] b_row;
  input wire [W_STEP-1:0] b_step;
  input wire [W_BLOCK-1:0] b_block;
  input wire [W_BANK-1:0] b_bank;
  input wire [W_TURN-1:0] b_turn;
  input wire [W_UNIT-1:0] b_unit;
  input wire [W_UNIT-1:0] b_units;
  input wire [W_CONSTANT-1:0] b_constant;
  input wire [W_ELEMENT-1:0] b_write;

  output wire ready;
  // Cycles since the head has all that it waits for.
  output wire [W_STAMP-1:0] age;
  output wire [W_HEAD-1:0] head;
  // The head starts in this cycle.
  input wire start;
  // A turn of this thread is under way.
  input wire turn;
  input wire [W_TURN-1:0] t_parameter;
  input wire [W_UNIT-1:0] t_unit;
  input wire [W_UNIT-1:0] t_units;

  // --- blocks from the array ---

  wire waiting;
  wire [W_JOB-1:0] q_job;
  wire [W_ROW-1:0] q_row;
  wire [W_STEP-1:0] q_step;
  wire [W_BLOCK-1:0] q_block;
  wire [W_BANK-1:0] q_bank;
  wire [W_TURN-1:0] q_turn;
  wire [W_UNIT-1:0] q_unit;
  wire [W_UNIT-1:0] q_units;
  wire [W_CONSTANT-1:0] q_constant;
  wire [W_ELEMENT-1:0] q_write;
  wire [W_STAMP-1:0] q_came;
  // The head is a block of a later segment.
  reg later;
  npu_tail_queue #(.WIDTH(W_TOKEN), .DEPTH(BANKS)) queue (
    .clock(clock), .reset(reset), .push(push),
    .word({b_job, b_row, b_step, b_block, b_bank, b_turn, b_unit, b_units, b_constant, b_write, now}),
    .valid(waiting),
    .head({q_job, q_row, q_step, q_block, q_bank, q_turn, q_unit, q_units, q_constant, q_write, q_came}),
    .pop(start && !later)
  );

  // --- blocks of later segments: all row blocks of the row once more ---

  reg [W_JOB-1:0] job;
  reg [W_ROW-1:0] row;
  reg [W_SEGMENT-1:0] segment;
  reg [W_STEP-1:0] step;
  reg [W_BLOCK-1:0] block;
  // Behind the thread's latest turn.
  reg [W_TURN-1:0] behind_turn;
  reg [W_UNIT-1:0] behind_unit;
  reg [W_ELEMENT-1:0] write;

  wire [W_ROW-1:0] h_row = later ? row : q_row;
  wire [W_SEGMENT-1:0] h_segment = later ? segment : P_SEGMENT[q_row * P_SEGMENT_B +: W_SEGMENT];
  wire [W_STEP-1:0] h_step = later ? step : q_step;
  wire [W_BLOCK-1:0] h_block = later ? block : q_block;
  wire last_block = h_block == P_BLOCKS[h_row * P_BLOCKS_B +: W_BLOCK] - 1;
  // The first block of a segment begins at the row's first turn again.
  wire [W_TURN-1:0] h_turn = block == 0 ? P_TURN_BASE[row * P_TURN_BASE_B +: W_TURN] : behind_turn;
  wire [W_UNIT-1:0] h_unit = block == 0 ? {W_UNIT{1'b0}} : behind_unit;
  wire [W_UNIT-1:0] units = last_block
    ? P_LAST_UNITS[h_row * P_LAST_UNITS_B +: W_UNIT] : P_UNITS[h_row * P_UNITS_B +: W_UNIT];
  assign head = later
    ? {job, row, segment, step, block, {W_BANK{1'b0}}, h_turn, h_unit, units, {W_CONSTANT{1'b0}}, write}
    : {q_job, q_row, h_segment, q_step, q_block, q_bank, q_turn, q_unit, q_units, q_constant, q_write};

  wire last_segment = S_INDEX[h_segment * S_INDEX_B +: S_INDEX_B]
    == P_SEGMENTS[h_row * P_SEGMENTS_B +: P_SEGMENTS_B] - 1;
  always @(posedge clock) begin
    if (reset) later <= 1'b0;
    else if (start && last_block) later <= !last_segment;
    if (turn) begin
      // A block's turns and units follow those of the block before it.
      behind_turn <= t_parameter + 1'b1;
      behind_unit <= t_unit + t_units;
    end
    if (start) begin
      block <= last_block ? {W_BLOCK{1'b0}} : h_block + 1'b1;
      segment <= last_block ? h_segment + 1'b1 : h_segment;
      row <= h_row;
      if (!later) begin
        job <= q_job;
        step <= q_step;
        write <= q_write;
      end
    end
  end

  // --- what the head waits for ---

  reg [W_ERA+W_STAMP-1:0] stamps [0:STAMPS-1];
  reg [W_ERA-1:0] era;
  reg [W_STAMP-3:0] quiet;
  reg quiet_before;
  wire [31:0] own_stamp = S_STAMP[h_segment * S_STAMP_B +: S_STAMP_B];
  always @(posedge clock) begin
    if (start && S_GIVES[h_segment * S_GIVES_B +: S_GIVES_B] != 0) stamps[own_stamp + h_block] <= {era, now};
    if (reset) era <= {W_ERA{1'b0}};
    else if (&quiet && !quiet_before) era <= era + 1'b1;
    quiet <= reset || turn ? {W_STAMP-2{1'b0}} : quiet + !(&quiet);
    quiet_before <= !reset && &quiet;
  end

  wire [31:0] first_await = S_A[h_segment * S_A_B +: S_A_B];
  wire [31:0] awaits = S_AS[h_segment * S_AS_B +: S_AS_B];
  reg missing;
  reg [W_STAMP-1:0] since;
  reg [31:0] row_a;
  reg [W_STAMP-1:0] cycles;
  reg [W_ERA-1:0] its_era;
  reg [W_STAMP-1:0] its_stamp;
  reg [W_STAMP-1:0] its_age;
  // The stamp and the cycles of each wait. Memories are read here and not in the choice below, which would wait for a
  // change of any of their words.
  localparam AWAITS = MOST_AWAITS > 0 ? MOST_AWAITS : 1;
  wire [AWAITS*(W_ERA+W_STAMP)-1:0] their_stamps;
  wire [AWAITS*W_STAMP-1:0] their_cycles;
  genvar a;
  generate
    for (a = 0; a < AWAITS; a = a + 1) begin : g_await
      wire [31:0] own_row = first_await + a;
      wire by_block = A_TABLE[own_row * A_TABLE_B +: A_TABLE_B];
      wire [31:0] row_o = A_FIRST[own_row * A_FIRST_B +: A_FIRST_B] + h_block;
      wire [31:0] place = by_block ? O_STAMP[row_o * O_STAMP_B +: O_STAMP_B]
        : A_STAMP[own_row * A_STAMP_B +: A_STAMP_B] + (A_OWN[own_row * A_OWN_B +: A_OWN_B] ? h_block : 0);
      assign their_stamps[a*(W_ERA+W_STAMP) +: W_ERA+W_STAMP] = stamps[place];
      assign their_cycles[a*W_STAMP +: W_STAMP] =
        by_block ? O_CYCLES[row_o * O_CYCLES_B +: O_CYCLES_B] : A_CYCLES[own_row * A_CYCLES_B +: A_CYCLES_B];
    end
  endgenerate
  integer i;
  always @* begin
    missing = 1'b0;
    // What came long ago is of the greatest age.
    since = later ? {1'b0, {W_STAMP-1{1'b1}}} : now - q_came;
    for (i = 0; i < AWAITS; i = i + 1) begin
      row_a = first_await + i;
      cycles = their_cycles[i*W_STAMP +: W_STAMP];
      {its_era, its_stamp} = their_stamps[i*(W_ERA+W_STAMP) +: W_ERA+W_STAMP];
      its_age = now - its_stamp - cycles;
      // In step 0 there is no step before; a stamp of an older era is one of long ago.
      if (i < awaits && cycles != 0 && !(A_LAG[row_a * A_LAG_B +: A_LAG_B] && h_step == 0) && its_era == era) begin
        if (its_age[W_STAMP-1]) missing = 1'b1;
        else if (its_age < since) since = its_age;
      end
    end
  end
  assign ready = (later || waiting) && !missing;
  assign age = since;
endmodule
