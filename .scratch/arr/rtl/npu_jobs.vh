// What npu_jobs reads of npu_config.vh.
localparam JOB_TABLE = 0;
localparam JOB_TABLE_BITS = 1;
localparam JOB_SPACE = 7;
