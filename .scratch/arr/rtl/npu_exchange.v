// The links between the cores of split jobs: docs/timing.md section 9. A core's link takes vectors of row blocks out of
// its own vector memories, and brings them to all other cores.
`default_nettype none

// What a core sends, in which cycle. Every block that starts in the tail, and whose segment has vectors for other
// cores, waits in its thread's queue; of the heads that have their first unit, the one that has had it for longest goes
// first, ties to the lowest thread. An entry of the queue is a row block; a job sends as many as it has.
module npu_exchange #(
  parameter CORE = 0,
  // Bits of the stamps that say when blocks started. No block waits for half of their range.
  parameter W_STAMP = 32
) (
  clock, reset, t_valid, t_thread, t_row, t_segment, t_number, t_unit, t_write, t_last_block, parent, home,
  sending, s_element, s_output, link
);
`include "npu_exchange.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam integer CONVERT = C_CONVERT[CORE * C_CONVERT_B +: C_CONVERT_B];
  localparam integer RATE = C_RATE[CORE * C_RATE_B +: C_RATE_B];
  localparam integer SENDS = C_SENDS[CORE * C_SENDS_B +: C_SENDS_B];
  localparam integer PART = M_ELEMENTS[C_MEMORY[CORE * C_MEMORY_B +: C_MEMORY_B] * M_ELEMENTS_B +: M_ELEMENTS_B];
  localparam W_SENT = $clog2(SENDS + 1);
  localparam W_TOKEN = W_SEGMENT + 2 * W_UNIT + W_ELEMENT + 1 + W_STAMP;
  localparam W_HEAD = X_VECTOR_B + 2 * W_UNIT + W_ELEMENT + 1;

  input wire clock;
  input wire reset;
  // The turn that is chosen in this cycle.
  input wire t_valid;
  input wire [W_THREAD-1:0] t_thread;
  input wire [W_ROW-1:0] t_row;
  input wire [W_SEGMENT-1:0] t_segment;
  input wire [W_NUMBER-1:0] t_number;
  input wire [W_UNIT-1:0] t_unit;
  input wire [W_ELEMENT-1:0] t_write;
  input wire t_last_block;
  // By thread the job of which it is a member, and the thread whose part of the vector memories that job has.
  input wire [THREADS*W_JOB-1:0] parent;
  input wire [THREADS*W_THREAD-1:0] home;
  // Something of the thread is not there yet on other cores in the next cycle.
  output wire [THREADS-1:0] sending;
  // The first of the elements that the link takes in this cycle, and of which output they are.
  output wire [W_ELEMENT-1:0] s_element;
  output wire [W_OUTPUT-1:0] s_output;
  // What other cores have from the next cycle on; element without a thread's part.
  output wire [W_LINK-1:0] link;

  reg [W_STAMP-1:0] now;
  always @(posedge clock) now <= reset ? {W_STAMP{1'b0}} : now + 1'b1;

  wire [31:0] vectors = S_SENDS[t_segment * S_SENDS_B +: S_SENDS_B];
  wire begins = t_valid && t_number == 0 && vectors != 0;
  wire [W_UNIT-1:0] t_block_units = t_last_block ? P_LAST_UNITS[t_row * P_LAST_UNITS_B +: W_UNIT]
    : P_UNITS[t_row * P_UNITS_B +: W_UNIT];

  // --- whose turn it is on the link ---

  // A vector that is under way has elements left.
  reg going;
  wire [THREADS-1:0] ready;
  wire [THREADS*W_STAMP-1:0] ages;
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
      if (ready[i] && (!any || ages[i*W_STAMP +: W_STAMP] > most)) begin
        any = 1'b1;
        oldest = i;
        most = ages[i*W_STAMP +: W_STAMP];
      end
  end

  wire late_valid;
  wire late_ends;
  wire [W_THREAD-1:0] late_thread;
  genvar g;
  generate
    for (g = 0; g < THREADS; g = g + 1) begin : threads
      wire mine = begins && t_thread == g;
      wire start = !going && any && oldest == g;
      wire waiting;
      wire [W_SEGMENT-1:0] segment;
      wire [W_UNIT-1:0] unit;
      wire [W_UNIT-1:0] units;
      wire [W_ELEMENT-1:0] write;
      wire last_block;
      wire [W_STAMP-1:0] stamp;
      // Which of the segment's vectors is next.
      reg [S_SENDS_B-1:0] number;
      wire [31:0] place = S_SEND[segment * S_SEND_B +: S_SEND_B] + number;
      wire last_vector = number == S_SENDS[segment * S_SENDS_B +: S_SENDS_B] - 1'b1;
      npu_tail_queue #(.WIDTH(W_TOKEN), .DEPTH(SENDS)) queue (
        .clock(clock), .reset(reset), .push(mine),
        .word({t_segment, t_unit, t_block_units, t_write, t_last_block, now}),
        .valid(waiting), .head({segment, unit, units, write, last_block, stamp}), .pop(start && last_vector)
      );
      wire [W_STAMP-1:0] age = now - stamp - (CONVERT + X_CYCLES[place * X_CYCLES_B +: X_CYCLES_B]);
      assign ages[g*W_STAMP +: W_STAMP] = age;
      assign ready[g] = waiting && !age[W_STAMP-1];
      assign heads[g*W_HEAD +: W_HEAD] =
        {X_VECTOR[place * X_VECTOR_B +: X_VECTOR_B], unit, units, write, last_block};
      reg [W_SENT-1:0] outstanding;
      wire [W_SENT-1:0] left_over = outstanding + (mine ? vectors : 32'd0)
        - (late_valid && late_ends && late_thread == g);
      assign sending[g] = left_over != 0;
      always @(posedge clock) begin
        if (reset) number <= 0;
        else if (start) number <= last_vector ? {S_SENDS_B{1'b0}} : number + 1'b1;
        outstanding <= reset ? {W_SENT{1'b0}} : left_over;
      end
    end
  endgenerate

  // --- what the link takes in this cycle ---

  wire [W_HEAD-1:0] head;
  npu_choose #(.WIDTH(W_HEAD), .COUNT(THREADS), .INDEX(W_THREAD)) head_of_oldest (
    .words(heads), .index(oldest), .word(head)
  );
  reg [W_THREAD-1:0] n_thread;
  reg [W_HEAD-1:0] n_head;
  wire [W_THREAD-1:0] thread = going ? n_thread : oldest;
  wire [X_VECTOR_B-1:0] vector;
  wire [W_UNIT-1:0] unit;
  wire [W_UNIT-1:0] left;
  wire [W_ELEMENT-1:0] write;
  wire last_block;
  assign {vector, unit, left, write, last_block} = going ? n_head : head;
  wire ends = left <= RATE;
  wire [W_UNIT-1:0] count = ends ? left : RATE;
  wire [W_UNIT-1:0] behind = unit + count;
  wire [W_UNIT-1:0] rest = left - RATE;
  wire valid = going || any;
  always @(posedge clock) begin
    going <= !reset && valid && !ends;
    n_thread <= thread;
    n_head <= {vector, behind, rest, write, last_block};
  end

  wire [W_ELEMENT-1:0] element = V_BASE[vector * V_BASE_B +: W_ELEMENT] + write + unit;
  wire [W_THREAD-1:0] home_of;
  npu_choose #(.WIDTH(W_THREAD), .COUNT(THREADS), .INDEX(W_THREAD)) home_of_thread (
    .words(home), .index(thread), .word(home_of)
  );
  wire [W_ELEMENT-1:0] own_part;
  npu_part #(.WIDTH(W_ELEMENT), .COUNT(THREADS), .INDEX(W_THREAD), .PART(PART)) part (
    .index(home_of), .word(own_part)
  );
  assign s_element = element + own_part;
  assign s_output = V_MEMORY[vector * V_MEMORY_B +: V_MEMORY_B];

  // --- the way to the other cores ---

  wire [W_JOB-1:0] job;
  npu_choose #(.WIDTH(W_JOB), .COUNT(THREADS), .INDEX(W_THREAD)) job_of_thread (
    .words(parent), .index(thread), .word(job)
  );
  wire [W_COUNTER-1:0] counter = V_COUNTER[vector * V_COUNTER_B +: W_COUNTER];
  wire [W_LINK-2:0] word = {job, counter, behind, last_block && ends, element, count};
  wire [W_LINK-2:0] late_word;
  npu_pulse #(.CYCLES(LINK_CYCLES - 1)) valid_way (.clock(clock), .reset(reset), .in(valid), .out(late_valid));
  npu_delay #(.WIDTH(W_LINK + W_THREAD), .CYCLES(LINK_CYCLES - 1)) way (
    .clock(clock), .in({ends, thread, word}), .out({late_ends, late_thread, late_word})
  );
  assign link = {late_valid, late_word};
endmodule

// What comes over the links of the other cores, for which thread of this one: that of the job, of several the lowest.
module npu_receiver #(
  parameter CORE = 0
) (
  parent, active, home, links, r_valid, r_thread, r_counter, r_units, r_last, r_element, r_count
);
`include "npu_receiver.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam integer PART = M_ELEMENTS[C_MEMORY[CORE * C_MEMORY_B +: C_MEMORY_B] * M_ELEMENTS_B +: M_ELEMENTS_B];

  input wire [THREADS*W_JOB-1:0] parent;
  input wire [THREADS-1:0] active;
  input wire [THREADS*W_THREAD-1:0] home;
  input wire [CORES*W_LINK-1:0] links;
  output wire [CORES-1:0] r_valid;
  output wire [CORES*W_THREAD-1:0] r_thread;
  output wire [CORES*W_COUNTER-1:0] r_counter;
  output wire [CORES*W_UNIT-1:0] r_units;
  output wire [CORES-1:0] r_last;
  output wire [CORES*W_ELEMENT-1:0] r_element;
  output wire [CORES*W_UNIT-1:0] r_count;

  genvar g;
  generate
    for (g = 0; g < CORES; g = g + 1) begin : from
      wire valid;
      wire [W_JOB-1:0] job;
      wire [W_ELEMENT-1:0] element;
      assign {valid, job, r_counter[g*W_COUNTER +: W_COUNTER], r_units[g*W_UNIT +: W_UNIT], r_last[g], element,
        r_count[g*W_UNIT +: W_UNIT]} = links[g*W_LINK +: W_LINK];
      reg there;
      reg [W_THREAD-1:0] thread;
      integer t;
      always @* begin
        there = 1'b0;
        thread = 0;
        for (t = 0; t < THREADS; t = t + 1)
          if (active[t] && parent[t*W_JOB +: W_JOB] == job) begin
            there = 1'b1;
            thread = home[t*W_THREAD +: W_THREAD];
          end
      end
      // A core has its own results from its tail.
      assign r_valid[g] = valid && there && g != CORE;
      assign r_thread[g*W_THREAD +: W_THREAD] = thread;
      wire [W_ELEMENT-1:0] own_part;
      npu_part #(.WIDTH(W_ELEMENT), .COUNT(THREADS), .INDEX(W_THREAD), .PART(PART)) part (
        .index(thread), .word(own_part)
      );
      assign r_element[g*W_ELEMENT +: W_ELEMENT] = element + own_part;
    end
  endgenerate
endmodule

`default_nettype wire
