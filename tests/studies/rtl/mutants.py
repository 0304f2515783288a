"""Single changes of the hand-written Verilog, each with a directed scenario that must notice it.

`python -m tests.studies.rtl.mutants` tries all of them and says which are not noticed.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import lstmsim
from lstmsim.base.records import record
from tests.studies.rtl.directed import DIRECTED

__all__ = ["MUTANTS", "Mutant", "noticed"]


@record
class Mutant:
    """A change of one place.

    file: the module's file.
    old, new: the text of the place, which stands there once, and what stands there instead.
    scenario: a key of `DIRECTED`.
    bits: whether cycles alone do not show it.
    """

    file: str
    old: str
    new: str
    scenario: str
    bits: bool = False


#: Of the dispatcher, the threads, the ring, the tail, and of all that has to do with numbers.
MUTANTS = (
    Mutant("npu_dispatch.v", "~occupied | ended;", "~occupied;", "two_at_once"),
    Mutant("npu_dispatch.v", "if (t < rank && there[t])", "if (t == 0 && there[t])", "two_at_once"),
    Mutant(
        "npu_dispatch.v",
        "for (t = 0; t < THREADS; t = t + 1)\n      if (free[t])",
        "for (t = THREADS - 1; t >= 0; t = t - 1)\n      if (free[t])",
        "two_at_once",
    ),
    Mutant("npu_tail.v", "(CONVERT - 1 - LATE)", "(CONVERT - 1)", "two_at_once"),
    Mutant(
        "npu_dispatch.v",
        "localparam ROUNDS = JOBS < CORES * MOST_THREADS ? JOBS : CORES * MOST_THREADS;",
        "localparam ROUNDS = 1;",
        "fewest_first",
    ),
    Mutant("npu_dispatch.v", "(occupied & ~ended)", "occupied", "fewest_first"),
    Mutant("npu_dispatch.v", "count <= fewest", "count < fewest", "pinned"),
    Mutant(
        "npu_dispatch.v",
        "for (t = STRIDE - 1; t >= 0; t = t - 1)\n          if (!taken",
        "for (t = 0; t < STRIDE; t = t + 1)\n          if (!taken",
        "fewest_first",
    ),
    Mutant("npu_dispatch.v", "head < best && ", "", "pinned"),
    Mutant("npu_nest.v", "wire h0 = lag && first_step;", "wire h0 = 1'b0;", "two_at_once"),
    Mutant("npu_nest.v", "(upto < group_end ? upto : group_end)", "upto", "two_at_once"),
    Mutant("npu_nest.v", "from < group_end && upto > offset", "from <= offset", "both_ways"),
    Mutant("npu_nest.v", "flipped ? mirrored : step - lag", "flipped ? step : step - lag", "both_ways"),
    Mutant("npu_issue.v", ">= B_FRAMES[(CORE*JOBS+job)*B_FRAMES_B +: B_FRAMES_B];", "> 0;", "backward_alone"),
    Mutant("npu_thread.v", "frames_there > frame", "frames_there >= frame", "both_ways"),
    Mutant("npu_thread.v", ">= units)))", "> units)))", "two_at_once"),
    Mutant(
        "npu_thread.v",
        "assign hazard = working && !ready && !from_frame;",
        "assign hazard = working && !ready && !from_frame && !no_bank;",
        "no_latency",
    ),
    Mutant("npu_nest.v", "(interleaved ? !last_row : !last_of_pass)", "!last_of_pass", "step_order"),
    Mutant("npu_thread.v", "part_next = v_last[o] ? {W_UNIT{1'b0}} : v_units", "part_next = v_units", "two_at_once"),
    Mutant("npu_thread.v", "whole <= admit ? {W_STEP{1'b0}} : whole_next;", "whole <= whole_next;", "two_at_once"),
    Mutant("npu_thread.v", "      credits <= BANKS;", "      credits <= BANKS - 1;", "two_at_once"),
    Mutant("npu_nest.v", "if (next_block) begin", "if (last_tile) begin", "columns_first"),
    Mutant("npu_nest.v", "groups == group + 2'd2", "groups == group + 2'd1", "two_at_once"),
    Mutant("npu_nest.v", "blocks == block + 2'd2", "blocks == block + 2'd1", "columns_first"),
    Mutant("npu_nest.v", "steps == step + 2'd2", "steps == step + 2'd1", "two_at_once"),
    Mutant("npu_nest.v", "last_tile ? tile_first : tile_behind", "tile_behind", "states_without_h"),
    Mutant("npu_nest.v", "row_ends ? tile_of_row :", "row_ends ? tile_first :", "no_latency"),
    Mutant("npu_thread.v", "if (reset || !working) begin", "if (reset) begin", "two_at_once"),
    Mutant("npu_issue.v", "(FINE == 0 || starts)", "FINE == 0", "slow_switches"),
    Mutant("npu_issue.v", "(FINE == 0 || starts)", "1'b1", "slow_switches"),
    Mutant("npu_issue.v", "switching <= SWITCH_CYCLES - 1", "switching <= SWITCH_CYCLES", "slow_switches"),
    Mutant(
        "npu_issue.v",
        "    : |hazard ? 3'd2\n    : |backpressure ? 3'd3",
        "    : |backpressure ? 3'd3\n    : |hazard ? 3'd2",
        "two_at_once",
    ),
    Mutant(
        "npu_issue.v",
        "    : |backpressure ? 3'd3\n    : |no_frame ? 3'd4",
        "    : |no_frame ? 3'd4\n    : |backpressure ? 3'd3",
        "one_bank",
    ),
    Mutant("npu_issue.v", "active <= winner;", "if (!starts || !FINE) active <= winner;", "slow_switches"),
    Mutant("npu_issue.v", "(FINE == 0 || starts)", "(FINE == 0 || starts || mask[n])", "slow_switches"),
    Mutant(
        "npu_tail.v",
        "assign f_valid = d_valid[CONVERT] && d_last_turn[CONVERT]\n    &&",
        "assign f_valid = d_valid[CONVERT] && d_number[CONVERT*W_NUMBER +: W_NUMBER] == 0\n    &&",
        "step_order",
    ),
    Mutant("npu_tail.v", "== 0;\n  assign f_thread", "< 2;\n  assign f_thread", "oldest_first"),
    Mutant("npu_tail_write.v", "turn && results > rest ? results : rest;", "turn ? results : rest;", "end_behind_h"),
    Mutant(
        "npu_tail.v",
        "wire ends = d_last_turn[LATE] && d_last_block[LATE] && ",
        "wire ends = d_last_turn[LATE] && ",
        "one_bank",
    ),
    Mutant("npu_tail.v", "assign t_last_turn = left <= WIDTH;", "assign t_last_turn = left < WIDTH;", "two_at_once"),
    Mutant("npu_tail_write.v", "assign w_units = d_unit + d_units;", "assign w_units = d_unit + 1'b1;", "two_at_once"),
    Mutant("npu_tail_queue.v", "more ? words[first[W-1:0]] : word;", "word;", "end_behind_h"),
    Mutant("npu_tail_ages.v", "age[i*W_STAMP +: W_STAMP] > most", "age[i*W_STAMP +: W_STAMP] >= most", "equal_ages"),
    Mutant("npu_tail_ages.v", "(!any || age[i*W_STAMP +: W_STAMP] > most)", "!any", "oldest_first"),
    Mutant("npu_tail_ages.v", "else if (its_age < since) since = its_age;", "else;", "oldest_first"),
    Mutant("npu_tail_ages.v", "&& h_step == 0)", ")", "states_without_h"),
    Mutant(
        "npu_tail_ages.v",
        "if (its_age[W_STAMP-1]) missing = 1'b1;",
        "if (its_age[W_STAMP-1]) missing = i == 0;",
        "oldest_first",
    ),
    Mutant(
        "npu_tail_ages.v",
        "by_block ? O_CYCLES[row_o * O_CYCLES_B +: O_CYCLES_B]",
        "by_block ? 1",
        "values_across_stages",
    ),
    Mutant("npu_tail_ages.v", "(A_OWN[own_row * A_OWN_B +: A_OWN_B] ? h_block : 0)", "0", "projection"),
    Mutant(
        "npu_array.v",
        "first ? {ACCUMULATOR_BITS{1'b0}}",
        "first && to_slots[k] ? {ACCUMULATOR_BITS{1'b0}}",
        "frames_of_who_waits",
        True,
    ),
    Mutant("npu_array.v", "to_slots[k] ? tile : {ACCUMULATOR_BITS{1'b0}}", "tile", "frames_of_who_waits", True),
    Mutant(
        "npu_array.v", "<= {add_valid, add_first, add_bank", "<= {add_valid, add_first, read_bank", "two_at_once", True
    ),
    Mutant("npu_lib.v", "$signed(left[n*A +: A])", "left[n*A +: A]", "two_at_once", True),
    Mutant("npu_array.v", "{LEVELS + 1{held[i*P+P-1]}}", "{LEVELS + 1{1'b0}}", "two_at_once", True),
    Mutant("npu_adapter.v", "bias_shifted, shifted[0]}", "bias_shifted, 1'b0}", "columns_first", True),
    Mutant("npu_adapter.v", "= {1'b0, factor}", "= {factor[MULTIPLIER_BITS-1], factor}", "two_at_once", True),
    Mutant("npu_adapter.v", "added = rounded + biased", "added = rounded", "two_at_once", True),
    Mutant("npu_vector_memory.v", "lane < write_count", "lane <= write_count", "two_at_once", True),
    Mutant("npu_vector_memory.v", "write_word + (b < write_first)", "write_word", "two_at_once", True),
    Mutant("npu_vector_memory.v", "read_word + (b < read_first)", "read_word", "two_at_once", True),
    Mutant(
        "npu_datapath.v",
        "i < elements_read ? source[i*VECTOR_BITS +: VECTOR_BITS] : {VECTOR_BITS{1'b0}}",
        "source[i*VECTOR_BITS +: VECTOR_BITS]",
        "two_at_once",
        True,
    ),
    Mutant("npu_datapath.v", "ACCUMULATE - 1;", "ACCUMULATE;", "two_at_once", True),
    Mutant("npu_datapath.v", "if (!framed_read && memory_read == i)", "if (!framed_read)", "two_at_once", True),
    Mutant("npu_nest.v", "odd = step[0] ^ lag", "odd = step[0]", "two_at_once", True),
    Mutant(
        "npu_thread.v",
        "behind[AT_ELEMENT +: W_ELEMENT] + own_part",
        "behind[AT_ELEMENT +: W_ELEMENT]",
        "two_at_once",
        True,
    ),
    Mutant(
        "npu_thread.v", "behind[AT_BANK +: W_BANK] + THREAD * BANKS;", "behind[AT_BANK +: W_BANK];", "two_at_once", True
    ),
    Mutant("npu_thread.v", "ready <= grant ? ready_behind : ready_still;", "ready <= ready_still;", "two_at_once"),
    Mutant("npu_thread.v", "more <= more && !last_of_job;", "more <= more;", "one_bank"),
    Mutant("npu_nest.v", "h0 && !started ? {W_UNIT{1'b0}} : width", "width", "two_at_once", True),
    Mutant("npu_nest.v", "backward ? frame_base - frame_move", "backward ? frame_base + frame_move", "both_ways", True),
    Mutant("npu_nest.v", "new_step ? write_base : own_base", "own_base", "columns_first", True),
    Mutant("npu_tail.v", "assign t_zero = t_step == 0 && !own_states;", "assign t_zero = 1'b0;", "two_at_once", True),
    Mutant(
        "npu_tail.v", "assign t_turn = t_parameter + own_turns;", "assign t_turn = t_parameter;", "two_at_once", True
    ),
    Mutant("npu_tail.v", "n_constant <= t_constant + 1'b1;", "n_constant <= t_constant;", "two_at_once", True),
    Mutant("npu_tail_write.v", "d_step[0] ? ", "1'b0 ? ", "two_at_once", True),
    Mutant("npu_tail_write.v", "+ d_unit + own_part", "+ d_unit", "two_at_once", True),
    Mutant(
        "npu_tail_ages.v",
        "block == 0 ? P_TURN_BASE[row * P_TURN_BASE_B +: W_TURN] : behind_turn",
        "behind_turn",
        "oldest_first",
        True,
    ),
    # weights that come from a memory
    Mutant("npu_stream.v", "(streamed ? there : {W_WEIGHT{1'b0}})", "0", "streamed", True),
    Mutant("npu_stream.v", "o_weight + moved", "o_weight", "streamed", True),
    Mutant(
        "npu_stream.v",
        "if (frees) read_slot <= read_slot == PREFETCH - 1 ? {W_SLOT{1'b0}} : read_slot + 1'b1;",
        "if (frees) read_slot <= read_slot;",
        "streamed",
        True,
    ),
    Mutant(
        "npu_stream.v", "STAYS + (t * PREFETCH + s) * WORDS", "STAYS + (t * PREFETCH + s) * WORDS - 1", "streamed", True
    ),
    Mutant("npu_stream.v", "(burst != 0 || slots != 0)", "1'b1", "streamed_fast"),
    Mutant("npu_stream.v", "slots - takes + frees", "slots - granted[g] + frees", "streamed"),
    Mutant(
        "npu_stream.v", "wire last_burst = burst == K_BURSTS", "wire last_burst = 1 || burst == K_BURSTS", "streamed"
    ),
    Mutant(
        "npu_stream.v",
        "if (waiting[n] && n > active) winner = n;",
        "if (waiting[n] && n >= active) winner = n;",
        "streamed",
    ),
    Mutant("npu_thread.v", "arrived - (grant && comes) + arrives", "arrived + arrives", "streamed"),
    Mutant("npu_thread.v", " && !no_bank_next && !missing_next;", " && !no_bank_next;", "streamed"),
    Mutant("npu_thread.v", "may <= first_ready && !comes_first;", "may <= first_ready;", "streamed"),
    Mutant("npu_thread.v", "(grant ? comes_behind : comes)", "comes", "streamed"),
    Mutant(
        "npu_issue.v",
        "    : |no_weights ? 3'd7\n    : |draining ? 3'd5",
        "    : |draining ? 3'd5\n    : |no_weights ? 3'd7",
        "streamed_fast",
    ),
    Mutant(
        "npu_top.v",
        "{{CONTEXTS-1{1'b0}}, 1'b1} << m_done_context",
        "{{CONTEXTS-1{1'b0}}, 1'b1} << m_context",
        "streamed",
    ),
    # jobs on several cores
    Mutant("npu_core.v", "early = SPLITS == 0;", "early = 1;", "rows"),
    Mutant("npu_exchange.v", "npu_pulse #(.CYCLES(LINK_CYCLES - 1))", "npu_pulse #(.CYCLES(LINK_CYCLES))", "rows"),
    Mutant("npu_exchange.v", "wire ends = left <= RATE;", "wire ends = left < RATE;", "rows"),
    Mutant("npu_exchange.v", "(CONVERT + X_CYCLES[place * X_CYCLES_B +: X_CYCLES_B])", "CONVERT", "rows"),
    Mutant("npu_exchange.v", "(!any || ages[i*W_STAMP +: W_STAMP] > most)", "!any", "rows_of_two_stages"),
    Mutant("npu_exchange.v", "last_block && ends, element", "ends, element", "rows_of_two_stages"),
    Mutant("npu_exchange.v", "wire [W_UNIT-1:0] behind = unit + count;", "wire [W_UNIT-1:0] behind = unit;", "rows"),
    Mutant(
        "npu_exchange.v",
        "assign r_element[g*W_ELEMENT +: W_ELEMENT] = element + own_part;",
        "assign r_element[g*W_ELEMENT +: W_ELEMENT] = element;",
        "rows",
        True,
    ),
    Mutant("npu_exchange.v", "assign s_element = element + own_part;", "assign s_element = element;", "rows", True),
    Mutant("npu_exchange.v", "thread = home[t*W_THREAD +: W_THREAD];", "thread = t;", "layers", True),
    Mutant("npu_exchanged.v", "place = o_group * EP + i;", "place = o_group * EP + i + 1;", "rows", True),
    Mutant("npu_exchanged.v", "LINK_CYCLES - 1 - SEND_READ", "LINK_CYCLES - SEND_READ", "rows", True),
    Mutant("npu_split.v", "(results | over) & ~sending", "results | over", "rows"),
    Mutant("npu_split.v", "ended = active & done;\n    for", "ended = active & done;\n    if (0) for", "rows"),
    Mutant("npu_split.v", "kept = kept | asked;", "kept = 0;", "kept_back"),
    Mutant("npu_split.v", "kept = kept | asked;", "kept = ~0;", "kept_back"),
    Mutant("npu_split.v", "& asked) != 0) company = 1'b1;", "& asked) != 0) company = 1'b0;", "auto"),
    Mutant("npu_split.v", "if (members == 1) members = 0;", "if (members == 2) members = 0;", "auto"),
    Mutant("npu_split.v", "if (t < members) piece = piece + t;", ";", "auto"),
    Mutant("npu_nest.v", "backward ? time_step + 1'b1 : time_step - 1'b1", "time_step - 1'b1", "rows", True),
    Mutant(
        "npu_tail_write.v",
        ".words(home), .index(d_thread), .word(writes_to)",
        ".words({THREADS{d_thread}}), .index(d_thread), .word(writes_to)",
        "layers",
    ),
    Mutant("npu_thread.v", "!= 0 ? home : THREAD;", "!= 0 ? THREAD : THREAD;", "layers"),
)


def noticed(mutant: Mutant, folder: Path) -> bool:
    """Whether the log of the changed Verilog differs from what the simulator says."""
    if mutant.bits:
        report = lstmsim.run_rtl(DIRECTED[mutant.scenario], folder / "out", random_weights=3)
    else:
        report = lstmsim.run_rtl(DIRECTED[mutant.scenario], folder / "out", timing_only=True)
    out = folder / "out"
    changed = out / "rtl" / mutant.file
    changed.write_text(changed.read_text().replace(mutant.old, mutant.new, 1))
    files = [*sorted(map(str, out.glob("rtl/*.v"))), *map(str, out.glob("sim/*.v"))]
    define = [] if mutant.bits else ["-DNPU_TIMING_ONLY"]
    words = [
        "iverilog",
        "-g2005",
        *define,
        "-I",
        str(out / "rtl"),
        "-I",
        str(out / "sim"),
        "-s",
        "npu_tb",
        "-o",
        str(out / "npu.vvp"),
        *files,
    ]
    subprocess.run(words, check=True, timeout=60)
    limit = report.run.trace.makespan_cycles + 100
    subprocess.run(["vvp", "npu.vvp", f"+limit={limit}"], cwd=out, check=True, timeout=60, stdout=subprocess.DEVNULL)
    return (out / "events.txt").read_text() != (out / "golden" / "events.txt").read_text()


def main() -> int:
    """Try all; the exit code is 1 if one is not noticed."""
    missed = 0
    for mutant in MUTANTS:
        with tempfile.TemporaryDirectory() as folder:
            if not noticed(mutant, Path(folder)):
                missed += 1
                print(f"{mutant.file}: not noticed by {mutant.scenario}: {mutant.new}", flush=True)
    print(f"{len(MUTANTS)} changes, {missed} not noticed")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
