// The table of jobs, if it is written by the host and no part of the netlist (docs/rtl.md section 2): registers, because
// all threads read it in the cycle in which they take a job. Nothing is written while jobs run.
`default_nettype none

module npu_jobs (clock, host_write, host_address, host_data, words);
  `include "npu_jobs.vh"
  input wire clock;
  input wire host_write;
  input wire [31:0] host_address;
  input wire [31:0] host_data;
  output wire [JOB_TABLE_BITS-1:0] words;

  genvar w;
  generate
    if (JOB_TABLE == 0) begin : constant
      assign words = 0;
    end else begin : written
      for (w = 0; w < JOB_TABLE_BITS; w = w + 32) begin : parts
        localparam W = JOB_TABLE_BITS - w < 32 ? JOB_TABLE_BITS - w : 32;
        reg [W-1:0] part;
        always @(posedge clock)
          if (host_write && host_address[31:28] == JOB_SPACE && host_address[23:0] == w / 32) part <= host_data[W-1:0];
        assign words[w +: W] = part;
      end
    end
  endgenerate
endmodule

`default_nettype wire
