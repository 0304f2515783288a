// A master of Wishbone before the slave, with a stub in place of the chip: it says how each cycle ends.
module bench;
  reg clock = 0;
  reg reset = 1;
  reg cyc = 0;
  reg stb = 0;
  reg we;
  reg [31:0] adr;
  reg [31:0] dat_w;
  wire [31:0] dat_r;
  wire ack;
  wire err;
  wire running;
  wire ended;
  npu_wishbone slave (
    .clock(clock), .reset(reset), .cyc(cyc), .stb(stb), .we(we), .adr(adr), .dat_w(dat_w), .dat_r(dat_r), .ack(ack),
    .err(err), .running(running), .ended(ended)
  );
  always #1 clock = !clock;
  always @(posedge clock)
    if (slave.bus_write) $display("W %h %h", slave.adr, slave.dat_w);

  task one(input write, input [31:0] address, input [31:0] data);
    // stb stays high between cycles, as a master with much to do has it.
    begin
      cyc <= 1;
      stb <= 1;
      we <= write;
      adr <= address;
      dat_w <= data;
      @(posedge clock);
      while (!ack && !err) @(posedge clock);
      $display("%s %h", err ? "err" : "ack", write ? 32'd0 : dat_r);
    end
  endtask

  initial begin
    repeat (3) @(posedge clock);
    reset <= 0;
    @(posedge clock);
    one(1, 32'h10000003, 32'd7);
    one(1, 32'ha0000000, 32'd1);
    one(0, 32'ha0000004, 0);
    one(0, 32'h90000123, 0);
    one(1, 32'h90000123, 32'd5);
    one(0, 32'h10000003, 0);
    // A read that is given up: nothing answers, and the next cycle is its own.
    we <= 0;
    adr <= 32'ha0000001;
    @(posedge clock);
    @(posedge clock);
    cyc <= 0;
    stb <= 0;
    repeat (6) @(posedge clock) if (ack || err) $display("late");
    one(0, 32'ha0000002, 0);
    $finish;
  end
endmodule
