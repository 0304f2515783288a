// A queue whose first word is there in the cycle in which it comes: what is pushed into an empty queue is its head.
`default_nettype none

module npu_tail_queue #(
  parameter WIDTH = 1,
  // Most words that wait at once.
  parameter DEPTH = 1
) (
  input wire clock,
  input wire reset,
  input wire push,
  input wire [WIDTH-1:0] word,
  output wire valid,
  output wire [WIDTH-1:0] head,
  // Takes the head away at the end of the cycle, if there is one.
  input wire pop
);
  localparam W = DEPTH > 1 ? $clog2(DEPTH) : 1;

  reg [WIDTH-1:0] words [0:(1 << W)-1];
  // One bit more than an address tells a full queue from an empty one.
  reg [W:0] first;
  reg [W:0] behind;

  wire empty = first == behind;
  wire taken = valid && pop;
  assign valid = !empty || push;
  assign head = empty ? word : words[first[W-1:0]];

  always @(posedge clock) begin
    if (push) words[behind[W-1:0]] <= word;
    first <= reset ? {W+1{1'b0}} : first + taken;
    behind <= reset ? {W+1{1'b0}} : behind + push;
  end
endmodule
