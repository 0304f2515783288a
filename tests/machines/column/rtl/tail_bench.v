// Feeds the tail with the blocks that a trace of the simulator says, and writes down all that it says.
`default_nettype none

module tail_bench;
`include "npu_config.vh"
  parameter CORE = 0;
  parameter W_STAMP = 16;
  localparam THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam CONVERT = C_CONVERT[CORE * C_CONVERT_B +: C_CONVERT_B];
  localparam OUTPUTS = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];
  localparam D = C_DEPTH[CORE * C_DEPTH_B +: C_DEPTH_B];

  reg clock = 1'b0;
  reg reset = 1'b1;
  always #1 clock = !clock;
  integer cycle = -1;
  integer tokens, log, last, got, i;
  integer at, thread, job, row, step, block, bank, turn, unit, units, constant, write;

  reg b_valid = 1'b0;
  reg [W_THREAD-1:0] b_thread;
  reg [W_JOB-1:0] b_job;
  reg [W_ROW-1:0] b_row;
  reg [W_STEP-1:0] b_step;
  reg [W_BLOCK-1:0] b_block;
  reg [W_BANK-1:0] b_bank;
  reg [W_TURN-1:0] b_turn;
  reg [W_UNIT-1:0] b_unit;
  reg [W_UNIT-1:0] b_units;
  reg [W_CONSTANT-1:0] b_constant;
  reg [W_ELEMENT-1:0] b_write;

  wire [D:0] d_valid, d_zero, d_initial, d_last_turn, d_last_block, d_last_step;
  wire [(D+1)*W_THREAD-1:0] d_thread;
  wire [(D+1)*W_JOB-1:0] d_job;
  wire [(D+1)*W_ROW-1:0] d_row;
  wire [(D+1)*W_SEGMENT-1:0] d_segment;
  wire [(D+1)*W_STEP-1:0] d_step;
  wire [(D+1)*W_BLOCK-1:0] d_block;
  wire [(D+1)*W_NUMBER-1:0] d_number;
  wire [(D+1)*W_TURN-1:0] d_parameter;
  wire [(D+1)*W_UNIT-1:0] d_unit, d_units;
  wire [OUTPUTS-1:0] w_valid, w_last;
  wire [OUTPUTS*W_THREAD-1:0] w_thread;
  wire [OUTPUTS*W_COUNTER-1:0] w_counter;
  wire [OUTPUTS*W_UNIT-1:0] w_units, w_count;
  wire [OUTPUTS*W_ELEMENT-1:0] w_element;
  wire f_valid;
  wire [W_THREAD-1:0] f_thread;
  wire [THREADS-1:0] e_valid;

  npu_tail #(.CORE(CORE), .W_STAMP(W_STAMP)) tail (
    .clock(clock), .reset(reset), .b_valid(b_valid), .b_thread(b_thread), .b_job(b_job), .b_row(b_row),
    .b_step(b_step), .b_block(b_block), .b_bank(b_bank), .b_turn(b_turn), .b_unit(b_unit), .b_units(b_units),
    .b_constant(b_constant), .b_write(b_write),
    .d_valid(d_valid), .d_zero(d_zero), .d_initial(d_initial), .d_last_turn(d_last_turn),
    .d_last_block(d_last_block), .d_last_step(d_last_step), .d_thread(d_thread), .d_job(d_job), .d_row(d_row),
    .d_segment(d_segment), .d_step(d_step), .d_block(d_block), .d_number(d_number), .d_parameter(d_parameter),
    .d_unit(d_unit), .d_units(d_units),
    .w_valid(w_valid), .w_last(w_last), .w_thread(w_thread), .w_counter(w_counter), .w_units(w_units),
    .w_count(w_count), .w_element(w_element), .f_valid(f_valid), .f_thread(f_thread), .e_valid(e_valid)
  );

  task next;
    begin
      at = -1;
      got = $fscanf(tokens, "%d %d %d %d %d %d %d %d %d %d %d %d\n", at, thread, job, row, step, block, bank, turn,
        unit, units, constant, write);
    end
  endtask

  initial begin
    tokens = $fopen("tokens.txt", "r");
    log = $fopen("log.txt", "w");
    got = $value$plusargs("limit=%d", last);
    next;
  end

  always @(posedge clock) begin
    // what the cycle that ends here said
    if (!reset) begin
      if (d_valid[CONVERT])
        $fdisplay(log, "T %0d %0d %0d %0d %0d %0d %0d %0d %0d %0d %0d%0d%0d%0d", cycle,
          d_thread[CONVERT*W_THREAD +: W_THREAD], d_job[CONVERT*W_JOB +: W_JOB], d_row[CONVERT*W_ROW +: W_ROW],
          d_segment[CONVERT*W_SEGMENT +: W_SEGMENT], d_step[CONVERT*W_STEP +: W_STEP],
          d_block[CONVERT*W_BLOCK +: W_BLOCK], d_number[CONVERT*W_NUMBER +: W_NUMBER],
          d_unit[CONVERT*W_UNIT +: W_UNIT], d_units[CONVERT*W_UNIT +: W_UNIT], d_zero[CONVERT], d_last_turn[CONVERT],
          d_last_block[CONVERT], d_last_step[CONVERT]);
      for (i = 0; i < OUTPUTS; i = i + 1)
        if (w_valid[i])
          $fdisplay(log, "W %0d %0d %0d %0d %0d %0d %0d %0d", cycle, i, w_thread[i*W_THREAD +: W_THREAD],
            w_counter[i*W_COUNTER +: W_COUNTER], w_units[i*W_UNIT +: W_UNIT], w_last[i],
            w_element[i*W_ELEMENT +: W_ELEMENT], w_count[i*W_UNIT +: W_UNIT]);
      if (f_valid) $fdisplay(log, "F %0d %0d", cycle, f_thread);
      for (i = 0; i < THREADS; i = i + 1) begin
        if (e_valid[i] === 1'b1) $fdisplay(log, "E %0d %0d", cycle, i);
        if (e_valid[i] === 1'bx) $fdisplay(log, "E %0d %0d unknown", cycle, i);
      end
    end
    reset <= 1'b0;
    cycle <= cycle + 1;
    if (cycle == last) $finish;
    b_valid <= at == cycle + 1;
    if (at == cycle + 1) begin
      b_thread <= thread;
      b_job <= job;
      b_row <= row;
      b_step <= step;
      b_block <= block;
      b_bank <= bank;
      b_turn <= turn;
      b_unit <= unit;
      b_units <= units;
      b_constant <= constant;
      b_write <= write;
      next;
    end
  end
endmodule
