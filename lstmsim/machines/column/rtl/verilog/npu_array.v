// The array: rows of EP multipliers, a tree of adders behind each row, and accumulators.
`default_nettype none

module npu_array #(
  parameter ROWS = 1,
  parameter EP = 1,
  parameter LEVELS = 0,
  // Sums that a row keeps apart.
  parameter SLOTS = 1,
  // Accumulators of each of these: banks of all threads.
  parameter BANKS = 2,
  parameter W_BANK = 1,
  parameter WEIGHT_BITS = 8,
  parameter VECTOR_BITS = 8,
  parameter ACCUMULATOR_BITS = 32,
  parameter MULTIPLY = 1,
  parameter ADD = 1,
  parameter ACCUMULATE = 1,
  // 1: what is said of a tile's sum (add_*) comes a cycle earlier, and each row has a register of its own for it.
  parameter AHEAD = 0
) (
  input wire clock,
  input wire [ROWS*EP*WEIGHT_BITS-1:0] weights,
  input wire [EP*VECTOR_BITS-1:0] elements,
  // All MULTIPLY + ADD * LEVELS + ACCUMULATE - 1 cycles behind the operands of the tile: the sum is in the accumulator
  // in the cycle after.
  input wire add_valid,
  input wire add_first,
  input wire [W_BANK-1:0] add_bank,
  input wire [ROWS*SLOTS-1:0] add_slots,
  // Read in the same cycle: sum of slot k of row r is word r * SLOTS + k.
  input wire [W_BANK-1:0] read_bank,
  output wire [ROWS*SLOTS*ACCUMULATOR_BITS-1:0] sums
);
  genvar r;
  generate
    for (r = 0; r < ROWS; r = r + 1) begin : rows
      npu_row #(
        .EP(EP), .LEVELS(LEVELS), .SLOTS(SLOTS), .BANKS(BANKS), .W_BANK(W_BANK),
        .WEIGHT_BITS(WEIGHT_BITS), .VECTOR_BITS(VECTOR_BITS), .ACCUMULATOR_BITS(ACCUMULATOR_BITS),
        .MULTIPLY(MULTIPLY), .ADD(ADD), .ACCUMULATE(ACCUMULATE), .AHEAD(AHEAD)
      ) row (
        .clock(clock),
        .weights(weights[r*EP*WEIGHT_BITS +: EP*WEIGHT_BITS]), .elements(elements),
        .add_valid(add_valid), .add_first(add_first), .add_bank(add_bank), .add_slots(add_slots[r*SLOTS +: SLOTS]),
        .read_bank(read_bank), .sums(sums[r*SLOTS*ACCUMULATOR_BITS +: SLOTS*ACCUMULATOR_BITS])
      );
    end
  endgenerate
endmodule

// One row of the array.
module npu_row #(
  parameter EP = 1,
  parameter LEVELS = 0,
  parameter SLOTS = 1,
  parameter BANKS = 2,
  parameter W_BANK = 1,
  parameter WEIGHT_BITS = 8,
  parameter VECTOR_BITS = 8,
  parameter ACCUMULATOR_BITS = 32,
  parameter MULTIPLY = 1,
  parameter ADD = 1,
  parameter ACCUMULATE = 1,
  // 1: what is said of a tile's sum (add_*) comes a cycle earlier, and each row has a register of its own for it.
  parameter AHEAD = 0
) (
  input wire clock,
  input wire [EP*WEIGHT_BITS-1:0] weights,
  input wire [EP*VECTOR_BITS-1:0] elements,
  input wire add_valid,
  input wire add_first,
  input wire [W_BANK-1:0] add_bank,
  input wire [SLOTS-1:0] add_slots,
  input wire [W_BANK-1:0] read_bank,
  output wire [SLOTS*ACCUMULATOR_BITS-1:0] sums
);
  localparam LEAVES = 1 << LEVELS;
  localparam P = WEIGHT_BITS + VECTOR_BITS;
  localparam T = P + LEVELS;

  // Multipliers: a register before the product where there are two, another one where there are four, the others behind
  // it. Of the first one tools make one of all rows, as all have the same elements; the second is each product's own.
  localparam BEFORE = MULTIPLY > 3 ? 2 : MULTIPLY > 1 ? 1 : 0;
  localparam BEHIND = MULTIPLY - BEFORE;
  wire [EP*WEIGHT_BITS-1:0] w;
  wire [EP*VECTOR_BITS-1:0] v;
  npu_delay #(.WIDTH(EP * P), .CYCLES(BEFORE > 0 ? 1 : 0)) operand_register
    (.clock(clock), .in({weights, elements}), .out({w, v}));
  wire [EP*P-1:0] products;
  wire [EP*P-1:0] held;
  npu_product #(
    .COUNT(EP), .A(WEIGHT_BITS), .B(VECTOR_BITS), .BEFORE(BEFORE > 1 ? 1 : 0), .AFTER(BEHIND > 0 ? 1 : 0)
  ) products_of_row (.clock(clock), .a(w), .b(v), .product(products));
  npu_delay #(.WIDTH(EP * P), .CYCLES(BEHIND > 1 ? BEHIND - 1 : 0)) product_register
    (.clock(clock), .in(products), .out(held));

  // The tree: level l has LEAVES >> l values of T bits, all levels side by side in `values`.
  wire [2*LEAVES*T-1:0] values;
  genvar i;
  genvar l;
  generate
    for (i = 0; i < LEAVES; i = i + 1) begin : leaves
      if (i < EP) begin : product
        assign values[i*T +: T] = {{LEVELS + 1{held[i*P+P-1]}}, held[i*P +: P-1]};
      end else begin : padding
        assign values[i*T +: T] = {T{1'b0}};
      end
    end
    for (l = 1; l <= LEVELS; l = l + 1) begin : levels
      localparam COUNT = LEAVES >> l;
      // Values of all levels below.
      localparam UPTO = 2 * LEAVES - 2 * COUNT;
      localparam FROM = UPTO - 2 * COUNT;
      reg [COUNT*T-1:0] pairs;
      integer n;
      always @*
        for (n = 0; n < COUNT; n = n + 1)
          pairs[n*T +: T] = values[(FROM+2*n)*T +: T] + values[(FROM+2*n+1)*T +: T];
      npu_delay #(.WIDTH(COUNT * T), .CYCLES(ADD)) register
        (.clock(clock), .in(pairs), .out(values[UPTO*T +: COUNT*T]));
    end
  endgenerate
  wire signed [T-1:0] tree = values[(2*LEAVES-2)*T +: T];
  assign values[(2*LEAVES-1)*T +: T] = {T{1'b0}};

  // The accumulators wrap, so a tree wider than they are loses its highest bits first.
  wire [ACCUMULATOR_BITS-1:0] cut = tree;
  wire [ACCUMULATOR_BITS-1:0] tile;
  npu_delay #(.WIDTH(ACCUMULATOR_BITS), .CYCLES(ACCUMULATE - 1)) tile_register (.clock(clock), .in(cut), .out(tile));

  // Nothing of this is reset: a sum that is added late goes where the first tile of a block writes anew.
  wire valid;
  wire first;
  wire [W_BANK-1:0] bank;
  wire [SLOTS-1:0] to_slots;
  generate
    if (AHEAD) begin : g_ahead
      // Without an initial value Yosys makes the address a part of the memories, and of that one register of all rows.
      reg [W_BANK+SLOTS+1:0] own_add = 0;
      (* keep *) always @(posedge clock) own_add <= {add_valid, add_first, add_bank, add_slots};
      assign {valid, first, bank, to_slots} = own_add;
    end else begin : g_ahead
      assign {valid, first, bank, to_slots} = {add_valid, add_first, add_bank, add_slots};
    end
  endgenerate

  // Read, add and write in one cycle. The first tile of a block writes instead of adding, to all sums of the row: so
  // nothing is ever cleared.
  genvar k;
  generate
    for (k = 0; k < SLOTS; k = k + 1) begin : slots
      reg [ACCUMULATOR_BITS-1:0] cells [0:BANKS-1];
      wire [ACCUMULATOR_BITS-1:0] before_tile = first ? {ACCUMULATOR_BITS{1'b0}} : cells[bank];
      wire [ACCUMULATOR_BITS-1:0] part = to_slots[k] ? tile : {ACCUMULATOR_BITS{1'b0}};
      always @(posedge clock)
        if (valid) cells[bank] <= before_tile + part;
      assign sums[k*ACCUMULATOR_BITS +: ACCUMULATOR_BITS] = cells[read_bank];
    end
  endgenerate
endmodule
