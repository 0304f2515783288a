// A host: it fills the memories from data/*.hex by the host's bus, and then posts jobs and frames at their cycles. It
// counts the frames of all jobs, and tells the chip those of the jobs that the chip names.
`default_nettype none

module npu_host (clock, loaded, jobs_posted, frames_job, frames_posted, host_write, host_address, host_data);
  `include "npu_config.vh"
  localparam CONTEXTS = CORES << W_THREAD;

  input wire clock;
  // The memories are filled: the next edge begins cycle -1.
  output reg loaded;
  output reg [W_JOBS-1:0] jobs_posted;
  input wire [CONTEXTS*W_JOB-1:0] frames_job;
  output reg [CONTEXTS*W_STEP-1:0] frames_posted;
  output reg host_write;
  output reg [31:0] host_address;
  output reg [31:0] host_data;

  // The frames that are there of each job.
  reg [POSTED*W_STEP-1:0] counts;
  integer c;
  always @*
    for (c = 0; c < CONTEXTS; c = c + 1)
      frames_posted[c*W_STEP +: W_STEP] = counts[frames_job[c*W_JOB +: W_JOB]*W_STEP +: W_STEP];

  integer file;
  integer files_read;
  integer fields;
  integer words;
  reg [31:0] address;
  reg [31:0] data;
  task next_file;
    begin
      case (files_read)
        0: file = $fopen("data/weights.hex", "r");
        1: file = $fopen("data/frames.hex", "r");
        2: file = $fopen("data/constants.hex", "r");
        3: file = $fopen("data/tables.hex", "r");
        4: file = $fopen("data/parameters.hex", "r");
        5: file = $fopen("data/initial.hex", "r");
        default: file = $fopen("data/jobs.hex", "r");
      endcase
      files_read = files_read + 1;
    end
  endtask
  task load;
    // The next word of the files goes on the bus.
    begin
      fields = 0;
      words = 1;
      while (fields != 2 && words != 0) begin
        if (file == 0) begin
          if (files_read == 7) words = 0;
          else next_file;
        end else begin
          fields = $fscanf(file, "%h %h\n", address, data);
          if (fields != 2) begin
            $fclose(file);
            file = 0;
          end
        end
      end
      host_write <= fields == 2;
      host_address <= address;
      host_data <= data;
      loaded <= words == 0;
    end
  endtask

  // The next cycle.
  integer now;
  // The next cycle in which something is posted; jobs before `settled` have all their frames.
  integer due;
  integer settled;
  integer posted;
  integer frames [0:POSTED-1];
  integer next_frame [0:POSTED-1];
  integer j;
  task post;
    // Jobs and frames that are there from the cycle behind `now` on.
    begin
      while (posted < POSTED && arrival_of(posted) <= now + 1) begin
        frames[posted] = interval_of(posted) == 0 ? steps_of(posted) : 1;
        next_frame[posted] = arrival_of(posted) + interval_of(posted);
        counts[posted*W_STEP +: W_STEP] <= frames[posted];
        posted = posted + 1;
      end
      jobs_posted <= posted;
      due = posted < POSTED ? arrival_of(posted) : 32'h7fffffff;
      for (j = settled; j < posted; j = j + 1)
        if (frames[j] < steps_of(j)) begin
          if (next_frame[j] <= now + 1) begin
            frames[j] = frames[j] + 1;
            next_frame[j] = next_frame[j] + interval_of(j);
            counts[j*W_STEP +: W_STEP] <= frames[j];
          end
          if (frames[j] < steps_of(j) && next_frame[j] < due) due = next_frame[j];
        end else if (j == settled) settled = settled + 1;
    end
  endtask
  function integer arrival_of(input integer job);
    arrival_of = J_ARRIVAL[job*J_ARRIVAL_B +: J_ARRIVAL_B];
  endfunction
  function integer interval_of(input integer job);
    interval_of = J_FRAME_INTERVAL[job*J_FRAME_INTERVAL_B +: J_FRAME_INTERVAL_B];
  endfunction
  function integer steps_of(input integer job);
    steps_of = J_STEPS[job*J_STEPS_B +: J_STEPS_B];
  endfunction

  initial begin
`ifdef NPU_TIMING_ONLY
    loaded = 1'b1;
`else
    loaded = 1'b0;
`endif
    jobs_posted = 0;
    counts = 0;
    host_write = 1'b0;
    host_address = 0;
    host_data = 0;
    file = 0;
    files_read = 0;
    now = -1;
    due = 0;
    settled = 0;
    posted = 0;
  end
  always @(posedge clock)
    if (!loaded) load;
    else begin
      if (now + 1 >= due) post;
      now = now + 1;
    end
endmodule

`default_nettype wire
