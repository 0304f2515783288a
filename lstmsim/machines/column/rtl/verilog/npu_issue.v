// The issue logic of a core: its threads, the ring that chooses one of them, switches, the name of the cycle, and the
// delay line that brings a block's last tile to the tail. docs/timing.md sections 3, 4 and 5.
`default_nettype none

module npu_issue (
  clock, reset, jobs_table,
  admit, admit_job, ended, frames_posted, home, arrives,
  v_valid, v_thread, v_counter, v_units, v_last,
  f_valid, f_thread,
  o_valid, o_thread, o_job, o_row, o_read, o_step, o_block, o_group, o_weight, o_frame, o_element, o_elements, o_bank,
  o_first, o_last, o_h0,
  b_valid, b_thread, b_job, b_row, b_step, b_block, b_bank, b_turn, b_unit, b_units, b_constant, b_write,
  cycle_name
);
  parameter CORE = 0;
  // 1: v_* is a cycle early.
  parameter EARLY = 0;
  `include "npu_issue.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam integer OUTPUTS = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];
  localparam integer PORTS = OUTPUTS + (SPLITS != 0 ? CORES : 0);
  localparam integer FINE = C_FINE[CORE * C_FINE_B +: C_FINE_B];
  localparam integer SWITCH_CYCLES = C_SWITCH_CYCLES[CORE * C_SWITCH_CYCLES_B +: C_SWITCH_CYCLES_B];
  // As many registers as the array has from a tile's addresses to its sum in the accumulator.
  localparam integer READ = C_READ[CORE * C_READ_B +: C_READ_B];
  localparam integer MULTIPLY = C_MULTIPLY[CORE * C_MULTIPLY_B +: C_MULTIPLY_B];
  localparam integer ADD = C_ADD[CORE * C_ADD_B +: C_ADD_B];
  localparam integer LEVELS = C_LEVELS[CORE * C_LEVELS_B +: C_LEVELS_B];
  localparam integer ACCUMULATE = C_ACCUMULATE[CORE * C_ACCUMULATE_B +: C_ACCUMULATE_B];
  localparam integer BLOCK_CYCLES = READ + MULTIPLY + ADD * LEVELS + ACCUMULATE;

  input wire clock;
  input wire reset;
  // The contexts that are taken at the edge that ends this cycle, and by which jobs.
  input wire [THREADS-1:0] admit;
  input wire [THREADS*W_JOB-1:0] admit_job;
  // The contexts whose jobs finish in the next cycle.
  input wire [THREADS-1:0] ended;
  // How many frames are there, by context, of the job that has it in the next cycle.
  input wire [THREADS*W_STEP-1:0] frames_posted;
  // By thread whose part of the vector memories its job has in the next cycle.
  input wire [THREADS*W_THREAD-1:0] home;
  // By thread: weights of a row block have come from the memory beside the chip.
  input wire [THREADS-1:0] arrives;
  // What becomes visible in the next cycle (EARLY: in the one behind that), by output; and, where jobs are split, by
  // core that has sent it.
  input wire [PORTS-1:0] v_valid;
  input wire [PORTS*W_THREAD-1:0] v_thread;
  input wire [PORTS*W_COUNTER-1:0] v_counter;
  input wire [PORTS*W_UNIT-1:0] v_units;
  input wire [PORTS-1:0] v_last;
  // A bank that is free from the next cycle on.
  input wire f_valid;
  input wire [W_THREAD-1:0] f_thread;

  // The tile that issues in this cycle.
  output wire o_valid;
  output wire [W_THREAD-1:0] o_thread;
  output wire [W_JOB-1:0] o_job;
  output wire [W_ROW-1:0] o_row;
  output wire [W_READ-1:0] o_read;
  output wire [W_STEP-1:0] o_step;
  output wire [W_BLOCK-1:0] o_block;
  output wire [W_GROUP-1:0] o_group;
  output wire [W_WEIGHT-1:0] o_weight;
  output wire [W_FRAME-1:0] o_frame;
  output wire [W_ELEMENT-1:0] o_element;
  output wire [W_UNIT-1:0] o_elements;
  output wire [W_BANK-1:0] o_bank;
  output wire o_first;
  output wire o_last;
  output wire o_h0;

  // The block whose last tile issued BLOCK_CYCLES ago: MVM latency without `convert`.
  output wire b_valid;
  output wire [W_THREAD-1:0] b_thread;
  output wire [W_JOB-1:0] b_job;
  output wire [W_ROW-1:0] b_row;
  output wire [W_STEP-1:0] b_step;
  output wire [W_BLOCK-1:0] b_block;
  output wire [W_BANK-1:0] b_bank;
  output wire [W_TURN-1:0] b_turn;
  output wire [W_UNIT-1:0] b_unit;
  output wire [W_UNIT-1:0] b_units;
  output wire [W_CONSTANT-1:0] b_constant;
  output wire [W_ELEMENT-1:0] b_write;

  // 0 busy, 1 switch, 2 hazard, 3 backpressure, 4 input, 5 drain, 6 idle, 7 weights.
  output wire [2:0] cycle_name;

  wire [THREADS*W_TILE-1:0] tiles;
  wire [THREADS*W_BLOCK_WORD-1:0] blocks;
  wire [THREADS-1:0] may;
  wire [THREADS-1:0] hazard;
  wire [THREADS-1:0] backpressure;
  wire [THREADS-1:0] no_frame;
  wire [THREADS-1:0] no_weights;
  wire [THREADS-1:0] draining;
  wire [THREADS-1:0] grant;

  // How each job begins: a thread that takes a job must know two of its tiles at once.
  localparam W_BEGIN = 2 * (W_TILE + W_BLOCK_WORD + W_WAITS) + W_PLACE + 2;
  wire [JOBS*B_WORD_B-1:0] begins = B_PART[CORE*JOBS*B_WORD_B +: JOBS*B_WORD_B];
  genvar t;
  generate
    for (t = 0; t < THREADS; t = t + 1) begin : threads
      wire [W_JOB-1:0] job = admit_job[t*W_JOB +: W_JOB];
      // The first tile waits for its frame, if for anything: nothing of the job is visible yet.
      wire [W_STEP-1:0] frames = frames_posted[t*W_STEP +: W_STEP];
      wire first_ready = frames >= B_FRAMES[(CORE*JOBS+job)*B_FRAMES_B +: B_FRAMES_B];
      wire [W_TILE+W_BLOCK_WORD-1:0] first;
      wire [W_WAITS-1:0] first_waits;
      wire [W_TILE+W_BLOCK_WORD-1:0] second;
      wire [W_WAITS-1:0] second_waits;
      wire [W_PLACE-1:0] third_place;
      wire single;
      wire couple;
      assign {first, first_waits, second, second_waits, third_place, single, couple} = begins[job*B_WORD_B +: W_BEGIN];
      npu_thread #(.CORE(CORE), .THREAD(t), .EARLY(EARLY)) thread (
        .clock(clock), .reset(reset), .jobs_table(jobs_table),
        .admit(admit[t]), .admit_job(job), .first(first), .first_waits(first_waits), .first_ready(first_ready),
        .second(second), .second_waits(second_waits), .third_place(third_place), .single(single), .couple(couple),
        .ended(ended[t]), .frames(frames),
        .v_valid(v_valid), .v_thread(v_thread), .v_counter(v_counter), .v_units(v_units), .v_last(v_last),
        .f_valid(f_valid), .f_thread(f_thread), .home(home[t*W_THREAD +: W_THREAD]), .arrives(arrives[t]),
        .grant(grant[t]), .may(may[t]), .hazard(hazard[t]), .backpressure(backpressure[t]), .no_frame(no_frame[t]),
        .no_weights(no_weights[t]),
        .draining(draining[t]), .tile(tiles[t*W_TILE +: W_TILE]),
        .block_word(blocks[t*W_BLOCK_WORD +: W_BLOCK_WORD])
      );
    end
  endgenerate

  // The ring: the first thread that may issue from `active` on (fine: from the one behind it; a thread to which the
  // core has just switched is looked at first under both policies).
  reg [W_THREAD-1:0] active;
  // The threads that are looked at first: those behind `active`, and itself under `coarse` or if it was switched to.
  reg [THREADS-1:0] mask;
  reg [THREADS-1:0] mask_next;
  reg [C_SWITCH_CYCLES_B-1:0] switching;
  wire [THREADS-1:0] ahead = may & mask;
  // The winner, a bit for each thread: a grant is the longest path of the issue, and shorter without the number.
  wire [THREADS-1:0] wins;
  reg [W_THREAD-1:0] winner;
  wire any = |may;
  wire under_way = switching != 0;
  wire chosen = any && !under_way;
  wire starts = chosen && SWITCH_CYCLES != 0 && winner != active;
  generate
    for (t = 0; t < THREADS; t = t + 1) begin : winners
      localparam [THREADS-1:0] BEFORE = (1 << t) - 1;
      assign wins[t] = ahead[t] ? !(|(ahead & BEFORE)) : may[t] && !(|ahead) && !(|(may & BEFORE));
    end
  endgenerate
  integer i;
  always @* begin
    winner = active;
    for (i = 0; i < THREADS; i = i + 1)
      if (wins[i]) winner = i;
  end
  integer n;
  always @*
    for (n = 0; n < THREADS; n = n + 1)
      if (reset) mask_next[n] = n > 0 || FINE == 0;
      else mask_next[n] = n > winner || (n == winner && (FINE == 0 || starts));
  assign o_valid = chosen && !starts && !reset;
  always @(posedge clock) begin
    if (reset || chosen) mask <= mask_next;
    if (reset) begin
      active <= 0;
      switching <= 0;
    end else begin
      if (under_way) switching <= switching - 1'b1;
      else if (starts) switching <= SWITCH_CYCLES - 1;
      if (chosen) begin
        active <= winner;
      end
    end
  end
  generate
    for (t = 0; t < THREADS; t = t + 1) begin : grants
      // Where a switch takes cycles, only the thread that is active issues: a switch to any other one starts.
      assign grant[t] = wins[t] && !under_way && !reset && (SWITCH_CYCLES == 0 || active == t);
    end
  endgenerate
  assign cycle_name = (under_way || starts) ? 3'd1
    : chosen ? 3'd0
    : |hazard ? 3'd2
    : |backpressure ? 3'd3
    : |no_frame ? 3'd4
    : |no_weights ? 3'd7
    : |draining ? 3'd5
    : 3'd6;

  // The winner's tile.
  assign o_thread = winner;
  npu_choose #(.WIDTH(W_TILE), .COUNT(THREADS), .INDEX(W_THREAD)) tile_of_winner (
    .words(tiles), .index(winner),
    .word({o_job, o_row, o_read, o_step, o_block, o_group, o_weight, o_frame, o_element, o_elements, o_bank, o_first,
      o_last, o_h0})
  );
  wire [W_BLOCK_WORD-1:0] block_of_winner;
  npu_choose #(.WIDTH(W_BLOCK_WORD), .COUNT(THREADS), .INDEX(W_THREAD)) word_of_winner (
    .words(blocks), .index(winner), .word(block_of_winner)
  );

  // The block goes the way of its last tile.
  localparam TOKEN = W_THREAD + W_JOB + W_ROW + W_STEP + W_BLOCK + W_BANK + W_BLOCK_WORD;
  wire [TOKEN-1:0] token = {o_thread, o_job, o_row, o_step, o_block, o_bank, block_of_winner};
  wire [TOKEN-1:0] late;
  npu_pulse #(.CYCLES(BLOCK_CYCLES)) block_valid (
    .clock(clock), .reset(reset), .in(o_valid && o_last), .out(b_valid)
  );
  npu_delay #(.WIDTH(TOKEN), .CYCLES(BLOCK_CYCLES)) block_token (.clock(clock), .in(token), .out(late));
  assign {b_thread, b_job, b_row, b_step, b_block, b_bank, b_turn, b_unit, b_units, b_constant, b_write} = late;
endmodule

`default_nettype wire
