// A core: issue logic and tail decide the cycles, the datapath computes. The first two need nothing of the third.
`default_nettype none

module npu_core (
  clock, reset, jobs_table, admit, admit_job, results, ended, active, parent, home, cores, links, links_data, sending,
  link, link_data, s_granted, s_asks, s_block, s_burst, s_place, s_arrives, s_write, s_write_place, s_word,
  frames_posted, host_write, host_address, host_data,
  h_valid, h_job, h_row, h_step, h_unit, h_count, h_word
);
  parameter CORE = 0;
  `include "npu_core.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam integer OUTPUTS = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];
  localparam integer PORTS = OUTPUTS + (SPLITS != 0 ? CORES : 0);
  localparam DATA = MOST_RATE * VECTOR_BITS;
  localparam MAP = MOST_MEMBERS * W_CORE;
  localparam integer D = C_DEPTH[CORE * C_DEPTH_B +: C_DEPTH_B];

  input wire clock;
  input wire reset;
  // Contexts that are taken at the edge that ends this cycle, and by which jobs.
  input wire [THREADS-1:0] admit;
  input wire [THREADS*W_JOB-1:0] admit_job;
  // Contexts of which the tail has everything in the next cycle; contexts whose jobs finish in the next cycle.
  output wire [THREADS-1:0] results;
  input wire [THREADS-1:0] ended;
  // Where jobs are split: npu_split.v has the first four, npu_exchange.v the others.
  input wire [THREADS-1:0] active;
  input wire [THREADS*W_JOB-1:0] parent;
  input wire [THREADS*W_THREAD-1:0] home;
  input wire [THREADS*MAP-1:0] cores;
  input wire [CORES*W_LINK-1:0] links;
  input wire [CORES*DATA-1:0] links_data;
  output wire [THREADS-1:0] sending;
  output wire [W_LINK-1:0] link;
  output wire [DATA-1:0] link_data;
  // Where weights are streamed, npu_stream.v: what the threads ask for; weights that come.
  input wire [THREADS-1:0] s_granted;
  output wire [THREADS-1:0] s_asks;
  output wire [THREADS*W_STREAM-1:0] s_block;
  output wire [THREADS*W_BURST-1:0] s_burst;
  output wire [THREADS*W_WEIGHT-1:0] s_place;
  input wire [THREADS-1:0] s_arrives;
  input wire s_write;
  input wire [W_WEIGHT-1:0] s_write_place;
  input wire [MOST_TILE_BITS-1:0] s_word;
  // How many frames are there, by context, of the job that has it in the next cycle.
  input wire [THREADS*W_STEP-1:0] frames_posted;
  input wire host_write;
  input wire [31:0] host_address;
  input wire [31:0] host_data;

  // What becomes visible in the next cycle, a word for each vector memory: this is what the host takes away.
  localparam integer WORD = C_TAIL_WIDTH[CORE * C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B] * VECTOR_BITS;
  output wire [OUTPUTS-1:0] h_valid;
  output wire [OUTPUTS*W_JOB-1:0] h_job;
  output wire [OUTPUTS*W_ROW-1:0] h_row;
  output wire [OUTPUTS*W_STEP-1:0] h_step;
  output wire [OUTPUTS*W_UNIT-1:0] h_unit;
  output wire [OUTPUTS*W_UNIT-1:0] h_count;
  output wire [OUTPUTS*WORD-1:0] h_word;

  // Tile, block, turn and its delay line, write, bank free: docs/rtl.md section 10.
  wire o_valid;
  wire [W_THREAD-1:0] o_thread;
  wire [W_JOB-1:0] o_job;
  wire [W_ROW-1:0] o_row;
  wire [W_READ-1:0] o_read;
  wire [W_STEP-1:0] o_step;
  wire [W_BLOCK-1:0] o_block;
  wire [W_GROUP-1:0] o_group;
  wire [W_WEIGHT-1:0] o_weight;
  wire [W_FRAME-1:0] o_frame;
  wire [W_ELEMENT-1:0] o_element;
  wire [W_UNIT-1:0] o_elements;
  wire [W_BANK-1:0] o_bank;
  wire o_first;
  wire o_last;
  wire o_h0;
  wire b_valid;
  wire [W_THREAD-1:0] b_thread;
  wire [W_JOB-1:0] b_job;
  wire [W_ROW-1:0] b_row;
  wire [W_STEP-1:0] b_step;
  wire [W_BLOCK-1:0] b_block;
  wire [W_BANK-1:0] b_bank;
  wire [W_TURN-1:0] b_turn;
  wire [W_UNIT-1:0] b_unit;
  wire [W_UNIT-1:0] b_units;
  wire [W_CONSTANT-1:0] b_constant;
  wire [W_ELEMENT-1:0] b_write;
  wire t_valid;
  wire [W_THREAD-1:0] t_thread;
  wire [W_JOB-1:0] t_job;
  wire [W_ROW-1:0] t_row;
  wire [W_SEGMENT-1:0] t_segment;
  wire [W_STEP-1:0] t_step;
  wire [W_BLOCK-1:0] t_block;
  wire [W_BANK-1:0] t_bank;
  wire [W_TURN-1:0] t_turn;
  wire [W_NUMBER-1:0] t_number;
  wire [W_UNIT-1:0] t_unit;
  wire [W_UNIT-1:0] t_units;
  wire [W_CONSTANT-1:0] t_constant;
  wire [W_TURN-1:0] t_parameter;
  wire [W_ELEMENT-1:0] t_write;
  wire t_zero;
  wire t_initial;
  wire t_last_turn;
  wire t_last_block;
  wire t_last_step;
  wire [D:0] d_valid;
  wire [(D+1)*W_THREAD-1:0] d_thread;
  wire [(D+1)*W_JOB-1:0] d_job;
  wire [(D+1)*W_ROW-1:0] d_row;
  wire [(D+1)*W_SEGMENT-1:0] d_segment;
  wire [(D+1)*W_STEP-1:0] d_step;
  wire [(D+1)*W_BLOCK-1:0] d_block;
  wire [(D+1)*W_BANK-1:0] d_bank;
  wire [(D+1)*W_TURN-1:0] d_turn;
  wire [(D+1)*W_NUMBER-1:0] d_number;
  wire [(D+1)*W_UNIT-1:0] d_unit;
  wire [(D+1)*W_UNIT-1:0] d_units;
  wire [(D+1)*W_CONSTANT-1:0] d_constant;
  wire [(D+1)*W_TURN-1:0] d_parameter;
  wire [(D+1)*W_ELEMENT-1:0] d_write;
  wire [D:0] d_zero;
  wire [D:0] d_initial;
  wire [D:0] d_last_turn;
  wire [D:0] d_last_block;
  wire [D:0] d_last_step;
  wire [OUTPUTS-1:0] w_valid;
  wire [OUTPUTS*W_THREAD-1:0] w_thread;
  wire [OUTPUTS*W_COUNTER-1:0] w_counter;
  wire [OUTPUTS*W_UNIT-1:0] w_units;
  wire [OUTPUTS-1:0] w_last;
  wire [OUTPUTS*W_ELEMENT-1:0] w_element;
  wire [OUTPUTS*W_UNIT-1:0] w_count;
  wire f_valid;
  wire [W_THREAD-1:0] f_thread;
  wire [2:0] cycle_name;
  // What w_* says, a cycle earlier if EARLY: for the counters of what is visible.
  wire [OUTPUTS-1:0] v_valid;
  wire [OUTPUTS*W_THREAD-1:0] v_thread;
  wire [OUTPUTS*W_COUNTER-1:0] v_counter;
  wire [OUTPUTS*W_UNIT-1:0] v_units;
  wire [OUTPUTS-1:0] v_last;

  localparam integer FIRST = C_MEMORY[CORE * C_MEMORY_B +: C_MEMORY_B];
  localparam integer CONVERT = C_CONVERT[CORE * C_CONVERT_B +: C_CONVERT_B];
  function integer early(input integer outputs);
    // Whether the token of each write has gone far enough two cycles before it. Where jobs are split, what comes over
    // the links is not known that early.
    integer o;
    begin
      early = SPLITS == 0;
      for (o = 0; o < outputs; o = o + 1)
        if (CONVERT + M_VISIBLE_CYCLES[(FIRST + o) * M_VISIBLE_CYCLES_B +: M_VISIBLE_CYCLES_B] < 4) early = 0;
    end
  endfunction
  localparam integer EARLY = early(OUTPUTS);

  // What becomes visible, of this core (EARLY: a cycle early) and of others.
  wire [PORTS-1:0] p_valid;
  wire [PORTS*W_THREAD-1:0] p_thread;
  wire [PORTS*W_COUNTER-1:0] p_counter;
  wire [PORTS*W_UNIT-1:0] p_units;
  wire [PORTS-1:0] p_last;
  wire [CORES-1:0] r_valid;
  wire [CORES*W_ELEMENT-1:0] r_element;
  wire [CORES*W_UNIT-1:0] r_count;
  wire [W_ELEMENT-1:0] s_element;
  wire [W_OUTPUT-1:0] s_output;
  wire [MAP-1:0] o_cores;
  generate
    if (SPLITS != 0) begin : linked
      wire [CORES*W_THREAD-1:0] r_thread;
      wire [CORES*W_COUNTER-1:0] r_counter;
      wire [CORES*W_UNIT-1:0] r_units;
      wire [CORES-1:0] r_last;
      npu_receiver #(.CORE(CORE)) receiver (
        .parent(parent), .active(active), .home(home), .links(links), .r_valid(r_valid), .r_thread(r_thread),
        .r_counter(r_counter), .r_units(r_units), .r_last(r_last), .r_element(r_element), .r_count(r_count)
      );
      npu_exchange #(.CORE(CORE)) exchange (
        .clock(clock), .reset(reset), .t_valid(t_valid), .t_thread(t_thread), .t_row(t_row), .t_segment(t_segment),
        .t_number(t_number), .t_unit(t_unit), .t_write(t_write), .t_last_block(t_last_block), .parent(parent),
        .home(home), .sending(sending), .s_element(s_element), .s_output(s_output), .link(link)
      );
      npu_choose #(.WIDTH(MAP), .COUNT(THREADS), .INDEX(W_THREAD)) cores_of_tile (
        .words(cores), .index(o_thread), .word(o_cores)
      );
      assign p_valid = {r_valid, v_valid};
      assign p_thread = {r_thread, v_thread};
      assign p_counter = {r_counter, v_counter};
      assign p_units = {r_units, v_units};
      assign p_last = {r_last, v_last};
    end else begin : alone
      assign {p_valid, p_thread, p_counter, p_units, p_last} = {v_valid, v_thread, v_counter, v_units, v_last};
      assign {sending, link, r_valid, r_element, r_count, s_element, s_output, o_cores} = 0;
    end
  endgenerate

  wire [W_WEIGHT-1:0] weight;
  generate
    if (STREAMS != 0) begin : streamed
      npu_stream #(.CORE(CORE)) stream (
        .clock(clock), .reset(reset), .jobs_table(jobs_table), .admit(admit), .admit_job(admit_job),
        .o_valid(o_valid), .o_thread(o_thread), .o_row(o_row), .o_block(o_block), .o_weight(o_weight),
        .o_last(o_last), .granted(s_granted), .asks(s_asks), .ask_block(s_block), .ask_burst(s_burst),
        .ask_place(s_place), .weight(weight)
      );
    end else begin : stays
      assign weight = o_weight;
      assign {s_asks, s_block, s_burst, s_place} = 0;
    end
  endgenerate

  npu_issue #(.CORE(CORE), .EARLY(EARLY)) issue (
    .clock(clock), .reset(reset), .jobs_table(jobs_table), .admit(admit), .admit_job(admit_job), .ended(ended),
    .frames_posted(frames_posted), .home(home), .arrives(s_arrives), .v_valid(p_valid), .v_thread(p_thread),
    .v_counter(p_counter), .v_units(p_units), .v_last(p_last), .f_valid(f_valid), .f_thread(f_thread),
    .o_valid(o_valid), .o_thread(o_thread), .o_job(o_job), .o_row(o_row), .o_read(o_read), .o_step(o_step),
    .o_block(o_block), .o_group(o_group), .o_weight(o_weight), .o_frame(o_frame), .o_element(o_element),
    .o_elements(o_elements), .o_bank(o_bank), .o_first(o_first), .o_last(o_last), .o_h0(o_h0), .b_valid(b_valid),
    .b_thread(b_thread), .b_job(b_job), .b_row(b_row), .b_step(b_step), .b_block(b_block), .b_bank(b_bank),
    .b_turn(b_turn), .b_unit(b_unit), .b_units(b_units), .b_constant(b_constant), .b_write(b_write),
    .cycle_name(cycle_name)
  );

  npu_tail #(.CORE(CORE), .EARLY(EARLY)) tail (
    .clock(clock), .reset(reset), .jobs_table(jobs_table), .b_valid(b_valid), .b_thread(b_thread), .b_job(b_job),
    .b_row(b_row), .b_step(b_step), .b_block(b_block), .b_bank(b_bank), .b_turn(b_turn), .b_unit(b_unit),
    .b_units(b_units), .b_constant(b_constant), .b_write(b_write), .t_valid(t_valid), .t_thread(t_thread),
    .t_job(t_job), .t_row(t_row), .t_segment(t_segment), .t_step(t_step), .t_block(t_block), .t_bank(t_bank),
    .t_turn(t_turn), .t_number(t_number), .t_unit(t_unit), .t_units(t_units), .t_constant(t_constant),
    .t_parameter(t_parameter), .t_write(t_write), .t_zero(t_zero), .t_initial(t_initial), .t_last_turn(t_last_turn),
    .t_last_block(t_last_block), .t_last_step(t_last_step), .d_valid(d_valid), .d_thread(d_thread), .d_job(d_job),
    .d_row(d_row), .d_segment(d_segment), .d_step(d_step), .d_block(d_block), .d_bank(d_bank), .d_turn(d_turn),
    .d_number(d_number), .d_unit(d_unit), .d_units(d_units), .d_constant(d_constant), .d_parameter(d_parameter),
    .d_write(d_write), .d_zero(d_zero), .d_initial(d_initial), .d_last_turn(d_last_turn), .d_last_block(d_last_block),
    .d_last_step(d_last_step), .w_valid(w_valid), .w_thread(w_thread), .w_counter(w_counter), .w_units(w_units),
    .w_last(w_last), .w_element(w_element), .w_count(w_count), .v_valid(v_valid), .v_thread(v_thread),
    .v_counter(v_counter), .v_units(v_units), .v_last(v_last), .f_valid(f_valid), .f_thread(f_thread),
    .e_valid(results), .home(home)
  );

`ifndef NPU_TIMING_ONLY
  // What is written, a word of the tail's width for each memory.
  wire [OUTPUTS*WORD-1:0] y;
  generate
    // A core on which no job may run has no numbers.
    if (C_KINDS[CORE * C_KINDS_B +: C_KINDS_B] != 0) begin : numbers
      npu_datapath #(.CORE(CORE)) datapath (
        .clock(clock), .reset(reset), .host_write(host_write), .host_address(host_address), .host_data(host_data),
        .o_valid(o_valid), .o_read(o_read), .o_weight(weight), .o_frame(o_frame), .o_element(o_element),
        .s_write(s_write), .s_write_place(s_write_place), .s_word(s_word), .o_elements(o_elements), .o_bank(o_bank),
        .o_first(o_first), .o_h0(o_h0), .d_valid(d_valid),
        .d_thread(d_thread), .d_job(d_job), .d_row(d_row), .d_segment(d_segment), .d_step(d_step), .d_block(d_block),
        .d_bank(d_bank), .d_turn(d_turn), .d_number(d_number), .d_unit(d_unit), .d_units(d_units),
        .d_constant(d_constant), .d_parameter(d_parameter), .d_write(d_write), .d_zero(d_zero), .d_initial(d_initial),
        .d_last_turn(d_last_turn), .d_last_block(d_last_block), .d_last_step(d_last_step), .w_valid(w_valid),
        .w_element(w_element), .w_count(w_count), .o_group(o_group), .o_cores(o_cores), .s_element(s_element),
        .s_output(s_output), .link_data(link_data), .r_valid(r_valid), .r_element(r_element), .r_count(r_count),
        .links_data(links_data), .y(y)
      );
    end else begin : no_numbers
      assign y = {OUTPUTS*WORD{1'b0}};
      assign link_data = {DATA{1'b0}};
    end
  endgenerate
  assign h_word = y;
`else
  assign h_word = {OUTPUTS*WORD{1'b0}};
  assign link_data = {DATA{1'b0}};
`endif

  // Whose it is: the entry of the delay line at the depth of the write.
  genvar m;
  generate
    for (m = 0; m < OUTPUTS; m = m + 1) begin : visible
      localparam integer AT = CONVERT + M_VISIBLE_CYCLES[(FIRST + m) * M_VISIBLE_CYCLES_B +: M_VISIBLE_CYCLES_B] - 1;
      // Slot 0 is h; the others are read by later stages only.
      // What a reset cuts short is not visible behind it.
      assign h_valid[m] = w_valid[m] && !reset && M_SLOT[(FIRST + m) * M_SLOT_B +: M_SLOT_B] == 0;
      assign h_job[m*W_JOB +: W_JOB] = d_job[AT*W_JOB +: W_JOB];
      assign h_row[m*W_ROW +: W_ROW] = d_row[AT*W_ROW +: W_ROW];
      assign h_step[m*W_STEP +: W_STEP] = d_step[AT*W_STEP +: W_STEP];
      assign h_unit[m*W_UNIT +: W_UNIT] = d_unit[AT*W_UNIT +: W_UNIT];
      assign h_count[m*W_UNIT +: W_UNIT] = w_count[m*W_UNIT +: W_UNIT];
    end
  endgenerate
endmodule

`default_nettype wire
