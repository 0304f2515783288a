// What npu_receiver reads of npu_config.vh.
localparam CORES = 1;
localparam W_THREAD = 1;
localparam W_JOB = 1;
localparam W_UNIT = 3;
localparam W_ELEMENT = 5;
localparam W_COUNTER = 1;
localparam C_THREADS_B = 32;
localparam [31:0] C_THREADS = {32'd2};
localparam C_MEMORY_B = 32;
localparam [31:0] C_MEMORY = {32'd0};
localparam M_ELEMENTS_B = 32;
localparam [31:0] M_ELEMENTS = {32'd12};
localparam W_LINK = 2 + W_JOB + W_COUNTER + 2 * W_UNIT + W_ELEMENT;
