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

  // The head is in a register of its own, so that a turn does not begin at a memory; the words behind it are in
  // `words`.
  reg filled;
  reg [WIDTH-1:0] front;
  reg [WIDTH-1:0] words [0:(1 << W)-1];
  // One bit more than an address tells a full queue from an empty one.
  reg [W:0] first;
  reg [W:0] behind;

  wire more = first != behind;
  // The head goes, or there is none.
  wire gone = pop || !filled;
  // What comes in stays behind the head.
  wire kept = push && filled && (!pop || more);
  assign valid = filled || push;
  assign head = filled ? front : word;

  always @(posedge clock) begin
    filled <= !reset && (filled ? !pop || more || push : push && !pop);
    if (gone) front <= more ? words[first[W-1:0]] : word;
    if (kept) words[behind[W-1:0]] <= word;
    first <= reset ? {W+1{1'b0}} : first + (filled && pop && more);
    behind <= reset ? {W+1{1'b0}} : behind + kept;
  end
endmodule
