// The pins of a board: bytes of standard input go to `rx` bit by bit, and what `tx` says goes to standard output.
// Read are pairs of bytes: 0 and a byte that is sent, 1 and for how many times 256 cycles the line is quiet. Written
// are a byte a line, in hexadecimal (with ! if its stop bit is missing), and after each quiet time = and whether a
// schedule runs. +writes says what is written on the bus: W, address, data.
`default_nettype none

module npu_board_tb;
  parameter CLOCKS = 8;
  parameter PAUSE = 1024;
  localparam INPUT = 32'h80000000;

  reg clock;
  reg reset;
  reg rx;
  wire tx;
  wire running;
  wire ended;
  npu_board #(.CLOCKS(CLOCKS), .PAUSE(PAUSE)) board (
    .clock(clock), .reset(reset), .rx(rx), .tx(tx), .running(running), .ended(ended)
  );

  integer asked;
  integer value;
  integer i;
  initial begin
    clock = 1'b0;
    reset = 1'b1;
    rx = 1'b1;
    repeat (4) @(posedge clock);
    reset <= 1'b0;
    asked = $fgetc(INPUT);
    while (asked >= 0) begin
      value = $fgetc(INPUT);
      if (asked == 0) begin
        for (i = -1; i <= 8; i = i + 1) begin
          rx <= i < 0 ? 1'b0 : i == 8 ? 1'b1 : value[i];
          repeat (CLOCKS) @(posedge clock);
        end
      end else begin
        repeat (256 * value) @(posedge clock);
        $write("=%0d\n", running);
        $fflush;
      end
      asked = $fgetc(INPUT);
    end
    $finish;
  end
  always #1 clock = !clock;

  // Each bit is read in its middle.
  reg [7:0] said;
  integer b;
  initial
    while (1) begin
      @(negedge tx);
      repeat (CLOCKS + CLOCKS / 2) @(posedge clock);
      for (b = 0; b < 8; b = b + 1) begin
        said[b] = tx;
        repeat (CLOCKS) @(posedge clock);
      end
      $write("%h%s\n", said, tx ? "" : "!");
    end

  reg writes;
  initial writes = $test$plusargs("writes") != 0;
  always @(posedge clock)
    if (writes && board.bus_write) $write("W%h %h\n", board.bus_address, board.bus_data);
endmodule

`default_nettype wire
