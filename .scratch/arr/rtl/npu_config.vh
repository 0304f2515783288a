// Sizes, widths and tables of this design; section 10 of lstmsim's docs/rtl.md names them. This file has localparams
// only. The testbench includes it; npu_<module>.vh has what a module reads of it. NAME_B is the width of an entry of
// NAME; entry 0 is in the lowest bits; negative entries are in two's complement. The signals `row`, `read`, `segment`
// are places in P_, R_, S_; counters are numbered within their program.
localparam CORES = 1;
localparam JOBS = 2;
localparam POSTED = 2;
localparam SPLITS = 0;
localparam STEP_SHIFT = 0;
localparam MOST_MEMBERS = 1;
localparam MOST_PLACES = 1;
localparam MOST_RATE = 1;
localparam STREAMS = 0;
localparam W_STREAM = 1;
localparam W_BURST = 1;
localparam PREFETCH = 1;
localparam BURST_CYCLES = 256;
localparam MEMORY_LATENCY = 0;
localparam MOST_TILE_BITS = 1;
localparam STREAM_WORDS = 1;
localparam LINK_CYCLES = 8;
localparam MODELS = 1;
localparam QUEUES = 1;
localparam ROWS = 1;
localparam MOST_THREADS = 2;
localparam MOST_COUNTERS = 1;
localparam MOST_NEEDS = 1;
localparam MOST_WRITES = 1;
localparam JR_SHIFT = 0;
localparam WEIGHT_BITS = 8;
localparam VECTOR_BITS = 8;
localparam ACCUMULATOR_BITS = 32;
localparam MULTIPLIER_BITS = 16;
localparam TAIL_BITS = 16;

// widths of signals
localparam W_THREAD = 1;
localparam W_JOB = 1;
localparam W_JOBS = 2;
localparam W_ROW = 1;
localparam W_SEGMENT = 1;
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
localparam W_NUMBER = 2;
localparam W_COUNTER = 1;
localparam W_CORE = 1;
localparam W_CONTEXT = 1;
localparam W_SLOT = 1;
localparam W_OUTPUT = 1;
localparam MOST_AWAITS = 0;
localparam W_DELAY = 6;

// C_: cores
localparam C_EP_B = 32;
localparam [31:0] C_EP = {32'd2};
localparam C_ROWS_B = 32;
localparam [31:0] C_ROWS = {32'd8};
localparam C_LEVELS_B = 32;
localparam [31:0] C_LEVELS = {32'd1};
localparam C_THREADS_B = 32;
localparam [31:0] C_THREADS = {32'd2};
localparam C_BANKS_B = 32;
localparam [31:0] C_BANKS = {32'd2};
localparam C_TAIL_WIDTH_B = 32;
localparam [31:0] C_TAIL_WIDTH = {32'd1};
localparam C_FINE_B = 32;
localparam [31:0] C_FINE = {32'd0};
localparam C_SWITCH_CYCLES_B = 1;
localparam [0:0] C_SWITCH_CYCLES = {1'd0};
localparam C_COLUMN_ORDER_B = 32;
localparam [31:0] C_COLUMN_ORDER = {32'd0};
localparam C_DEPTH_B = 32;
localparam [31:0] C_DEPTH = {32'd40};
localparam C_WEIGHT_WORDS_B = 32;
localparam [31:0] C_WEIGHT_WORDS = {32'd18};
localparam C_FRAME_WORDS_B = 32;
localparam [31:0] C_FRAME_WORDS = {32'd24};
localparam C_CONSTANT_WORDS_B = 32;
localparam [31:0] C_CONSTANT_WORDS = {32'd6};
localparam C_TURNS_B = 32;
localparam [31:0] C_TURNS = {32'd6};
localparam C_KINDS_B = 32;
localparam [31:0] C_KINDS = {32'd1};
localparam C_MEMORIES_B = 32;
localparam [31:0] C_MEMORIES = {32'd1};
localparam C_MEMORY_B = 32;
localparam [31:0] C_MEMORY = {32'd0};
localparam C_READ_B = 32;
localparam [31:0] C_READ = {32'd4};
localparam C_MULTIPLY_B = 32;
localparam [31:0] C_MULTIPLY = {32'd4};
localparam C_ADD_B = 32;
localparam [31:0] C_ADD = {32'd1};
localparam C_ACCUMULATE_B = 32;
localparam [31:0] C_ACCUMULATE = {32'd2};
localparam C_CONVERT_B = 32;
localparam [31:0] C_CONVERT = {32'd4};

// M_: vector memories, by core
localparam M_SLOT_B = 32;
localparam [31:0] M_SLOT = {32'd0};
localparam M_ELEMENTS_B = 32;
localparam [31:0] M_ELEMENTS = {32'd12};

// G_: programs, at core * MODELS + model; G_ROW is a place in P_
localparam G_INTERLEAVED_B = 1;
localparam [0:0] G_INTERLEAVED = {1'd0};
localparam G_TIMED_B = 1;
localparam [0:0] G_TIMED = {1'd0};
localparam G_ROW_B = 1;
localparam [0:0] G_ROW = {1'd0};

// J_: jobs in posting order; J_NEXT is the next job of the same queue, or JOBS
localparam J_MODEL_B = 1;
localparam [1:0] J_MODEL = {1'd0, 1'd0};
localparam J_STEPS_B = 4;
localparam [7:0] J_STEPS = {4'd4, 4'd4};
localparam J_ARRIVAL_B = 1;
localparam [1:0] J_ARRIVAL = {1'd0, 1'd0};
localparam J_FRAME_INTERVAL_B = 1;
localparam [1:0] J_FRAME_INTERVAL = {1'd0, 1'd0};
localparam J_PARENT_B = 1;
localparam [1:0] J_PARENT = {1'd1, 1'd0};
localparam J_MEMBER_B = 1;
localparam [1:0] J_MEMBER = {1'd0, 1'd0};
localparam J_NEXT_B = 2;
localparam [3:0] J_NEXT = {2'd2, 2'd1};
localparam J_MORE_B = 1;
localparam [1:0] J_MORE = {1'd0, 1'd0};
localparam J_MOST_B = 1;
localparam [1:0] J_MOST = {1'd1, 1'd1};

// Q_: queues; Q_FIRST is a job, and Q_CORES has a bit for each core that the queue's jobs may run on
localparam Q_CORES_B = 1;
localparam [0:0] Q_CORES = {1'd1};
localparam Q_FIRST_B = 2;
localparam [1:0] Q_FIRST = {2'd0};
localparam Q_SPLIT_B = 2;
localparam [1:0] Q_SPLIT = {2'd0};
localparam Q_PLACE_B = 1;
localparam [0:0] Q_PLACE = {1'd0};
localparam Q_MEMBERS_B = 1;
localparam [0:0] Q_MEMBERS = {1'd1};
localparam QP_CORE_B = 1;
localparam [0:0] QP_CORE = {1'd0};

// JC_: jobs by core, at core * JOBS + job
localparam JC_FRAME_START_B = 8;
localparam [15:0] JC_FRAME_START = {8'd12, 8'd0};
localparam JC_FRAME_END_B = 8;
localparam [15:0] JC_FRAME_END = {8'd21, 8'd9};
localparam JC_STARTED_B = 1;
localparam [1:0] JC_STARTED = {1'd0, 1'd0};
localparam JC_INITIAL_B = 4;
localparam [7:0] JC_INITIAL = {4'd0, 4'd0};

// JR_: rows of jobs by core, at ((core * JOBS + job) << JR_SHIFT) + P_NUMBER
localparam JR_X_START_B = 8;
localparam [15:0] JR_X_START = {8'd0, 8'd0};
localparam JR_WRITE_START_B = 8;
localparam [15:0] JR_WRITE_START = {8'd0, 8'd0};
localparam JR_H_START_B = 8;
localparam [15:0] JR_H_START = {8'd0, 8'd0};

// P_: rows, a stage of a pass each; those of a program follow each other:
//   0: core 0 model 0 layer 0 stage 0, lstm
localparam P_NUMBER_B = 1;
localparam [0:0] P_NUMBER = {1'd0};
localparam P_KIND_B = 1;
localparam [0:0] P_KIND = {1'd0};
localparam P_LANE_PASS_B = 1;
localparam [0:0] P_LANE_PASS = {1'd0};
localparam P_UNITS_B = 4;
localparam [3:0] P_UNITS = {4'd2};
localparam P_BLOCKS_B = 2;
localparam [1:0] P_BLOCKS = {2'd3};
localparam P_LAST_UNITS_B = 4;
localparam [3:0] P_LAST_UNITS = {4'd2};
localparam P_TURNS_B = 2;
localparam [1:0] P_TURNS = {2'd2};
localparam P_SEGMENTS_B = 1;
localparam [0:0] P_SEGMENTS = {1'd1};
localparam P_WEIGHT_BASE_B = 8;
localparam [7:0] P_WEIGHT_BASE = {8'd0};
localparam P_CONSTANT_BASE_B = 4;
localparam [3:0] P_CONSTANT_BASE = {4'd0};
localparam P_TURN_BASE_B = 4;
localparam [3:0] P_TURN_BASE = {4'd0};
localparam P_LAST_OF_PASS_B = 1;
localparam [0:0] P_LAST_OF_PASS = {1'd1};
localparam P_LAST_OF_PROGRAM_B = 1;
localparam [0:0] P_LAST_OF_PROGRAM = {1'd1};
localparam P_BACKWARD_B = 1;
localparam [0:0] P_BACKWARD = {1'd0};
localparam P_WRITE_STRIDE_B = 8;
localparam [7:0] P_WRITE_STRIDE = {8'd0};
localparam P_READ_B = 1;
localparam [0:0] P_READ = {1'd0};
localparam P_LAST_READ_B = 1;
localparam [0:0] P_LAST_READ = {1'd1};
localparam P_SEGMENT_B = 1;
localparam [0:0] P_SEGMENT = {1'd0};

// R_: vectors read; R_SOURCE: 0 frame, 1 two, 2 all_x, 3 all_h
localparam R_CODE_B = 1;
localparam [1:0] R_CODE = {1'd0, 1'd1};
localparam R_GROUPS_B = 2;
localparam [3:0] R_GROUPS = {2'd3, 2'd3};
localparam R_SOURCE_B = 2;
localparam [3:0] R_SOURCE = {2'd1, 2'd0};
localparam R_MEMORY_B = 1;
localparam [1:0] R_MEMORY = {1'd0, 1'd0};
localparam R_BASE_B = 8;
localparam [15:0] R_BASE = {8'd0, 8'd0};
localparam R_STRIDE_B = 8;
localparam [15:0] R_STRIDE = {8'd6, 8'd0};
localparam R_LAG_B = 1;
localparam [1:0] R_LAG = {1'd1, 1'd0};
localparam R_NEEDS_B = 1;
localparam [1:0] R_NEEDS = {1'd1, 1'd0};
localparam R_LAST_ELEMENTS_B = 4;
localparam [7:0] R_LAST_ELEMENTS = {4'd2, 4'd1};
localparam R_NEED_B = 1;
localparam [1:0] R_NEED = {1'd0, 1'd0};

// N_: counters that a group waits for
localparam N_COUNTER_B = 1;
localparam [0:0] N_COUNTER = {1'd0};
localparam N_BEGIN_B = 4;
localparam [3:0] N_BEGIN = {4'd0};
localparam N_END_B = 4;
localparam [3:0] N_END = {4'd6};
localparam N_FLIPPED_B = 1;
localparam [0:0] N_FLIPPED = {1'd0};
localparam N_MEMBER_B = 1;
localparam [0:0] N_MEMBER = {1'd0};

// S_: segments
localparam S_INDEX_B = 1;
localparam [0:0] S_INDEX = {1'd0};
localparam S_LANE_SEGMENT_B = 1;
localparam [0:0] S_LANE_SEGMENT = {1'd0};
localparam S_WRITES_B = 1;
localparam [0:0] S_WRITES = {1'd1};
localparam S_LAST_B = 1;
localparam [0:0] S_LAST = {1'd1};
localparam S_WRITE_B = 1;
localparam [0:0] S_WRITE = {1'd0};

// V_: vectors written; V_MEMORY is also the number of the write port
localparam V_MEMORY_B = 1;
localparam [0:0] V_MEMORY = {1'd0};
localparam V_COUNTER_B = 1;
localparam [0:0] V_COUNTER = {1'd0};
localparam V_ALL_B = 1;
localparam [0:0] V_ALL = {1'd0};
localparam V_BASE_B = 8;
localparam [7:0] V_BASE = {8'd0};
localparam V_STRIDE_B = 8;
localparam [7:0] V_STRIDE = {8'd6};

// Links between cores: of each segment its rows in X_; V_ row and cycles from a turn until it may be sent
localparam S_SEND_B = 1;
localparam [0:0] S_SEND = {1'd0};
localparam S_SENDS_B = 1;
localparam [0:0] S_SENDS = {1'd0};
localparam X_VECTOR_B = 1;
localparam [0:0] X_VECTOR = {1'd0};
localparam X_CYCLES_B = 1;
localparam [0:0] X_CYCLES = {1'd0};
localparam V_TIMED_B = 1;
localparam [0:0] V_TIMED = {1'd0};
localparam C_RATE_B = 32;
localparam [31:0] C_RATE = {32'd1};
localparam C_SENDS_B = 32;
localparam [31:0] C_SENDS = {32'd1};
localparam C_HOMES_B = 32;
localparam [31:0] C_HOMES = {32'd0};
localparam M_SENT_B = 32;
localparam [31:0] M_SENT = {32'd0};

// Streamed weights: G_: phases of a program; KP_: their row blocks in K_; BK_: all row blocks, whether they are
// streamed, and what is added to a tile's number of a word; C_: words that stay, words of a slot
localparam G_PHASE_B = 1;
localparam [0:0] G_PHASE = {1'd0};
localparam G_PHASES_B = 1;
localparam [0:0] G_PHASES = {1'd0};
localparam KP_FIRST_B = 1;
localparam [0:0] KP_FIRST = {1'd0};
localparam KP_COUNT_B = 1;
localparam [0:0] KP_COUNT = {1'd0};
localparam K_BURSTS_B = 1;
localparam [0:0] K_BURSTS = {1'd0};
localparam K_CYCLES_B = 1;
localparam [0:0] K_CYCLES = {1'd0};
localparam K_WORDS_B = 1;
localparam [0:0] K_WORDS = {1'd0};
localparam K_ADDRESS_B = 1;
localparam [0:0] K_ADDRESS = {1'd0};
localparam P_STREAM_B = 1;
localparam [0:0] P_STREAM = {1'd0};
localparam BK_STREAMED_B = 1;
localparam [2:0] BK_STREAMED = {1'd0, 1'd0, 1'd0};
localparam BK_MOVED_B = 8;
localparam [23:0] BK_MOVED = {8'd0, 8'd0, 8'd0};
localparam C_STAYS_B = 32;
localparam [31:0] C_STAYS = {32'd18};
localparam C_BLOCK_WORDS_B = 32;
localparam [31:0] C_BLOCK_WORDS = {32'd0};

// S_: of each segment, cycles from a turn until its results are there; stamps of starts; rows in A_
localparam S_RESULT_CYCLES_B = 8;
localparam [7:0] S_RESULT_CYCLES = {8'd36};
localparam S_GIVES_B = 1;
localparam [0:0] S_GIVES = {1'd0};
localparam S_STAMP_B = 1;
localparam [0:0] S_STAMP = {1'd0};
localparam S_A_B = 1;
localparam [0:0] S_A = {1'd0};
localparam S_AS_B = 1;
localparam [0:0] S_AS = {1'd0};

// A_: starts of blocks that a segment's blocks wait for; O_: the same for single blocks
localparam A_STAMP_B = 1;
localparam [0:0] A_STAMP = {1'd0};
localparam A_OWN_B = 1;
localparam [0:0] A_OWN = {1'd0};
localparam A_LAG_B = 1;
localparam [0:0] A_LAG = {1'd0};
localparam A_CYCLES_B = 1;
localparam [0:0] A_CYCLES = {1'd0};
localparam A_TABLE_B = 1;
localparam [0:0] A_TABLE = {1'd0};
localparam A_FIRST_B = 1;
localparam [0:0] A_FIRST = {1'd0};
localparam O_STAMP_B = 1;
localparam [0:0] O_STAMP = {1'd0};
localparam O_CYCLES_B = 1;
localparam [0:0] O_CYCLES = {1'd0};

// C_, M_: cores whose tail compares ages; cycles until a memory's vectors are visible
localparam C_AGES_B = 32;
localparam [31:0] C_AGES = {32'd0};
localparam C_STAMPS_B = 32;
localparam [31:0] C_STAMPS = {32'd1};
localparam M_VISIBLE_CYCLES_B = 32;
localparam [31:0] M_VISIBLE_CYCLES = {32'd36};
// Sizes of the datapath, by core: sums of a lane, sums of a row that stay apart; shifts of the adapters.
localparam SHIFT_BITS = 1;
localparam SHIFTS_STORED = 1;
localparam ADAPTER_LEFT = -15;
localparam D_SUMS_B = 32;
localparam [31:0] D_SUMS = {32'd4};
localparam D_SLOTS_B = 32;
localparam [31:0] D_SLOTS = {32'd1};
