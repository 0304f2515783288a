// The bodies of models on cores, for many pairs of both at once.
//
// These are the rules of lstmsim/machines/column/passes.py for a job on one core, told a second time:
// lstmsim/machines/column/points.py writes the words that are read here, and says what they mean. What depends on the
// cell and on latencies alone (segments, what they wait for, and how long) is worked out there and stands in the words.
#pragma once

#include "flat.hpp"

namespace lstmsim::column {

/// What is known of the bodies of a pair: the rows of `bodies`, and the bound on the operations of a step.
/// A pair that is refused has no bodies.
struct Pair {
    i64 first_body, bodies, bound, refused;
};

/// A core as its words say it.
struct Core {
    i64 ep, vp, tail_width, by_column, banks, arrival_cycles, single;
};

/// Where the words of a model, a core and the cells of the model with its latencies begin.
struct Asked {
    i64 model, core, cells;
};

/// A stage of a pass on a core: its units, in row blocks of `per_block` units of which the last may have fewer.
struct Shape {
    i64 gates = 0, units = 0, per_block = 0, blocks = 0;
    i64 home = 0;  // number of its first segment among the homes

    i64 size(i64 block) const { return block + 1 < blocks ? per_block : units - (blocks - 1) * per_block; }
};

/// The results of a stage as tiles read them.
struct Read {
    Shape shape;
    i64 home = 0, visible = 0, lag = 0, phase = NONE, mirrored = 0;
};

/// What a tile waits for: the units of one turn of a row block.
struct Wait {
    i64 read = 0, block = 0, turn = 0;
};

/// Some column groups in a row that wait for the same things.
struct Group {
    i64 columns = 0, first_wait = 0, waits = 0, frame = 0, first = 0, length = 1;
};

/// A pass of a layer that has been written, for the passes above it.
struct Done {
    Shape shape;  // of the stage that gives h
    i64 home = 0, visible = 0, phase = NONE;
};

/// Writes bodies, pair after pair.
class Bodies {
  public:
    explicit Bodies(Slice<const i64> words) : words_(words), cause_(words[0]), most_(words[1]) {}

    void write(const Asked& asked);

    Array<flat::Operation> operations;
    Array<flat::Need> needs;
    Array<flat::Body> bodies;
    Array<Pair> pairs;

  private:
    void set_shapes(i64 pass, i64 cell);
    i64 bound(i64 pass, i64 cell) const;
    bool refused() const;
    void write_pass(i64 pass, i64 cell, i64 number);
    i64 write_stage(i64 stage, i64 cell, i64 pass, i64 widths);
    void add_groups(i64 width, i64 first, i64 frame);
    void add_waiting_groups(i64 width, i64 first);
    Wait wait(i64 read, i64 unit, i64& last) const;
    void join_groups();
    void write_tiles(i64 stage);
    void by_row(i64 stage);
    void by_column(i64 stage);
    void tile(i64 stage, i64 block, const Group& group, bool waiting, i64 takes);
    i64 write_segment(const Shape& shape, i64 at, i64 home, bool first);
    void write_reads(const Shape& shape, i64 block, i64 wants, i64 at);
    void delay(i64 home, i64 block, i64 lag, i64 cycles);
    void need(i64 operation, i64 home, i64 delay, i64 lag, i64 phase, i64 mirrored);
    void operation(i64 unit, i64 cycles, i64 count, i64 frame, i64 takes, i64 frees, i64 result_cycles, i64 work);
    void end_body();

    const Slice<const i64> words_;
    const i64 cause_, most_;
    Core core_{};
    i64 own_ = 0;         // the first operation of the body that is written
    i64 first_need_ = 0;  // the first need of the operation that comes next
    bool by_layer_ = false, x_last_ = false;
    Array<i64> homes_;    // where in its body the operations of each segment begin
    struct Open {
        i64 need, home;
    };
    Array<Open> open_;    // needs whose operations count from a home
    Array<Shape> shapes_;  // of the stages of a pass
    Array<Done> done_;
    Array<Read> reads_;
    Array<i64> ends_;     // behind the units of each read
    Array<Wait> waits_;
    Array<Group> groups_, later_;
    Array<i64> last_;     // for each row block, its last tile in the body
    Array<char> waited_;  // for each vector of a cell, whether its elements have been waited for
    struct Delay {
        i64 home, block, lag, cycles;
    };
    Array<Delay> delays_;
};

}  // namespace lstmsim::column
