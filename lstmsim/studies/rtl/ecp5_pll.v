// A model of ours of the PLL of the ECP5, for which Yosys has a black box only. It follows Lattice's guide (sysCLOCK:
// FPGA-TN-02200, formerly TN1263) as far as boards use the cell: CLKOP alone, which is what is fed back (CLKFB), so
// that CLKOP has a rising edge at each CLKI_DIV-th one of CLKI whatever the divider's phase, and the oscillator runs at
// CLKOP times CLKOP_DIV. Bounds are those of the guide: 3.125 to 400 MHz of the phase detector, 400 to 800 MHz of the
// oscillator. Not modelled: how the clock settles. CLKOP is right from the second period of the phase detector on, and
// LOCK rises once LOCKED of them were alike (a real PLL takes up to 15 ms). LOCK falls with a period that is another
// one, and with a feedback that is not CLKOP; it stays where CLKI ends.
// Whatever else a netlist asks for does not compile: the parameter is not there, or the instance below that names the
// reason. A clock out of bounds is said, and LOCK never rises.
`timescale 1ns / 1ps
`default_nettype none

module EHXPLLL (
  input wire CLKI, CLKFB,
  input wire PHASESEL1, PHASESEL0, PHASEDIR, PHASESTEP, PHASELOADREG, STDBY, PLLWAKESYNC, RST, ENCLKOP, ENCLKOS,
  ENCLKOS2, ENCLKOS3,
  output reg CLKOP,
  output reg LOCK
);
  parameter CLKI_DIV = 1;
  parameter CLKFB_DIV = 1;
  parameter CLKOP_DIV = 8;
  parameter CLKOP_CPHASE = 0;
  parameter CLKOP_FPHASE = 0;
  parameter CLKOP_ENABLE = "ENABLED";
  parameter CLKOS_ENABLE = "DISABLED";
  parameter CLKOS2_ENABLE = "DISABLED";
  parameter CLKOS3_ENABLE = "DISABLED";
  parameter FEEDBK_PATH = "CLKOP";
  parameter OUTDIVIDER_MUXA = "DIVA";
  parameter PLLRST_ENA = "DISABLED";
  parameter INTFB_WAKE = "DISABLED";
  parameter STDBY_ENABLE = "DISABLED";
  parameter DPHASE_SOURCE = "DISABLED";
  localparam LOCKED = 8;

  generate
    if (FEEDBK_PATH != "CLKOP") ehxplll_with_a_feedback_other_than_clkop_is_not_modelled refused ();
    if (CLKOP_ENABLE != "ENABLED" || OUTDIVIDER_MUXA != "DIVA") ehxplll_without_its_divider_is_not_modelled refused ();
    if (CLKOS_ENABLE != "DISABLED" || CLKOS2_ENABLE != "DISABLED" || CLKOS3_ENABLE != "DISABLED")
      ehxplll_with_a_second_output_is_not_modelled refused ();
    if (CLKOP_FPHASE != 0 || DPHASE_SOURCE != "DISABLED") ehxplll_with_a_phase_is_not_modelled refused ();
    if (PLLRST_ENA != "DISABLED" || STDBY_ENABLE != "DISABLED" || INTFB_WAKE != "DISABLED")
      ehxplll_with_a_reset_or_standby_is_not_modelled refused ();
    if (CLKI_DIV < 1 || CLKI_DIV > 128 || CLKFB_DIV < 1 || CLKFB_DIV > 128 || CLKOP_DIV < 1 || CLKOP_DIV > 128)
      ehxplll_divides_by_1_to_128 refused ();
  endgenerate

  integer edges;
  integer alike;
  integer k;
  reg told;
  realtime before;
  realtime start;
  realtime period;
  realtime last;
  initial begin
    CLKOP = 1'b0;
    LOCK = 1'b0;
    edges = 0;
    alike = 0;
    told = 1'b0;
    before = -1.0;
    last = 0.0;
  end

  // Periods of the phase detector, in nanoseconds, that are within its bounds and those of the oscillator.
  function sound(input realtime detector);
    sound = detector >= 2.5 && detector <= 320.0 && detector >= 1.25 * CLKFB_DIV * CLKOP_DIV
      && detector <= 2.5 * CLKFB_DIV * CLKOP_DIV;
  endfunction

  // A period of the phase detector ends: the next one is taken to be as long, and CLKOP follows it.
  always @(posedge CLKI) begin
    edges = edges + 1;
    if (edges >= CLKI_DIV) begin
      edges = 0;
      start = $realtime;
      period = start - before;
      if (before >= 0.0) begin
        if (!sound(period)) begin
          if (!told) $display("EHXPLLL: out of bounds: %0.3f ns at the phase detector, times %0d times %0d", period,
              CLKFB_DIV, CLKOP_DIV);
          told = 1'b1;
          alike = 0;
        end else if (period - last > 0.002 || last - period > 0.002) alike = 0;
        else if (alike < LOCKED) alike = alike + 1;
        last = period;
        LOCK = alike == LOCKED;
      end
      before = start;
    end
  end

  always @(start)
    if (period > 0.0 && last > 0.0)
      for (k = 0; k < CLKFB_DIV; k = k + 1) begin
        if (k > 0) #(start + period * k / CLKFB_DIV - $realtime);
        CLKOP = 1'b1;
        #(start + period * (2 * k + 1) / (2 * CLKFB_DIV) - $realtime) CLKOP = 1'b0;
      end

  // What is fed back is CLKOP, or nothing is locked.
  always @(posedge CLKOP) begin
    #0.001;
    if (CLKFB !== 1'b1) begin
      alike = 0;
      LOCK = 1'b0;
    end
  end
endmodule

`default_nettype wire
