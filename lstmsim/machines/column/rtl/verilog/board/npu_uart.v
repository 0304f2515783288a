// A serial line: 8 bits, no parity, one stop bit, the lowest bit first. CLOCKS cycles a bit, at least 4.
`default_nettype none

module npu_uart_rx #(
  parameter CLOCKS = 16
) (
  input wire clock,
  input wire reset,
  input wire line,
  // A byte has come; `broken`: without its stop bit.
  output reg valid,
  output reg broken,
  output reg [7:0] data
);
  localparam W = $clog2(CLOCKS + 1);
  localparam [W-1:0] LAST = CLOCKS - 1;
  localparam [W-1:0] HALF = (CLOCKS - 1) / 2;
  // The line is of no clock: two registers before anything depends on it.
  reg [1:0] quiet;
  reg [W-1:0] left;
  // 0: idle, 1: the start bit, 2 to 9: data, 10: the stop bit.
  reg [3:0] place;
  always @(posedge clock) begin
    quiet <= {quiet[0], line};
    valid <= 1'b0;
    broken <= 1'b0;
    if (reset) begin
      quiet <= 2'b11;
      place <= 4'd0;
    end else if (place == 0) begin
      left <= HALF;
      if (!quiet[1]) place <= 4'd1;
    end else if (left != 0) left <= left - 1'b1;
    else begin
      left <= LAST;
      place <= place + 1'b1;
      if (place == 1) begin
        // A start bit that is gone in its middle was none.
        if (quiet[1]) place <= 4'd0;
      end else if (place < 10) data <= {quiet[1], data[7:1]};
      else begin
        valid <= 1'b1;
        broken <= !quiet[1];
        place <= 4'd0;
      end
    end
  end
endmodule

module npu_uart_tx #(
  parameter CLOCKS = 16
) (
  input wire clock,
  input wire reset,
  input wire send,
  input wire [7:0] data,
  output wire ready,
  output wire line
);
  localparam W = $clog2(CLOCKS + 1);
  localparam [W-1:0] LAST = CLOCKS - 1;
  reg [9:0] bits;
  reg [3:0] left;
  reg [W-1:0] clocks;
  assign ready = left == 0;
  assign line = bits[0];
  always @(posedge clock)
    if (reset) begin
      bits <= 10'h3ff;
      left <= 4'd0;
    end else if (ready) begin
      clocks <= LAST;
      if (send) begin
        bits <= {1'b1, data, 1'b0};
        left <= 4'd10;
      end
    end else if (clocks != 0) clocks <= clocks - 1'b1;
    else begin
      clocks <= LAST;
      bits <= {1'b1, bits[9:1]};
      left <= left - 1'b1;
    end
endmodule

`default_nettype wire
