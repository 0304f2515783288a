// A chip: cores that share nothing but the dispatcher of jobs and the host's bus.
`default_nettype none

module npu_top (
  clock, reset, jobs_posted, frames_job, frames_posted, jobs_ended, ended_job, jobs_admitted, admitted_job,
  host_write, host_address, host_data,
  h_valid, h_job, h_row, h_step, h_unit, h_count, h_word,
  m_valid, m_context, m_block, m_burst, m_place, m_ready, m_done, m_done_context, m_write, m_write_context,
  m_write_place, m_word
);
  `include "npu_top.vh"
  localparam STRIDE = 1 << W_THREAD;

  input wire clock;
  // Synchronous, and high in the cycle before cycle 0.
  input wire reset;
  // How many jobs the host has posted, and how many frames of some of them: of each context the chip names the job that
  // has it in the next cycle, and the host says in the same cycle how many frames of this job are there. A job that is
  // counted in cycle a - 1 may issue in cycle a, and so may a tile of a frame that is counted then. Contexts are side
  // by side, those of core c from c * STRIDE on.
  localparam CONTEXTS = CORES * STRIDE;
  input wire [W_JOBS-1:0] jobs_posted;
  output reg [CONTEXTS*W_JOB-1:0] frames_job;
  input wire [CONTEXTS*W_STEP-1:0] frames_posted;
  // In this cycle the job `ended_job` has finished in a context.
  output reg [CONTEXTS-1:0] jobs_ended;
  output reg [CONTEXTS*W_JOB-1:0] ended_job;
  // From this cycle on the job `admitted_job` may issue in a context.
  output reg [CONTEXTS-1:0] jobs_admitted;
  output wire [CONTEXTS*W_JOB-1:0] admitted_job;
  // The host's bus: it fills the memories, a word a cycle.
  input wire host_write;
  input wire [31:0] host_address;
  input wire [31:0] host_data;

  // What becomes visible in the next cycle, for each vector memory of all cores side by side: `h_count` units from
  // `h_unit` on of the step `h_step` of row `h_row` (a place in P_) of a job.
  localparam integer MEMORIES = C_MEMORY[(CORES-1)*C_MEMORY_B +: C_MEMORY_B]
    + C_MEMORIES[(CORES-1)*C_MEMORIES_B +: C_MEMORIES_B];
  function integer widest(input integer cores);
    integer i;
    begin
      widest = 1;
      for (i = 0; i < cores; i = i + 1)
        if (C_TAIL_WIDTH[i*C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B] > widest)
          widest = C_TAIL_WIDTH[i*C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B];
    end
  endfunction
  localparam integer MOST_Y = widest(CORES) * VECTOR_BITS;
  output wire [MEMORIES-1:0] h_valid;
  output wire [MEMORIES*W_JOB-1:0] h_job;
  output wire [MEMORIES*W_ROW-1:0] h_row;
  output wire [MEMORIES*W_STEP-1:0] h_step;
  output wire [MEMORIES*W_UNIT-1:0] h_unit;
  output wire [MEMORIES*W_UNIT-1:0] h_count;
  output wire [MEMORIES*MOST_Y-1:0] h_word;

  // The memory beside the chip, where weights are streamed (sim/npu_weight_store.v says what it does).
  output wire m_valid;
  output wire [W_CONTEXT-1:0] m_context;
  output wire [W_STREAM-1:0] m_block;
  output wire [W_BURST-1:0] m_burst;
  output wire [W_WEIGHT-1:0] m_place;
  input wire m_ready;
  input wire m_done;
  input wire [W_CONTEXT-1:0] m_done_context;
  input wire m_write;
  input wire [W_CONTEXT-1:0] m_write_context;
  input wire [W_WEIGHT-1:0] m_write_place;
  input wire [MOST_TILE_BITS-1:0] m_word;
  wire [CONTEXTS-1:0] granted;
  wire [CONTEXTS-1:0] arrives;
  wire [CONTEXTS-1:0] asks;
  wire [CONTEXTS*W_STREAM-1:0] blocks;
  wire [CONTEXTS*W_BURST-1:0] bursts;
  wire [CONTEXTS*W_WEIGHT-1:0] places;

  // Contexts of which the tail of their core has everything in the next cycle; those whose jobs finish then.
  wire [CONTEXTS-1:0] results;
  wire [CONTEXTS-1:0] ended;
  // Where jobs are split: the members of jobs, and the links between cores.
  localparam DATA = MOST_RATE * VECTOR_BITS;
  localparam MAP = MOST_MEMBERS * W_CORE;
  wire [CONTEXTS-1:0] active;
  wire [CONTEXTS*W_JOB-1:0] parents;
  wire [CONTEXTS*W_THREAD-1:0] homes;
  wire [CONTEXTS*MAP-1:0] members;
  wire [CONTEXTS-1:0] sending;
  wire [CORES*W_LINK-1:0] links;
  wire [CORES*DATA-1:0] links_data;
  wire [CONTEXTS-1:0] admit;
  wire [CONTEXTS*W_JOB-1:0] admit_job;

  // What the host has said of the jobs, where it says it.
  wire [JOB_TABLE_BITS-1:0] table_of_jobs;
  npu_jobs jobs (
    .clock(clock), .host_write(host_write), .host_address(host_address), .host_data(host_data), .words(table_of_jobs)
  );

  npu_dispatch dispatch (
    .clock(clock), .reset(reset), .jobs_posted(jobs_posted), .ended(ended), .admit(admit), .admit_job(admit_job)
  );

  // The job of which it is: of a split one its members are other jobs to the cores.
  function [W_JOB-1:0] posted(input [W_JOB-1:0] own);
    posted = SPLITS != 0 ? J_PARENT[own * J_PARENT_B +: W_JOB] : own;
  endfunction
  wire [MEMORIES*W_JOB-1:0] h_member;

  genvar g;
  genvar m;
  generate
    for (m = 0; m < MEMORIES; m = m + 1) begin : jobs_of_h
      assign h_job[m*W_JOB +: W_JOB] = posted(h_member[m*W_JOB +: W_JOB]);
    end
    if (SPLITS != 0) begin : split
      npu_members all (
        .clock(clock), .reset(reset), .admit(admit), .admit_job(admit_job), .results(results), .sending(sending),
        .ended(ended), .active(active), .parents(parents), .homes(homes), .cores(members)
      );
    end else begin : whole
      assign ended = results;
      assign active = {CONTEXTS{1'b0}};
      assign parents = {CONTEXTS*W_JOB{1'b0}};
      assign homes = {CONTEXTS*W_THREAD{1'b0}};
      assign members = {CONTEXTS*MAP{1'b0}};
    end
    for (g = 0; g < CORES; g = g + 1) begin : cores
      localparam integer FIRST = C_MEMORY[g * C_MEMORY_B +: C_MEMORY_B];
      localparam integer OUTPUTS = C_MEMORIES[g * C_MEMORIES_B +: C_MEMORIES_B];
      localparam integer WORD = C_TAIL_WIDTH[g * C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B] * VECTOR_BITS;
      localparam integer THREADS = C_THREADS[g * C_THREADS_B +: C_THREADS_B];
      // A core on which no job may run is not built.
      if (OUTPUTS == 0) begin : empty
        assign results[g*STRIDE +: THREADS] = 0;
        assign asks[g*STRIDE +: THREADS] = 0;
        assign blocks[g*STRIDE*W_STREAM +: THREADS*W_STREAM] = 0;
        assign bursts[g*STRIDE*W_BURST +: THREADS*W_BURST] = 0;
        assign places[g*STRIDE*W_WEIGHT +: THREADS*W_WEIGHT] = 0;
        assign sending[g*STRIDE +: THREADS] = 0;
        assign links[g*W_LINK +: W_LINK] = 0;
        assign links_data[g*DATA +: DATA] = 0;
      end else begin : built
        wire [OUTPUTS*WORD-1:0] words;
        npu_core #(.CORE(g)) core (
          .clock(clock), .reset(reset), .jobs_table(table_of_jobs),
          .admit(admit[g*STRIDE +: THREADS]), .admit_job(admit_job[g*STRIDE*W_JOB +: THREADS*W_JOB]),
          .results(results[g*STRIDE +: THREADS]), .ended(ended[g*STRIDE +: THREADS]),
          .active(active[g*STRIDE +: THREADS]), .parent(parents[g*STRIDE*W_JOB +: THREADS*W_JOB]),
          .home(homes[g*STRIDE*W_THREAD +: THREADS*W_THREAD]), .cores(members[g*STRIDE*MAP +: THREADS*MAP]),
          .links(links), .links_data(links_data), .sending(sending[g*STRIDE +: THREADS]),
          .link(links[g*W_LINK +: W_LINK]), .link_data(links_data[g*DATA +: DATA]),
          .s_granted(granted[g*STRIDE +: THREADS]), .s_asks(asks[g*STRIDE +: THREADS]),
          .s_block(blocks[g*STRIDE*W_STREAM +: THREADS*W_STREAM]),
          .s_burst(bursts[g*STRIDE*W_BURST +: THREADS*W_BURST]),
          .s_place(places[g*STRIDE*W_WEIGHT +: THREADS*W_WEIGHT]), .s_arrives(arrives[g*STRIDE +: THREADS]),
          .s_write(m_write && m_write_context / STRIDE == g), .s_write_place(m_write_place), .s_word(m_word),
          .frames_posted(frames_posted[g*STRIDE*W_STEP +: THREADS*W_STEP]),
          .host_write(host_write), .host_address(host_address), .host_data(host_data),
          .h_valid(h_valid[FIRST +: OUTPUTS]), .h_job(h_member[FIRST*W_JOB +: OUTPUTS*W_JOB]),
          .h_row(h_row[FIRST*W_ROW +: OUTPUTS*W_ROW]), .h_step(h_step[FIRST*W_STEP +: OUTPUTS*W_STEP]),
          .h_unit(h_unit[FIRST*W_UNIT +: OUTPUTS*W_UNIT]), .h_count(h_count[FIRST*W_UNIT +: OUTPUTS*W_UNIT]),
          .h_word(words)
        );
        for (m = 0; m < OUTPUTS; m = m + 1) begin : outputs
          wire [MOST_Y-1:0] padded = words[m*WORD +: WORD];
          assign h_word[(FIRST + m)*MOST_Y +: MOST_Y] = padded;
        end
      end
      if (THREADS < STRIDE) begin : none
        assign results[g*STRIDE+THREADS +: STRIDE-THREADS] = 0;
        assign asks[g*STRIDE+THREADS +: STRIDE-THREADS] = 0;
        assign blocks[(g*STRIDE+THREADS)*W_STREAM +: (STRIDE-THREADS)*W_STREAM] = 0;
        assign bursts[(g*STRIDE+THREADS)*W_BURST +: (STRIDE-THREADS)*W_BURST] = 0;
        assign places[(g*STRIDE+THREADS)*W_WEIGHT +: (STRIDE-THREADS)*W_WEIGHT] = 0;
        assign sending[g*STRIDE+THREADS +: STRIDE-THREADS] = 0;
      end
    end
  endgenerate

  // --- the memory beside the chip ---

  reg [W_CONTEXT-1:0] asking;
  integer i;
  always @* begin
    asking = 0;
    for (i = 0; i < CONTEXTS; i = i + 1)
      if (granted[i]) asking = i;
  end
  generate
    if (STREAMS != 0) begin : streamed
      npu_stream_ring ring (
        .clock(clock), .reset(reset), .admit(admit), .admit_job(admit_job), .ended(ended), .asks(asks),
        .m_ready(m_ready), .granted(granted)
      );
      assign arrives = m_done ? {{CONTEXTS-1{1'b0}}, 1'b1} << m_done_context : {CONTEXTS{1'b0}};
    end else begin : resident
      assign granted = {CONTEXTS{1'b0}};
      assign arrives = {CONTEXTS{1'b0}};
    end
  endgenerate
  assign m_valid = |granted;
  assign m_context = asking;
  npu_choose #(.WIDTH(W_STREAM), .COUNT(CONTEXTS), .INDEX(W_CONTEXT)) block_of (
    .words(blocks), .index(asking), .word(m_block)
  );
  npu_choose #(.WIDTH(W_BURST), .COUNT(CONTEXTS), .INDEX(W_CONTEXT)) burst_of (
    .words(bursts), .index(asking), .word(m_burst)
  );
  npu_choose #(.WIDTH(W_WEIGHT), .COUNT(CONTEXTS), .INDEX(W_CONTEXT)) place_of (
    .words(places), .index(asking), .word(m_place)
  );

  // Whose job is in a context is known when it takes it.
  reg [CONTEXTS*W_JOB-1:0] job;
  // A split job finishes for the host in the context of its first member.
  reg [CONTEXTS-1:0] first;
  integer c;
  integer e;
  always @* begin
    frames_job = job;
    for (c = 0; c < CONTEXTS; c = c + 1)
      if (admit[c]) frames_job[c*W_JOB +: W_JOB] = posted(admit_job[c*W_JOB +: W_JOB]);
  end
  always @(posedge clock) begin
    job <= frames_job;
    for (e = 0; e < CONTEXTS; e = e + 1)
      if (admit[e])
        first[e] <= SPLITS == 0 || J_MEMBER[admit_job[e*W_JOB +: W_JOB] * J_MEMBER_B +: J_MEMBER_B] == 0;
    jobs_ended <= reset ? {CONTEXTS{1'b0}} : SPLITS != 0 ? ended & first : ended;
    ended_job <= job;
    jobs_admitted <= admit;
  end
  assign admitted_job = job;
endmodule

`default_nettype wire
