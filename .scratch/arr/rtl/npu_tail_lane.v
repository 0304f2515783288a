// The lanes of the tail, written from the graphs of the cells and the formats of the passes.
`default_nettype none

// A lane of lstm cells.
module npu_lane_c0_k0 (
  clock,
  table_write,
  table_address,
  table_word,
  host_place,
  host_data,
  s_i,
  s_f,
  s_g,
  s_o,
  on0_15,
  turn_7,
  turn_15,
  zero_8,
  y_0
);
localparam W_TURN = 4;
  input wire clock;
  input wire [4:0] table_write;
  input wire [7:0] table_address;
  input wire [32:0] table_word;
  input wire [23:0] host_place;
  input wire [31:0] host_data;
  input wire signed [15:0] s_i;
  input wire signed [15:0] s_f;
  input wire signed [15:0] s_g;
  input wire signed [15:0] s_o;
  input wire on0_15;
  input wire [W_TURN-1:0] turn_7;
  input wire [W_TURN-1:0] turn_15;
  input wire zero_8;
  output wire [7:0] y_0;

  (* no_rw_check *)
  reg [32:0] t_it [0:255];
  (* no_rw_check *)
  reg [32:0] t_ft [0:255];
  (* no_rw_check *)
  reg [32:0] t_gt [0:255];
  (* no_rw_check *)
  reg [32:0] t_ot [0:255];
  (* no_rw_check *)
  reg [32:0] t_ct [0:255];
  reg [15:0] m_c_q [0:11];
  // ot = sigmoid o
  reg signed [15:0] s_o_r;
  wire signed [19:0] n_ot_zero = 20'sh20000;
  wire signed [19:0] n_ot_place = s_o_r + n_ot_zero;
  wire n_ot_below = n_ot_place[19];
  wire n_ot_above = !n_ot_below && |n_ot_place[18:18];
  wire signed [8:0] n_ot_cell = {1'b0, n_ot_below ? 8'd0 : n_ot_above ? {8{1'b1}} : n_ot_place[17:10]};
  wire signed [11:0] n_ot_part = {1'b0, n_ot_above ? 11'd1024 : n_ot_below ? 11'd0 : {1'b0, n_ot_place[9:0]}};
  reg signed [8:0] n_ot_cell_r;
  reg signed [11:0] n_ot_part_r;
  wire signed [32:0] n_ot_word = t_ot[n_ot_cell_r[7:0]];
  reg signed [32:0] n_ot_word_r;
  reg signed [11:0] n_ot_part_r_r;
  reg signed [32:0] n_ot_word_r_r;
  reg signed [11:0] n_ot_part_r_r_r;
  wire signed [15:0] n_ot_value = n_ot_word_r_r[15:0];
  wire signed [16:0] n_ot_rise = n_ot_word_r_r[32:16];
  wire signed [28:0] n_ot_product_r;
  npu_product #(.A(17), .B(12)) n_ot_product (.clock(clock), .a(n_ot_rise), .b(n_ot_part_r_r_r),
    .product(n_ot_product_r));
  reg signed [15:0] n_ot_value_r;
  reg signed [15:0] n_ot_value_r_r;
  reg signed [28:0] n_ot_product_r_r;
  wire signed [28:0] n_ot_rest = (n_ot_product_r_r + 29'sh200) >>> 10;
  reg signed [15:0] n_ot_value_r_r_r;
  reg signed [28:0] n_ot_rest_r;
  wire signed [15:0] n_ot_line = n_ot_value_r_r_r + n_ot_rest_r;
  reg signed [15:0] n_ot;
  reg signed [15:0] n_ot_s0_9;
  reg signed [15:0] n_ot_s0_10;
  reg signed [15:0] n_ot_s0_11;
  reg signed [15:0] n_ot_s0_12;
  reg signed [15:0] n_ot_s0_13;
  reg signed [15:0] n_ot_s0_14;
  reg signed [15:0] n_ot_s0_15;
  reg signed [15:0] n_ot_s0_16;
  reg signed [15:0] n_ot_s0_17;
  reg signed [15:0] n_ot_s0_18;
  reg signed [15:0] n_ot_s0_19;
  reg signed [15:0] n_ot_s0_20;
  reg signed [15:0] n_ot_s0_21;
  reg signed [15:0] n_ot_s0_22;
  reg signed [15:0] n_ot_s0_23;
  reg signed [15:0] n_ot_s0_24;
  // ft = sigmoid f
  reg signed [15:0] s_f_r;
  wire signed [19:0] n_ft_zero = 20'sh20000;
  wire signed [19:0] n_ft_place = s_f_r + n_ft_zero;
  wire n_ft_below = n_ft_place[19];
  wire n_ft_above = !n_ft_below && |n_ft_place[18:18];
  wire signed [8:0] n_ft_cell = {1'b0, n_ft_below ? 8'd0 : n_ft_above ? {8{1'b1}} : n_ft_place[17:10]};
  wire signed [11:0] n_ft_part = {1'b0, n_ft_above ? 11'd1024 : n_ft_below ? 11'd0 : {1'b0, n_ft_place[9:0]}};
  reg signed [8:0] n_ft_cell_r;
  reg signed [11:0] n_ft_part_r;
  wire signed [32:0] n_ft_word = t_ft[n_ft_cell_r[7:0]];
  reg signed [32:0] n_ft_word_r;
  reg signed [11:0] n_ft_part_r_r;
  reg signed [32:0] n_ft_word_r_r;
  reg signed [11:0] n_ft_part_r_r_r;
  wire signed [15:0] n_ft_value = n_ft_word_r_r[15:0];
  wire signed [16:0] n_ft_rise = n_ft_word_r_r[32:16];
  wire signed [28:0] n_ft_product_r;
  npu_product #(.A(17), .B(12)) n_ft_product (.clock(clock), .a(n_ft_rise), .b(n_ft_part_r_r_r),
    .product(n_ft_product_r));
  reg signed [15:0] n_ft_value_r;
  reg signed [15:0] n_ft_value_r_r;
  reg signed [28:0] n_ft_product_r_r;
  wire signed [28:0] n_ft_rest = (n_ft_product_r_r + 29'sh200) >>> 10;
  reg signed [15:0] n_ft_value_r_r_r;
  reg signed [28:0] n_ft_rest_r;
  wire signed [15:0] n_ft_line = n_ft_value_r_r_r + n_ft_rest_r;
  reg signed [15:0] n_ft;
  wire signed [15:0] n_c_s0_word = m_c_q[turn_7];
  reg signed [15:0] n_c_s0_word_r;
  wire signed [15:0] n_c_s0 = zero_8 ? 16'sh0 : n_c_s0_word_r;
  // fc = multiply ft c
  reg signed [15:0] n_ft_r;
  reg signed [15:0] n_c_s0_r;
  wire signed [31:0] n_fc_product_r;
  npu_product #(.A(16), .B(16)) n_fc_product (.clock(clock), .a(n_ft_r), .b(n_c_s0_r), .product(n_fc_product_r));
  wire signed [32:0] n_fc_half = 33'sh2000;
  wire signed [32:0] n_fc_raised = n_fc_product_r + n_fc_half;
  wire signed [18:0] n_fc_rounded = n_fc_raised >>> 14;
  reg signed [18:0] n_fc_rounded_r;
  wire signed [15:0] n_fc_low = n_fc_rounded_r[15:0];
  wire n_fc_inside = &n_fc_rounded_r[18:15] || ~|n_fc_rounded_r[18:15];
  wire signed [15:0] n_fc_held = n_fc_inside ? n_fc_low : n_fc_rounded_r[18] ? 16'sh8000 : 16'sh7fff;
  reg signed [15:0] n_fc;
  // it = sigmoid i
  reg signed [15:0] s_i_r;
  wire signed [19:0] n_it_zero = 20'sh20000;
  wire signed [19:0] n_it_place = s_i_r + n_it_zero;
  wire n_it_below = n_it_place[19];
  wire n_it_above = !n_it_below && |n_it_place[18:18];
  wire signed [8:0] n_it_cell = {1'b0, n_it_below ? 8'd0 : n_it_above ? {8{1'b1}} : n_it_place[17:10]};
  wire signed [11:0] n_it_part = {1'b0, n_it_above ? 11'd1024 : n_it_below ? 11'd0 : {1'b0, n_it_place[9:0]}};
  reg signed [8:0] n_it_cell_r;
  reg signed [11:0] n_it_part_r;
  wire signed [32:0] n_it_word = t_it[n_it_cell_r[7:0]];
  reg signed [32:0] n_it_word_r;
  reg signed [11:0] n_it_part_r_r;
  reg signed [32:0] n_it_word_r_r;
  reg signed [11:0] n_it_part_r_r_r;
  wire signed [15:0] n_it_value = n_it_word_r_r[15:0];
  wire signed [16:0] n_it_rise = n_it_word_r_r[32:16];
  wire signed [28:0] n_it_product_r;
  npu_product #(.A(17), .B(12)) n_it_product (.clock(clock), .a(n_it_rise), .b(n_it_part_r_r_r),
    .product(n_it_product_r));
  reg signed [15:0] n_it_value_r;
  reg signed [15:0] n_it_value_r_r;
  reg signed [28:0] n_it_product_r_r;
  wire signed [28:0] n_it_rest = (n_it_product_r_r + 29'sh200) >>> 10;
  reg signed [15:0] n_it_value_r_r_r;
  reg signed [28:0] n_it_rest_r;
  wire signed [15:0] n_it_line = n_it_value_r_r_r + n_it_rest_r;
  reg signed [15:0] n_it;
  // gt = tanh g
  reg signed [15:0] s_g_r;
  wire signed [19:0] n_gt_zero = 20'sh20000;
  wire signed [19:0] n_gt_place = s_g_r + n_gt_zero;
  wire n_gt_below = n_gt_place[19];
  wire n_gt_above = !n_gt_below && |n_gt_place[18:18];
  wire signed [8:0] n_gt_cell = {1'b0, n_gt_below ? 8'd0 : n_gt_above ? {8{1'b1}} : n_gt_place[17:10]};
  wire signed [11:0] n_gt_part = {1'b0, n_gt_above ? 11'd1024 : n_gt_below ? 11'd0 : {1'b0, n_gt_place[9:0]}};
  reg signed [8:0] n_gt_cell_r;
  reg signed [11:0] n_gt_part_r;
  wire signed [32:0] n_gt_word = t_gt[n_gt_cell_r[7:0]];
  reg signed [32:0] n_gt_word_r;
  reg signed [11:0] n_gt_part_r_r;
  reg signed [32:0] n_gt_word_r_r;
  reg signed [11:0] n_gt_part_r_r_r;
  wire signed [15:0] n_gt_value = n_gt_word_r_r[15:0];
  wire signed [16:0] n_gt_rise = n_gt_word_r_r[32:16];
  wire signed [28:0] n_gt_product_r;
  npu_product #(.A(17), .B(12)) n_gt_product (.clock(clock), .a(n_gt_rise), .b(n_gt_part_r_r_r),
    .product(n_gt_product_r));
  reg signed [15:0] n_gt_value_r;
  reg signed [15:0] n_gt_value_r_r;
  reg signed [28:0] n_gt_product_r_r;
  wire signed [28:0] n_gt_rest = (n_gt_product_r_r + 29'sh200) >>> 10;
  reg signed [15:0] n_gt_value_r_r_r;
  reg signed [28:0] n_gt_rest_r;
  wire signed [15:0] n_gt_line = n_gt_value_r_r_r + n_gt_rest_r;
  reg signed [15:0] n_gt;
  // ig = multiply it gt
  reg signed [15:0] n_it_r;
  reg signed [15:0] n_gt_r;
  wire signed [31:0] n_ig_product_r;
  npu_product #(.A(16), .B(16)) n_ig_product (.clock(clock), .a(n_it_r), .b(n_gt_r), .product(n_ig_product_r));
  wire signed [32:0] n_ig_half = 33'sh4000;
  wire signed [32:0] n_ig_raised = n_ig_product_r + n_ig_half;
  wire signed [17:0] n_ig_rounded = n_ig_raised >>> 15;
  reg signed [17:0] n_ig_rounded_r;
  wire signed [15:0] n_ig_low = n_ig_rounded_r[15:0];
  wire n_ig_inside = &n_ig_rounded_r[17:15] || ~|n_ig_rounded_r[17:15];
  wire signed [15:0] n_ig_held = n_ig_inside ? n_ig_low : n_ig_rounded_r[17] ? 16'sh8000 : 16'sh7fff;
  reg signed [15:0] n_ig;
  // c' = add fc ig
  wire signed [16:0] n_c_q_aligned1 = n_ig <<< 1;
  reg signed [15:0] n_fc_r;
  reg signed [16:0] n_c_q_aligned1_r;
  wire signed [17:0] n_c_q_exact = n_fc_r + n_c_q_aligned1_r;
  reg signed [17:0] n_c_q_exact_r;
  wire signed [18:0] n_c_q_half = 19'sh1;
  wire signed [18:0] n_c_q_raised = n_c_q_exact_r + n_c_q_half;
  wire signed [17:0] n_c_q_rounded = n_c_q_raised >>> 1;
  reg signed [17:0] n_c_q_rounded_r;
  wire signed [15:0] n_c_q_low = n_c_q_rounded_r[15:0];
  wire n_c_q_inside = &n_c_q_rounded_r[17:15] || ~|n_c_q_rounded_r[17:15];
  wire signed [15:0] n_c_q_held = n_c_q_inside ? n_c_q_low : n_c_q_rounded_r[17] ? 16'sh8000 : 16'sh7fff;
  reg signed [15:0] n_c_q;
  // ct = tanh c'
  reg signed [15:0] n_c_q_r;
  wire signed [20:0] n_ct_zero = 21'sh40000;
  wire signed [20:0] n_ct_place = n_c_q_r + n_ct_zero;
  wire n_ct_below = n_ct_place[20];
  wire n_ct_above = !n_ct_below && |n_ct_place[19:19];
  wire signed [8:0] n_ct_cell = {1'b0, n_ct_below ? 8'd0 : n_ct_above ? {8{1'b1}} : n_ct_place[18:11]};
  wire signed [12:0] n_ct_part = {1'b0, n_ct_above ? 12'd2048 : n_ct_below ? 12'd0 : {1'b0, n_ct_place[10:0]}};
  reg signed [8:0] n_ct_cell_r;
  reg signed [12:0] n_ct_part_r;
  wire signed [32:0] n_ct_word = t_ct[n_ct_cell_r[7:0]];
  reg signed [32:0] n_ct_word_r;
  reg signed [12:0] n_ct_part_r_r;
  reg signed [32:0] n_ct_word_r_r;
  reg signed [12:0] n_ct_part_r_r_r;
  wire signed [15:0] n_ct_value = n_ct_word_r_r[15:0];
  wire signed [16:0] n_ct_rise = n_ct_word_r_r[32:16];
  wire signed [29:0] n_ct_product_r;
  npu_product #(.A(17), .B(13)) n_ct_product (.clock(clock), .a(n_ct_rise), .b(n_ct_part_r_r_r),
    .product(n_ct_product_r));
  reg signed [15:0] n_ct_value_r;
  reg signed [15:0] n_ct_value_r_r;
  reg signed [29:0] n_ct_product_r_r;
  wire signed [29:0] n_ct_rest = (n_ct_product_r_r + 30'sh400) >>> 11;
  reg signed [15:0] n_ct_value_r_r_r;
  reg signed [29:0] n_ct_rest_r;
  wire signed [15:0] n_ct_line = n_ct_value_r_r_r + n_ct_rest_r;
  reg signed [15:0] n_ct;
  // hf = multiply ot ct
  reg signed [15:0] n_ot_s0_24_r;
  reg signed [15:0] n_ct_r;
  wire signed [31:0] n_hf_product_r;
  npu_product #(.A(16), .B(16)) n_hf_product (.clock(clock), .a(n_ot_s0_24_r), .b(n_ct_r), .product(n_hf_product_r));
  wire signed [32:0] n_hf_half = 33'sh2000;
  wire signed [32:0] n_hf_raised = n_hf_product_r + n_hf_half;
  wire signed [18:0] n_hf_rounded = n_hf_raised >>> 14;
  reg signed [18:0] n_hf_rounded_r;
  wire signed [15:0] n_hf_low = n_hf_rounded_r[15:0];
  wire n_hf_inside = &n_hf_rounded_r[18:15] || ~|n_hf_rounded_r[18:15];
  wire signed [15:0] n_hf_held = n_hf_inside ? n_hf_low : n_hf_rounded_r[18] ? 16'sh8000 : 16'sh7fff;
  reg signed [15:0] n_hf;
  // h' = quantize hf
  reg signed [15:0] n_hf_r;
  wire signed [16:0] n_h_q_factor = 17'shcd61;
  wire signed [32:0] n_h_q_product_all;
  npu_product #(.A(16), .B(17)) n_h_q_product (.clock(clock), .a(n_hf_r), .b(n_h_q_factor),
    .product(n_h_q_product_all));
  wire signed [31:0] n_h_q_product_r = n_h_q_product_all[31:0];
  wire signed [32:0] n_h_q_half = 33'sh400000;
  wire signed [32:0] n_h_q_raised = n_h_q_product_r + n_h_q_half;
  wire signed [9:0] n_h_q_rounded = n_h_q_raised >>> 23;
  reg signed [9:0] n_h_q_rounded_r;
  wire signed [7:0] n_h_q_low = n_h_q_rounded_r[7:0];
  wire n_h_q_inside = &n_h_q_rounded_r[9:7] || ~|n_h_q_rounded_r[9:7];
  wire n_h_q_kept = n_h_q_inside && n_h_q_low != 8'sh80;
  wire signed [7:0] n_h_q_held = n_h_q_kept ? n_h_q_low : n_h_q_rounded_r[9] ? 8'sh81 : 8'sh7f;
  reg signed [7:0] n_h_q;
  reg signed [7:0] n_h_q_s0_33;
  reg signed [7:0] n_h_q_s0_34;
  reg signed [7:0] n_h_q_s0_35;
  always @(posedge clock) begin
    s_o_r <= s_o;
    n_ot_cell_r <= n_ot_cell;
    n_ot_part_r <= n_ot_part;
    n_ot_word_r <= n_ot_word;
    n_ot_part_r_r <= n_ot_part_r;
    n_ot_word_r_r <= n_ot_word_r;
    n_ot_part_r_r_r <= n_ot_part_r_r;
    n_ot_value_r <= n_ot_value;
    n_ot_value_r_r <= n_ot_value_r;
    n_ot_product_r_r <= n_ot_product_r;
    n_ot_value_r_r_r <= n_ot_value_r_r;
    n_ot_rest_r <= n_ot_rest;
    n_ot <= n_ot_line;
    n_ot_s0_9 <= n_ot;
    n_ot_s0_10 <= n_ot_s0_9;
    n_ot_s0_11 <= n_ot_s0_10;
    n_ot_s0_12 <= n_ot_s0_11;
    n_ot_s0_13 <= n_ot_s0_12;
    n_ot_s0_14 <= n_ot_s0_13;
    n_ot_s0_15 <= n_ot_s0_14;
    n_ot_s0_16 <= n_ot_s0_15;
    n_ot_s0_17 <= n_ot_s0_16;
    n_ot_s0_18 <= n_ot_s0_17;
    n_ot_s0_19 <= n_ot_s0_18;
    n_ot_s0_20 <= n_ot_s0_19;
    n_ot_s0_21 <= n_ot_s0_20;
    n_ot_s0_22 <= n_ot_s0_21;
    n_ot_s0_23 <= n_ot_s0_22;
    n_ot_s0_24 <= n_ot_s0_23;
    s_f_r <= s_f;
    n_ft_cell_r <= n_ft_cell;
    n_ft_part_r <= n_ft_part;
    n_ft_word_r <= n_ft_word;
    n_ft_part_r_r <= n_ft_part_r;
    n_ft_word_r_r <= n_ft_word_r;
    n_ft_part_r_r_r <= n_ft_part_r_r;
    n_ft_value_r <= n_ft_value;
    n_ft_value_r_r <= n_ft_value_r;
    n_ft_product_r_r <= n_ft_product_r;
    n_ft_value_r_r_r <= n_ft_value_r_r;
    n_ft_rest_r <= n_ft_rest;
    n_ft <= n_ft_line;
    n_c_s0_word_r <= n_c_s0_word;
    n_ft_r <= n_ft;
    n_c_s0_r <= n_c_s0;
    n_fc_rounded_r <= n_fc_rounded;
    n_fc <= n_fc_held;
    s_i_r <= s_i;
    n_it_cell_r <= n_it_cell;
    n_it_part_r <= n_it_part;
    n_it_word_r <= n_it_word;
    n_it_part_r_r <= n_it_part_r;
    n_it_word_r_r <= n_it_word_r;
    n_it_part_r_r_r <= n_it_part_r_r;
    n_it_value_r <= n_it_value;
    n_it_value_r_r <= n_it_value_r;
    n_it_product_r_r <= n_it_product_r;
    n_it_value_r_r_r <= n_it_value_r_r;
    n_it_rest_r <= n_it_rest;
    n_it <= n_it_line;
    s_g_r <= s_g;
    n_gt_cell_r <= n_gt_cell;
    n_gt_part_r <= n_gt_part;
    n_gt_word_r <= n_gt_word;
    n_gt_part_r_r <= n_gt_part_r;
    n_gt_word_r_r <= n_gt_word_r;
    n_gt_part_r_r_r <= n_gt_part_r_r;
    n_gt_value_r <= n_gt_value;
    n_gt_value_r_r <= n_gt_value_r;
    n_gt_product_r_r <= n_gt_product_r;
    n_gt_value_r_r_r <= n_gt_value_r_r;
    n_gt_rest_r <= n_gt_rest;
    n_gt <= n_gt_line;
    n_it_r <= n_it;
    n_gt_r <= n_gt;
    n_ig_rounded_r <= n_ig_rounded;
    n_ig <= n_ig_held;
    n_fc_r <= n_fc;
    n_c_q_aligned1_r <= n_c_q_aligned1;
    n_c_q_exact_r <= n_c_q_exact;
    n_c_q_rounded_r <= n_c_q_rounded;
    n_c_q <= n_c_q_held;
    n_c_q_r <= n_c_q;
    n_ct_cell_r <= n_ct_cell;
    n_ct_part_r <= n_ct_part;
    n_ct_word_r <= n_ct_word;
    n_ct_part_r_r <= n_ct_part_r;
    n_ct_word_r_r <= n_ct_word_r;
    n_ct_part_r_r_r <= n_ct_part_r_r;
    n_ct_value_r <= n_ct_value;
    n_ct_value_r_r <= n_ct_value_r;
    n_ct_product_r_r <= n_ct_product_r;
    n_ct_value_r_r_r <= n_ct_value_r_r;
    n_ct_rest_r <= n_ct_rest;
    n_ct <= n_ct_line;
    n_ot_s0_24_r <= n_ot_s0_24;
    n_ct_r <= n_ct;
    n_hf_rounded_r <= n_hf_rounded;
    n_hf <= n_hf_held;
    n_hf_r <= n_hf;
    n_h_q_rounded_r <= n_h_q_rounded;
    n_h_q <= n_h_q_held;
    n_h_q_s0_33 <= n_h_q;
    n_h_q_s0_34 <= n_h_q_s0_33;
    n_h_q_s0_35 <= n_h_q_s0_34;
  end
  always @(posedge clock) if (table_write[0]) t_it[table_address[7:0]] <= table_word[32:0];
  always @(posedge clock) if (table_write[1]) t_ft[table_address[7:0]] <= table_word[32:0];
  always @(posedge clock) if (table_write[2]) t_gt[table_address[7:0]] <= table_word[32:0];
  always @(posedge clock) if (table_write[3]) t_ot[table_address[7:0]] <= table_word[32:0];
  always @(posedge clock) if (table_write[4]) t_ct[table_address[7:0]] <= table_word[32:0];
  always @(posedge clock) if (on0_15) m_c_q[turn_15] <= n_c_q_held;
  assign y_0 = n_h_q_s0_35;
endmodule

// All lanes of core 0. Entry CONVERT of the delay line d_* is the turn in its own cycle.
module npu_lanes_c0 #(parameter D = 40) (
  clock,
  reset,
  host_write,
  host_address,
  host_data,
  d_valid,
  d_thread,
  d_job,
  d_row,
  d_segment,
  d_step,
  d_block,
  d_bank,
  d_turn,
  d_number,
  d_unit,
  d_units,
  d_constant,
  d_parameter,
  d_write,
  d_zero,
  d_initial,
  d_last_turn,
  d_last_block,
  d_last_step,
  sums,
  y_0_0
);
localparam W_THREAD = 1;
localparam W_JOB = 1;
localparam W_ROW = 1;
localparam W_SEGMENT = 1;
localparam W_STEP = 3;
localparam W_BLOCK = 2;
localparam W_UNIT = 3;
localparam W_BANK = 2;
localparam W_ELEMENT = 5;
localparam W_CONSTANT = 3;
localparam W_TURN = 4;
localparam W_NUMBER = 2;
localparam P_KIND_B = 1;
localparam [0:0] P_KIND = {1'd0};
localparam S_LANE_SEGMENT_B = 1;
localparam [0:0] S_LANE_SEGMENT = {1'd0};
  input wire clock;
  input wire reset;
  input wire host_write;
  input wire [31:0] host_address;
  input wire [31:0] host_data;
  input wire [D:0] d_valid;
  input wire [(D+1)*W_THREAD-1:0] d_thread;
  input wire [(D+1)*W_JOB-1:0] d_job;
  input wire [(D+1)*W_ROW-1:0] d_row;
  input wire [(D+1)*W_SEGMENT-1:0] d_segment;
  input wire [(D+1)*W_STEP-1:0] d_step;
  input wire [(D+1)*W_BLOCK-1:0] d_block;
  input wire [(D+1)*W_BANK-1:0] d_bank;
  input wire [(D+1)*W_TURN-1:0] d_turn;
  input wire [(D+1)*W_NUMBER-1:0] d_number;
  input wire [(D+1)*W_UNIT-1:0] d_unit;
  input wire [(D+1)*W_UNIT-1:0] d_units;
  input wire [(D+1)*W_CONSTANT-1:0] d_constant;
  input wire [(D+1)*W_TURN-1:0] d_parameter;
  input wire [(D+1)*W_ELEMENT-1:0] d_write;
  input wire [D:0] d_zero;
  input wire [D:0] d_initial;
  input wire [D:0] d_last_turn;
  input wire [D:0] d_last_block;
  input wire [D:0] d_last_step;
  input wire [63:0] sums;
  output wire [7:0] y_0_0;

  localparam CONVERT = 4;
  genvar l;
  wire [3:0] space = host_address[31:28];
  // tables: number of the node, table, cell, part; a word of two parts is written with the last one
  reg [31:0] table_low;
  always @(posedge clock) if (host_write) table_low <= host_data;
  wire [32:0] table_word = {host_data[0:0], table_low};
  wire [7:0] table_address = host_address[8:1];
  wire [4:0] table_write;
  assign table_write[0] = host_write && space == 4'd4 && host_address[0] && host_address[11:9] == 3'd0;
  assign table_write[1] = host_write && space == 4'd4 && host_address[0] && host_address[11:9] == 3'd1;
  assign table_write[2] = host_write && space == 4'd4 && host_address[0] && host_address[11:9] == 3'd2;
  assign table_write[3] = host_write && space == 4'd4 && host_address[0] && host_address[11:9] == 3'd3;
  assign table_write[4] = host_write && space == 4'd4 && host_address[0] && host_address[11:9] == 3'd4;
  // kind 0: lstm
  wire k0_on0_0 = d_valid[CONVERT] && P_KIND[d_row[CONVERT*W_ROW +: W_ROW] * P_KIND_B +: P_KIND_B] == 0
    && S_LANE_SEGMENT[d_segment[CONVERT*W_SEGMENT +: W_SEGMENT] * S_LANE_SEGMENT_B +: S_LANE_SEGMENT_B] == 0;
  reg k0_on0_1, k0_on0_2, k0_on0_3, k0_on0_4, k0_on0_5, k0_on0_6, k0_on0_7, k0_on0_8, k0_on0_9, k0_on0_10, k0_on0_11,
    k0_on0_12, k0_on0_13, k0_on0_14, k0_on0_15;
  always @(posedge clock) begin
    k0_on0_1 <= k0_on0_0;
    k0_on0_2 <= k0_on0_1;
    k0_on0_3 <= k0_on0_2;
    k0_on0_4 <= k0_on0_3;
    k0_on0_5 <= k0_on0_4;
    k0_on0_6 <= k0_on0_5;
    k0_on0_7 <= k0_on0_6;
    k0_on0_8 <= k0_on0_7;
    k0_on0_9 <= k0_on0_8;
    k0_on0_10 <= k0_on0_9;
    k0_on0_11 <= k0_on0_10;
    k0_on0_12 <= k0_on0_11;
    k0_on0_13 <= k0_on0_12;
    k0_on0_14 <= k0_on0_13;
    k0_on0_15 <= k0_on0_14;
  end
  generate
    for (l = 0; l < 1; l = l + 1) begin : g_k0
      npu_lane_c0_k0 lane (
        .clock(clock),
        .table_write(table_write),
        .table_address(table_address),
        .table_word(table_word),
        .host_place(24'd0),
        .host_data(host_data),
        .s_i(sums[(l * 4 + 0) * 16 +: 16]),
        .s_f(sums[(l * 4 + 1) * 16 +: 16]),
        .s_g(sums[(l * 4 + 2) * 16 +: 16]),
        .s_o(sums[(l * 4 + 3) * 16 +: 16]),
        .on0_15(k0_on0_15),
        .turn_7(d_turn[(CONVERT+7)*W_TURN +: W_TURN]),
        .turn_15(d_turn[(CONVERT+15)*W_TURN +: W_TURN]),
        .zero_8(d_zero[CONVERT+8]),
        .y_0(y_0_0[l * 8 +: 8])
      );
    end
  endgenerate
endmodule
