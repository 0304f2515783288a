// What npu_slot reads of npu_config.vh.
localparam PREFETCH = 1;
localparam W_THREAD = 1;
localparam W_WEIGHT = 5;
localparam W_SLOT = 1;
localparam C_THREADS_B = 32;
localparam [31:0] C_THREADS = {32'd2};
localparam C_STAYS_B = 32;
localparam [31:0] C_STAYS = {32'd18};
localparam C_BLOCK_WORDS_B = 32;
localparam [31:0] C_BLOCK_WORDS = {32'd0};
