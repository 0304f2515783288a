// The order of the tail: which block takes its turns when, and what happens a known number of cycles behind a turn.
//
// A block comes to the tail a fixed number of cycles after its last tile. All choices are made `convert` cycles before
// the cycle of docs/timing.md, so that the adapter can begin with the sums: a token of each turn goes down a delay
// line, and everything later (states, writes, free banks, ends of jobs) is an entry of that line.
`default_nettype none

module npu_tail #(
  parameter CORE = 0,
  // Bits of the stamps that say when blocks started and came. A step of a job must not take half of their range.
  parameter W_STAMP = 32,
  // 1: the bundle v_* says what w_* says a cycle later.
  parameter EARLY = 0
) (
  clock, reset, jobs_table,
  b_valid, b_thread, b_job, b_row, b_step, b_block, b_bank, b_turn, b_unit, b_units, b_constant, b_write,
  t_valid, t_thread, t_job, t_row, t_segment, t_step, t_block, t_bank, t_turn, t_number, t_unit, t_units, t_constant,
  t_parameter, t_write, t_zero, t_initial, t_last_turn, t_last_block, t_last_step,
  d_valid, d_thread, d_job, d_row, d_segment, d_step, d_block, d_bank, d_turn, d_number, d_unit, d_units, d_constant,
  d_parameter, d_write, d_zero, d_initial, d_last_turn, d_last_block, d_last_step,
  w_valid, w_thread, w_counter, w_units, w_last, w_element, w_count,
  v_valid, v_thread, v_counter, v_units, v_last, f_valid, f_thread, e_valid, home
);
`include "npu_tail.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam integer BANKS = C_BANKS[CORE * C_BANKS_B +: C_BANKS_B];
  localparam integer WIDTH = C_TAIL_WIDTH[CORE * C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B];
  localparam integer CONVERT = C_CONVERT[CORE * C_CONVERT_B +: C_CONVERT_B];
  localparam integer TURNS = C_TURNS[CORE * C_TURNS_B +: C_TURNS_B];
  localparam integer AGES = C_AGES[CORE * C_AGES_B +: C_AGES_B];
  localparam integer OUTPUTS = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];
  localparam integer FIRST_OUTPUT = C_MEMORY[CORE * C_MEMORY_B +: C_MEMORY_B];
  localparam integer D = C_DEPTH[CORE * C_DEPTH_B +: C_DEPTH_B];

  input wire clock;
  input wire reset;

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

  output wire t_valid;
  output wire [W_THREAD-1:0] t_thread;
  output wire [W_JOB-1:0] t_job;
  output wire [W_ROW-1:0] t_row;
  output wire [W_SEGMENT-1:0] t_segment;
  output wire [W_STEP-1:0] t_step;
  output wire [W_BLOCK-1:0] t_block;
  output wire [W_BANK-1:0] t_bank;
  output wire [W_TURN-1:0] t_turn;
  output wire [W_NUMBER-1:0] t_number;
  output wire [W_UNIT-1:0] t_unit;
  output wire [W_UNIT-1:0] t_units;
  output wire [W_CONSTANT-1:0] t_constant;
  output wire [W_TURN-1:0] t_parameter;
  output wire [W_ELEMENT-1:0] t_write;
  output wire t_zero;
  output wire t_initial;
  output wire t_last_turn;
  output wire t_last_block;
  output wire t_last_step;

  output wire [D:0] d_valid;
  output wire [(D+1)*W_THREAD-1:0] d_thread;
  output wire [(D+1)*W_JOB-1:0] d_job;
  output wire [(D+1)*W_ROW-1:0] d_row;
  output wire [(D+1)*W_SEGMENT-1:0] d_segment;
  output wire [(D+1)*W_STEP-1:0] d_step;
  output wire [(D+1)*W_BLOCK-1:0] d_block;
  output wire [(D+1)*W_BANK-1:0] d_bank;
  output wire [(D+1)*W_TURN-1:0] d_turn;
  output wire [(D+1)*W_NUMBER-1:0] d_number;
  output wire [(D+1)*W_UNIT-1:0] d_unit;
  output wire [(D+1)*W_UNIT-1:0] d_units;
  output wire [(D+1)*W_CONSTANT-1:0] d_constant;
  output wire [(D+1)*W_TURN-1:0] d_parameter;
  output wire [(D+1)*W_ELEMENT-1:0] d_write;
  output wire [D:0] d_zero;
  output wire [D:0] d_initial;
  output wire [D:0] d_last_turn;
  output wire [D:0] d_last_block;
  output wire [D:0] d_last_step;

  output wire [OUTPUTS-1:0] w_valid;
  output wire [OUTPUTS*W_THREAD-1:0] w_thread;
  output wire [OUTPUTS*W_COUNTER-1:0] w_counter;
  output wire [OUTPUTS*W_UNIT-1:0] w_units;
  output wire [OUTPUTS-1:0] w_last;
  output wire [OUTPUTS*W_ELEMENT-1:0] w_element;
  output wire [OUTPUTS*W_UNIT-1:0] w_count;

  output wire [OUTPUTS-1:0] v_valid;
  output wire [OUTPUTS*W_THREAD-1:0] v_thread;
  output wire [OUTPUTS*W_COUNTER-1:0] v_counter;
  output wire [OUTPUTS*W_UNIT-1:0] v_units;
  output wire [OUTPUTS-1:0] v_last;

  output wire f_valid;
  output wire [W_THREAD-1:0] f_thread;
  output wire [THREADS-1:0] e_valid;
  input wire [THREADS*W_THREAD-1:0] home;

  // --- which block starts ---

  wire s_valid;
  wire [W_THREAD-1:0] s_thread;
  wire [W_JOB-1:0] s_job;
  wire [W_ROW-1:0] s_row;
  wire [W_SEGMENT-1:0] s_segment;
  wire [W_STEP-1:0] s_step;
  wire [W_BLOCK-1:0] s_block;
  wire [W_BANK-1:0] s_bank;
  wire [W_TURN-1:0] s_turn;
  wire [W_UNIT-1:0] s_unit;
  wire [W_UNIT-1:0] s_units;
  wire [W_CONSTANT-1:0] s_constant;
  wire [W_ELEMENT-1:0] s_write;

  // A block that has started has turns left.
  reg going;

  generate
    if (AGES) begin : g_order
      npu_tail_ages #(.CORE(CORE), .W_STAMP(W_STAMP)) order (
        .clock(clock), .reset(reset), .free(!going),
        .b_valid(b_valid), .b_thread(b_thread), .b_job(b_job), .b_row(b_row), .b_step(b_step), .b_block(b_block),
        .b_bank(b_bank), .b_turn(b_turn), .b_unit(b_unit), .b_units(b_units), .b_constant(b_constant),
        .b_write(b_write),
        .s_valid(s_valid), .s_thread(s_thread), .s_job(s_job), .s_row(s_row), .s_segment(s_segment), .s_step(s_step),
        .s_block(s_block), .s_bank(s_bank), .s_turn(s_turn), .s_unit(s_unit), .s_units(s_units),
        .s_constant(s_constant), .s_write(s_write),
        .t_valid(t_valid), .t_thread(t_thread), .t_parameter(t_parameter), .t_unit(t_unit), .t_units(t_units)
      );
    end else begin : g_order
      // Blocks come one at a time, so the order in which they come is the order in which they start. A block in the
      // queue holds a bank, so the queue never overflows.
      localparam W_TOKEN = W_THREAD + W_JOB + W_ROW + W_STEP + W_BLOCK + W_BANK + W_TURN + 2 * W_UNIT + W_CONSTANT
        + W_ELEMENT;
      wire [W_TOKEN-1:0] head;
      npu_tail_queue #(.WIDTH(W_TOKEN), .DEPTH(THREADS * BANKS)) queue (
        .clock(clock), .reset(reset), .push(b_valid),
        .word({b_thread, b_job, b_row, b_step, b_block, b_bank, b_turn, b_unit, b_units, b_constant, b_write}),
        .valid(s_valid), .head(head), .pop(!going)
      );
      assign {s_thread, s_job, s_row, s_step, s_block, s_bank, s_turn, s_unit, s_units, s_constant, s_write} = head;
      assign s_segment = P_SEGMENT[s_row * P_SEGMENT_B +: W_SEGMENT];
    end
  endgenerate

  // --- turns of the block ---

  // The next turn of the block, while it is going.
  reg [W_THREAD-1:0] n_thread;
  reg [W_JOB-1:0] n_job;
  reg [W_ROW-1:0] n_row;
  reg [W_SEGMENT-1:0] n_segment;
  reg [W_STEP-1:0] n_step;
  reg [W_BLOCK-1:0] n_block;
  reg [W_BANK-1:0] n_bank;
  reg [W_TURN-1:0] n_turn;
  reg [W_NUMBER-1:0] n_number;
  reg [W_UNIT-1:0] n_unit;
  reg [W_UNIT-1:0] n_left;
  reg [W_CONSTANT-1:0] n_constant;
  reg [W_ELEMENT-1:0] n_write;

  wire [W_UNIT-1:0] left = going ? n_left : s_units;
  assign t_valid = going || s_valid;
  assign t_thread = going ? n_thread : s_thread;
  assign t_job = going ? n_job : s_job;
  assign t_row = going ? n_row : s_row;
  assign t_segment = going ? n_segment : s_segment;
  assign t_step = going ? n_step : s_step;
  assign t_block = going ? n_block : s_block;
  assign t_bank = going ? n_bank : s_bank;
  assign t_parameter = going ? n_turn : s_turn;
  assign t_number = going ? n_number : {W_NUMBER{1'b0}};
  assign t_unit = going ? n_unit : s_unit;
  assign t_units = left > WIDTH ? WIDTH : left;
  assign t_constant = going ? n_constant : s_constant;
  assign t_write = going ? n_write : s_write;
  assign t_last_turn = left <= WIDTH;
  assign t_last_block = t_block == P_BLOCKS[t_row * P_BLOCKS_B +: W_BLOCK] - 1;
  assign t_last_step = t_step == J_STEPS[t_job * J_STEPS_B +: W_STEP] - 1;

  // States before step 0 are 0 unless the job brings its own.
  wire own_states = JC_STARTED[(CORE * JOBS + t_job) * JC_STARTED_B +: JC_STARTED_B] != 0;
  assign t_zero = t_step == 0 && !own_states;
  assign t_initial = t_step == 0 && own_states;

  // Each thread has a part of the state memories.
  wire [W_TURN-1:0] own_turns;
  npu_part #(.WIDTH(W_TURN), .COUNT(THREADS), .INDEX(W_THREAD), .PART(TURNS)) part (.index(t_thread), .word(own_turns));
  assign t_turn = t_parameter + own_turns;

  always @(posedge clock) begin
    going <= !reset && t_valid && !t_last_turn;
    n_thread <= t_thread;
    n_job <= t_job;
    n_row <= t_row;
    n_segment <= t_segment;
    n_step <= t_step;
    n_block <= t_block;
    n_bank <= t_bank;
    n_turn <= t_parameter + 1'b1;
    n_number <= t_number + 1'b1;
    n_unit <= t_unit + WIDTH;
    n_left <= left - WIDTH;
    n_constant <= t_constant + 1'b1;
    n_write <= t_write;
  end

  // --- the delay line: entry i is the turn of i cycles ago ---

  npu_line #(.D(D)) line_valid (.clock(clock), .clear(reset), .now(t_valid), .line(d_valid));
  npu_line #(.WIDTH(W_THREAD), .D(D)) line_thread (.clock(clock), .clear(1'b0), .now(t_thread), .line(d_thread));
  npu_line #(.WIDTH(W_JOB), .D(D)) line_job (.clock(clock), .clear(1'b0), .now(t_job), .line(d_job));
  npu_line #(.WIDTH(W_ROW), .D(D)) line_row (.clock(clock), .clear(1'b0), .now(t_row), .line(d_row));
  npu_line #(.WIDTH(W_SEGMENT), .D(D)) line_segment (.clock(clock), .clear(1'b0), .now(t_segment), .line(d_segment));
  npu_line #(.WIDTH(W_STEP), .D(D)) line_step (.clock(clock), .clear(1'b0), .now(t_step), .line(d_step));
  npu_line #(.WIDTH(W_BLOCK), .D(D)) line_block (.clock(clock), .clear(1'b0), .now(t_block), .line(d_block));
  npu_line #(.WIDTH(W_BANK), .D(D)) line_bank (.clock(clock), .clear(1'b0), .now(t_bank), .line(d_bank));
  npu_line #(.WIDTH(W_TURN), .D(D)) line_turn (.clock(clock), .clear(1'b0), .now(t_turn), .line(d_turn));
  npu_line #(.WIDTH(W_NUMBER), .D(D)) line_number (.clock(clock), .clear(1'b0), .now(t_number), .line(d_number));
  npu_line #(.WIDTH(W_UNIT), .D(D)) line_unit (.clock(clock), .clear(1'b0), .now(t_unit), .line(d_unit));
  npu_line #(.WIDTH(W_UNIT), .D(D)) line_units (.clock(clock), .clear(1'b0), .now(t_units), .line(d_units));
  npu_line #(.WIDTH(W_CONSTANT), .D(D)) line_constant (
    .clock(clock), .clear(1'b0), .now(t_constant), .line(d_constant)
  );
  npu_line #(.WIDTH(W_TURN), .D(D)) line_parameter (.clock(clock), .clear(1'b0), .now(t_parameter), .line(d_parameter));
  npu_line #(.WIDTH(W_ELEMENT), .D(D)) line_write (.clock(clock), .clear(1'b0), .now(t_write), .line(d_write));
  npu_line #(.D(D)) line_zero (.clock(clock), .clear(1'b0), .now(t_zero), .line(d_zero));
  npu_line #(.D(D)) line_initial (.clock(clock), .clear(1'b0), .now(t_initial), .line(d_initial));
  npu_line #(.D(D)) line_last_turn (.clock(clock), .clear(1'b0), .now(t_last_turn), .line(d_last_turn));
  npu_line #(.D(D)) line_last_block (.clock(clock), .clear(1'b0), .now(t_last_block), .line(d_last_block));
  npu_line #(.D(D)) line_last_step (.clock(clock), .clear(1'b0), .now(t_last_step), .line(d_last_step));

  // --- a bank is free from the cycle after its last turn ---

  assign f_valid = d_valid[CONVERT] && d_last_turn[CONVERT]
    && S_INDEX[d_segment[CONVERT*W_SEGMENT +: W_SEGMENT] * S_INDEX_B +: S_INDEX_B] == 0;
  assign f_thread = d_thread[CONVERT*W_THREAD +: W_THREAD];

  // --- writes: in the cycle before their units are visible ---

  genvar g;
  generate
    for (g = 0; g < OUTPUTS; g = g + 1) begin : g_output
      localparam integer VISIBLE = M_VISIBLE_CYCLES[(FIRST_OUTPUT+g)*M_VISIBLE_CYCLES_B +: M_VISIBLE_CYCLES_B];
      localparam integer AT = CONVERT + VISIBLE - 1;
      // One entry earlier, where that is a register; two, if the threads learn it a cycle early.
      localparam integer AHEAD = EARLY ? 2 : AT > 1 ? 1 : 0;
      localparam integer FROM = AT - AHEAD;
      npu_tail_write #(.CORE(CORE), .OUTPUT(g), .AHEAD(AHEAD), .EARLY(EARLY)) write (
        .clock(clock), .reset(reset), .home(home), .d_valid(d_valid[FROM]),
        .d_thread(d_thread[FROM*W_THREAD +: W_THREAD]), .d_segment(d_segment[FROM*W_SEGMENT +: W_SEGMENT]),
        .d_step(d_step[FROM*W_STEP +: W_STEP]), .d_unit(d_unit[FROM*W_UNIT +: W_UNIT]),
        .d_units(d_units[FROM*W_UNIT +: W_UNIT]), .d_write(d_write[FROM*W_ELEMENT +: W_ELEMENT]),
        .d_last(d_last_turn[FROM] && d_last_block[FROM]),
        .w_valid(w_valid[g]), .w_thread(w_thread[g*W_THREAD +: W_THREAD]),
        .w_counter(w_counter[g*W_COUNTER +: W_COUNTER]), .w_units(w_units[g*W_UNIT +: W_UNIT]), .w_last(w_last[g]),
        .w_element(w_element[g*W_ELEMENT +: W_ELEMENT]), .w_count(w_count[g*W_UNIT +: W_UNIT]),
        .v_valid(v_valid[g]), .v_thread(v_thread[g*W_THREAD +: W_THREAD]),
        .v_counter(v_counter[g*W_COUNTER +: W_COUNTER]), .v_units(v_units[g*W_UNIT +: W_UNIT]), .v_last(v_last[g])
      );
    end
  endgenerate

  // --- ends of jobs: all of its results are there ---

  // The turn is looked at one cycle late where there is time for that, so that an end begins at registers.
  localparam integer LATE = CONVERT > 1 ? 1 : 0;
  wire [W_SEGMENT-1:0] late_segment = d_segment[LATE*W_SEGMENT +: W_SEGMENT];
  wire [W_ROW-1:0] late_row = d_row[LATE*W_ROW +: W_ROW];
  // Cycles from there until all results of the turn are there, without the last one.
  wire [W_DELAY-1:0] results = S_RESULT_CYCLES[late_segment * S_RESULT_CYCLES_B +: S_RESULT_CYCLES_B]
    + (CONVERT - 1 - LATE);
  wire ends = d_last_turn[LATE] && d_last_block[LATE] && d_last_step[LATE]
    && S_LAST[late_segment * S_LAST_B +: S_LAST_B] != 0
    && P_LAST_OF_PROGRAM[late_row * P_LAST_OF_PROGRAM_B +: P_LAST_OF_PROGRAM_B] != 0;
  generate
    for (g = 0; g < THREADS; g = g + 1) begin : g_end
      npu_tail_end #(.W_DELAY(W_DELAY), .LATER(CONVERT > 0)) one (
        .clock(clock), .reset(reset), .turn(d_valid[LATE] && d_thread[LATE*W_THREAD +: W_THREAD] == g), .ends(ends),
        .results(results), .e_valid(e_valid[g])
      );
    end
  endgenerate
endmodule
