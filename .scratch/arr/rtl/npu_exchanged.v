// The numbers of the links: what a core sends, out of memories that are written as its vector memories; what it has
// received, a memory for each other core, because all may send in one cycle.
`default_nettype none

module npu_exchanged #(
  parameter CORE = 0
) (
  clock, w_valid, w_element, w_count, y, s_element, s_output, link_data,
  r_valid, r_element, r_count, links_data, o_read, o_group, o_cores, o_element, from, received
);
`include "npu_exchanged.vh"
  localparam integer EP = C_EP[CORE * C_EP_B +: C_EP_B];
  localparam integer THREADS = C_THREADS[CORE * C_THREADS_B +: C_THREADS_B];
  localparam integer WIDTH = C_TAIL_WIDTH[CORE * C_TAIL_WIDTH_B +: C_TAIL_WIDTH_B];
  localparam integer READ = C_READ[CORE * C_READ_B +: C_READ_B];
  localparam integer MEMORIES = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];
  localparam integer FIRST_MEMORY = C_MEMORY[CORE * C_MEMORY_B +: C_MEMORY_B];
  localparam integer RATE = C_RATE[CORE * C_RATE_B +: C_RATE_B];
  localparam integer ELEMENTS = THREADS * M_ELEMENTS[FIRST_MEMORY * M_ELEMENTS_B +: M_ELEMENTS_B];
  localparam DATA = MOST_RATE * VECTOR_BITS;
  localparam [W_CORE-1:0] SELF = CORE;
  // A register behind the memory, if the link is long enough for one.
  localparam SEND_READ = LINK_CYCLES > 1 ? 1 : 0;

  input wire clock;
  input wire [MEMORIES-1:0] w_valid;
  input wire [MEMORIES*W_ELEMENT-1:0] w_element;
  input wire [MEMORIES*W_UNIT-1:0] w_count;
  input wire [MEMORIES*WIDTH*VECTOR_BITS-1:0] y;
  input wire [W_ELEMENT-1:0] s_element;
  input wire [W_OUTPUT-1:0] s_output;
  output wire [DATA-1:0] link_data;
  input wire [CORES-1:0] r_valid;
  input wire [CORES*W_ELEMENT-1:0] r_element;
  input wire [CORES*W_UNIT-1:0] r_count;
  input wire [CORES*DATA-1:0] links_data;
  // The tile that issues, and the core of each member of its job.
  input wire [W_READ-1:0] o_read;
  input wire [W_GROUP-1:0] o_group;
  input wire [MOST_MEMBERS*W_CORE-1:0] o_cores;
  input wire [W_ELEMENT-1:0] o_element;
  // READ cycles behind the issue: by element of the group the core that has computed it, and the group as each core has
  // sent it.
  output wire [EP*W_CORE-1:0] from;
  output wire [CORES*EP*VECTOR_BITS-1:0] received;

  genvar m;
  genvar g;
  wire [MEMORIES*DATA-1:0] kept;
  generate
    for (m = 0; m < MEMORIES; m = m + 1) begin : outputs
      if (M_SENT[(FIRST_MEMORY + m) * M_SENT_B +: M_SENT_B] != 0) begin : sent
        wire [RATE*VECTOR_BITS-1:0] data;
        npu_vector_memory #(
          .EP(RATE), .TAIL_WIDTH(WIDTH), .BITS(VECTOR_BITS), .READ(SEND_READ), .W_ELEMENT(W_ELEMENT), .W_UNIT(W_UNIT),
          .ELEMENTS(ELEMENTS)
        ) vectors (
          .clock(clock), .write(w_valid[m]), .write_element(w_element[m*W_ELEMENT +: W_ELEMENT]),
          .write_count(w_count[m*W_UNIT +: W_UNIT]), .write_data(y[m*WIDTH*VECTOR_BITS +: WIDTH*VECTOR_BITS]),
          .read_element(s_element), .read_data(data)
        );
        wire [DATA-1:0] padded = data;
        assign kept[m*DATA +: DATA] = padded;
      end else begin : stays
        assign kept[m*DATA +: DATA] = {DATA{1'b0}};
      end
    end
  endgenerate
  wire [W_OUTPUT-1:0] output_read;
  npu_delay #(.WIDTH(W_OUTPUT), .CYCLES(SEND_READ)) output_delay (
    .clock(clock), .in(s_output), .out(output_read)
  );
  wire [DATA-1:0] chosen;
  npu_choose #(.WIDTH(DATA), .COUNT(MEMORIES), .INDEX(W_OUTPUT)) one_output (
    .words(kept), .index(output_read), .word(chosen)
  );
  npu_delay #(.WIDTH(DATA), .CYCLES(LINK_CYCLES - 1 - SEND_READ)) way (
    .clock(clock), .in(chosen), .out(link_data)
  );

  generate
    for (g = 0; g < CORES; g = g + 1) begin : cores
      localparam integer THEIRS = C_RATE[g * C_RATE_B +: C_RATE_B];
      if (g == CORE) begin : own
        assign received[g*EP*VECTOR_BITS +: EP*VECTOR_BITS] = {EP*VECTOR_BITS{1'b0}};
      end else begin : other
        npu_vector_memory #(
          .EP(EP), .TAIL_WIDTH(THEIRS), .BITS(VECTOR_BITS), .READ(READ), .W_ELEMENT(W_ELEMENT), .W_UNIT(W_UNIT),
          .ELEMENTS(ELEMENTS)
        ) vectors (
          .clock(clock), .write(r_valid[g]), .write_element(r_element[g*W_ELEMENT +: W_ELEMENT]),
          .write_count(r_count[g*W_UNIT +: W_UNIT]), .write_data(links_data[g*DATA +: THEIRS*VECTOR_BITS]),
          .read_element(o_element), .read_data(received[g*EP*VECTOR_BITS +: EP*VECTOR_BITS])
        );
      end
    end
  endgenerate

  // The core of each element: that of the member whose share it is in.
  reg [EP*W_CORE-1:0] now;
  reg [W_UNIT-1:0] place;
  reg [31:0] need;
  integer i;
  integer n;
  always @* begin
    now = {EP{SELF}};
    place = 0;
    need = 0;
    for (i = 0; i < EP; i = i + 1) begin
      place = o_group * EP + i;
      for (n = 0; n < MOST_NEEDS; n = n + 1) begin
        need = R_NEED[o_read * R_NEED_B +: R_NEED_B] + n;
        if (n < R_NEEDS[o_read * R_NEEDS_B +: R_NEEDS_B] && place >= N_BEGIN[need * N_BEGIN_B +: W_UNIT]
            && place < N_END[need * N_END_B +: W_UNIT])
          now[i*W_CORE +: W_CORE] = o_cores[N_MEMBER[need * N_MEMBER_B +: N_MEMBER_B] * W_CORE +: W_CORE];
      end
    end
  end
  npu_delay #(.WIDTH(EP * W_CORE), .CYCLES(READ)) from_delay (.clock(clock), .in(now), .out(from));
endmodule

`default_nettype wire
