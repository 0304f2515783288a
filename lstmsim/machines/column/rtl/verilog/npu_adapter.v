// The adapter between array and tail: multiplies each finished sum by its row's factor, shifts, rounds half up, adds
// the bias and saturates.
`default_nettype none

module npu_adapter #(
  // Sums side by side.
  parameter SUMS = 1,
  parameter ACCUMULATOR_BITS = 32,
  parameter MULTIPLIER_BITS = 16,
  parameter SHIFT_BITS = 6,
  // Whether the constants have a shift for each sum; else all come from `fixed_shifts`, which then are wires.
  parameter SHIFTS_STORED = 1,
  // Added to all shifts: what is shifted is first moved up by as many bits, so that no shift is negative. Negative
  // itself if all shifts go far to the right.
  parameter LEFT = 0,
  parameter TAIL_BITS = 16,
  // Registers by their place.
  parameter SELECTED = 1,
  parameter PARTIAL = 0,
  parameter MULTIPLIED = 1,
  parameter SHIFTED = 1,
  parameter ADDED = 0,
  parameter SATURATED = 1
) (
  input wire clock,
  input wire [SUMS*ACCUMULATOR_BITS-1:0] sums,
  // SELECTED cycles behind the sums, as a memory gives them.
  input wire [SUMS*(MULTIPLIER_BITS+(SHIFTS_STORED?SHIFT_BITS:0)+32)-1:0] constants,
  input wire [SUMS*SHIFT_BITS-1:0] fixed_shifts,
  output wire [SUMS*TAIL_BITS-1:0] adapted
);
  localparam BIAS_BITS = 32;
  localparam STORED_BITS = SHIFTS_STORED ? SHIFT_BITS : 0;
  localparam C = MULTIPLIER_BITS + STORED_BITS + BIAS_BITS;
  genvar s;
  generate
    for (s = 0; s < SUMS; s = s + 1) begin : adapters
      wire [SHIFT_BITS-1:0] shift;
      if (SHIFTS_STORED) begin : stored
        assign shift = constants[s*C+MULTIPLIER_BITS +: SHIFT_BITS];
      end else begin : wired
        assign shift = fixed_shifts[s*SHIFT_BITS +: SHIFT_BITS];
      end
      npu_adapter_lane #(
        .ACCUMULATOR_BITS(ACCUMULATOR_BITS), .MULTIPLIER_BITS(MULTIPLIER_BITS), .SHIFT_BITS(SHIFT_BITS), .LEFT(LEFT),
        .TAIL_BITS(TAIL_BITS), .SELECTED(SELECTED), .PARTIAL(PARTIAL), .MULTIPLIED(MULTIPLIED), .SHIFTED(SHIFTED),
        .ADDED(ADDED), .SATURATED(SATURATED)
      ) lane (
        .clock(clock), .total(sums[s*ACCUMULATOR_BITS +: ACCUMULATOR_BITS]),
        .factor(constants[s*C +: MULTIPLIER_BITS]), .shift(shift),
        .bias(constants[s*C+MULTIPLIER_BITS+STORED_BITS +: BIAS_BITS]), .result(adapted[s*TAIL_BITS +: TAIL_BITS])
      );
    end
  endgenerate
endmodule

// The adapter of one sum.
module npu_adapter_lane #(
  parameter ACCUMULATOR_BITS = 32,
  parameter MULTIPLIER_BITS = 16,
  parameter SHIFT_BITS = 6,
  parameter LEFT = 0,
  parameter TAIL_BITS = 16,
  parameter SELECTED = 1,
  parameter PARTIAL = 0,
  parameter MULTIPLIED = 1,
  parameter SHIFTED = 1,
  parameter ADDED = 0,
  parameter SATURATED = 1
) (
  input wire clock,
  input wire [ACCUMULATOR_BITS-1:0] total,
  input wire [MULTIPLIER_BITS-1:0] factor,
  input wire [SHIFT_BITS-1:0] shift,
  input wire [31:0] bias,
  output wire [TAIL_BITS-1:0] result
);
  // The factor is never negative: as a signed operand it has one more bit.
  localparam P = ACCUMULATOR_BITS + MULTIPLIER_BITS + 1;
  // A bit below the point, for the rounding; a bit above, for the carry. What is moved down leaves no more bits to
  // shift.
  localparam UP = LEFT > -1 ? LEFT + 1 : 0;
  localparam DOWN = LEFT < -1 ? -1 - LEFT : 0;
  localparam S = P + UP + 1 > DOWN + 3 ? P + UP + 1 - DOWN : 3;
  localparam R = (S > 32 ? S : 32) + 1;
  // Bits of a sum's lower part, where its product is one of parts, and the widest sum whose product is not: blocks of
  // other families than the ECP5 multiply 25 x 18 bits at least (DSP48E1, UG479; 27 x 27 of Intel's).
  localparam LOW = 17;
`ifdef NPU_ECP5
  localparam WHOLE = LOW;
`else
  localparam WHOLE = 25;
`endif

  wire signed [ACCUMULATOR_BITS-1:0] selected;
  npu_delay #(.WIDTH(ACCUMULATOR_BITS), .CYCLES(SELECTED)) select_register (.clock(clock), .in(total), .out(selected));
  wire signed [MULTIPLIER_BITS:0] multiplier = {1'b0, factor};

  wire signed [P-1:0] product;
  wire [SHIFT_BITS-1:0] shift_product;
  wire signed [31:0] bias_product;
  generate
    if (PARTIAL == 0 || ACCUMULATOR_BITS <= WHOLE) begin : whole
      wire signed [P-1:0] product_now = selected * multiplier;
      npu_delay #(.WIDTH(P + SHIFT_BITS + 32), .CYCLES(PARTIAL)) partial_register
        (.clock(clock), .in({product_now, shift, bias}), .out({product, shift_product, bias_product}));
    end else begin : parts
      // A block multiplies signed numbers of 18 bits, so the sum has a lower part of 17 bits, which is never negative.
      // The adder of both products comes behind their registers.
      localparam H = ACCUMULATOR_BITS - LOW;
      wire signed [LOW:0] selected_low = {1'b0, selected[LOW-1:0]};
      wire signed [H-1:0] selected_high = selected[ACCUMULATOR_BITS-1:LOW];
      wire [LOW+MULTIPLIER_BITS+1:0] low;
      wire [H+MULTIPLIER_BITS:0] high;
      npu_product #(.A(LOW + 1), .B(MULTIPLIER_BITS + 1)) product_low
        (.clock(clock), .a(selected_low), .b(multiplier), .product(low));
      npu_product #(.A(H), .B(MULTIPLIER_BITS + 1)) product_high
        (.clock(clock), .a(selected_high), .b(multiplier), .product(high));
      npu_delay #(.WIDTH(SHIFT_BITS + 32)) partial_register
        (.clock(clock), .in({shift, bias}), .out({shift_product, bias_product}));
      wire [H+MULTIPLIER_BITS:0] upper = high + {{H{low[LOW+MULTIPLIER_BITS]}}, low[LOW+MULTIPLIER_BITS:LOW]};
      assign product = {upper, low[LOW-1:0]};
    end
  endgenerate

  wire signed [P-1:0] multiplied;
  wire [SHIFT_BITS-1:0] by;
  wire signed [31:0] bias_multiplied;
  npu_delay #(.WIDTH(P + SHIFT_BITS + 32), .CYCLES(MULTIPLIED)) product_register
    (.clock(clock), .in({product, shift_product, bias_product}), .out({multiplied, by, bias_multiplied}));

  wire signed [P+UP:0] placed_up = multiplied;
  wire signed [S-1:0] placed = (placed_up <<< UP) >>> DOWN;
  wire signed [S-1:0] moved = placed >>> by;
  wire signed [S-1:0] shifted;
  wire signed [31:0] bias_shifted;
  npu_delay #(.WIDTH(S + 32), .CYCLES(SHIFTED)) moved_register
    (.clock(clock), .in({moved, bias_multiplied}), .out({shifted, bias_shifted}));

  // Half up is the bit below the point as a carry: rounding and bias take one adder, of which bit 0 makes the carry.
  wire signed [R:0] rounded = {{(R - S + 1){shifted[S-1]}}, shifted[S-1:1], 1'b1};
  wire signed [R:0] biased = {{(R - 32){bias_shifted[31]}}, bias_shifted, shifted[0]};
  wire signed [R:0] added = rounded + biased;
  wire signed [R-1:0] sum;
  npu_delay #(.WIDTH(R), .CYCLES(ADDED)) added_register (.clock(clock), .in(added[R:1]), .out(sum));
  wire fits = &sum[R-1:TAIL_BITS-1] | ~|sum[R-1:TAIL_BITS-1];
  wire [TAIL_BITS-1:0] saturated = fits ? sum[TAIL_BITS-1:0] : {sum[R-1], {(TAIL_BITS - 1){~sum[R-1]}}};
  npu_delay #(.WIDTH(TAIL_BITS), .CYCLES(SATURATED)) result_register (.clock(clock), .in(saturated), .out(result));
endmodule
