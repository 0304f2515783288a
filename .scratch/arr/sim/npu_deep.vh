// Logs numbers within the tail; part of npu_tb.v. Written by lstmsim.
  localparam D_0 = C_CONVERT[0 * C_CONVERT_B +: C_CONVERT_B];
  wire [63:0] sums_0 = dut.cores[0].built.core.numbers.datapath.sums;
  reg [63:0] word_0;
  integer lane_0;
  integer many_0;
  wire [15:0] state_0_0_0 = {
    dut.cores[0].built.core.numbers.datapath.lanes.core_0.own.g_k0[0].lane.n_c_q_held};
  reg [15:0] state_0_0_0_word;
  integer state_0_0_0_i;
  task log_sums;
    begin
      if (dut.cores[0].built.core.d_valid[D_0]
          && dut.cores[0].built.core.d_segment[(D_0 + 0) * W_SEGMENT +: W_SEGMENT] == P_SEGMENT[dut.cores[0].built.core.d_row[(D_0 + 0) * W_ROW +: W_ROW] * P_SEGMENT_B +: P_SEGMENT_B]) begin
        case (dut.cores[0].built.core.d_row[(D_0 + 0) * W_ROW +: W_ROW])
          G_ROW[(0 * MODELS + 0) * G_ROW_B +: G_ROW_B] + 0: many_0 = 4;
          default: many_0 = 0;
        endcase
        word_0 = sums_0;
        for (lane_0 = 0; lane_0 < 4;
            lane_0 = lane_0 + 1)
          if (lane_0 / 4 >= dut.cores[0].built.core.d_units[(D_0 + 0) * W_UNIT +: W_UNIT]
              || lane_0 % 4 >= many_0)
            word_0[lane_0 * 16 +: 16] = 0;
        $fwrite(log_file, "S %0d %0d %0d %0d %0d %0d ", cycle,
            J_PARENT[dut.cores[0].built.core.d_job[(D_0 + 0) * W_JOB +: W_JOB] * J_PARENT_B +: J_PARENT_B],
            P_NUMBER[dut.cores[0].built.core.d_row[(D_0 + 0) * W_ROW +: W_ROW] * P_NUMBER_B +: P_NUMBER_B],
            dut.cores[0].built.core.d_step[(D_0 + 0) * W_STEP +: W_STEP],
            dut.cores[0].built.core.d_unit[(D_0 + 0) * W_UNIT +: W_UNIT],
            dut.cores[0].built.core.d_units[(D_0 + 0) * W_UNIT +: W_UNIT]);
        $fwrite(log_file, "%h", word_0);
        end_line(0);
      end
    end
  endtask
  task log_states;
    begin
      if (dut.cores[0].built.core.numbers.datapath.lanes.core_0.own.k0_on0_15) begin
        state_0_0_0_word = state_0_0_0;
        for (state_0_0_0_i = 0; state_0_0_0_i < 1; state_0_0_0_i = state_0_0_0_i + 1)
          if (state_0_0_0_i >= dut.cores[0].built.core.d_units[(D_0 + 15) * W_UNIT +: W_UNIT])
            state_0_0_0_word[state_0_0_0_i * 16 +: 16] = 0;
        $fwrite(log_file, "V %0d %0d %0d %0d %0d %0d 1 ", cycle,
            J_PARENT[dut.cores[0].built.core.d_job[(D_0 + 15) * W_JOB +: W_JOB] * J_PARENT_B +: J_PARENT_B],
            P_NUMBER[dut.cores[0].built.core.d_row[(D_0 + 15) * W_ROW +: W_ROW] * P_NUMBER_B +: P_NUMBER_B],
            dut.cores[0].built.core.d_step[(D_0 + 15) * W_STEP +: W_STEP],
            dut.cores[0].built.core.d_unit[(D_0 + 15) * W_UNIT +: W_UNIT],
            dut.cores[0].built.core.d_units[(D_0 + 15) * W_UNIT +: W_UNIT]);
        $fwrite(log_file, "%h", state_0_0_0_word);
        end_line(0);
      end
    end
  endtask
