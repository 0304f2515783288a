"""Single changes of the generated lanes, each with a directed scenario that must notice it.

`python -m tests.studies.rtl.lane_mutants` tries all of them and says which are not noticed. The lanes are others for
each
scenario, so the place of a change is a pattern; the first place that fits is changed.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from lstmsim.base.records import record
from lstmsim.studies.rtl.simulators import simulate_rtl, simulator_of
from tests.studies.rtl.directed_bits import BITS
from tests.studies.rtl.verified import written

__all__ = ["LANE_MUTANTS", "LaneMutant", "changed", "noticed"]


@record
class LaneMutant:
    """A change of one place.

    old: the pattern of the place in `rtl/npu_tail_lane.v`, and what stands there instead.
    scenario: a key of `BITS`.
    file: another generated file.
    """

    name: str
    old: str
    new: str
    scenario: str
    file: str = "npu_tail_lane.v"


LANE_MUTANTS = (
    LaneMutant("a product rounds down", r"(n_\w+_half = [^;]*?'sh)[0-9a-f]+", r"\g<1>0", "both_directions"),
    LaneMutant("quantize has -4", r"(n_h_q_inside) && n_h_q_low != \d+'sh\w+", r"\g<1>", "symmetric"),
    LaneMutant("a node wraps", r"(n_abcd_held = )n_\w+_inside \?", r"\g<1>1'b1 ?", "beyond_calibration"),
    LaneMutant("beyond the table is its first cell", r"(_above \? \{\d+\{1'b)1", r"\g<1>0", "table_ends"),
    LaneMutant("before the table is its last cell", r"_below \? (\d+)'d0 :", r"_below ? \g<1>'d1 :", "table_ends"),
    LaneMutant(
        "the table's end is a cell's begin", r"(_part = \{1'b0, n_\w+_above \? \d+'d)\d+", r"\g<1>0", "table_ends"
    ),
    LaneMutant("pieces fall", r"(_line = n_\w+_value\w* )\+", r"\g<1>-", "table_ends"),
    LaneMutant("a state is not 0 before step 0", r"zero_\d+ \? (\d+'sh0)", r"1'b0 ? \g<1>", "two_sums"),
    LaneMutant("all turns have one state", r"(m_\w+\[)turn_\d+(\] <=)", r"\g<1>0\g<2>", "second_on_a_context"),
    LaneMutant("formats of another pass", r"(_rounded = \(class_\d+ == 1'd)0\)", r"\g<1>1)", "two_sums"),
    LaneMutant("a difference is a sum", r"(_exact = n_\w+) - (n_\w+;)", r"\g<1> + \g<2>", "two_sums"),
    LaneMutant("all turns have one parameter", r"(p_\w+\[)parameter_\d+\]", r"\g<1>0]", "parameters"),
    LaneMutant("a mean has units that do not count", r"\(units_\d+ > 1\) \?", "1'b1 ?", "mean"),
    LaneMutant("a mean begins with the last one", r"first_\d+ \? \d+'sh0 : (n_\w+_sums)", r"\g<1>", "segments"),
    LaneMutant("threads share a mean", r"(first_\d+ \? \d+'sh0 : n_\w+_sums)\[thread_\d+\]", r"\g<1>[0]", "segments"),
    LaneMutant("turns read the rows of turn 0", r"number == i\)", "number == 0 && i == 0)", "scaled", "npu_pick.v"),
    LaneMutant("a sum is read twice", r"(part\[\(i\*\d+\+)0\)", r"\g<1>1)", "two_sums", "npu_pick.v"),
)


def changed(mutant: LaneMutant, design: Path) -> str:
    """The text of the file with the change; `AssertionError` if there is no place that fits."""
    text, count = re.subn(mutant.old, mutant.new, (design / "rtl" / mutant.file).read_text(), count=1)
    assert count == 1, f"{mutant.name}: no {mutant.old} in {mutant.file} of {mutant.scenario}"
    return text


def noticed(mutant: LaneMutant, folder: Path) -> bool:
    """Whether the log of the changed Verilog differs from what the simulator says."""
    design = written(BITS[mutant.scenario], folder)
    (design / "rtl" / mutant.file).write_text(changed(mutant, design))
    sources = sorted(str(each.relative_to(design)) for each in design.glob("*/*.v"))
    golden = (design / "golden" / "events.txt").read_text().splitlines()
    limit = max(int(line.split()[1]) for line in golden) + 100
    done = simulate_rtl(simulator_of("icarus"), str(design), sources, "npu_tb", limit, seconds=60)
    return list(done.log) != golden


def main() -> int:
    """Try all; the exit code is 1 if one is not noticed."""
    missed = 0
    for mutant in LANE_MUTANTS:
        with tempfile.TemporaryDirectory() as folder:
            if not noticed(mutant, Path(folder)):
                missed += 1
                print(f"not noticed by {mutant.scenario}: {mutant.name}", flush=True)
    print(f"{len(LANE_MUTANTS)} changes, {missed} not noticed")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
