"""Events of generated hardware, and what a machine says that can be written as RTL; no machine is known here.

Such a machine has in its folder a module `generated`, found by `registry.capability`, with these functions and names:

* `TOP`, the module that is the hardware; `TESTBENCH`, the module that is simulated, in one of the `.v` files under
  `sim/`: it has a register `cycle`, writes `events.txt` into the folder in which it runs, and knows `+limit=N` (end
  after cycle N) and `+vcd=FILE` (write all signals); `TIMING_DEFINE`, defined where the files have no numbers,
  `NETLIST_DEFINE`, where the hardware shows nothing but its ports; `PARTS`,
  under which name the cells of an instance are counted, by the instance's name in the Verilog text; `REGISTERS`, under
  which name the registers of a file are counted, whatever their names;
* `refusals(scenario, precision)`: mistakes, why a scenario is outside the subset (precision None: only cycles are
  wanted); `design(scenario, precision, numbers)`: the plan of the hardware, which the others take (numbers by index of
  the job: which jobs begin with states that are not 0); with `(most jobs, most steps)` as a fourth argument jobs are a
  table that the host writes, `table_mistakes(design)` says why they cannot be, and `table_needs(design)` gives what the
  chip then needs of a device beside its models (`Stored` of `hardware.py`);
* `files(design, numbers, version, deep)`: the files by path (`rtl/`, `data/`, `sim/`, `README.md`); numbers None:
  cycles alone; deep: the testbench logs numbers within the hardware, too;
* `events(design, program, trace, names, runs, values)`: what the log must say, in its order (names: of each cycle of
  each core; runs None: without H; values None: without S and V); `words(design, event)`: its fields in words;
* `unexercised(design, program, trace, events, numbers, values)`: what the run never did, in parts of a sentence;
  `synthesis_remarks(design)`: what a synthesis program makes large or slow; `posted(design)`: the index in the scenario
  of each job, in the order of the jobs' numbers in events;
* of boards `schedule_mistakes(design)`, why a board cannot post the jobs, and `board_files(design, events, files)`, the
  files below `board/` that the machine writes and what a host must know (docs/board.md); `path_words(design, cells)`: a
  path of a placed design in words, and which latency would shorten it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from lstmsim.base.records import record

#: H a vector is visible, F a job has finished, A a job takes a context, I a tile issues, T a beat of the tail, C the
#: stall reason of a cycle; where numbers within the tail are logged, S adapted sums of a beat and V a state that is
#: computed. The log has the events of a cycle in this order; of one kind in the order of cores, then of threads or
#: memories (A: of posting; V: of kinds of cells and states).
EventKind = Literal["H", "F", "A", "I", "T", "S", "V", "C"]

EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
#: Those that the ports of the hardware show, so that a netlist or a board shows them, too.
AT_PORTS: tuple[EventKind, ...] = ("H", "A", "F")


@record
class Event:
    """A line of the log: `kind cycle` and its fields, with the core as the last field where there are several cores.

    The fields are, by kind: A thread job; I thread job pass step block of_x group; T none; H job pass step first count
    hex; F job; S job pass step first count hex; V job pass step first count state hex; C name. `hex` has the elements
    as one word, the first one in the lowest bits, elements after `count` 0.
    """

    kind: EventKind
    cycle: int
    fields: tuple[int | str, ...]

    @property
    def line(self) -> str:
        """The line of the log, without its end."""
        return " ".join(map(str, (self.kind, self.cycle, *self.fields)))


@record
class ClockModel:
    """A model of the clock that placed designs of a machine reach, from builds, and how well it tells other builds.

    A machine that has one has in its folder a module `clock`, found by `registry.capability`, with the functions
    `model()` and `clocks(scenario, entries, counts)`: the MHz of a design, and by reason whether they cannot be told.

    family: FPGA and speed grade of the builds.
    multiplier: multiplier block of the devices of this family, as their tables name it.
    tools: what synthesized and placed them.
    verilog: hash of the modules that were built.
    source: where the builds are.
    null: whether all designs get the same clock, because features of a design told it no better.
    ns: nanoseconds of a cycle for each feature; a cycle has their sum.
    numbers: least and most of each number of the designs that were fitted.
    words: their words.
    lanes: by kind of cell, their widest tail.
    fitted, held_out: how many designs were fitted, and how many others judge the model.
    within, worst, median: share of the latter whose time is told within 15 %; the largest error, and the median, as
        shares of the time after placement.
    null_within, null_worst, null_median: the same of one clock for all.
    fit_within, fit_worst: the same share and error of the designs of the fit, each left out in turn.
    pairs: the ratio of the times of two designs is told within this factor for 95 % of the pairs held out, of the
        fit, each left out in turn, and of those of the fit with two different numbers of threads.
    current: whether these modules are the ones that are written now; others may reach another clock.
    """

    family: str
    multiplier: str
    tools: str
    verilog: str
    source: str
    null: bool
    ns: Mapping[str, float]
    numbers: Mapping[str, Sequence[int]]
    words: Mapping[str, Sequence[str]]
    lanes: Mapping[str, int]
    fitted: int
    held_out: int
    within: float
    worst: float
    median: float
    null_within: float
    null_worst: float
    null_median: float
    fit_within: float
    fit_worst: float
    pairs: float
    current: bool = True

    @property
    def name(self) -> str:
        """Which model it is, and for what, in words."""
        kind = "one clock for all designs" if self.null else "by the clock model"
        return f"{kind}, for {self.family}"

    @property
    def apart(self) -> str:
        """By how much two predicted times must differ to be told apart, in words."""
        return f"{100 * (self.pairs - 1):.0f} %"

    @property
    def judged(self) -> str:
        """How well it told the clocks of designs that were held out, beside the null model, in words."""
        told = round(self.within * self.held_out), round(self.null_within * self.held_out)
        own = f"{told[0]} of {self.held_out} held-out designs within 15 %, worst {100 * self.worst:.0f} %"
        own += f"; of the fit {self.fit_within * self.fitted:.0f} of {self.fitted}, worst {100 * self.fit_worst:.0f} %"
        null = f"one clock for all: {told[1]}, worst {100 * self.null_worst:.0f} %"
        older = "" if self.current else "; built from earlier Verilog than is written now"
        return f"{own if self.null else f'{own}; {null}'}{older}"
