// Widths of the words that threads, loop nests and the issue logic give each other. What a module reads of it goes
// into npu_<module>.vh.

// The tile that issues: the fields of o_*, without valid and thread, in their order.
localparam W_TILE = W_JOB + W_ROW + W_READ + W_STEP + W_BLOCK + W_GROUP + W_WEIGHT + W_FRAME + W_ELEMENT + W_UNIT
  + W_BANK + 3;
// What its block has beside: turn, unit, units, constant, write.
localparam W_BLOCK_WORD = W_TURN + 2 * W_UNIT + W_CONSTANT + W_ELEMENT;
// What a tile waits for: whether it is a frame, which one, and the counters: {is one, number, step, units}.
localparam CHECKS = MOST_NEEDS > 0 ? MOST_NEEDS : 1;
localparam W_CHECK = 1 + W_COUNTER + W_STEP + W_UNIT;
localparam W_WAITS = 1 + W_STEP + CHECKS * W_CHECK;
// What a link brings: valid, job, counter, units, last, element, count.
localparam W_LINK = 2 + W_JOB + W_COUNTER + 2 * W_UNIT + W_ELEMENT;
// A place in a loop nest, with five bits of what ends there.
localparam W_PLACE = 2 * W_ROW + W_READ + W_STEP + W_BLOCK + W_GROUP + W_WEIGHT + 2 * W_FRAME + 4 * W_ELEMENT
  + 2 * W_UNIT + W_TURN + 2 * W_BANK + 5;
