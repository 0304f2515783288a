"""A machine whose RTL is a testbench that says what a file says: what generated hardware needs, without hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lstmsim.base.errors import Mistake
from lstmsim.machines.rtl import EVENT_KINDS, Event
from lstmsim.model.model import Precision
from lstmsim.model.numerics.golden import NetworkRun
from lstmsim.model.numerics.jobs import JobNumbers, Values
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from lstmsim.studies.rtl.result import log_text

VERILOG = """`default_nettype none
module stub_tb;
  reg clock;
  integer cycle, limit, source, log, count, due;
  reg [8 * 100 - 1 : 0] line, kind, waves;

  initial begin
    clock = 0;
    forever #5 clock = ~clock;
  end

  initial begin
    cycle = 0;
    if (!$value$plusargs("limit=%d", limit)) limit = 1000;
    if ($value$plusargs("vcd=%s", waves)) begin
      $dumpfile(waves);
      $dumpvars(0, stub_tb);
    end
    source = $fopen("data/replay.txt", "r");
    log = $fopen("events.txt", "w");
    count = $fgets(line, source);
    while (count != 0 && cycle <= limit) begin
      count = $sscanf(line, "%s %d", kind, due);
      while (due > cycle) @(posedge clock) cycle = cycle + 1;
      if (cycle <= limit) $fwrite(log, "%0s", line);
      count = $fgets(line, source);
    end
    @(posedge clock) $fclose(log);
    $finish;
  end
endmodule
"""


def _events(scenario: Scenario, with_numbers: bool) -> tuple[Event, ...]:
    events = []
    for number, job in enumerate(scenario.jobs):
        start = 20 * number
        events.append(Event("A", start, (0, number)))
        for step in range(job.steps):
            events.append(Event("I", start + 4 * step, (0, number, 0, step, 0, 1, 0)))
            events.append(Event("T", start + 4 * step + 1, ()))
            if with_numbers:
                events.append(Event("H", start + 4 * step + 2, (number, 0, step, 0, 1, f"0{step}")))
        events.append(Event("F", start + 4 * job.steps, (number,)))
    end = max(each.cycle for each in events)
    busy = {each.cycle for each in events if each.kind == "I"}
    events += [Event("C", cycle, ("busy" if cycle in busy else "idle",)) for cycle in range(end)]
    return tuple(sorted(events, key=lambda each: (each.cycle, EVENT_KINDS.index(each.kind))))


TOP, TESTBENCH, TIMING_DEFINE = "stub", "stub_tb", "STUB_TIMING_ONLY"
PARTS: dict[str, str] = {}
REGISTERS: dict[str, str] = {}


def refusals(scenario: Scenario, precision: Precision | None) -> list[Mistake]:
    late = [place for place, job in enumerate(scenario.jobs) if job.arrival]
    return [Mistake(f"jobs.{place}.arrival", "is not in the subset: expected 0") for place in late]


def design(scenario: Scenario, precision: Precision, numbers: Mapping[int, JobNumbers] | None = None) -> Any:
    return replace(scenario, precision=precision)


def posted(design: Any) -> tuple[int, ...]:
    return tuple(range(len(design.jobs)))


def files(design: Any, numbers: Mapping[int, JobNumbers] | None, version: str, deep: bool = False) -> Mapping[str, str]:
    replay = log_text(_events(design, numbers is not None))
    stub = "`default_nettype none\nmodule stub;\nendmodule\n"
    return {"rtl/stub.v": stub, "sim/stub_tb.v": VERILOG, "sim/run.sh": "#!/bin/sh\n", "data/replay.txt": replay}


def events(
    design: Any,
    program: Program,
    trace: Trace,
    names: Sequence[Sequence[str]],
    runs: Mapping[int, NetworkRun] | None,
    values: Mapping[int, Values] | None = None,
) -> tuple[Event, ...]:
    return _events(design, runs is not None)


def words(design: Any, event: Event) -> str:
    return " ".join(map(str, event.fields))


def unexercised(*_: object) -> tuple[str, ...]:
    return ()


def synthesis_remarks(design: Any) -> tuple[str, ...]:
    return ()
