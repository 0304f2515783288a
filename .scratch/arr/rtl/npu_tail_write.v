// The write of one output: from the turn's token at the depth of the write to what the vector memory and the counters
// of visible units take.
`default_nettype none

module npu_tail_write #(
  parameter CORE = 0,
  // Number of the output on the core: the number of its vector memory.
  parameter OUTPUT = 0,
  // By how many cycles the token is early; what it says is kept in registers, so that the readiness of tiles, a long
  // path, begins at them.
  parameter AHEAD = 0,
  // By how many cycles v_* is early.
  parameter EARLY = 0
) (
  clock, reset, home,
  d_valid, d_thread, d_segment, d_step, d_unit, d_units, d_write, d_last,
  w_valid, w_thread, w_counter, w_units, w_last, w_element, w_count,
  v_valid, v_thread, v_counter, v_units, v_last
);
`include "npu_tail_write.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];

  input wire clock;
  input wire reset;
  // By thread the one whose part of the vector memories it has: not its own if its job has several members here.
  input wire [THREADS*W_THREAD-1:0] home;
  input wire d_valid;
  input wire [W_THREAD-1:0] d_thread;
  input wire [W_SEGMENT-1:0] d_segment;
  input wire [W_STEP-1:0] d_step;
  input wire [W_UNIT-1:0] d_unit;
  input wire [W_UNIT-1:0] d_units;
  input wire [W_ELEMENT-1:0] d_write;
  // Last turn of the step.
  input wire d_last;
  output wire w_valid;
  output wire [W_THREAD-1:0] w_thread;
  output wire [W_COUNTER-1:0] w_counter;
  output wire [W_UNIT-1:0] w_units;
  output wire w_last;
  output wire [W_ELEMENT-1:0] w_element;
  output wire [W_UNIT-1:0] w_count;
  output wire v_valid;
  output wire [W_THREAD-1:0] v_thread;
  output wire [W_COUNTER-1:0] v_counter;
  output wire [W_UNIT-1:0] v_units;
  output wire v_last;

  wire valid;
  wire [W_THREAD-1:0] thread;
  wire [W_COUNTER-1:0] counter;
  wire [W_UNIT-1:0] units;
  wire last;
  wire [W_ELEMENT-1:0] element;
  wire [W_UNIT-1:0] count;
  wire [W_THREAD-1:0] writes_to;
  generate
    if (C_HOMES[CORE * C_HOMES_B +: C_HOMES_B] != 0) begin : homes
      npu_choose #(.WIDTH(W_THREAD), .COUNT(THREADS), .INDEX(W_THREAD)) home_of_writer (
        .words(home), .index(d_thread), .word(writes_to)
      );
    end else begin : own
      assign writes_to = d_thread;
    end
  endgenerate
  npu_tail_written #(.CORE(CORE), .OUTPUT(OUTPUT)) written (
    .d_valid(d_valid), .d_thread(writes_to), .d_segment(d_segment), .d_step(d_step), .d_unit(d_unit), .d_units(d_units),
    .d_write(d_write), .d_last(d_last),
    .w_valid(valid), .w_thread(thread), .w_counter(counter), .w_units(units), .w_last(last), .w_element(element),
    .w_count(count)
  );
  wire [W_ELEMENT-1:0] v_element;
  wire [W_UNIT-1:0] v_count;
  npu_pulse #(.CYCLES(AHEAD - EARLY)) valid_register (.clock(clock), .reset(reset), .in(valid), .out(v_valid));
  npu_delay #(.WIDTH(W_THREAD + W_COUNTER + 2 * W_UNIT + W_ELEMENT + 1), .CYCLES(AHEAD - EARLY)) write_register (
    .clock(clock), .in({thread, counter, units, last, element, count}),
    .out({v_thread, v_counter, v_units, v_last, v_element, v_count})
  );
  npu_pulse #(.CYCLES(EARLY)) valid_late (.clock(clock), .reset(reset), .in(v_valid), .out(w_valid));
  npu_delay #(.WIDTH(W_THREAD + W_COUNTER + 2 * W_UNIT + W_ELEMENT + 1), .CYCLES(EARLY)) write_late (
    .clock(clock), .in({v_thread, v_counter, v_units, v_last, v_element, v_count}),
    .out({w_thread, w_counter, w_units, w_last, w_element, w_count})
  );
endmodule

// What a turn's token says of the write.
module npu_tail_written #(
  parameter CORE = 0,
  // Number of the output on the core: the number of its vector memory.
  parameter OUTPUT = 0
) (
  d_valid, d_thread, d_segment, d_step, d_unit, d_units, d_write, d_last,
  w_valid, w_thread, w_counter, w_units, w_last, w_element, w_count
);
`include "npu_tail_written.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam integer MEMORY = C_MEMORY[CORE * C_MEMORY_B +: C_MEMORY_B] + OUTPUT;
  localparam integer PART = M_ELEMENTS[MEMORY * M_ELEMENTS_B +: M_ELEMENTS_B];

  input wire d_valid;
  input wire [W_THREAD-1:0] d_thread;
  input wire [W_SEGMENT-1:0] d_segment;
  input wire [W_STEP-1:0] d_step;
  input wire [W_UNIT-1:0] d_unit;
  input wire [W_UNIT-1:0] d_units;
  input wire [W_ELEMENT-1:0] d_write;
  // Last turn of the step.
  input wire d_last;
  output wire w_valid;
  output wire [W_THREAD-1:0] w_thread;
  output wire [W_COUNTER-1:0] w_counter;
  output wire [W_UNIT-1:0] w_units;
  output wire w_last;
  output wire [W_ELEMENT-1:0] w_element;
  output wire [W_UNIT-1:0] w_count;

  // Which of the segment's vectors is this output, if any.
  wire [31:0] from = S_WRITE[d_segment * S_WRITE_B +: S_WRITE_B];
  wire [31:0] count = S_WRITES[d_segment * S_WRITES_B +: S_WRITES_B];
  reg writes;
  reg [31:0] vector;
  integer i;
  always @* begin
    writes = 1'b0;
    vector = 0;
    for (i = 0; i < MOST_WRITES; i = i + 1)
      if (i < count && V_MEMORY[(from + i) * V_MEMORY_B +: V_MEMORY_B] == OUTPUT) begin
        writes = 1'b1;
        vector = from + i;
      end
  end

  wire [W_ELEMENT-1:0] own_part;
  npu_part #(.WIDTH(W_ELEMENT), .COUNT(THREADS), .INDEX(W_THREAD), .PART(PART)) part (
    .index(d_thread), .word(own_part)
  );

  // Of a vector of which two steps are kept, the lowest bit of the step says where.
  wire all = V_ALL[vector * V_ALL_B +: V_ALL_B] != 0;
  wire [W_ELEMENT-1:0] other = d_step[0] ? V_STRIDE[vector * V_STRIDE_B +: W_ELEMENT] : {W_ELEMENT{1'b0}};
  wire [W_ELEMENT-1:0] two = V_BASE[vector * V_BASE_B +: W_ELEMENT] + other;

  assign w_valid = d_valid && writes;
  assign w_thread = d_thread;
  assign w_counter = V_COUNTER[vector * V_COUNTER_B +: W_COUNTER];
  assign w_units = d_unit + d_units;
  assign w_last = d_last;
  // Of a split job's vectors the time step has said where.
  wire timed = SPLITS != 0 && V_TIMED[vector * V_TIMED_B +: V_TIMED_B] != 0;
  wire [W_ELEMENT-1:0] at_time = V_BASE[vector * V_BASE_B +: W_ELEMENT] + d_write;
  assign w_element = (timed ? at_time : all ? d_write : two) + d_unit + own_part;
  assign w_count = d_units;
endmodule

// The end of a thread's job, in the cycle before its finish: its last turn has come, and all results are there.
module npu_tail_end #(
  parameter W_DELAY = 4,
  // 1: no turn has all its results at once, so an end is known a cycle ahead and comes from a register.
  parameter LATER = 1
) (
  input wire clock,
  input wire reset,
  // A turn of the thread, whether it is the job's last one, and cycles until its results are there, without the last.
  input wire turn,
  input wire ends,
  input wire [W_DELAY-1:0] results,
  output wire e_valid
);
  reg [W_DELAY-1:0] rest;
  reg over;
  wire [W_DELAY-1:0] rest_now = turn && results > rest ? results : rest;
  wire over_now = over || (turn && ends);
  generate
    if (LATER) begin : g_later
      reg ended;
      assign e_valid = ended;
      always @(posedge clock) ended <= !reset && over_now && !ended && rest_now < 2;
    end else begin : g_now
      assign e_valid = over_now && rest_now == 0;
    end
  endgenerate
  always @(posedge clock) begin
    rest <= reset || rest_now == 0 ? {W_DELAY{1'b0}} : rest_now - 1'b1;
    over <= !reset && over_now && !e_valid;
  end
endmodule
