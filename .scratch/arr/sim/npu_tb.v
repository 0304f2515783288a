// The chip, its host (npu_host.v), and a log: events.txt, to be compared with golden/events.txt. Runs in the folder of
// the design. Admissions and ends of jobs are taken from where a host learns them: the ports.
//
// NPU_NETLIST: npu_top has ports only, as after synthesis, so the log has admissions, ends and h alone.
// +limit=N ends the simulation after cycle N; +vcd=FILE dumps all signals.
`default_nettype none

module npu_tb;
  `include "npu_config.vh"
  localparam STRIDE = 1 << W_THREAD;
  localparam CONTEXTS = CORES * STRIDE;

  reg clock, reset;
  wire loaded;
  wire [W_JOBS-1:0] jobs_posted;
  wire [CONTEXTS*W_JOB-1:0] frames_job, ended_job, admit_job;
  wire [CONTEXTS*W_STEP-1:0] frames_posted;
  wire [CONTEXTS-1:0] jobs_ended, admit;
  wire host_write;
  wire [31:0] host_address, host_data;

  // What becomes visible, by vector memory of all cores.
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
  wire [MEMORIES-1:0] h_valid;
  wire [MEMORIES*W_JOB-1:0] h_job;
  wire [MEMORIES*W_ROW-1:0] h_row;
  wire [MEMORIES*W_STEP-1:0] h_step;
  wire [MEMORIES*W_UNIT-1:0] h_unit, h_count;
  wire [MEMORIES*MOST_Y-1:0] h_word;

  wire m_valid, m_ready, m_done, m_write;
  wire [W_CONTEXT-1:0] m_context, m_done_context, m_write_context;
  wire [W_STREAM-1:0] m_block;
  wire [W_BURST-1:0] m_burst;
  wire [W_WEIGHT-1:0] m_place, m_write_place;
  wire [MOST_TILE_BITS-1:0] m_word;

  npu_host host (
    .clock(clock), .loaded(loaded), .jobs_posted(jobs_posted), .frames_job(frames_job), .frames_posted(frames_posted),
    .host_write(host_write), .host_address(host_address), .host_data(host_data)
  );
  npu_top dut (
    .clock(clock), .reset(reset), .jobs_posted(jobs_posted), .frames_job(frames_job),
    .frames_posted(frames_posted), .jobs_ended(jobs_ended), .ended_job(ended_job),
    .jobs_admitted(admit), .admitted_job(admit_job),
    .host_write(host_write), .host_address(host_address), .host_data(host_data),
    .h_valid(h_valid), .h_job(h_job), .h_row(h_row), .h_step(h_step), .h_unit(h_unit), .h_count(h_count),
    .h_word(h_word), .m_valid(m_valid), .m_context(m_context), .m_block(m_block), .m_burst(m_burst), .m_place(m_place),
    .m_ready(m_ready), .m_done(m_done), .m_done_context(m_done_context), .m_write(m_write),
    .m_write_context(m_write_context), .m_write_place(m_write_place), .m_word(m_word)
  );
  npu_weight_store store (
    .clock(clock), .reset(reset), .m_valid(m_valid), .m_context(m_context), .m_block(m_block), .m_burst(m_burst),
    .m_place(m_place), .m_ready(m_ready), .m_done(m_done), .m_done_context(m_done_context), .m_write(m_write),
    .m_write_context(m_write_context), .m_write_place(m_write_place), .m_word(m_word)
  );

  // The number of the present cycle; -1 is the cycle before cycle 0, in which the reset is still high.
  integer cycle, limit, log_file, ended_jobs;
  reg done;
  reg [8*256-1:0] vcd_name;

  initial begin
    clock = 1'b0;
    reset = 1'b1;
    cycle = -2;
    ended_jobs = 0;
    if (!$value$plusargs("limit=%d", limit)) limit = 0;
    if ($value$plusargs("vcd=%s", vcd_name)) begin
      $dumpfile(vcd_name);
      $dumpvars(0, npu_tb);
    end
    log_file = $fopen("events.txt", "w");
  end
  always #1 clock = !clock;

`ifndef NPU_NETLIST
  // The signals that the log reads, of all cores side by side.
  wire [CORES*W_THREAD-1:0] o_thread;
  wire [CORES*W_JOB-1:0] o_job;
  wire [CORES*W_ROW-1:0] o_row;
  wire [CORES*W_READ-1:0] o_read;
  wire [CORES*W_STEP-1:0] o_step;
  wire [CORES*W_BLOCK-1:0] o_block;
  wire [CORES*W_GROUP-1:0] o_group;
  wire [CORES-1:0] o_valid, t_valid;
  wire [CORES*3-1:0] names;
`endif
  // What was known in the cycle before of this one.
  reg [MEMORIES-1:0] seen_valid;
  reg [MEMORIES*W_JOB-1:0] seen_job;
  reg [MEMORIES*W_ROW-1:0] seen_row;
  reg [MEMORIES*W_STEP-1:0] seen_step;
  reg [MEMORIES*W_UNIT-1:0] seen_unit, seen_count;
  reg [MEMORIES*MOST_Y-1:0] seen_word;
  always @(posedge clock) begin
    seen_valid <= h_valid;
    seen_job <= h_job;
    seen_row <= h_row;
    seen_step <= h_step;
    seen_unit <= h_unit;
    seen_count <= h_count;
    seen_word <= h_word;
  end
`ifndef NPU_NETLIST
  genvar g;
  generate
    for (g = 0; g < CORES; g = g + 1) begin : logged
      if (C_MEMORIES[g*C_MEMORIES_B +: C_MEMORIES_B] == 0) begin : empty
        assign o_valid[g] = 1'b0;
        assign t_valid[g] = 1'b0;
        assign names[g*3 +: 3] = 3'd6;
      end else begin : built
        assign o_valid[g] = dut.cores[g].built.core.o_valid;
        assign o_thread[g*W_THREAD +: W_THREAD] = dut.cores[g].built.core.o_thread;
        assign o_job[g*W_JOB +: W_JOB] = dut.cores[g].built.core.o_job;
        assign o_row[g*W_ROW +: W_ROW] = dut.cores[g].built.core.o_row;
        assign o_read[g*W_READ +: W_READ] = dut.cores[g].built.core.o_read;
        assign o_step[g*W_STEP +: W_STEP] = dut.cores[g].built.core.o_step;
        assign o_block[g*W_BLOCK +: W_BLOCK] = dut.cores[g].built.core.o_block;
        assign o_group[g*W_GROUP +: W_GROUP] = dut.cores[g].built.core.o_group;
        // The contract's cycle of a turn is CONVERT cycles behind the choice.
        assign t_valid[g] = dut.cores[g].built.core.d_valid[C_CONVERT[g*C_CONVERT_B +: C_CONVERT_B]];
        assign names[g*3 +: 3] = dut.cores[g].built.core.cycle_name;
      end
    end
  endgenerate
`endif

  task end_line(input integer core);
    // The core is the last field where there are several.
    begin
      if (CORES > 1) $fwrite(log_file, " %0d", core);
      $fwrite(log_file, "\n");
    end
  endtask

`ifndef NPU_NETLIST
  task log_tile(input integer core);
    begin
      $fwrite(log_file, "I %0d %0d %0d %0d %0d %0d %0d %0d", cycle,
        o_thread[core*W_THREAD +: W_THREAD],
        J_PARENT[o_job[core*W_JOB +: W_JOB] * J_PARENT_B +: J_PARENT_B],
        P_NUMBER[o_row[core*W_ROW +: W_ROW] * P_NUMBER_B +: P_NUMBER_B], o_step[core*W_STEP +: W_STEP],
        o_block[core*W_BLOCK +: W_BLOCK], R_CODE[o_read[core*W_READ +: W_READ] * R_CODE_B +: R_CODE_B],
        o_group[core*W_GROUP +: W_GROUP]);
      end_line(core);
    end
  endtask

  task log_name(input integer core);
    begin
      $fwrite(log_file, "C %0d ", cycle);
      case (names[core*3 +: 3])
        3'd0: $fwrite(log_file, "busy");
        3'd1: $fwrite(log_file, "switch");
        3'd2: $fwrite(log_file, "hazard");
        3'd3: $fwrite(log_file, "backpressure");
        3'd4: $fwrite(log_file, "input");
        3'd5: $fwrite(log_file, "drain");
        3'd7: $fwrite(log_file, "weights");
        default: $fwrite(log_file, "idle");
      endcase
      end_line(core);
    end
  endtask
`endif

  integer c;

  task log_ends;
    // In the order of contexts.
    for (c = 0; c < CONTEXTS; c = c + 1)
      if (jobs_ended[c]) begin
        $fwrite(log_file, "F %0d %0d", cycle, ended_job[c*W_JOB +: W_JOB]);
        end_line(c / STRIDE);
        ended_jobs = ended_jobs + 1;
      end
  endtask

  integer last, last_place;
  integer best;
  task log_admissions;
    // In the order of jobs, then of contexts.
    begin
      {last, last_place} = -64'd1;
      best = 0;
      while (best < CONTEXTS) begin
        best = CONTEXTS;
        for (c = CONTEXTS - 1; c >= 0; c = c - 1)
          if (admit[c] && (job_of(c) > last || (job_of(c) == last && c > last_place))
              && (best == CONTEXTS || job_of(c) <= job_of(best))) best = c;
        if (best < CONTEXTS) begin
          last = job_of(best);
          last_place = best;
          $fwrite(log_file, "A %0d %0d %0d", cycle, best % STRIDE, last);
          end_line(best / STRIDE);
        end
      end
    end
  endtask
  function integer job_of(input integer entry);
    job_of = admit_job[entry*W_JOB +: W_JOB];
  endfunction

`ifndef NPU_TIMING_ONLY
  reg [MOST_Y-1:0] word;
  integer count;
  integer place;
  task log_h(input integer core, input integer memory);
    // Elements behind the count are written as 0; a digit that is unknown is an x in the log.
    begin
      count = seen_count[memory*W_UNIT +: W_UNIT];
      $fwrite(log_file, "H %0d %0d %0d %0d %0d %0d ", cycle, seen_job[memory*W_JOB +: W_JOB],
        P_NUMBER[seen_row[memory*W_ROW +: W_ROW] * P_NUMBER_B +: P_NUMBER_B], seen_step[memory*W_STEP +: W_STEP],
        seen_unit[memory*W_UNIT +: W_UNIT], count);
      word = seen_word[memory*MOST_Y +: MOST_Y];
      for (place = 0; place < MOST_Y; place = place + 1)
        if (place >= count * VECTOR_BITS) word[place] = 1'b0;
      for (place = (C_TAIL_WIDTH[core*C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B] * VECTOR_BITS + 3) / 4 - 1; place >= 0;
          place = place - 1)
        $fwrite(log_file, "%h", nibble(place));
      end_line(core);
    end
  endtask
  function [3:0] nibble(input integer place);
    integer i;
    for (i = 0; i < 4; i = i + 1)
      nibble[i] = place * 4 + i < MOST_Y ? word[place * 4 + i] : 1'b0;
  endfunction

  integer memory;
  task log_visible;
    for (c = 0; c < CORES; c = c + 1)
      for (memory = C_MEMORY[c*C_MEMORY_B +: C_MEMORY_B];
          memory < C_MEMORY[c*C_MEMORY_B +: C_MEMORY_B] + C_MEMORIES[c*C_MEMORIES_B +: C_MEMORIES_B];
          memory = memory + 1)
        // Slot 0 is h; the log has no other vectors.
        if (seen_valid[memory] && M_SLOT[memory*M_SLOT_B +: M_SLOT_B] == 0) log_h(c, memory);
  endtask

`ifndef NPU_NETLIST
  // Generated: log_sums and log_states, which log numbers within the tail, or nothing.
  `include "npu_deep.vh"
`endif
`endif

  always @(posedge clock) begin
    if (cycle < -1) begin
      if (loaded) cycle <= -1;
    end else begin
      done = 1'b0;
      if (cycle >= 0) begin
`ifndef NPU_TIMING_ONLY
        log_visible;
`endif
        if (|jobs_ended) log_ends;
        done = ended_jobs == POSTED || (limit != 0 && cycle > limit);
      end
      if (cycle >= 0 && !done) begin
        if (|admit) log_admissions;
`ifndef NPU_NETLIST
        for (c = 0; c < CORES; c = c + 1)
          if (o_valid[c]) log_tile(c);
        for (c = 0; c < CORES; c = c + 1)
          if (t_valid[c]) begin
            $fwrite(log_file, "T %0d", cycle);
            end_line(c);
          end
`ifndef NPU_TIMING_ONLY
        log_sums;
        log_states;
`endif
        for (c = 0; c < CORES; c = c + 1)
          log_name(c);
`endif
      end
      cycle <= cycle + 1;
      reset <= 1'b0;
      if (done) begin
        $fclose(log_file);
        $finish;
      end
    end
  end
endmodule

`default_nettype wire
