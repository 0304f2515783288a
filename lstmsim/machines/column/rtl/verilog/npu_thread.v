// A thread: where its job stands, the credits of its accumulator banks, the counters of what is visible.
//
// "May issue" compares a counter of visible steps and units with the step and the last unit that the tile reads: no
// list of visibility times (docs/rtl.md section 4). The comparison is made in the cycle before, for the tile that is
// there and for the one behind it, so that an issue begins at registers: all that frees a tile is known a cycle ahead.
// The loop nest is one tile further ahead.
`default_nettype none

module npu_thread (
  clock, reset, jobs_table,
  admit, admit_job, first, first_waits, first_ready, second, second_waits, third_place, single, couple, ended,
  frames,
  v_valid, v_thread, v_counter, v_units, v_last,
  f_valid, f_thread, home, arrives,
  grant, may, hazard, backpressure, no_frame, no_weights, draining, tile, block_word
);
  parameter CORE = 0;
  parameter THREAD = 0;
  // 1: v_* says what becomes visible in the cycle behind the next one.
  parameter EARLY = 0;
  `include "npu_thread.vh"
  localparam integer OUTPUTS = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];
  localparam integer FIRST_MEMORY = C_MEMORY[CORE * C_MEMORY_B +: C_MEMORY_B];
  // With what comes over the links of other cores.
  localparam integer PORTS = OUTPUTS + (SPLITS != 0 ? CORES : 0);
  localparam integer BANKS = C_BANKS[CORE * C_BANKS_B +: C_BANKS_B];

  input wire clock;
  input wire reset;
  // The context is taken at the edge that ends this cycle, by this job, which begins so; `ended`: the job in it
  // finishes in the next cycle.
  input wire admit;
  input wire [W_JOB-1:0] admit_job;
  input wire [W_TILE+W_BLOCK_WORD-1:0] first;
  input wire [W_WAITS-1:0] first_waits;
  input wire first_ready;
  input wire [W_TILE+W_BLOCK_WORD-1:0] second;
  input wire [W_WAITS-1:0] second_waits;
  input wire [W_PLACE-1:0] third_place;
  input wire single;
  input wire couple;
  input wire ended;
  // How many frames are there of the job that has the context in the next cycle.
  input wire [W_STEP-1:0] frames;
  input wire [PORTS-1:0] v_valid;
  input wire [PORTS*W_THREAD-1:0] v_thread;
  input wire [PORTS*W_COUNTER-1:0] v_counter;
  input wire [PORTS*W_UNIT-1:0] v_units;
  input wire [PORTS-1:0] v_last;
  input wire f_valid;
  input wire [W_THREAD-1:0] f_thread;
  // Whose part of the vector memories the job has in the next cycle, where a job may have several threads of the core.
  input wire [W_THREAD-1:0] home;
  // The weights of a row block have come from the memory: they are there in the next cycle.
  input wire arrives;
  // The tile issues in this cycle.
  input wire grant;
  // Whether it may, and why not: at most one of these six is 1.
  output reg may;
  output wire hazard;
  output wire backpressure;
  output wire no_frame;
  output wire no_weights;
  output wire draining;
  output wire [W_TILE-1:0] tile;
  output wire [W_BLOCK_WORD-1:0] block_word;

  reg occupied;
  reg [W_JOB-1:0] job;
  // There is a tile; what it waits for is there in this cycle.
  reg working;
  reg ready;
  // All its banks are taken, and it opens one.
  reg no_bank;
  reg [W_TILE+W_BLOCK_WORD-1:0] now;
  reg [W_WAITS-1:0] waits;
  // The tile behind it, if there is one.
  reg has_behind;
  reg [W_TILE+W_BLOCK_WORD-1:0] behind;
  reg [W_WAITS-1:0] behind_waits;
  // The place of the tile behind that, if there is one.
  reg more;
  reg [W_PLACE-1:0] place;
  reg [W_BANK:0] credits;

  assign {tile, block_word} = now;
  wire opens = tile[2];
  wire from_frame = waits[W_WAITS-1];
  assign hazard = working && !ready && !from_frame;
  assign no_frame = working && !ready && from_frame;
  assign backpressure = working && ready && no_bank;
  assign draining = occupied && !working;
  // Row blocks whose weights have come, and whose first tile has not issued.
  reg [W_SLOT:0] arrived;
  localparam AT_BLOCK = W_BLOCK_WORD + 3 + W_BANK + W_UNIT + W_ELEMENT + W_FRAME + W_WEIGHT + W_GROUP;
  function needs_weights(input [W_TILE+W_BLOCK_WORD-1:0] of_tile);
    // Whether a tile begins a row block whose weights are streamed.
    reg [W_BLOCK-1:0] block;
    reg [W_ROW-1:0] row;
    reg [31:0] number;
    begin
      block = of_tile[AT_BLOCK +: W_BLOCK];
      row = of_tile[AT_BLOCK + W_BLOCK + W_STEP + W_READ +: W_ROW];
      number = P_STREAM[row * P_STREAM_B +: P_STREAM_B] + {{(32 - W_BLOCK){1'b0}}, block};
      needs_weights = STREAMS != 0 && of_tile[W_BLOCK_WORD+2] && BK_STREAMED[number * BK_STREAMED_B +: BK_STREAMED_B];
    end
  endfunction
  wire comes = needs_weights(now);
  wire comes_behind = needs_weights(behind);
  wire comes_first = needs_weights(first);
  assign no_weights = working && ready && !no_bank && comes && arrived == 0;

  // The tile at the place.
  wire [W_TILE+W_BLOCK_WORD-1:0] coming;
  wire [W_WAITS-1:0] coming_waits;
  wire [W_PLACE-1:0] next_place;
  wire last_of_job;
  npu_nest #(.CORE(CORE)) nest (
    .jobs_table(jobs_table), .job(job), .steps(J_STEPS[job * J_STEPS_B +: W_STEP]), .place(place),
    .tile(coming[W_BLOCK_WORD +: W_TILE]), .block_word(coming[W_BLOCK_WORD-1:0]), .waits(coming_waits),
    .next_place(next_place), .last_of_job(last_of_job)
  );

  // When a tile comes to the front it gets the thread's part of the vector memory, a choice of constants, and of banks.
  localparam AT_BANK = W_BLOCK_WORD + 3;
  localparam AT_ELEMENT = AT_BANK + W_BANK + W_UNIT;
  localparam AT_READ = AT_ELEMENT + W_ELEMENT + W_FRAME + W_WEIGHT + W_GROUP + W_BLOCK + W_STEP;
  wire [W_READ-1:0] read_behind = behind[AT_READ +: W_READ];
  wire [W_THREAD-1:0] owner = C_HOMES[CORE * C_HOMES_B +: C_HOMES_B] != 0 ? home : THREAD;
  wire [W_ELEMENT-1:0] own_part;
  generate
    if (SPLITS != 0) begin : equal_parts
      // Where jobs are split, all memories of a core are equal.
      npu_part #(
        .WIDTH(W_ELEMENT), .COUNT(1 << W_THREAD), .INDEX(W_THREAD),
        .PART(M_ELEMENTS[FIRST_MEMORY * M_ELEMENTS_B +: M_ELEMENTS_B])
      ) part (.index(owner), .word(own_part));
    end else begin : parts
      reg [W_ELEMENT-1:0] of_memory;
      integer m;
      always @* begin
        of_memory = 0;
        for (m = 0; m < OUTPUTS; m = m + 1)
          if (R_MEMORY[read_behind * R_MEMORY_B +: R_MEMORY_B] == m)
            of_memory = THREAD * M_ELEMENTS[(FIRST_MEMORY + m) * M_ELEMENTS_B +: M_ELEMENTS_B];
      end
      assign own_part = of_memory;
    end
  endgenerate
  reg [W_TILE+W_BLOCK_WORD-1:0] own_behind;
  reg [W_TILE+W_BLOCK_WORD-1:0] own_first;
  always @* begin
    own_behind = behind;
    own_behind[AT_ELEMENT +: W_ELEMENT] = behind[AT_ELEMENT +: W_ELEMENT] + own_part;
    own_behind[AT_BANK +: W_BANK] = behind[AT_BANK +: W_BANK] + THREAD * BANKS;
    // A job's first tile reads a frame, or h before step 0, and takes the thread's first bank.
    own_first = first;
    own_first[AT_BANK +: W_BANK] = THREAD * BANKS;
    // That of a member may read what another one has sent.
    if (SPLITS != 0) own_first[AT_ELEMENT +: W_ELEMENT] = first[AT_ELEMENT +: W_ELEMENT] + own_part;
  end

  // What is visible in the next cycle of each vector: whole steps, and units of the step under way; at distances that
  // are powers of two, because an index times another width would be a multiplier.
  localparam STEP_B = 1 << $clog2(W_STEP);
  localparam UNIT_B = 1 << $clog2(W_UNIT);
  wire [MOST_COUNTERS*STEP_B-1:0] steps_visible;
  wire [MOST_COUNTERS*UNIT_B-1:0] units_visible;
  genvar c;
  generate
    for (c = 0; c < MOST_COUNTERS; c = c + 1) begin : counters
      reg [W_STEP-1:0] whole;
      reg [W_UNIT-1:0] part;
      reg [W_STEP-1:0] whole_next;
      reg [W_UNIT-1:0] part_next;
      integer o;
      always @* begin
        whole_next = whole;
        part_next = part;
        for (o = 0; o < PORTS; o = o + 1)
          if (v_valid[o] && v_thread[o*W_THREAD +: W_THREAD] == owner
              && v_counter[o*W_COUNTER +: W_COUNTER] == c) begin
            whole_next = whole + v_last[o];
            part_next = v_last[o] ? {W_UNIT{1'b0}} : v_units[o*W_UNIT +: W_UNIT];
          end
      end
      always @(posedge clock) begin
        whole <= admit ? {W_STEP{1'b0}} : whole_next;
        part <= admit ? {W_UNIT{1'b0}} : part_next;
      end
      wire [STEP_B-1:0] whole_wide = EARLY ? whole : whole_next;
      wire [UNIT_B-1:0] part_wide = EARLY ? part : part_next;
      assign steps_visible[c*STEP_B +: STEP_B] = whole_wide;
      assign units_visible[c*UNIT_B +: UNIT_B] = part_wide;
    end
  endgenerate

  function all_there(
    input [W_WAITS-1:0] wanted, input [W_STEP-1:0] frames_there, input [MOST_COUNTERS*STEP_B-1:0] steps_there,
    input [MOST_COUNTERS*UNIT_B-1:0] units_there
  );
    // What a tile waits for is there, if that much is.
    reg is_frame;
    reg is_one;
    reg [W_STEP-1:0] frame;
    reg [W_COUNTER-1:0] counter;
    reg [W_STEP-1:0] step;
    reg [W_STEP-1:0] whole;
    reg [W_UNIT-1:0] units;
    integer i;
    begin
      {is_frame, frame} = wanted[CHECKS*W_CHECK +: 1 + W_STEP];
      all_there = !is_frame || frames_there > frame;
      for (i = 0; i < CHECKS; i = i + 1) begin
        {is_one, counter, step, units} = wanted[i*W_CHECK +: W_CHECK];
        whole = steps_there[counter*STEP_B +: W_STEP];
        if (is_one && !(whole > step || (whole == step && units_there[counter*UNIT_B +: W_UNIT] >= units)))
          all_there = 1'b0;
      end
    end
  endfunction

  wire ready_behind = all_there(behind_waits, frames, steps_visible, units_visible);
  wire ready_still = all_there(waits, frames, steps_visible, units_visible);

  wire opens_behind = behind[W_BLOCK_WORD+2];
  wire [W_BANK:0] credits_next = credits - (grant && opens) + (f_valid && f_thread == THREAD);
  wire no_bank_next = (grant ? opens_behind : opens) && credits_next == 0;
  wire [W_SLOT:0] arrived_next = arrived - (grant && comes) + arrives;
  wire missing_next = (grant ? comes_behind : comes) && arrived_next == 0;
  always @(posedge clock) begin
    if (reset || ended) occupied <= 1'b0;
    if (reset) working <= 1'b0;
    else if (grant) working <= has_behind;
    ready <= grant ? ready_behind : ready_still;
    credits <= credits_next;
    no_bank <= no_bank_next;
    arrived <= arrived_next;
    may <= !reset && (grant ? has_behind && ready_behind : working && ready_still) && !no_bank_next && !missing_next;
    if (grant) begin
      now <= own_behind;
      waits <= behind_waits;
      has_behind <= more;
      behind <= coming;
      behind_waits <= coming_waits;
      more <= more && !last_of_job;
      place <= next_place;
    end
    // What a job begins with is there before it is known whether there is one: nothing else needs these registers while
    // the thread has no tile, and its last one has issued long before the job finishes. So the admission, the end of a
    // long path, goes to few registers.
    if (reset || !working) begin
      job <= admit_job;
      now <= own_first;
      waits <= first_waits;
      has_behind <= !single;
      behind <= second;
      behind_waits <= second_waits;
      more <= !single && !couple;
      place <= third_place;
    end
    // A new job, perhaps in the cycle in which the one before it finishes.
    if (admit) begin
      occupied <= 1'b1;
      working <= 1'b1;
      ready <= first_ready;
      credits <= BANKS;
      no_bank <= 1'b0;
      arrived <= 0;
      may <= first_ready && !comes_first;
    end
  end
endmodule

`default_nettype wire
