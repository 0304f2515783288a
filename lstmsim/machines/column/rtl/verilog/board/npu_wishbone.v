// The chip on a bus of a system: a slave of Wishbone B4 (classic cycles, 32-bit words, `adr` counts words), with the
// memory map of docs/board.md section 2. A board's bridge does not need it: a system takes it in place of npu_board.
`default_nettype none

module npu_wishbone (
  input wire clock,
  input wire reset,
  input wire cyc,
  input wire stb,
  input wire we,
  input wire [31:0] adr,
  input wire [31:0] dat_w,
  output wire [31:0] dat_r,
  output reg ack,
  // An address that cannot be written, or not be read.
  output reg err,
  output wire running,
  output wire ended
);
  wire [3:0] space = adr[31:28];
  wire may = we ? (space >= 1 && space <= 8) || space == 10 : space == 9 || space == 10;
  // A read is under way: its word comes some cycles later.
  reg reading;
  wire begins = cyc && stb && !reading && !ack && !err;
  wire bus_write = begins && we && may;
  wire bus_read = begins && !we && may;
  wire bus_valid;
  wire [31:0] bus_word;
  reg [31:0] word;
  assign dat_r = word;
  npu_system system (
    .clock(clock), .reset(reset), .bus_write(bus_write), .bus_read(bus_read), .bus_address(adr), .bus_data(dat_w),
    .bus_valid(bus_valid), .bus_word(bus_word), .running(running), .ended(ended)
  );
  always @(posedge clock) begin
    reading <= !reset && (bus_read || (reading && !bus_valid));
    if (bus_valid) word <= bus_word;
    // A master that has given up gets no answer.
    ack <= !reset && cyc && stb && (bus_write || (reading && bus_valid));
    err <= !reset && begins && !may;
  end
endmodule

`default_nettype wire
