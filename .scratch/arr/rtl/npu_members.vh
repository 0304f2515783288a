// What npu_members reads of npu_config.vh.
localparam CORES = 1;
localparam MOST_MEMBERS = 1;
localparam W_THREAD = 1;
localparam W_JOB = 1;
localparam W_CORE = 1;
localparam J_PARENT_B = 1;
localparam [1:0] J_PARENT = {1'd1, 1'd0};
localparam J_MEMBER_B = 1;
localparam [1:0] J_MEMBER = {1'd0, 1'd0};
