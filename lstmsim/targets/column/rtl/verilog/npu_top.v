// A chip: cores that share nothing but the dispatcher of jobs and the host's bus.
`default_nettype none

module npu_top (clock, reset, jobs_posted, frames_posted, jobs_ended, host_write, host_address, host_data);
  `include "npu_config.vh"
  localparam STRIDE = 1 << W_THREAD;

  input wire clock;
  // Synchronous, and high in the cycle before cycle 0.
  input wire reset;
  // How many jobs, and of each job how many frames, the host has posted. A job that is counted in cycle a - 1 may issue
  // in cycle a; a frame may be read in the cycle in which it is counted.
  input wire [W_JOBS-1:0] jobs_posted;
  input wire [JOBS*W_STEP-1:0] frames_posted;
  // Jobs that have finished.
  output reg [JOBS-1:0] jobs_ended;
  // The host's bus: it fills the memories, a word a cycle.
  input wire host_write;
  input wire [31:0] host_address;
  input wire [31:0] host_data;

  wire [CORES*STRIDE-1:0] ended;
  wire [CORES*STRIDE-1:0] admit;
  wire [CORES*STRIDE*W_JOB-1:0] admit_job;

  npu_dispatch dispatch (
    .clock(clock), .reset(reset), .jobs_posted(jobs_posted), .ended(ended), .admit(admit), .admit_job(admit_job)
  );

  genvar g;
  generate
    for (g = 0; g < CORES; g = g + 1) begin : cores
      localparam integer THREADS = C_THREADS[g * C_THREADS_B +: C_THREADS_B];
      npu_core #(.CORE(g)) core (
        .clock(clock), .reset(reset),
        .admit(admit[g*STRIDE +: THREADS]), .admit_job(admit_job[g*STRIDE*W_JOB +: THREADS*W_JOB]),
        .ended(ended[g*STRIDE +: THREADS]), .frames_posted(frames_posted),
        .host_write(host_write), .host_address(host_address), .host_data(host_data)
      );
      if (THREADS < STRIDE) begin : none
        assign ended[g*STRIDE+THREADS +: STRIDE-THREADS] = 0;
      end
    end
  endgenerate

  // Whose job is in a context is known when it takes it.
  reg [CORES*STRIDE*W_JOB-1:0] job;
  integer c;
  always @(posedge clock) begin
    for (c = 0; c < CORES * STRIDE; c = c + 1) begin
      if (ended[c] && !reset) jobs_ended[job[c*W_JOB +: W_JOB]] <= 1'b1;
      if (admit[c]) job[c*W_JOB +: W_JOB] <= admit_job[c*W_JOB +: W_JOB];
    end
    if (reset) jobs_ended <= 0;
  end
endmodule

`default_nettype wire
