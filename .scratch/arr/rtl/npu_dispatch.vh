// What npu_dispatch reads of npu_config.vh.
localparam CORES = 1;
localparam SPLITS = 0;
localparam QUEUES = 1;
localparam W_THREAD = 1;
localparam W_JOB = 1;
localparam W_JOBS = 2;
localparam C_THREADS_B = 32;
localparam [31:0] C_THREADS = {32'd2};
localparam Q_CORES_B = 1;
localparam [0:0] Q_CORES = {1'd1};
