// What npu_issue reads of npu_config.vh.
input wire [0:0] jobs_table;
localparam CORES = 1;
localparam JOBS = 2;
localparam SPLITS = 0;
localparam MOST_NEEDS = 1;
localparam W_THREAD = 1;
localparam W_JOB = 1;
localparam W_ROW = 1;
localparam W_READ = 1;
localparam W_STEP = 3;
localparam W_BLOCK = 2;
localparam W_GROUP = 2;
localparam W_UNIT = 3;
localparam W_BANK = 2;
localparam W_WEIGHT = 5;
localparam W_FRAME = 5;
localparam W_ELEMENT = 5;
localparam W_CONSTANT = 3;
localparam W_TURN = 4;
localparam W_COUNTER = 1;
localparam C_LEVELS_B = 32;
localparam [31:0] C_LEVELS = {32'd1};
localparam C_THREADS_B = 32;
localparam [31:0] C_THREADS = {32'd2};
localparam C_FINE_B = 32;
localparam [31:0] C_FINE = {32'd0};
localparam C_SWITCH_CYCLES_B = 1;
localparam [0:0] C_SWITCH_CYCLES = {1'd0};
localparam C_MEMORIES_B = 32;
localparam [31:0] C_MEMORIES = {32'd1};
localparam C_READ_B = 32;
localparam [31:0] C_READ = {32'd4};
localparam C_MULTIPLY_B = 32;
localparam [31:0] C_MULTIPLY = {32'd4};
localparam C_ADD_B = 32;
localparam [31:0] C_ADD = {32'd1};
localparam C_ACCUMULATE_B = 32;
localparam [31:0] C_ACCUMULATE = {32'd2};
localparam W_TILE = W_JOB + W_ROW + W_READ + W_STEP + W_BLOCK + W_GROUP + W_WEIGHT + W_FRAME + W_ELEMENT + W_UNIT
  + W_BANK + 3;
localparam W_BLOCK_WORD = W_TURN + 2 * W_UNIT + W_CONSTANT + W_ELEMENT;
localparam CHECKS = MOST_NEEDS > 0 ? MOST_NEEDS : 1;
localparam W_CHECK = 1 + W_COUNTER + W_STEP + W_UNIT;
localparam W_WAITS = 1 + W_STEP + CHECKS * W_CHECK;
localparam W_PLACE = 2 * W_ROW + W_READ + W_STEP + W_BLOCK + W_GROUP + W_WEIGHT + 2 * W_FRAME + 4 * W_ELEMENT
  + 2 * W_UNIT + W_TURN + 2 * W_BANK;
localparam B_WORD_B = 256;
localparam [511:0] B_PART = {
  64'd0, 64'd288236977785012352, 64'd577636207543189760, 64'd4670931553255424, 64'd0, 64'd4563533952,
  64'd1162261100232960, 64'd4644543274188800
};
localparam B_FRAMES_B = 1;
localparam [1:0] B_FRAMES = {1'd1, 1'd1};
