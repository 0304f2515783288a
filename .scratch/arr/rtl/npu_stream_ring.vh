// What npu_stream_ring reads of npu_config.vh.
localparam CORES = 1;
localparam W_THREAD = 1;
localparam W_JOB = 1;
localparam W_CONTEXT = 1;
