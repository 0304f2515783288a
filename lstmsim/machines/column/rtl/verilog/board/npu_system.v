// A chip with what a host on a wire cannot do in time: a schedule by which jobs and frames are posted at their cycles,
// a memory of results, and registers to read both. docs/board.md section 2 has the memory map of this bus.
`default_nettype none

module npu_system (
  clock, reset, bus_write, bus_read, bus_address, bus_data, bus_valid, bus_word, running, ended
);
  `include "npu_system.vh"
  localparam STRIDE = 1 << W_THREAD;
  localparam CONTEXTS = CORES * STRIDE;
  localparam [31:0] NO_CYCLE = 32'hffffffff;

  input wire clock;
  input wire reset;
  // A word is written, or read: `bus_word` has it in the cycle in which `bus_valid` is high.
  input wire bus_write;
  input wire bus_read;
  input wire [31:0] bus_address;
  input wire [31:0] bus_data;
  output wire bus_valid;
  output reg [31:0] bus_word;
  // A schedule runs; all jobs of it have finished.
  output wire running;
  output wire ended;

  wire [3:0] space = bus_address[31:28];
  wire [23:0] place = bus_address[23:0];
  wire control = bus_write && space == 4'd10;
  wire arm = control && place == 0 && bus_data == 1;
  wire stop = reset || (control && place == 0 && bus_data == 0);

  // --- the schedule: entry i is {cycle} at word 2i and {is a frame count, job or 0, count} at word 2i + 1 ---

  localparam W_ENTRY = $clog2(SCHEDULE + 1);
  reg [31:0] due_cells [0:SCHEDULE-1];
  reg [31:0] what_cells [0:SCHEDULE-1];
  reg [W_ENTRY-1:0] entries;
  wire to_schedule = bus_write && space == 4'd8;
  always @(posedge clock) begin
    if (to_schedule && !place[0]) due_cells[place[W_ENTRY:1]] <= bus_data;
    if (to_schedule && place[0]) what_cells[place[W_ENTRY:1]] <= bus_data;
    if (control && place == 3) entries <= bus_data[W_ENTRY-1:0];
  end
  // How many jobs have ended when the run has: fewer than there is room for, where the host writes the table of jobs.
  reg [W_JOBS-1:0] awaited;
  always @(posedge clock)
    if (reset) awaited <= JOBS;
    else if (control && place == 4) awaited <= bus_data[W_JOBS-1:0];

  localparam [1:0] IDLE = 0;
  localparam [1:0] STAGING = 1;
  localparam [1:0] RUNNING = 2;
  localparam [1:0] ENDED = 3;
  reg [1:0] state;
  assign running = state == STAGING || state == RUNNING;
  assign ended = state == ENDED;

  // The entry that comes next, read a cycle ahead.
  reg [W_ENTRY-1:0] number;
  reg fetched;
  reg [31:0] due;
  reg [31:0] what;
  wire there = fetched && number < entries;
  wire take;
  wire [W_ENTRY-1:0] fetch = number + take;
  always @(posedge clock) begin
    due <= due_cells[fetch];
    what <= what_cells[fetch];
    number <= state == IDLE || state == ENDED ? {W_ENTRY{1'b0}} : fetch;
    fetched <= running;
  end

  // Entries of one cycle are gathered, and take effect together at the edge that ends cycle `due` - 2: what is counted
  // in the cycle before `due` is there in cycle `due`. Those of cycle 0 are gathered before the run.
  reg gathered;
  reg [31:0] group;
  reg [31:0] cycle;
  // The number of the cycle is known: -1 is the one in which the chip's reset ends.
  reg first;
  // Two more than `cycle`, without an adder.
  reg [31:0] soon;
  wire begins = state == STAGING && fetched && !(there && due == 0);
  wire commit = state == RUNNING && gathered && group <= soon;
  assign take = there && (state == STAGING
    ? due == 0 || begins : state == RUNNING && (!gathered || commit || due == group));
  reg late;

  // Jobs and frames that are there, and those that will be when the gathered entries take effect.
  wire live = control && (place == 1 || place == 2);
  reg [W_JOBS-1:0] jobs_posted;
  reg [W_JOBS-1:0] jobs_next;
  reg [JOBS*W_STEP-1:0] counts;
  reg [JOBS*W_STEP-1:0] counts_next;
  integer j;
  always @(posedge clock) begin
    if (state == IDLE) begin
      jobs_posted <= 0;
      jobs_next <= 0;
      counts <= 0;
      counts_next <= 0;
    end else begin
      if (begins || commit) begin
        jobs_posted <= jobs_next;
        counts <= counts_next;
      end
      if (take && !what[31]) jobs_next <= what[W_JOBS-1:0];
      for (j = 0; j < JOBS; j = j + 1)
        if (take && what[31] && what[30:16] == j) counts_next[j*W_STEP +: W_STEP] <= what[W_STEP-1:0];
    end
    // Posted over the wire, whenever it comes.
    if (live && place == 1) begin
      jobs_posted <= bus_data[W_JOBS-1:0];
      jobs_next <= bus_data[W_JOBS-1:0];
    end
    for (j = 0; j < JOBS; j = j + 1)
      if (live && place == 2 && bus_data[30:16] == j) begin
        counts[j*W_STEP +: W_STEP] <= bus_data[W_STEP-1:0];
        counts_next[j*W_STEP +: W_STEP] <= bus_data[W_STEP-1:0];
      end
  end

  wire all_ended;
  always @(posedge clock) begin
    if (reset || state == STAGING) begin
      gathered <= begins && there;
      late <= 1'b0;
      cycle <= NO_CYCLE;
      soon <= 32'd1;
      first <= 1'b1;
    end else if (state == RUNNING) begin
      gathered <= there && take || gathered && !commit;
      if (commit && (group < soon || (there && due == group))) late <= 1'b1;
      soon <= soon + 1'b1;
      if (!all_ended) cycle <= cycle + 1'b1;
      first <= 1'b0;
    end
    if (take && !(state == STAGING && due == 0)) group <= due;
    if (stop) state <= IDLE;
    else if (arm && state == IDLE) state <= STAGING;
    else if (begins) state <= RUNNING;
    else if (all_ended) state <= ENDED;
  end

  // --- the chip: its reset ends with cycle -1 ---

  localparam integer MEMORIES = C_MEMORY[(CORES-1)*C_MEMORY_B +: C_MEMORY_B]
    + C_MEMORIES[(CORES-1)*C_MEMORIES_B +: C_MEMORIES_B];
  localparam H = W_JOB + W_ROW + W_STEP + 2 * W_UNIT + MOST_WORD;
  wire [CONTEXTS*W_JOB-1:0] frames_job;
  wire [CONTEXTS*W_STEP-1:0] frames_posted;
  wire [CONTEXTS-1:0] jobs_ended;
  wire [CONTEXTS*W_JOB-1:0] ended_job;
  wire [CONTEXTS-1:0] jobs_admitted;
  wire [CONTEXTS*W_JOB-1:0] admitted_job;
  wire [MEMORIES-1:0] h_valid;
  wire [MEMORIES*W_JOB-1:0] h_job;
  wire [MEMORIES*W_ROW-1:0] h_row;
  wire [MEMORIES*W_STEP-1:0] h_step;
  wire [MEMORIES*W_UNIT-1:0] h_unit;
  wire [MEMORIES*W_UNIT-1:0] h_count;
  wire [MEMORIES*MOST_WORD-1:0] h_word;
  // No memory beside the chip.
  wire m_valid;
  wire [W_CONTEXT-1:0] m_context;
  wire [W_STREAM-1:0] m_block;
  wire [W_BURST-1:0] m_burst;
  wire [W_WEIGHT-1:0] m_place;
  // `state` is another one than RUNNING, or `first`: as a register of its own, because it goes to all of the chip.
  reg chip_reset;
  always @(posedge clock) chip_reset <= state != RUNNING || stop || all_ended;
  npu_top chip (
    .clock(clock), .reset(chip_reset), .jobs_posted(jobs_posted), .frames_job(frames_job),
    .frames_posted(frames_posted), .jobs_ended(jobs_ended), .ended_job(ended_job), .jobs_admitted(jobs_admitted),
    .admitted_job(admitted_job), .host_write(bus_write && !space[3]), .host_address(bus_address),
    .host_data(bus_data), .h_valid(h_valid), .h_job(h_job), .h_row(h_row), .h_step(h_step), .h_unit(h_unit),
    .h_count(h_count), .h_word(h_word), .m_valid(m_valid), .m_context(m_context), .m_block(m_block), .m_burst(m_burst),
    .m_place(m_place), .m_ready(1'b0), .m_done(1'b0), .m_done_context({W_CONTEXT{1'b0}}), .m_write(1'b0),
    .m_write_context({W_CONTEXT{1'b0}}),
    .m_write_place({W_WEIGHT{1'b0}}), .m_word({MOST_TILE_BITS{1'b0}})
  );
  genvar g;
  generate
    for (g = 0; g < CONTEXTS; g = g + 1) begin : contexts
      npu_choose #(.WIDTH(W_STEP), .COUNT(JOBS), .INDEX(W_JOB)) frames (
        .words(counts), .index(frames_job[g*W_JOB +: W_JOB]), .word(frames_posted[g*W_STEP +: W_STEP])
      );
    end
  endgenerate

  // --- results: all that happens in a cycle is one record ---

  reg [MEMORIES-1:0] seen_valid;
  reg [MEMORIES*H-1:0] seen;
  wire [MEMORIES*H-1:0] said;
  wire [CONTEXTS*W_JOB-1:0] ended_kept;
  wire [CONTEXTS*W_JOB-1:0] admitted_kept;
  // What says nothing is 0: elements behind the count, and all of what is not valid.
  genvar l;
  generate
    for (g = 0; g < MEMORIES; g = g + 1) begin : vectors
      wire [W_UNIT-1:0] count = h_valid[g] ? h_count[g*W_UNIT +: W_UNIT] : {W_UNIT{1'b0}};
      wire [MOST_WORD-1:0] word;
      for (l = 0; l < MOST_WORD / VECTOR_BITS; l = l + 1) begin : lanes
        assign word[l*VECTOR_BITS +: VECTOR_BITS] =
          l < count ? h_word[g*MOST_WORD + l*VECTOR_BITS +: VECTOR_BITS] : {VECTOR_BITS{1'b0}};
      end
      wire [H-1:0] all = {
        word, count, h_unit[g*W_UNIT +: W_UNIT], h_step[g*W_STEP +: W_STEP], h_row[g*W_ROW +: W_ROW],
        h_job[g*W_JOB +: W_JOB]
      };
      assign said[g*H +: H] = h_valid[g] ? all : {H{1'b0}};
    end
    for (g = 0; g < CONTEXTS; g = g + 1) begin : kept_jobs
      assign ended_kept[g*W_JOB +: W_JOB] = jobs_ended[g] ? ended_job[g*W_JOB +: W_JOB] : {W_JOB{1'b0}};
      assign admitted_kept[g*W_JOB +: W_JOB] = jobs_admitted[g] ? admitted_job[g*W_JOB +: W_JOB] : {W_JOB{1'b0}};
    end
  endgenerate
  localparam WIDTH = 32 + 2 * CONTEXTS * (1 + W_JOB) + MEMORIES * (1 + H);
  localparam PARTS = (WIDTH + 31) / 32;
  localparam PART_BITS = $clog2(PARTS);
  reg store;
  reg [32*PARTS-1:0] record;
  reg [31:0] records;
  reg [31:0] lost;
  reg [31:0] jobs_done;
  reg [31:0] ended_now;
  integer c;
  always @* begin
    ended_now = jobs_done;
    for (c = 0; c < CONTEXTS; c = c + 1)
      ended_now = ended_now + jobs_ended[c];
  end
  assign all_ended = state == RUNNING && !first && ended_now == awaited;
  always @(posedge clock) begin
    seen_valid <= chip_reset ? {MEMORIES{1'b0}} : h_valid;
    seen <= said;
    record <= {seen, seen_valid, ended_kept, jobs_ended, admitted_kept, jobs_admitted, cycle};
    store <= state == RUNNING && !first && (|(seen_valid & KEPT) || |jobs_ended || |jobs_admitted);
    if (reset || state == STAGING) begin
      records <= 0;
      lost <= 0;
      jobs_done <= 0;
    end else begin
      if (store && records < RESULTS) records <= records + 1'b1;
      if (store && records >= RESULTS) lost <= lost + 1'b1;
      if (state == RUNNING && !first) jobs_done <= ended_now;
    end
  end

  wire [31:0] kept;
  npu_records #(.PARTS(PARTS), .RECORDS(RESULTS)) memory (
    .clock(clock), .write(store && records < RESULTS), .write_record(records), .write_data(record),
    .read_record(place >> PART_BITS), .read_part(place & ((24'd1 << PART_BITS) - 24'd1)), .read_data(kept)
  );

  // --- what is read: a word of a record comes three cycles behind its address ---

  reg [3:0] reading;
  reg [2:0] from_results;
  reg [31:0] value;
  reg [31:0] value_held;
  assign bus_valid = reading[3];
  always @(posedge clock) begin
    reading <= reset ? 4'b0000 : {reading[2:0], bus_read};
    from_results <= {from_results[1:0], space == 4'd9};
    value_held <= value;
    case (place)
      0: value <= 32'h4c4e5031;
      1: value <= DESIGN_ID;
      2: value <= RESULTS;
      3: value <= SCHEDULE;
      4: value <= {29'd0, late, state};
      5: value <= cycle;
      6: value <= records;
      7: value <= lost;
      8: value <= jobs_done;
      default: value <= 32'd0;
    endcase
    bus_word <= from_results[2] ? kept : value_held;
  end
endmodule

`default_nettype wire
