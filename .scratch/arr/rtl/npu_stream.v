// Weights that come from a memory beside the chip: docs/timing.md section 10.5. Row blocks that do not stay are
// transferred anew in every step, into slots of their thread.
`default_nettype none

// What the threads of a core ask the memory for, and where a tile finds its weights. A thread asks for the row blocks
// of its job in the order of their use, as far ahead as it has slots; of a block with several bursts for each of them.
module npu_stream #(
  parameter CORE = 0
) (
  clock, reset, jobs_table, admit, admit_job, o_valid, o_thread, o_row, o_block, o_weight, o_last, granted,
  asks, ask_block, ask_burst, ask_place, weight
);
`include "npu_stream.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];

  input wire clock;
  input wire reset;
  input wire [THREADS-1:0] admit;
  input wire [THREADS*W_JOB-1:0] admit_job;
  // The tile that issues.
  input wire o_valid;
  input wire [W_THREAD-1:0] o_thread;
  input wire [W_ROW-1:0] o_row;
  input wire [W_BLOCK-1:0] o_block;
  input wire [W_WEIGHT-1:0] o_weight;
  input wire o_last;
  // By thread: the memory takes what it asks for in this cycle.
  input wire [THREADS-1:0] granted;
  output wire [THREADS-1:0] asks;
  output wire [THREADS*W_STREAM-1:0] ask_block;
  output wire [THREADS*W_BURST-1:0] ask_burst;
  output wire [THREADS*W_WEIGHT-1:0] ask_place;
  // The word of the tile that issues.
  output wire [W_WEIGHT-1:0] weight;

  wire [31:0] block_row = P_STREAM[o_row * P_STREAM_B +: P_STREAM_B] + o_block;
  wire streamed = BK_STREAMED[block_row * BK_STREAMED_B +: BK_STREAMED_B];
  wire [W_WEIGHT-1:0] moved = BK_MOVED[block_row * BK_MOVED_B +: W_WEIGHT];
  wire through = o_valid && o_last && streamed;

  wire [THREADS*W_SLOT-1:0] read_slots;
  genvar g;
  generate
    for (g = 0; g < THREADS; g = g + 1) begin : threads
      wire [W_JOB-1:0] new_job = admit_job[g*W_JOB +: W_JOB];
      wire [31:0] program_row = CORE * MODELS + J_MODEL[new_job * J_MODEL_B +: J_MODEL_B];
      wire [G_PHASES_B-1:0] phases = G_PHASES[program_row * G_PHASES_B +: G_PHASES_B];
      reg [W_STEP-1:0] steps;
      // The phase (steps whose blocks follow each other), how many are left behind it, the step, the block of the
      // phase, the burst of the block.
      reg active;
      reg [G_PHASE_B-1:0] phase;
      reg [G_PHASES_B-1:0] left;
      reg [W_STEP-1:0] step;
      reg [KP_COUNT_B-1:0] number;
      reg [W_BURST-1:0] burst;
      // Slots that are free; the next one that is filled, the one that tiles read.
      reg [W_SLOT:0] slots;
      reg [W_SLOT-1:0] slot;
      reg [W_SLOT-1:0] read_slot;

      wire [W_STREAM-1:0] block = KP_FIRST[phase * KP_FIRST_B +: KP_FIRST_B] + number;
      wire last_burst = burst == K_BURSTS[block * K_BURSTS_B +: W_BURST] - 1'b1;
      wire last_block = number == KP_COUNT[phase * KP_COUNT_B +: KP_COUNT_B] - 1'b1;
      wire last_step = step == steps - 1'b1;
      wire takes = granted[g] && burst == 0;
      wire frees = through && o_thread == g;
      assign asks[g] = active && (burst != 0 || slots != 0);
      assign ask_block[g*W_STREAM +: W_STREAM] = block;
      assign ask_burst[g*W_BURST +: W_BURST] = burst;
      assign read_slots[g*W_SLOT +: W_SLOT] = read_slot;
      wire [W_THREAD-1:0] own = g;
      npu_slot #(.CORE(CORE)) place (.thread(own), .slot(slot), .word(ask_place[g*W_WEIGHT +: W_WEIGHT]));

      always @(posedge clock) begin
        slots <= slots - takes + frees;
        if (frees) read_slot <= read_slot == PREFETCH - 1 ? {W_SLOT{1'b0}} : read_slot + 1'b1;
        if (granted[g]) begin
          burst <= last_burst ? {W_BURST{1'b0}} : burst + 1'b1;
          if (last_burst) begin
            slot <= slot == PREFETCH - 1 ? {W_SLOT{1'b0}} : slot + 1'b1;
            number <= last_block ? {KP_COUNT_B{1'b0}} : number + 1'b1;
            if (last_block) begin
              step <= last_step ? {W_STEP{1'b0}} : step + 1'b1;
              if (last_step) begin
                phase <= phase + 1'b1;
                left <= left - 1'b1;
                active <= left != 1;
              end
            end
          end
        end
        if (reset) active <= 1'b0;
        if (admit[g]) begin
          steps <= J_STEPS[new_job * J_STEPS_B +: W_STEP];
          active <= phases != 0;
          phase <= G_PHASE[program_row * G_PHASE_B +: G_PHASE_B];
          left <= phases;
          step <= 0;
          number <= 0;
          burst <= 0;
          slots <= PREFETCH;
          slot <= 0;
          read_slot <= 0;
        end
      end
    end
  endgenerate

  wire [W_SLOT-1:0] slot_of_tile;
  npu_choose #(.WIDTH(W_SLOT), .COUNT(THREADS), .INDEX(W_THREAD)) slot_of_thread (
    .words(read_slots), .index(o_thread), .word(slot_of_tile)
  );
  wire [W_WEIGHT-1:0] there;
  npu_slot #(.CORE(CORE)) place_of_tile (.thread(o_thread), .slot(slot_of_tile), .word(there));
  assign weight = o_weight + moved + (streamed ? there : {W_WEIGHT{1'b0}});
endmodule

// Where a slot of a thread begins in the core's weight memory: behind what stays, as a choice of constants.
module npu_slot #(
  parameter CORE = 0
) (thread, slot, word);
`include "npu_slot.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam integer STAYS = C_STAYS[CORE * C_STAYS_B +: C_STAYS_B];
  localparam integer WORDS = C_BLOCK_WORDS[CORE * C_BLOCK_WORDS_B +: C_BLOCK_WORDS_B];
  input wire [W_THREAD-1:0] thread;
  input wire [W_SLOT-1:0] slot;
  output wire [W_WEIGHT-1:0] word;

  wire [(THREADS<<W_SLOT)*W_WEIGHT-1:0] words;
  genvar t;
  genvar s;
  generate
    for (t = 0; t < THREADS; t = t + 1) begin : threads
      for (s = 0; s < (1 << W_SLOT); s = s + 1) begin : slots
        assign words[((t<<W_SLOT)+s)*W_WEIGHT +: W_WEIGHT] = STAYS + (t * PREFETCH + s) * WORDS;
      end
    end
  endgenerate
  npu_choose #(.WIDTH(W_WEIGHT), .COUNT(THREADS << W_SLOT), .INDEX(W_THREAD + W_SLOT)) one (
    .words(words), .index({thread, slot}), .word(word)
  );
endmodule

// Whose burst the memory takes: jobs take turns in the ring of their numbers at the memory, the lowest one that is free
// when a job is admitted.
module npu_stream_ring (clock, reset, admit, admit_job, ended, asks, m_ready, granted);
  `include "npu_stream_ring.vh"
  localparam STRIDE = 1 << W_THREAD;
  localparam CONTEXTS = CORES * STRIDE;

  input wire clock;
  input wire reset;
  input wire [CONTEXTS-1:0] admit;
  input wire [CONTEXTS*W_JOB-1:0] admit_job;
  input wire [CONTEXTS-1:0] ended;
  input wire [CONTEXTS-1:0] asks;
  // The memory takes a burst in this cycle, if there is one.
  input wire m_ready;
  output reg [CONTEXTS-1:0] granted;

  // By context the number of its job, and which numbers are taken.
  reg [CONTEXTS*W_CONTEXT-1:0] numbers;
  reg [CONTEXTS*W_CONTEXT-1:0] numbers_next;
  reg [CONTEXTS-1:0] taken;
  reg [CONTEXTS-1:0] taken_next;
  // Of the last burst.
  reg [W_CONTEXT-1:0] active;
  reg [CONTEXTS-1:0] waiting;
  reg any;
  reg [W_CONTEXT-1:0] winner;
  reg [CONTEXTS-1:0] placed;
  reg [W_JOB-1:0] lowest;
  integer c;
  integer best;
  integer round;
  integer n;
  always @* begin
    waiting = 0;
    for (n = 0; n < CONTEXTS; n = n + 1)
      if (asks[n]) waiting[numbers[n*W_CONTEXT +: W_CONTEXT]] = 1'b1;
    any = |waiting;
    winner = 0;
    for (n = CONTEXTS - 1; n >= 0; n = n - 1)
      if (waiting[n] && n <= active) winner = n;
    if ((waiting >> active) >> 1 != 0)
      for (n = CONTEXTS - 1; n >= 0; n = n - 1)
        if (waiting[n] && n > active) winner = n;
    granted = 0;
    for (n = 0; n < CONTEXTS; n = n + 1)
      if (m_ready && asks[n] && numbers[n*W_CONTEXT +: W_CONTEXT] == winner) granted[n] = 1'b1;
  end

  always @* begin
    numbers_next = numbers;
    taken_next = reset ? {CONTEXTS{1'b0}} : taken;
    placed = 0;
    lowest = 0;
    best = 0;
    c = 0;
    for (c = 0; c < CONTEXTS; c = c + 1)
      if (ended[c] && !reset) taken_next[numbers[c*W_CONTEXT +: W_CONTEXT]] = 1'b0;
    // Jobs that are admitted in one cycle get their numbers in the order of posting.
    for (round = 0; round < CONTEXTS; round = round + 1) begin
      best = CONTEXTS;
      lowest = 0;
      for (c = 0; c < CONTEXTS; c = c + 1)
        if (admit[c] && !placed[c] && (best == CONTEXTS || admit_job[c*W_JOB +: W_JOB] < lowest)) begin
          best = c;
          lowest = admit_job[c*W_JOB +: W_JOB];
        end
      if (best != CONTEXTS) begin
        placed[best] = 1'b1;
        for (c = CONTEXTS - 1; c >= 0; c = c - 1)
          if (!taken_next[c]) numbers_next[best*W_CONTEXT +: W_CONTEXT] = c;
        taken_next[numbers_next[best*W_CONTEXT +: W_CONTEXT]] = 1'b1;
      end
    end
  end
  always @(posedge clock) begin
    numbers <= numbers_next;
    taken <= taken_next;
    if (reset) active <= 0;
    else if (m_ready && any) active <= winner;
  end
endmodule

`default_nettype wire
