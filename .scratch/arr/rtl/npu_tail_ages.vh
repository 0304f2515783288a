// What npu_tail_ages reads of npu_config.vh.
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
localparam C_THREADS_B = 32;
localparam [31:0] C_THREADS = {32'd2};
