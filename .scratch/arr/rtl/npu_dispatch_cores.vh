// What npu_dispatch_cores reads of npu_config.vh.
localparam CORES = 1;
localparam JOBS = 2;
localparam QUEUES = 1;
localparam MOST_THREADS = 2;
localparam W_THREAD = 1;
localparam W_JOB = 1;
localparam W_JOBS = 2;
localparam C_THREADS_B = 32;
localparam [31:0] C_THREADS = {32'd2};
localparam J_NEXT_B = 2;
localparam [3:0] J_NEXT = {2'd2, 2'd1};
localparam Q_CORES_B = 1;
localparam [0:0] Q_CORES = {1'd1};
localparam Q_FIRST_B = 2;
localparam [1:0] Q_FIRST = {2'd0};
