// The netlist of a whole board in the place of the bridge's module: the testbench of the pins drives it as that. It has
// a clock of its own, the oscillator, and no reset but what it begins with.
`timescale 10ns / 1ps
`default_nettype none

module npu_board #(parameter CLOCKS = 5, parameter PAUSE = 0) (
  input wire clock, input wire reset, input wire rx, output wire tx, output wire running, output wire ended
);
  wire bus_write = 1'b0;
  wire [31:0] bus_address = 32'b0;
  wire [31:0] bus_data = 32'b0;
  // 25 MHz
  reg clock_pin = 1'b0;
  always #2 clock_pin = !clock_pin;
  top top (.clock_pin(clock_pin), .rx(rx), .tx(tx), .led({ended, running}));
endmodule
