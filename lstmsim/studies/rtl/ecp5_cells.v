// Models of ours of two cells of the ECP5 for which Yosys has black boxes only, so that a netlist of synth_ecp5 can be
// simulated. They follow Lattice's guides (sysDSP: FPGA-TN-02205, formerly TN1267; memory: FPGA-TN-02204, formerly
// TN1264) as far as Yosys and npu_product use the cells: products with any signs, with registers at operands and product
// or without; memories without registers at their outputs, that are written through port A and read through port B at
// the same clock. Whatever else a netlist
// asks for does not compile: the parameter is not there, or the instance below that names the reason.
`default_nettype none

module MULT18X18D (
  input wire A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
  input wire B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
  // The operand of the pre-adder, not used by a product alone.
  input wire C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
  // 1: the operand is in two's complement; 1: the operand comes from the neighbour.
  input wire SIGNEDA, input wire SIGNEDB, input wire SOURCEA, input wire SOURCEB,
  input wire CLK0, input wire CE0, input wire RST0,
  output wire P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15,
  P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTA_CE = "CE0";
  parameter REG_INPUTA_RST = "RST0";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_INPUTB_CE = "CE0";
  parameter REG_INPUTB_RST = "RST0";
  parameter REG_OUTPUT_CLK = "NONE";
  parameter REG_OUTPUT_CE = "CE0";
  parameter REG_OUTPUT_RST = "RST0";

  generate
    if ((REG_INPUTA_CLK != "NONE" && (REG_INPUTA_CLK != "CLK0" || REG_INPUTA_CE != "CE0" || REG_INPUTA_RST != "RST0"))
        || (REG_INPUTB_CLK != "NONE"
          && (REG_INPUTB_CLK != "CLK0" || REG_INPUTB_CE != "CE0" || REG_INPUTB_RST != "RST0"))
        || (REG_OUTPUT_CLK != "NONE"
          && (REG_OUTPUT_CLK != "CLK0" || REG_OUTPUT_CE != "CE0" || REG_OUTPUT_RST != "RST0")))
      mult18x18d_with_another_clock_enable_or_reset_is_not_modelled refused ();
  endgenerate

  wire [17:0] a_now = {
    A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0
  };
  wire [17:0] b_now = {
    B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0
  };
  // The sign goes with its operand.
  reg [18:0] a_held, b_held;
  always @(posedge CLK0)
    if (RST0) {a_held, b_held} <= 38'b0;
    else if (CE0) {a_held, b_held} <= {SIGNEDA, a_now, SIGNEDB, b_now};
  wire a_signed, b_signed;
  wire [17:0] a, b;
  assign {a_signed, a} = REG_INPUTA_CLK == "NONE" ? {SIGNEDA, a_now} : a_held;
  assign {b_signed, b} = REG_INPUTB_CLK == "NONE" ? {SIGNEDB, b_now} : b_held;
  // Each operand gets a sign of its own; the product of two 19-bit numbers is cut to the 36 bits of the cell.
  wire signed [18:0] left = {a_signed & a[17], a};
  wire signed [18:0] right = {b_signed & b[17], b};
  wire signed [37:0] product = left * right;
  reg [35:0] product_held;
  always @(posedge CLK0)
    if (RST0) product_held <= 36'b0;
    else if (CE0) product_held <= product[35:0];
  assign {
    P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13,
    P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
  } = SOURCEA | SOURCEB ? 36'bx : REG_OUTPUT_CLK == "NONE" ? product[35:0] : product_held;
endmodule

// A memory of 18,432 bits: 2,048 bytes of nine bits. Ports of 1, 2 and 4 bits reach eight bits of each byte.
module DP16KD (
  input wire ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
  input wire CLKA, CEA, OCEA, WEA, RSTA, CSA2, CSA1, CSA0,
  input wire DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2,
  DIA1, DIA0,
  output wire DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2,
  DOA1, DOA0,
  input wire ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
  input wire CLKB, CEB, OCEB, WEB, RSTB, CSB2, CSB1, CSB0,
  input wire DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2,
  DIB1, DIB0,
  output wire DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2,
  DOB1, DOB0
);
  parameter DATA_WIDTH_A = 18;
  parameter DATA_WIDTH_B = 18;
  parameter REGMODE_A = "NOREG";
  parameter REGMODE_B = "NOREG";
  parameter RESETMODE = "SYNC";
  parameter ASYNC_RESET_RELEASE = "SYNC";
  parameter CSDECODE_A = "0b000";
  parameter CSDECODE_B = "0b000";
  parameter CLKAMUX = "CLKA";
  parameter CLKBMUX = "CLKB";
  parameter WRITEMODE_A = "NORMAL";
  parameter WRITEMODE_B = "NORMAL";
  parameter GSR = "ENABLED";
  parameter [319:0] INITVAL_00 = 320'b0;
  parameter [319:0] INITVAL_01 = 320'b0;
  parameter [319:0] INITVAL_02 = 320'b0;
  parameter [319:0] INITVAL_03 = 320'b0;
  parameter [319:0] INITVAL_04 = 320'b0;
  parameter [319:0] INITVAL_05 = 320'b0;
  parameter [319:0] INITVAL_06 = 320'b0;
  parameter [319:0] INITVAL_07 = 320'b0;
  parameter [319:0] INITVAL_08 = 320'b0;
  parameter [319:0] INITVAL_09 = 320'b0;
  parameter [319:0] INITVAL_0A = 320'b0;
  parameter [319:0] INITVAL_0B = 320'b0;
  parameter [319:0] INITVAL_0C = 320'b0;
  parameter [319:0] INITVAL_0D = 320'b0;
  parameter [319:0] INITVAL_0E = 320'b0;
  parameter [319:0] INITVAL_0F = 320'b0;
  parameter [319:0] INITVAL_10 = 320'b0;
  parameter [319:0] INITVAL_11 = 320'b0;
  parameter [319:0] INITVAL_12 = 320'b0;
  parameter [319:0] INITVAL_13 = 320'b0;
  parameter [319:0] INITVAL_14 = 320'b0;
  parameter [319:0] INITVAL_15 = 320'b0;
  parameter [319:0] INITVAL_16 = 320'b0;
  parameter [319:0] INITVAL_17 = 320'b0;
  parameter [319:0] INITVAL_18 = 320'b0;
  parameter [319:0] INITVAL_19 = 320'b0;
  parameter [319:0] INITVAL_1A = 320'b0;
  parameter [319:0] INITVAL_1B = 320'b0;
  parameter [319:0] INITVAL_1C = 320'b0;
  parameter [319:0] INITVAL_1D = 320'b0;
  parameter [319:0] INITVAL_1E = 320'b0;
  parameter [319:0] INITVAL_1F = 320'b0;
  parameter [319:0] INITVAL_20 = 320'b0;
  parameter [319:0] INITVAL_21 = 320'b0;
  parameter [319:0] INITVAL_22 = 320'b0;
  parameter [319:0] INITVAL_23 = 320'b0;
  parameter [319:0] INITVAL_24 = 320'b0;
  parameter [319:0] INITVAL_25 = 320'b0;
  parameter [319:0] INITVAL_26 = 320'b0;
  parameter [319:0] INITVAL_27 = 320'b0;
  parameter [319:0] INITVAL_28 = 320'b0;
  parameter [319:0] INITVAL_29 = 320'b0;
  parameter [319:0] INITVAL_2A = 320'b0;
  parameter [319:0] INITVAL_2B = 320'b0;
  parameter [319:0] INITVAL_2C = 320'b0;
  parameter [319:0] INITVAL_2D = 320'b0;
  parameter [319:0] INITVAL_2E = 320'b0;
  parameter [319:0] INITVAL_2F = 320'b0;
  parameter [319:0] INITVAL_30 = 320'b0;
  parameter [319:0] INITVAL_31 = 320'b0;
  parameter [319:0] INITVAL_32 = 320'b0;
  parameter [319:0] INITVAL_33 = 320'b0;
  parameter [319:0] INITVAL_34 = 320'b0;
  parameter [319:0] INITVAL_35 = 320'b0;
  parameter [319:0] INITVAL_36 = 320'b0;
  parameter [319:0] INITVAL_37 = 320'b0;
  parameter [319:0] INITVAL_38 = 320'b0;
  parameter [319:0] INITVAL_39 = 320'b0;
  parameter [319:0] INITVAL_3A = 320'b0;
  parameter [319:0] INITVAL_3B = 320'b0;
  parameter [319:0] INITVAL_3C = 320'b0;
  parameter [319:0] INITVAL_3D = 320'b0;
  parameter [319:0] INITVAL_3E = 320'b0;
  parameter [319:0] INITVAL_3F = 320'b0;

  generate
    if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG") dp16kd_with_a_register_at_its_output_is_not_modelled refused ();
    if (CLKAMUX != "CLKA" || CLKBMUX != "CLKB") dp16kd_with_an_inverted_clock_is_not_modelled refused ();
    if (CSDECODE_A != "0b000" || CSDECODE_B != "0b000") dp16kd_with_a_chip_select_is_not_modelled refused ();
  endgenerate

  wire [13:0] write_address = {
    ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0
  };
  wire [13:0] read_address = {
    ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0
  };
  wire [35:0] given = {
    DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0,
    DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0
  };

  reg [8:0] bytes [0:2047];
  integer i;
  wire [20479:0] first = {
    INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38, INITVAL_37,
    INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30, INITVAL_2F, INITVAL_2E,
    INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28, INITVAL_27, INITVAL_26, INITVAL_25,
    INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20, INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C,
    INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18, INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13,
    INITVAL_12, INITVAL_11, INITVAL_10, INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A,
    INITVAL_09, INITVAL_08, INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01,
    INITVAL_00
  };
  // An entry of INITVAL has 16 words of 18 bits, with two bits between them.
  initial
    for (i = 0; i < 1024; i = i + 1) begin
      bytes[2 * i] = first[20 * i +: 9];
      bytes[2 * i + 1] = first[20 * i + 9 +: 9];
    end

  // Bytes that a port of so many bits takes at an address, as the first one and how many of 36, 18, 9 bits.
  function [10:0] first_byte(input [13:0] address, input integer width);
    first_byte = width == 36 ? {address[13:5], 2'b0} : width == 18 ? {address[13:4], 1'b0} : address[13:3];
  endfunction
  function integer bytes_of(input integer width);
    bytes_of = width == 36 ? 4 : width == 18 ? 2 : 1;
  endfunction

  // Wide ports have a byte enable in the lowest bits of the address; narrow ones reach a part of a byte.
  wire writes = CEA & WEA & !(CSA0 | CSA1 | CSA2);
  wire [10:0] written = first_byte(write_address, DATA_WIDTH_A);
  integer w;
  always @(posedge CLKA)
    if (writes)
      for (w = 0; w < bytes_of(DATA_WIDTH_A); w = w + 1)
        case (DATA_WIDTH_A)
          36, 18: if (write_address[w]) bytes[written + w] <= given[9 * w +: 9];
          9: bytes[written] <= given[8:0];
          4: bytes[written][4 * write_address[2] +: 4] <= given[3:0];
          2: bytes[written][2 * write_address[2:1] +: 2] <= given[1:0];
          default: bytes[written][write_address[2:0]] <= given[0];
        endcase

  // Nothing is said about a byte that is written in the same cycle: it is read as unknown. So is everything where port
  // B is to write, or to be reset without a clock.
  wire [10:0] asked = first_byte(read_address, DATA_WIDTH_B);
  wire sound = WEB === 1'b0 && (RSTB === 1'b0 || RESETMODE == "SYNC") && CLKA === CLKB;
  reg [35:0] read;
  initial read = 36'b0;
  integer r;
  always @(posedge CLKB)
    if (!sound) read <= 36'bx;
    else if (RSTB) read <= 36'b0;
    else if (CEB & !(CSB0 | CSB1 | CSB2))
      for (r = 0; r < bytes_of(DATA_WIDTH_B); r = r + 1)
        if (writes && asked + r >= written && asked + r < written + bytes_of(DATA_WIDTH_A)
            && (DATA_WIDTH_A < 18 || write_address[asked + r - written])) read[9 * r +: 9] <= 9'bx;
        else
          case (DATA_WIDTH_B)
            36, 18, 9: read[9 * r +: 9] <= bytes[asked + r];
            4: read[3:0] <= bytes[asked][4 * read_address[2] +: 4];
            2: read[1:0] <= bytes[asked][2 * read_address[2:1] +: 2];
            default: read[0] <= bytes[asked][read_address[2:0]];
          endcase

  assign {
    DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0
  } = DATA_WIDTH_B == 36 ? read[17:0] : 18'bx;
  assign {
    DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0
  } = DATA_WIDTH_B == 36 ? read[35:18] : read[17:0];
endmodule

`default_nettype wire
