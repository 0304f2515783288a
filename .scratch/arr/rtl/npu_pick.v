// What the datapath takes from this design's cells. Written by lstmsim.
`default_nettype none
`ifndef NPU_TIMING_ONLY

module npu_pick_c0 (row, number, sums, picked, shifts);
localparam ACCUMULATOR_BITS = 32;
localparam W_ROW = 1;
localparam W_NUMBER = 2;
localparam C_ROWS_B = 32;
localparam [31:0] C_ROWS = {32'd8};
localparam C_TAIL_WIDTH_B = 32;
localparam [31:0] C_TAIL_WIDTH = {32'd1};
localparam SHIFT_BITS = 1;
localparam D_SUMS_B = 32;
localparam [31:0] D_SUMS = {32'd4};
localparam D_SLOTS_B = 32;
localparam [31:0] D_SLOTS = {32'd1};
  localparam integer ARRAY_ROWS = C_ROWS[0 * C_ROWS_B +: C_ROWS_B];
  localparam integer WIDTH = C_TAIL_WIDTH[0 * C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B];
  localparam integer SUMS = D_SUMS[0 * D_SUMS_B +: D_SUMS_B];
  localparam integer SLOTS = D_SLOTS[0 * D_SLOTS_B +: D_SLOTS_B];
  input wire [W_ROW-1:0] row;
  input wire [W_NUMBER-1:0] number;
  input wire [ARRAY_ROWS*SLOTS*ACCUMULATOR_BITS-1:0] sums;
  output wire [WIDTH*SUMS*ACCUMULATOR_BITS-1:0] picked;
  output wire [SUMS*SHIFT_BITS-1:0] shifts;
  // Word r * SLOTS + k is sum k of row r; rows of a turn are together. Behind the last row are zeros.
  wire [8*ACCUMULATOR_BITS-1:0] padded = sums;
  reg [4*ACCUMULATOR_BITS-1:0] part;
  reg [WIDTH*SUMS*ACCUMULATOR_BITS-1:0] result;
  integer i;
  always @* begin
    part = 0;
    result = 0;
    case (row)
      default: begin // lstm, stage 0
        for (i = 0; i < 2; i = i + 1)
          if (number == i) part[0 +: 4*ACCUMULATOR_BITS] = padded[i*4*ACCUMULATOR_BITS +: 4*ACCUMULATOR_BITS];
        for (i = 0; i < WIDTH; i = i + 1) begin
          result[(i*SUMS+0)*ACCUMULATOR_BITS +: ACCUMULATOR_BITS] = part[(i*4+0)*ACCUMULATOR_BITS +: ACCUMULATOR_BITS];
          result[(i*SUMS+1)*ACCUMULATOR_BITS +: ACCUMULATOR_BITS] = part[(i*4+1)*ACCUMULATOR_BITS +: ACCUMULATOR_BITS];
          result[(i*SUMS+2)*ACCUMULATOR_BITS +: ACCUMULATOR_BITS] = part[(i*4+2)*ACCUMULATOR_BITS +: ACCUMULATOR_BITS];
          result[(i*SUMS+3)*ACCUMULATOR_BITS +: ACCUMULATOR_BITS] = part[(i*4+3)*ACCUMULATOR_BITS +: ACCUMULATOR_BITS];
        end
      end
    endcase
  end
  assign picked = result;
  assign shifts = 0;
endmodule

module npu_slots_c0 (read, slots);
localparam W_READ = 1;
localparam C_ROWS_B = 32;
localparam [31:0] C_ROWS = {32'd8};
localparam D_SLOTS_B = 32;
localparam [31:0] D_SLOTS = {32'd1};
  localparam integer ARRAY_ROWS = C_ROWS[0 * C_ROWS_B +: C_ROWS_B];
  localparam integer SLOTS = D_SLOTS[0 * D_SLOTS_B +: D_SLOTS_B];
  input wire [W_READ-1:0] read;
  output wire [ARRAY_ROWS*SLOTS-1:0] slots;
  reg [ARRAY_ROWS*SLOTS-1:0] result;
  always @*
    case (read)
      default: result = {2{4'b1111}};
    endcase
  assign slots = result;
endmodule

module npu_pick #(parameter CORE = 0) (row, number, sums, picked, shifts);
localparam ACCUMULATOR_BITS = 32;
localparam W_ROW = 1;
localparam W_NUMBER = 2;
localparam C_ROWS_B = 32;
localparam [31:0] C_ROWS = {32'd8};
localparam C_TAIL_WIDTH_B = 32;
localparam [31:0] C_TAIL_WIDTH = {32'd1};
localparam SHIFT_BITS = 1;
localparam D_SUMS_B = 32;
localparam [31:0] D_SUMS = {32'd4};
localparam D_SLOTS_B = 32;
localparam [31:0] D_SLOTS = {32'd1};
  localparam integer ARRAY_ROWS = C_ROWS[CORE * C_ROWS_B +: C_ROWS_B];
  localparam integer WIDTH = C_TAIL_WIDTH[CORE * C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B];
  localparam integer SUMS = D_SUMS[CORE * D_SUMS_B +: D_SUMS_B];
  localparam integer SLOTS = D_SLOTS[CORE * D_SLOTS_B +: D_SLOTS_B];
  input wire [W_ROW-1:0] row;
  input wire [W_NUMBER-1:0] number;
  input wire [ARRAY_ROWS*SLOTS*ACCUMULATOR_BITS-1:0] sums;
  output wire [WIDTH*SUMS*ACCUMULATOR_BITS-1:0] picked;
  output wire [SUMS*SHIFT_BITS-1:0] shifts;
  generate
    if (CORE == 0) begin : core_0
      npu_pick_c0 own (.row(row), .number(number), .sums(sums), .picked(picked), .shifts(shifts));
    end
  endgenerate
endmodule

module npu_slots #(parameter CORE = 0) (read, slots);
localparam W_READ = 1;
localparam C_ROWS_B = 32;
localparam [31:0] C_ROWS = {32'd8};
localparam D_SLOTS_B = 32;
localparam [31:0] D_SLOTS = {32'd1};
  localparam integer ARRAY_ROWS = C_ROWS[CORE * C_ROWS_B +: C_ROWS_B];
  localparam integer SLOTS = D_SLOTS[CORE * D_SLOTS_B +: D_SLOTS_B];
  input wire [W_READ-1:0] read;
  output wire [ARRAY_ROWS*SLOTS-1:0] slots;
  generate
    if (CORE == 0) begin : core_0
      npu_slots_c0 own (.read(read), .slots(slots));
    end
  endgenerate
endmodule

module npu_lanes #(parameter CORE = 0) (
  clock, reset, host_write, host_address, host_data, d_valid, d_thread, d_job, d_row, d_segment, d_step, d_block,
  d_bank, d_turn, d_number, d_unit, d_units, d_constant, d_parameter, d_write, d_zero, d_initial, d_last_turn,
  d_last_block, d_last_step, sums, y
);
localparam VECTOR_BITS = 8;
localparam TAIL_BITS = 16;
localparam W_THREAD = 1;
localparam W_JOB = 1;
localparam W_ROW = 1;
localparam W_SEGMENT = 1;
localparam W_STEP = 3;
localparam W_BLOCK = 2;
localparam W_UNIT = 3;
localparam W_BANK = 2;
localparam W_ELEMENT = 5;
localparam W_CONSTANT = 3;
localparam W_TURN = 4;
localparam W_NUMBER = 2;
localparam C_TAIL_WIDTH_B = 32;
localparam [31:0] C_TAIL_WIDTH = {32'd1};
localparam C_DEPTH_B = 32;
localparam [31:0] C_DEPTH = {32'd40};
localparam C_MEMORIES_B = 32;
localparam [31:0] C_MEMORIES = {32'd1};
localparam D_SUMS_B = 32;
localparam [31:0] D_SUMS = {32'd4};
  localparam integer WIDTH = C_TAIL_WIDTH[CORE * C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B];
  localparam integer SUMS = D_SUMS[CORE * D_SUMS_B +: D_SUMS_B];
  localparam integer D = C_DEPTH[CORE * C_DEPTH_B +: C_DEPTH_B];
  localparam integer MEMORIES = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];
  input wire clock;
  input wire reset;
  input wire host_write;
  input wire [31:0] host_address;
  input wire [31:0] host_data;
  input wire [D:0] d_valid;
  input wire [(D+1)*W_THREAD-1:0] d_thread;
  input wire [(D+1)*W_JOB-1:0] d_job;
  input wire [(D+1)*W_ROW-1:0] d_row;
  input wire [(D+1)*W_SEGMENT-1:0] d_segment;
  input wire [(D+1)*W_STEP-1:0] d_step;
  input wire [(D+1)*W_BLOCK-1:0] d_block;
  input wire [(D+1)*W_BANK-1:0] d_bank;
  input wire [(D+1)*W_TURN-1:0] d_turn;
  input wire [(D+1)*W_NUMBER-1:0] d_number;
  input wire [(D+1)*W_UNIT-1:0] d_unit;
  input wire [(D+1)*W_UNIT-1:0] d_units;
  input wire [(D+1)*W_CONSTANT-1:0] d_constant;
  input wire [(D+1)*W_TURN-1:0] d_parameter;
  input wire [(D+1)*W_ELEMENT-1:0] d_write;
  input wire [D:0] d_zero;
  input wire [D:0] d_initial;
  input wire [D:0] d_last_turn;
  input wire [D:0] d_last_block;
  input wire [D:0] d_last_step;
  input wire [WIDTH*SUMS*TAIL_BITS-1:0] sums;
  output wire [MEMORIES*WIDTH*VECTOR_BITS-1:0] y;
  generate
    if (CORE == 0) begin : core_0
      npu_lanes_c0 #(.D(D)) own (
        .clock(clock), .reset(reset), .host_write(host_write), .host_address(host_address), .host_data(host_data),
        .d_valid(d_valid), .d_thread(d_thread), .d_job(d_job), .d_row(d_row), .d_segment(d_segment), .d_step(d_step),
        .d_block(d_block), .d_bank(d_bank), .d_turn(d_turn), .d_number(d_number), .d_unit(d_unit), .d_units(d_units),
        .d_constant(d_constant), .d_parameter(d_parameter), .d_write(d_write), .d_zero(d_zero), .d_initial(d_initial),
        .d_last_turn(d_last_turn), .d_last_block(d_last_block), .d_last_step(d_last_step), .sums(sums),
        .y_0_0(y[0*WIDTH*VECTOR_BITS +: WIDTH*VECTOR_BITS])
      );
    end
  endgenerate
endmodule

`endif
