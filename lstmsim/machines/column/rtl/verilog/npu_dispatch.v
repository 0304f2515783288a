// Which job takes which context of which core: docs/timing.md sections 11.1 to 11.4.
//
// All jobs that may run on the same cores wait in one queue, in the order in which the host posts them. In a cycle as
// many jobs are admitted as find a context, each in the order of posting: it takes, of its cores that have a free
// context, the one with the fewest occupied ones, and there the lowest. A context whose job finishes in the next cycle
// is free for the next job at this very edge.
`default_nettype none

module npu_dispatch (clock, reset, jobs_posted, ended, admit, admit_job);
  `include "npu_dispatch.vh"
  // Contexts side by side: those of core c from c * STRIDE on.
  localparam STRIDE = 1 << W_THREAD;
  localparam CONTEXTS = CORES * STRIDE;

  input wire clock;
  input wire reset;
  // How many jobs the host has posted: those before this number.
  input wire [W_JOBS-1:0] jobs_posted;
  // Contexts whose jobs finish in the next cycle.
  input wire [CONTEXTS-1:0] ended;
  // Contexts that are taken at the edge that ends this cycle, and by whom.
  output wire [CONTEXTS-1:0] admit;
  output wire [CONTEXTS*W_JOB-1:0] admit_job;

  function integer one_core(input integer queues);
    // Whether the jobs of each queue may run on one core only.
    integer q;
    begin
      one_core = 1;
      for (q = 0; q < queues; q = q + 1)
        if ((Q_CORES[q*Q_CORES_B +: Q_CORES_B] & (Q_CORES[q*Q_CORES_B +: Q_CORES_B] - 1'b1)) != 0)
          one_core = 0;
    end
  endfunction
  function integer queue_of(input integer core);
    // The queue of a core, if it has one of its own.
    integer q;
    begin
      queue_of = QUEUES;
      for (q = 0; q < QUEUES; q = q + 1)
        if (Q_CORES[q*Q_CORES_B + core])
          queue_of = q;
    end
  endfunction

  genvar g;
  generate
    if (SPLITS != 0) begin : split
      npu_dispatch_split all (
        .clock(clock), .reset(reset), .jobs_posted(jobs_posted), .ended(ended), .admit(admit), .admit_job(admit_job)
      );
    end else if (one_core(QUEUES)) begin : apart
      for (g = 0; g < CORES; g = g + 1) begin : cores
        localparam integer THREADS = C_THREADS[g * C_THREADS_B +: C_THREADS_B];
        localparam integer QUEUE = queue_of(g);
        if (QUEUE < QUEUES) begin : has
          npu_dispatch_core #(.CORE(g), .QUEUE(QUEUE)) queue (
            .clock(clock), .reset(reset), .jobs_posted(jobs_posted), .ended(ended[g*STRIDE +: THREADS]),
            .admit(admit[g*STRIDE +: THREADS]), .admit_job(admit_job[g*STRIDE*W_JOB +: THREADS*W_JOB])
          );
        end else begin : none
          assign admit[g*STRIDE +: THREADS] = 0;
          assign admit_job[g*STRIDE*W_JOB +: THREADS*W_JOB] = 0;
        end
        if (THREADS < STRIDE) begin : rest
          assign admit[g*STRIDE+THREADS +: STRIDE-THREADS] = 0;
          assign admit_job[(g*STRIDE+THREADS)*W_JOB +: (STRIDE-THREADS)*W_JOB] = 0;
        end
      end
    end else begin : shared
      npu_dispatch_cores all (
        .clock(clock), .reset(reset), .jobs_posted(jobs_posted), .ended(ended), .admit(admit), .admit_job(admit_job)
      );
    end
  endgenerate
endmodule

// The queue of a core whose jobs may run nowhere else: the k-th job that waits takes the k-th free context.
module npu_dispatch_core (clock, reset, jobs_posted, ended, admit, admit_job);
  parameter CORE = 0;
  parameter QUEUE = 0;
  `include "npu_dispatch_core.vh"
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];

  input wire clock;
  input wire reset;
  input wire [W_JOBS-1:0] jobs_posted;
  input wire [THREADS-1:0] ended;
  output reg [THREADS-1:0] admit;
  output reg [THREADS*W_JOB-1:0] admit_job;

  reg [THREADS-1:0] occupied;
  // Wide enough for the jobs that follow the last one in an only queue: none of them is ever posted.
  localparam W = (W_JOBS > W_THREAD ? W_JOBS : W_THREAD + 1) + 1;
  // At distances that are powers of two, because an index times another width would be a multiplier.
  localparam JOBS_B = 1 << $clog2(W);
  // The first jobs of the queue that have no context yet, one more than may find one in a cycle; JOBS or more: none.
  reg [(THREADS+1)*JOBS_B-1:0] heads;

  function [(THREADS+1)*JOBS_B-1:0] listed(input [W-1:0] first);
    // This job and those behind it in the queue. The jobs of an only queue follow each other: each is counted from the
    // first one and not from the one before it, because a chain of adders would be the longest path of the hardware.
    integer p;
    reg [W-1:0] job;
    begin
      job = first;
      for (p = 0; p <= THREADS; p = p + 1) begin
        if (QUEUES == 1) job = first + p;
        listed[p*JOBS_B +: JOBS_B] = job;
        if (QUEUES != 1 && job < JOBS) job = J_NEXT[job*J_NEXT_B +: W_JOBS];
      end
    end
  endfunction
  localparam [W_JOBS-1:0] FIRST = Q_FIRST[QUEUE*Q_FIRST_B +: W_JOBS];

  wire [(THREADS+1)*JOBS_B-1:0] jobs = reset ? listed(FIRST) : heads;
  wire [THREADS-1:0] there;
  genvar g;
  generate
    for (g = 0; g < THREADS; g = g + 1) begin : posted
      assign there[g] = jobs[g*JOBS_B +: W] < jobs_posted;
    end
  endgenerate

  wire [THREADS-1:0] free = reset ? {THREADS{1'b1}} : ~occupied | ended;
  reg [W-1:0] head_next;
  integer t;
  // No wider than it counts: it stands in the longest path, from the end of a job to the next one.
  reg [W_THREAD:0] rank;
  always @* begin
    rank = 0;
    admit = 0;
    admit_job = 0;
    for (t = 0; t < THREADS; t = t + 1)
      if (free[t]) begin
        admit[t] = there[rank];
        admit_job[t*W_JOB +: W_JOB] = jobs[rank*JOBS_B +: W_JOB];
        rank = rank + 1;
      end
    // Contexts are taken from the lowest on, as long as jobs are there.
    head_next = jobs[0 +: W];
    for (t = 0; t < THREADS; t = t + 1)
      if (t < rank && there[t]) head_next = jobs[(t+1)*JOBS_B +: W];
  end
  always @(posedge clock) begin
    heads <= listed(head_next);
    occupied <= ~free | admit;
  end
endmodule

// Queues whose jobs may run on several cores.
module npu_dispatch_cores (clock, reset, jobs_posted, ended, admit, admit_job);
  `include "npu_dispatch_cores.vh"
  localparam STRIDE = 1 << W_THREAD;
  localparam CONTEXTS = CORES * STRIDE;
  // As many jobs as that may find a context in one cycle.
  localparam ROUNDS = JOBS < CORES * MOST_THREADS ? JOBS : CORES * MOST_THREADS;

  input wire clock;
  input wire reset;
  input wire [W_JOBS-1:0] jobs_posted;
  input wire [CONTEXTS-1:0] ended;
  output reg [CONTEXTS-1:0] admit;
  output reg [CONTEXTS*W_JOB-1:0] admit_job;

  reg [CONTEXTS-1:0] occupied;
  // The first job of each queue that has no context yet; JOBS: none.
  // At distances that are powers of two, because an index times another width would be a multiplier.
  localparam JOBS_B = 1 << $clog2(W_JOBS);
  reg [QUEUES*JOBS_B-1:0] heads;

  wire [QUEUES*JOBS_B-1:0] firsts;
  wire [CONTEXTS-1:0] exists;
  genvar g;
  generate
    for (g = 0; g < QUEUES; g = g + 1) begin : first_jobs
      assign firsts[g*JOBS_B +: JOBS_B] = Q_FIRST[g*Q_FIRST_B +: W_JOBS];
    end
    for (g = 0; g < CONTEXTS; g = g + 1) begin : contexts
      assign exists[g] = (g % STRIDE) < C_THREADS[(g / STRIDE) * C_THREADS_B +: C_THREADS_B];
    end
  endgenerate

  reg [CONTEXTS-1:0] taken;
  reg [QUEUES*JOBS_B-1:0] left;
  reg [CORES-1:0] open;
  reg [CORES-1:0] allowed;
  reg [W_JOBS-1:0] head;
  reg [W_JOBS-1:0] best;
  reg [W_THREAD+1:0] count;
  reg [W_THREAD+1:0] fewest;
  integer round;
  integer q;
  integer best_queue;
  integer core;
  integer best_core;
  integer t;
  integer place;
  always @* begin
    taken = reset ? ~exists : (occupied & ~ended) | ~exists;
    left = reset ? firsts : heads;
    admit = 0;
    admit_job = 0;
    open = 0;
    allowed = 0;
    head = 0;
    count = 0;
    fewest = 0;
    t = 0;
    place = 0;
    best_core = 0;
    best_queue = 0;
    best = 0;
    for (round = 0; round < ROUNDS; round = round + 1) begin
      for (core = 0; core < CORES; core = core + 1)
        open[core] = !(&taken[core*STRIDE +: STRIDE]);
      // The first job in the order of posting that finds a context.
      best = JOBS;
      best_queue = 0;
      for (q = 0; q < QUEUES; q = q + 1) begin
        head = left[q*JOBS_B +: W_JOBS];
        if (head < jobs_posted && head < best && (Q_CORES[q*Q_CORES_B +: Q_CORES_B] & open) != 0) begin
          best = head;
          best_queue = q;
        end
      end
      if (best != JOBS) begin
        allowed = Q_CORES[best_queue*Q_CORES_B +: Q_CORES_B] & open;
        fewest = ~0;
        best_core = 0;
        for (core = CORES - 1; core >= 0; core = core - 1) begin
          count = 0;
          for (t = 0; t < STRIDE; t = t + 1)
            count = count + (taken[core*STRIDE+t] && exists[core*STRIDE+t]);
          if (allowed[core] && count <= fewest) begin
            fewest = count;
            best_core = core;
          end
        end
        place = 0;
        for (t = STRIDE - 1; t >= 0; t = t - 1)
          if (!taken[best_core*STRIDE+t])
            place = best_core * STRIDE + t;
        taken[place] = 1'b1;
        admit[place] = 1'b1;
        for (t = 0; t < CONTEXTS; t = t + 1)
          if (t == place) admit_job[t*W_JOB +: W_JOB] = best[W_JOB-1:0];
        left[best_queue*JOBS_B +: JOBS_B] = J_NEXT[best*J_NEXT_B +: W_JOBS];
      end
    end
  end

  always @(posedge clock) begin
    occupied <= taken & exists;
    heads <= left;
  end
endmodule

`default_nettype wire
