"""Events of generated hardware, and what a machine says that can be written as RTL; no machine is known here.

Such a machine has in its folder a module `generated`, found by `registry.capability`, with these functions and names:

* `TOP`, the module that is the hardware; `TESTBENCH`, the module that is simulated, in one of the `.v` files under
  `sim/`: it has a register `cycle`, writes `events.txt` into the folder in which it runs, and knows `+limit=N` (end
  after cycle N) and `+vcd=FILE` (write all signals); `TIMING_DEFINE`, defined where the files have no numbers,
  `NETLIST_DEFINE`, where the hardware shows nothing but its ports; `PARTS`,
  under which name the cells of an instance are counted, by the instance's name in the Verilog text;
* `refusals(scenario, precision)`: mistakes, why a scenario is outside the subset (precision None: only cycles are
  wanted); `design(scenario, precision, numbers)`: the plan of the hardware, which the others take (numbers by index of
  the job: which jobs begin with states that are not 0); with `(most jobs, most steps)` as a fourth argument jobs are a
  table that the host writes, and `table_mistakes(design)` says why they cannot be;
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
