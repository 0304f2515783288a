// What stands on a board behind its clock and its pins: a chip, its schedule and results, and the bridge to a host.
`default_nettype none

module npu_board #(
  parameter CLOCKS = 16,
  parameter PAUSE = 4096
) (
  input wire clock,
  input wire reset,
  input wire rx,
  output wire tx,
  output wire running,
  output wire ended
);
  wire bus_write;
  wire bus_read;
  wire [31:0] bus_address;
  wire [31:0] bus_data;
  wire bus_valid;
  wire [31:0] bus_word;
  npu_bridge #(.CLOCKS(CLOCKS), .PAUSE(PAUSE)) bridge (
    .clock(clock), .reset(reset), .rx(rx), .tx(tx), .bus_write(bus_write), .bus_read(bus_read),
    .bus_address(bus_address), .bus_data(bus_data), .bus_valid(bus_valid), .bus_word(bus_word)
  );
  npu_system system (
    .clock(clock), .reset(reset), .bus_write(bus_write), .bus_read(bus_read), .bus_address(bus_address),
    .bus_data(bus_data), .bus_valid(bus_valid), .bus_word(bus_word), .running(running), .ended(ended)
  );
endmodule

`default_nettype wire
