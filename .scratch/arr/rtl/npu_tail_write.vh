// What npu_tail_write reads of npu_config.vh.
localparam W_THREAD = 1;
localparam W_SEGMENT = 1;
localparam W_STEP = 3;
localparam W_UNIT = 3;
localparam W_ELEMENT = 5;
localparam W_COUNTER = 1;
localparam C_THREADS_B = 32;
localparam [31:0] C_THREADS = {32'd2};
localparam C_HOMES_B = 32;
localparam [31:0] C_HOMES = {32'd0};
