"""Golden events: an example that is worked out by hand, and the bits of h."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import lstmsim
from lstmsim.machines.column.rtl.events import events, words
from lstmsim.machines.column.rtl.lanes.schedule import Schedule
from lstmsim.machines.column.rtl.planning import design as plan_design
from lstmsim.machines.rtl import EVENT_KINDS, Event
from lstmsim.model.numerics.jobs import JobData, fixed_numbers, run_jobs
from lstmsim.model.numerics.weights import random_network, random_stimulus
from lstmsim.program.accounts import named_cycles

CORE = {"ep": 4, "vp": 16, "npe": 64, "tail_width": 64}
LSTM = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}


def _scenario(jobs: list[dict[str, Any]], *cores: dict[str, Any]) -> dict[str, Any]:
    chip = {"kind": "column-npu", "name": "c", "frequency_mhz": 100, "cores": list(cores) or [CORE]}
    return {"chip": chip, "jobs": jobs}


def _events(mapping: dict[str, Any], with_numbers: bool = False) -> tuple[Any, tuple[Event, ...]]:
    """The design of a scenario and its golden events."""
    ran = lstmsim.run(mapping)
    names = [named_cycles(ran.program, ran.trace, core).each() for core in range(len(ran.program.cores))]
    numbers = None
    if with_numbers:
        networks = {id(job.model): random_network(job.model, seed=1) for job in ran.scenario.jobs}
        data = {
            index: JobData(networks[id(job.model)], random_stimulus(job.model, job.steps, index), "", "")
            for index, job in enumerate(ran.scenario.jobs)
        }
        numbers = fixed_numbers(data, ran.scenario.precision)
    design = plan_design(ran.scenario, ran.scenario.precision, numbers)
    runs = None if numbers is None else run_jobs(numbers)
    return (design, runs), events(design, ran.program, ran.trace, names, runs)


def _lines(events: tuple[Event, ...], kind: str) -> list[str]:
    return [each.line for each in events if each.kind == kind]


def test_the_example_of_section_9_of_the_contract_on_one_core() -> None:
    _, events = _events(_scenario([{"name": "j", "model": LSTM, "steps": 2}]))
    assert _lines(events, "A") == ["A 0 0 0"]
    assert _lines(events, "F") == ["F 115 0"]
    # pass 0; step 0 issues at 0 to 7, two blocks of two groups of x and two of h
    groups = [(block, of_x, group) for block in (0, 1) for of_x in (1, 0) for group in (0, 1)]
    cycles = [*range(8), 20, 21, 55, 59, 60, 61, 62, 63]
    expected = [
        f"I {cycle} 0 0 0 {step} {block} {of_x} {group}"
        for cycle, (step, (block, of_x, group)) in zip(cycles, [(s, g) for s in (0, 1) for g in groups], strict=True)
    ]
    assert _lines(events, "I") == expected
    assert _lines(events, "T") == ["T 19", "T 23", "T 75", "T 79"]
    named = Counter(each.fields[0] for each in events if each.kind == "C")
    assert named == {"busy": 16, "backpressure": 12, "hazard": 36, "drain": 51}


def test_the_simulator_says_when_h_is_visible_not_the_rows_of_the_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = _scenario([{"name": "j", "model": LSTM, "steps": 2}])
    _, first = _events(mapping, with_numbers=True)
    monkeypatch.setattr(Schedule, "visible", lambda schedule, node: 1)
    _, second = _events(mapping, with_numbers=True)
    assert _lines(first, "H") == _lines(second, "H") != []


def test_events_of_a_cycle_stand_in_the_order_of_the_log() -> None:
    jobs = [{"name": f"j{i}", "model": LSTM, "steps": 2, "arrival": arrival} for i, arrival in enumerate((9, 0, 0, 30))]
    core = {**CORE, "threads": 2, "tail_width": 2}
    _, events = _events(_scenario(jobs, core, {**core, "ep": 8, "vp": 8}), with_numbers=True)
    places = [(each.cycle, EVENT_KINDS.index(each.kind)) for each in events]
    assert places == sorted(places)
    # jobs are numbered in posting order, and named by the core at the end
    assert _lines(events, "A") == ["A 0 0 0 0", "A 0 0 1 1", "A 9 1 2 0", "A 30 1 3 1"]
    for kind in "HFITC":
        same = [(each.cycle, each.fields[-1]) for each in events if each.kind == kind]
        assert same == sorted(same), "of one kind in a cycle in the order of cores"


@pytest.mark.parametrize("order", ["row", "column"])
def test_tiles_of_all_groups_and_blocks_are_told_once(order: str) -> None:
    layers = [{"cell": "gru", "hidden": 7, "input": 5}, {"cell": "gru-lbr0", "hidden": 9, "input": 7}]
    model = {"name": "m", "layers": layers, "layer_order": "step"}
    core = {**CORE, "threads": 3, "thread_policy": "fine", "block_order": order, "accumulator_banks": 4}
    (design, _), events = _events(_scenario([{"name": f"j{i}", "model": model, "steps": 2} for i in range(3)], core))
    reported = Counter(each.fields[1:] for each in events if each.kind == "I")
    rows = design.cores[0].programs[0].stages
    wanted = {
        (job, row.number, step, block, read.code, group)
        for job in range(3)
        for row in rows
        for step in range(2)
        for block in range(row.blocks)
        for read in row.reads
        for group in range(read.groups)
    }
    assert reported == Counter(wanted)


def test_the_bits_of_h_are_those_of_the_golden_model() -> None:
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 7, "input": 5, "bidirectional": True}]}
    (_, runs), events = _events(_scenario([{"name": "j", "model": model, "steps": 3}], {**CORE, "tail_width": 3}), True)
    h = [each for each in events if each.kind == "H"]
    elements = 0
    for each in h:
        job, number, step, first, count = map(int, each.fields[:5])
        word = str(each.fields[5])
        # two directions: pass 1 goes backward
        golden = runs[job].passes[0][number].h[step if number == 0 else 2 - step]
        assert len(word) == 6, "three elements of eight bits"
        bits = int(word, 16)
        for unit in range(3):
            value = bits >> (8 * unit) & 255
            assert value == (int(golden[first + unit]) & 255 if unit < count else 0)
        elements += count
    assert elements == 2 * 3 * 7


def test_words_name_jobs_layers_and_vectors() -> None:
    layers = [{"cell": "gru-lbr0", "hidden": 4, "input": 4, "bidirectional": True}]
    jobs = [{"name": "speech", "model": {"name": "m", "layers": layers}, "steps": 2}]
    (design, _), _ = _events(_scenario(jobs))
    assert words(design, Event("A", 3, (1, 0))) == "thread 1 job speech"
    tile = Event("I", 3, (0, 0, 3, 1, 2, 2, 5))
    assert words(design, tile) == "thread 0 job speech layer 0 backward stage 1 step 1 block 2 of rh, group 5"
    assert words(design, Event("T", 3, ())) == ""
    assert words(design, Event("C", 3, ("busy",))) == "busy"
    # what Icarus writes for unknown values, and numbers that nothing has
    assert words(design, Event("I", 3, ("x", "x", 9, 1, 2, "x", 5))).startswith("thread x job x pass 9 step 1")
    assert words(design, Event("F", 3, (7,))) == "job 7"
