// From words to bodies; what a function does is said at the Python function that does the same.
#include "bodies.hpp"

#include <algorithm>
#include <tuple>

namespace lstmsim::column {

namespace {

constexpr i64 ARRAY = 0, TAIL = 1;

// Places in the words, as lstmsim/machines/column/points.py writes them.
namespace model {
constexpr i64 BY_LAYER = 0, PASSES = 1, FIRST = 2;
}
namespace pass {  // behind `FIRST` its sources (pass, mirrored), then of each stage its units and the widths of its vectors
constexpr i64 WORDS = 0, CELL = 1, X_LAST = 2, SOURCES = 3, FIRST = 4;
}
namespace cell {  // behind `FIRST` of each stage its gates, vectors, segments and words
constexpr i64 STAGE = 0, SEGMENT = 1, VISIBLE = 2, VECTORS = 3, STAGES = 4, FIRST = 5, OF_STAGE = 4;
enum Of { GATES, OWN_VECTORS, SEGMENTS, PLACE };
}
namespace vector {
constexpr i64 NUMBER = 0, STAGE = 1, SEGMENT = 2, VISIBLE = 3, LAG = 4, WORDS = 5;
}
namespace segment {
constexpr i64 VISIBLE = 0, WANTS = 1, FIRST = 2;
}
namespace want {
constexpr i64 STAGE = 0, SEGMENT = 1, CYCLES = 2, LAG = 3, REDUCED = 4, WORDS = 5;
}

i64 parts_of(i64 all, i64 each) { return (all + each - 1) / each; }

}  // namespace

/// Write the bodies of a model on a core, or say that the core refuses it or that they are too many operations.
void Bodies::write(const Asked& asked) {
    const Slice<const i64> numbers = words_.part(asked.core, 7);
    core_ = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]};
    const i64 passes = words_[asked.model + model::PASSES];
    by_layer_ = words_[asked.model + model::BY_LAYER] != 0;
    Pair pair{bodies.size(), 0, 0, 0};
    const auto each = [&](auto work) {
        i64 place = asked.model + model::FIRST;
        for (i64 number = 0; number < passes; ++number) {
            work(place, asked.cells + words_[asked.cells + words_[place + pass::CELL]], number);
            place += words_[place + pass::WORDS];
        }
    };
    each([&](i64 place, i64 cell, i64) {
        homes_.clear();
        set_shapes(place, cell);
        pair.refused = pair.refused || refused();
        if (!pair.refused) pair.bound += bound(place, cell);
    });
    pair.refused = pair.refused || pair.bound > most_;
    if (!pair.refused) {
        homes_.clear();
        done_.clear();
        own_ = operations.size();
        first_need_ = needs.size();
        each([&](i64 place, i64 cell, i64 number) {
            write_pass(place, cell, number);
            if (by_layer_) end_body();
        });
        if (!by_layer_) end_body();
    }
    pair.bodies = bodies.size() - pair.first_body;
    pairs.push(pair);
}

/// The shapes of the stages of a pass, and a home for each of their segments.
void Bodies::set_shapes(i64 place, i64 cell) {
    i64 at = place + pass::FIRST + 2 * words_[place + pass::SOURCES];
    shapes_.clear();
    for (i64 stage = 0; stage < words_[cell + cell::STAGES]; ++stage) {
        const i64 own = cell + cell::FIRST + cell::OF_STAGE * stage;
        Shape shape;
        shape.units = words_[at];
        shape.gates = words_[own + cell::GATES];
        shape.per_block = core_.vp / shape.gates;
        shape.blocks = shape.per_block ? parts_of(shape.units, shape.per_block) : 0;
        shape.home = homes_.size();
        for (i64 segment = 0; segment < words_[own + cell::SEGMENTS]; ++segment) homes_.push(NONE);
        shapes_.push(shape);
        at += 1 + words_[own + cell::OWN_VECTORS];
    }
}

/// Whether the core refuses a stage (`ColumnCore.refusal`).
bool Bodies::refused() const {
    for (const Shape& shape : shapes_) {
        if (!shape.per_block || (core_.by_column && core_.banks < shape.blocks)) return true;
    }
    return false;
}

/// The bound on the operations of a step of a pass (`operations_per_step`).
i64 Bodies::bound(i64 place, i64 cell) const {
    i64 at = place + pass::FIRST + 2 * words_[place + pass::SOURCES], total = 0;
    for (i64 stage = 0; stage < shapes_.size(); ++stage) {
        const i64 own = cell + cell::FIRST + cell::OF_STAGE * stage, blocks = shapes_[stage].blocks;
        i64 groups = 0;
        for (i64 vector = 0; vector < words_[own + cell::OWN_VECTORS]; ++vector) {
            groups += parts_of(words_[at + 1 + vector], core_.ep);
        }
        const i64 runs = core_.by_column ? 3 * groups + 2 * blocks : groups + 4 * blocks;
        total += blocks * words_[own + cell::SEGMENTS] + (core_.single ? blocks * groups : runs);
        at += 1 + words_[own + cell::OWN_VECTORS];
    }
    return total;
}

/// Write one step of a pass: stage after stage, first tiles, then tails (`_Pass.write`).
void Bodies::write_pass(i64 place, i64 cell, i64 number) {
    set_shapes(place, cell);
    x_last_ = words_[place + pass::X_LAST] != 0;
    waited_.fill(words_[cell + cell::VECTORS], 0);
    i64 at = place + pass::FIRST + 2 * words_[place + pass::SOURCES];
    for (i64 stage = 0; stage < shapes_.size(); ++stage) at = write_stage(stage, cell, place, at);
    const Shape& gives = shapes_[words_[cell + cell::STAGE]];
    done_.push({gives, gives.home + words_[cell + cell::SEGMENT], words_[cell + cell::VISIBLE], by_layer_ ? number : NONE});
}

/// Write a stage, whose units and widths stand at `at`; returns where those of the next stage stand.
i64 Bodies::write_stage(i64 stage, i64 cell, i64 place, i64 at) {
    const i64 own = cell + cell::FIRST + cell::OF_STAGE * stage, vectors = words_[own + cell::OWN_VECTORS];
    // the orders of issue where x is not last and where it is, then the vectors, then the segments
    const i64 orders = cell + words_[own + cell::PLACE], first = orders + 2 * vectors;
    groups_.clear();
    waits_.clear();
    reads_.clear();
    for (i64 turn = 0; turn < vectors; ++turn) {
        const i64 which = words_[orders + turn + (x_last_ ? vectors : 0)], vector = first + vector::WORDS * which;
        const i64 width = words_[at + 1 + which], name = words_[vector + vector::NUMBER];
        const bool is_x = words_[vector + vector::STAGE] == NONE;
        i64 index = 0;
        for (i64 before = 0; before < which; ++before) index += parts_of(words_[at + 1 + before], core_.ep);
        if (waited_[name]) {
            add_groups(width, index, 0);
            continue;
        }
        waited_[name] = 1;
        ends_.clear();
        const i64 from = reads_.size();
        if (is_x) {
            for (i64 source = 0; source < words_[place + pass::SOURCES]; ++source) {
                const i64 word = place + pass::FIRST + 2 * source;
                const Done& below = done_[words_[word]];
                reads_.push({below.shape, below.home, below.visible, 0, below.phase, words_[word + 1]});
            }
        } else {
            const Shape& shape = shapes_[words_[vector + vector::STAGE]];
            reads_.push({shape, shape.home + words_[vector + vector::SEGMENT], words_[vector + vector::VISIBLE],
                         words_[vector + vector::LAG], NONE, 0});
        }
        if (from == reads_.size()) {
            add_groups(width, index, 1);
        } else {
            i64 units = 0;
            for (i64 read = 0; read < reads_.size(); ++read) {
                if (read >= from) units += reads_[read].shape.units;
                ends_.push(units);
            }
            add_waiting_groups(width, index);
        }
    }
    write_tiles(stage);
    i64 word = first + vector::WORDS * vectors;
    for (i64 segment = 0; segment < words_[own + cell::SEGMENTS]; ++segment) {
        word = write_segment(shapes_[stage], word, shapes_[stage].home + segment, segment == 0);
    }
    return at + 1 + vectors;
}

/// Write the tail operations of a segment, whose words stand at `at`; returns where the next segment's stand (`_tails`).
i64 Bodies::write_segment(const Shape& shape, i64 at, i64 home, bool first) {
    const i64 visible = words_[at + segment::VISIBLE], wants = words_[at + segment::WANTS];
    homes_[home] = operations.size() - own_;
    for (i64 block = 0; block < shape.blocks; ++block) {
        if (first) need(last_[block], NONE, core_.arrival_cycles, 0, NONE, 0);
        if (wants) write_reads(shape, block, wants, at + segment::FIRST);
        const i64 taken = parts_of(shape.size(block), core_.tail_width);
        operation(TAIL, taken, 1, 0, NONE, first ? 0 : NONE, taken - 1 + visible, 0);
    }
    return at + segment::FIRST + want::WORDS * wants;
}

/// Write the needs of a row block for what its segment reads (`_reads`, `_last_turn`, `_overlaps`).
void Bodies::write_reads(const Shape& shape, i64 block, i64 wants, i64 at) {
    const i64 width = core_.tail_width;
    delays_.clear();
    for (i64 number = 0; number < wants; ++number, at += want::WORDS) {
        const Shape& other = shapes_[words_[at + want::STAGE]];
        const i64 home = other.home + words_[at + want::SEGMENT], cycles = words_[at + want::CYCLES], lag = words_[at + want::LAG];
        if (words_[at + want::REDUCED]) {
            delay(home, other.blocks - 1, lag, (other.size(other.blocks - 1) - 1) / width + cycles);
            continue;
        }
        const i64 first = block * shape.per_block, last = first + shape.size(block) - 1;
        for (i64 index = first / other.per_block; index <= last / other.per_block; ++index) {
            const i64 start = index * other.per_block;
            const i64 low = std::max(first, start), high = std::min(last, start + other.size(index) - 1);
            i64 turns = (low - start) / width - (low - first) / width;
            for (i64 unit = low + 1; unit <= std::min(high, low + width); ++unit) {
                turns = std::max(turns, (unit - start) / width - (unit - first) / width);
            }
            delay(home, index, lag, turns + cycles);
        }
    }
    std::sort(delays_.begin(), delays_.end(), [](const Delay& a, const Delay& b) {
        return std::tie(a.home, a.block, a.lag) < std::tie(b.home, b.block, b.lag);
    });
    for (const Delay& each : delays_) {
        if (each.cycles > 0) need(each.block, each.home, each.cycles, each.lag, NONE, 0);
    }
}

/// Note a delay after a row block of a segment; of several the longest counts.
void Bodies::delay(i64 home, i64 block, i64 lag, i64 cycles) {
    for (Delay& each : delays_) {
        if (each.home != home || each.block != block || each.lag != lag) continue;
        each.cycles = std::max(each.cycles, cycles);
        return;
    }
    // as the first of several counts at least 0
    delays_.push({home, block, lag, std::max(cycles, i64{0})});
}

/// Let the next operation wait for another one, which counts from a home or from the body's first (`BodyWriter.need`).
void Bodies::need(i64 operation, i64 home, i64 delay, i64 lag, i64 phase, i64 mirrored) {
    if (home != NONE) open_.push({needs.size(), home});
    needs.push({operation, delay, cause_, phase == NONE ? lag : 0, phase, mirrored, 0});
}

/// Write an operation, which has the needs that were written since the last one (`BodyWriter.operation`).
void Bodies::operation(
    i64 unit, i64 cycles, i64 count, i64 frame, i64 takes, i64 frees, i64 result_cycles, i64 work) {
    const i64 end = needs.size();
    operations.push({unit, cycles, count, frame, takes, frees, result_cycles, work, first_need_, end - first_need_, 0, 0, NONE, NONE, 0});
    first_need_ = end;
}

/// The body is written: all homes in it are known.
void Bodies::end_body() {
    for (const Open& each : open_) needs[each.need].operation += homes_[each.home];
    open_.clear();
    bodies.push({own_, operations.size() - own_, NONE, 0});
    own_ = operations.size();
}

}  // namespace lstmsim::column
