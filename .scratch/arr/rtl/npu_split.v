// The members of split jobs, over all cores: which contexts belong together, where their vectors are, when all are
// through. docs/timing.md sections 9.1 and 9.8.
`default_nettype none

module npu_members (clock, reset, admit, admit_job, results, sending, ended, active, parents, homes, cores);
  `include "npu_members.vh"
  localparam STRIDE = 1 << W_THREAD;
  localparam CONTEXTS = CORES * STRIDE;
  localparam MAP = MOST_MEMBERS * W_CORE;

  input wire clock;
  input wire reset;
  // Contexts that are taken at the edge that ends this cycle, and by which jobs or members.
  input wire [CONTEXTS-1:0] admit;
  input wire [CONTEXTS*W_JOB-1:0] admit_job;
  // The tail has everything of the context in the next cycle; other cores have not.
  input wire [CONTEXTS-1:0] results;
  input wire [CONTEXTS-1:0] sending;
  // The job finishes in the next cycle: in all contexts of its members at once.
  output reg [CONTEXTS-1:0] ended;
  output reg [CONTEXTS-1:0] active;
  // The job of which a context has a member; of the members of that job on the same core the lowest, whose part of the
  // vector memories they have; the core of each member. The last two are those of the next cycle.
  output reg [CONTEXTS*W_JOB-1:0] parents;
  output reg [CONTEXTS*W_THREAD-1:0] homes;
  output reg [CONTEXTS*MAP-1:0] cores;

  wire [CONTEXTS*W_JOB-1:0] coming;
  wire [CONTEXTS*J_MEMBER_B-1:0] members;
  genvar g;
  generate
    for (g = 0; g < CONTEXTS; g = g + 1) begin : contexts
      wire [W_JOB-1:0] job = admit_job[g*W_JOB +: W_JOB];
      assign coming[g*W_JOB +: W_JOB] = J_PARENT[job * J_PARENT_B +: W_JOB];
      assign members[g*J_MEMBER_B +: J_MEMBER_B] = J_MEMBER[job * J_MEMBER_B +: J_MEMBER_B];
    end
  endgenerate

  reg [CONTEXTS*W_THREAD-1:0] homes_now;
  reg [CONTEXTS*MAP-1:0] cores_now;
  integer c;
  integer d;
  integer m;
  always @* begin
    homes = homes_now;
    cores = cores_now;
    d = 0;
    m = 0;
    for (c = 0; c < CONTEXTS; c = c + 1)
      if (admit[c])
        for (d = CONTEXTS - 1; d >= 0; d = d - 1)
          if (admit[d] && coming[d*W_JOB +: W_JOB] == coming[c*W_JOB +: W_JOB]) begin
            if (d / STRIDE == c / STRIDE) homes[c*W_THREAD +: W_THREAD] = d % STRIDE;
            for (m = 0; m < MOST_MEMBERS; m = m + 1)
              if (members[d*J_MEMBER_B +: J_MEMBER_B] == m) cores[c*MAP + m*W_CORE +: W_CORE] = d / STRIDE;
          end
  end

  reg [CONTEXTS-1:0] over;
  wire [CONTEXTS-1:0] done = (results | over) & ~sending;
  integer e;
  integer f;
  always @* begin
    ended = active & done;
    for (e = 0; e < CONTEXTS; e = e + 1)
      for (f = 0; f < CONTEXTS; f = f + 1)
        if (active[f] && !done[f] && parents[f*W_JOB +: W_JOB] == parents[e*W_JOB +: W_JOB]) ended[e] = 1'b0;
  end
  integer a;
  always @(posedge clock) begin
    homes_now <= homes;
    cores_now <= cores;
    active <= reset ? admit : (active & ~ended) | admit;
    over <= reset ? {CONTEXTS{1'b0}} : (over | results) & ~ended & ~admit;
    for (a = 0; a < CONTEXTS; a = a + 1)
      if (admit[a]) parents[a*W_JOB +: W_JOB] <= coming[a*W_JOB +: W_JOB];
  end
endmodule

// Which job takes which contexts, where jobs may be split: docs/timing.md sections 11.1 to 11.6. As in npu_dispatch.v,
// but a job may take several contexts at once, and one that finds none keeps those behind it off its cores.
module npu_dispatch_split (clock, reset, jobs_posted, ended, admit, admit_job);
  `include "npu_dispatch_split.vh"
  localparam STRIDE = 1 << W_THREAD;
  localparam CONTEXTS = CORES * STRIDE;
  // Jobs that find contexts in one cycle, and queues whose heads find none.
  localparam ROUNDS = (POSTED < CORES * MOST_THREADS ? POSTED : CORES * MOST_THREADS) + QUEUES;
  localparam FIXED = 1;
  localparam AUTO = 2;

  input wire clock;
  input wire reset;
  input wire [W_JOBS-1:0] jobs_posted;
  input wire [CONTEXTS-1:0] ended;
  output reg [CONTEXTS-1:0] admit;
  output reg [CONTEXTS*W_JOB-1:0] admit_job;

  localparam JOBS_B = 1 << $clog2(W_JOBS);
  reg [CONTEXTS-1:0] occupied;
  // The first job of each queue that has no context yet; POSTED: none.
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
  reg [CONTEXTS-1:0] trial;
  reg [QUEUES*JOBS_B-1:0] left;
  // Queues whose heads wait, and the cores that they keep.
  reg [QUEUES-1:0] stuck;
  reg [CORES-1:0] kept;
  reg [CORES-1:0] open;
  reg [CORES-1:0] asked;
  reg [W_JOBS-1:0] head;
  reg [W_JOBS-1:0] best;
  reg [W_JOB-1:0] piece;
  reg fits;
  reg company;
  // How many members the job has; 0: it runs on one core.
  integer members;
  integer number;
  integer round;
  integer q;
  integer best_queue;
  integer core;
  integer best_core;
  integer count;
  integer fewest;
  integer t;
  integer place;
  always @* begin
    taken = reset ? ~exists : (occupied & ~ended) | ~exists;
    left = reset ? firsts : heads;
    admit = 0;
    admit_job = 0;
    stuck = 0;
    kept = 0;
    trial = 0;
    open = 0;
    asked = 0;
    head = 0;
    piece = 0;
    fits = 1'b0;
    company = 1'b0;
    members = 0;
    number = 0;
    core = 0;
    best_core = 0;
    count = 0;
    fewest = 0;
    t = 0;
    place = 0;
    best = 0;
    best_queue = 0;
    for (round = 0; round < ROUNDS; round = round + 1) begin
      // The first job in the order of posting that has not been looked at.
      best = POSTED;
      best_queue = 0;
      for (q = 0; q < QUEUES; q = q + 1) begin
        head = left[q*JOBS_B +: W_JOBS];
        if (!stuck[q] && head < jobs_posted && head < best) begin
          best = head;
          best_queue = q;
        end
      end
      if (best != POSTED) begin
        asked = Q_CORES[best_queue*Q_CORES_B +: Q_CORES_B];
        for (core = 0; core < CORES; core = core + 1)
          open[core] = asked[core] && !(&taken[core*STRIDE +: STRIDE]) && !kept[core];
        members = 0;
        if (Q_SPLIT[best_queue*Q_SPLIT_B +: Q_SPLIT_B] == FIXED)
          members = Q_MEMBERS[best_queue*Q_MEMBERS_B +: Q_MEMBERS_B];
        if (Q_SPLIT[best_queue*Q_SPLIT_B +: Q_SPLIT_B] == AUTO) begin
          // Whether any other job waits that could use one of these cores.
          company = 1'b0;
          for (q = 0; q < QUEUES; q = q + 1) begin
            head = left[q*JOBS_B +: W_JOBS];
            if (q == best_queue) head = J_NEXT[best*J_NEXT_B +: W_JOBS];
            if (head < jobs_posted && (Q_CORES[q*Q_CORES_B +: Q_CORES_B] & asked) != 0) company = 1'b1;
          end
          if (!company)
            for (core = 0; core < CORES; core = core + 1)
              if (open[core] && members < J_MOST[best*J_MOST_B +: J_MOST_B]) members = members + 1;
          if (members == 1) members = 0;
        end
        trial = taken;
        fits = open != 0;
        if (members == 0) begin
          // The core with the fewest occupied contexts.
          fewest = STRIDE + 1;
          best_core = 0;
          for (core = CORES - 1; core >= 0; core = core - 1) begin
            count = 0;
            for (t = 0; t < STRIDE; t = t + 1)
              if (taken[core*STRIDE+t] && exists[core*STRIDE+t]) count = count + 1;
            if (open[core] && count <= fewest) begin
              fewest = count;
              best_core = core;
            end
          end
        end
        number = 0;
        // The job's cores in the order of its members; one that runs on one core needs one place.
        for (q = 0; q < MOST_PLACES; q = q + 1)
          if (q < Q_MEMBERS[best_queue*Q_MEMBERS_B +: Q_MEMBERS_B] && (members != 0 ? number < members : q == 0)) begin
            place = Q_PLACE[best_queue*Q_PLACE_B +: Q_PLACE_B] + q;
            core = members == 0 ? best_core : QP_CORE[place*QP_CORE_B +: QP_CORE_B];
            if (open[core] && !(&trial[core*STRIDE +: STRIDE])) begin
              place = 0;
              for (t = STRIDE - 1; t >= 0; t = t - 1)
                if (!trial[core*STRIDE+t]) place = core * STRIDE + t;
              trial[place] = 1'b1;
              piece = best;
              // Behind the posted jobs: members but the first; with `auto` all members of 2 cores, of 3, ...
              if (members != 0 && Q_SPLIT[best_queue*Q_SPLIT_B +: Q_SPLIT_B] == AUTO) begin
                piece = J_MORE[best*J_MORE_B +: W_JOB] + number;
                for (t = 2; t < MOST_MEMBERS; t = t + 1)
                  if (t < members) piece = piece + t;
              end else if (number != 0) piece = J_MORE[best*J_MORE_B +: W_JOB] + number - 1;
              for (t = 0; t < CONTEXTS; t = t + 1)
                if (t == place) admit_job[t*W_JOB +: W_JOB] = piece;
              number = number + 1;
            end
          end
        if (members != 0 && number < members) fits = 1'b0;
        if (fits) begin
          admit = admit | (trial & ~taken);
          taken = trial;
          left[best_queue*JOBS_B +: JOBS_B] = J_NEXT[best*J_NEXT_B +: W_JOBS];
        end else begin
          stuck[best_queue] = 1'b1;
          kept = kept | asked;
        end
      end
    end
  end

  always @(posedge clock) begin
    occupied <= taken & exists;
    heads <= left;
  end
endmodule

`default_nettype wire
