// Which job takes which context of which core: docs/timing.md sections 11.1 to 11.4.
//
// All jobs that may run on the same cores wait in one queue, in the order in which the host posts them. In a cycle as
// many jobs are admitted as find a context, each in the order of posting: it takes, of its cores that have a free
// context, the one with the fewest occupied ones, and there the lowest. A context whose job finishes in the next cycle
// is free for the next job at this very edge.
`default_nettype none

module npu_dispatch (clock, reset, jobs_posted, ended, admit, admit_job);
  `include "npu_config.vh"
  // Contexts side by side: those of core c from c * STRIDE on.
  localparam STRIDE = 1 << W_THREAD;
  localparam CONTEXTS = CORES * STRIDE;
  // As many jobs as that may find a context in one cycle.
  localparam ROUNDS = JOBS < CORES * MOST_THREADS ? JOBS : CORES * MOST_THREADS;

  input wire clock;
  input wire reset;
  // How many jobs the host has posted: those before this number.
  input wire [W_JOBS-1:0] jobs_posted;
  // Contexts whose jobs finish in the next cycle.
  input wire [CONTEXTS-1:0] ended;
  // Contexts that are taken at the edge that ends this cycle, and by whom.
  output reg [CONTEXTS-1:0] admit;
  output reg [CONTEXTS*W_JOB-1:0] admit_job;

  reg [CONTEXTS-1:0] occupied;
  // The first job of each queue that has no context yet; JOBS: none.
  reg [QUEUES*W_JOBS-1:0] heads;

  function [W_JOBS-1:0] behind(input [W_JOBS-1:0] job);
    // The next job of the same queue.
    integer j;
    begin
      behind = JOBS;
      for (j = JOBS - 1; j >= 0; j = j - 1)
        if (j > job && J_QUEUE[j * J_QUEUE_B +: J_QUEUE_B] == J_QUEUE[job * J_QUEUE_B +: J_QUEUE_B])
          behind = j;
    end
  endfunction

  function [W_JOBS-1:0] first_of(input integer queue);
    integer j;
    begin
      first_of = JOBS;
      for (j = JOBS - 1; j >= 0; j = j - 1)
        if (J_QUEUE[j * J_QUEUE_B +: J_QUEUE_B] == queue)
          first_of = j;
    end
  endfunction

  // Constant tables of the two, so that no search is built.
  wire [JOBS*W_JOBS-1:0] nexts;
  wire [QUEUES*W_JOBS-1:0] firsts;
  wire [CONTEXTS-1:0] exists;
  genvar g;
  generate
    for (g = 0; g < JOBS; g = g + 1) begin : next_jobs
      assign nexts[g*W_JOBS +: W_JOBS] = behind(g);
    end
    for (g = 0; g < QUEUES; g = g + 1) begin : first_jobs
      assign firsts[g*W_JOBS +: W_JOBS] = first_of(g);
    end
    for (g = 0; g < CONTEXTS; g = g + 1) begin : contexts
      assign exists[g] = (g % STRIDE) < C_THREADS[(g / STRIDE) * C_THREADS_B +: C_THREADS_B];
    end
  endgenerate

  reg [CONTEXTS-1:0] taken;
  reg [QUEUES*W_JOBS-1:0] left;
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
        head = left[q*W_JOBS +: W_JOBS];
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
        admit_job[place*W_JOB +: W_JOB] = best[W_JOB-1:0];
        left[best_queue*W_JOBS +: W_JOBS] = nexts[best*W_JOBS +: W_JOBS];
      end
    end
  end

  always @(posedge clock) begin
    occupied <= taken & exists;
    heads <= left;
  end
endmodule

`default_nettype wire
