"""One model on several cores: against the cycle-stepped model of section 9, by hand, refusals, when it pays."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lstmsim.engines import reference
from lstmsim.errors import InputError
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from lstmsim.targets.column_lowering import lower
from lstmsim.targets.column_npu import ColumnCore, ColumnNpu, Exchange
from lstmsim.targets.column_phases import model_phases
from lstmsim.targets.column_split import (
    layer_runs,
    share_weights,
    split_operations_per_step,
    split_phases,
    split_refusal,
)
from lstmsim.targets.column_tiles import ARRAY
from lstmsim.targets.memory import Memory
from lstmsim.workload.cell import Cell, stage_of
from lstmsim.workload.cells import CELLS, cell, graph
from lstmsim.workload.model import Layer, Model
from lstmsim.workload.scenario import Job
from tests.oracle import split as oracle
from tests.strategies import cores_of_a_chip, models

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "250"))

#: Cells that send more than one vector of a row block.
OWN_CELLS = (
    Cell(
        "the one later than the other",
        (stage_of("a[x h] b[x h]"), stage_of("n[x q r]")),
        graph("at sigmoid a; bt tanh b; p multiply at bt; q quantize p; r quantize at; s tanh n; h' quantize s"),
        {"h": "h'"},
    ),
    Cell(
        "both at once",
        (stage_of("a[x h] b[x h]"), stage_of("n[r q]")),
        graph("at sigmoid a; bt tanh b; r quantize at; q quantize bt; s tanh n; h' quantize s"),
        {"h": "h'"},
    ),
    Cell(
        "h before the second product",
        (stage_of("a[x h]"), stage_of("p[m]")),
        graph("at sigmoid a; ct multiply at c; h' quantize ct; m quantize at; pt tanh p; c' add pt c"),
        {"h": "h'", "c": "c'"},
    ),
)


def issues(trace: Trace, core: int, unit: int) -> list[tuple[int, int]]:
    """Cycle and thread of every issue on a unit."""
    names = ("core", "unit", "start", "context", "count", "cycles")
    rows = zip(*(trace.issue(name).tolist() for name in names), strict=True)
    return sorted(
        (start + number * cycles, context)
        for on, which, start, context, count, cycles in rows
        if (on, which) == (core, unit)
        for number in range(count)
    )


@st.composite
def splits(draw: st.DrawFn) -> tuple[ColumnCore, Exchange, Job, tuple[int, ...]]:
    """A job that is split, and cores for it."""
    model = draw(models(tuple(CELLS)))
    if draw(st.booleans()) and not any(layer.cell.projected for layer in model.layers):
        own = [draw(st.sampled_from(OWN_CELLS)) if layer.cell.recurrent else layer.cell for layer in model.layers]
        layers = tuple(replace(layer, cell=cell) for layer, cell in zip(model.layers, own, strict=True))
        model = Model("m", layers, model.layer_order)
    split = draw(st.sampled_from(["rows", "layers"]))
    members = draw(st.integers(2, 4 if split == "rows" else max(2, min(3, len(model.layers)))))
    core = draw(cores_of_a_chip())
    assume(split_refusal(model, core, split, members) is None)
    place = tuple(draw(st.permutations(range(members))))
    if split == "layers":
        place = tuple(draw(st.lists(st.integers(0, 2), min_size=members, max_size=members)))
        assume(max(map(place.count, place)) <= core.threads)
    exchange = Exchange(draw(st.sampled_from([0, 1, 2, 8, 30])), draw(st.sampled_from([1, 2, 3, 7, 64])))
    arrival, interval = draw(st.sampled_from([0, 0, 13])), draw(st.sampled_from([0, 0, 7, 90]))
    return core, exchange, Job("j", model, draw(st.integers(1, 4)), arrival, interval, place, split=split), place


@settings(max_examples=EXAMPLES, deadline=None)
@given(splits())
def test_random_splits_as_the_cycle_stepped_model_has_them(
    case: tuple[ColumnCore, Exchange, Job, tuple[int, ...]],
) -> None:
    core, exchange, job, place = case
    chip = ColumnNpu("c", 260, (core,) * (max(place) + 1), None, exchange)
    program = lower(chip, [job])
    trace = reference.run(program)
    finish, cores = oracle.simulate_split(job, core, place, exchange)
    assert trace.makespan_cycles == finish
    for on in set(place):
        assert issues(trace, on, ARRAY) == cores[on].issued
    assert work(program) == sum(each.macs for each in cores.values()) == job.macs
    operations = sum(len(phase.body.operations) for phase in phases_of(program))
    assert operations <= split_operations_per_step(job.model, core, job.split, len(place))


def phases_of(program: Program) -> tuple[Any, ...]:
    return program.tasks[0].phases(program.cores[program.tasks[0].cores[0]].kind)


def work(program: Program) -> int:
    """Multiply-accumulates of a program's one task."""
    return sum(
        phase.repeat * operation.work * operation.count
        for phase in phases_of(program)
        for operation in phase.body.operations
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(models(tuple(CELLS)), cores_of_a_chip(), st.integers(1, 3), st.sampled_from(["rows", "layers"]))
def test_one_member_does_what_an_unsplit_job_does(model: Model, core: ColumnCore, steps: int, split: str) -> None:
    assume(core.refusal(model) is None)
    if split == "layers":
        assume(not any(layer.bidirectional for layer in model.layers))
        model = Model("m", model.layers, "step")
    assert split_phases(model, core, steps, split, (0,), Exchange()) == model_phases(model, core, steps)


@settings(max_examples=EXAMPLES, deadline=None)
@given(models(("rnn", "lstm", "dense")), st.integers(1, 3))
def test_runs_are_the_best_of_all_cuts(model: Model, members: int) -> None:
    assume(members <= len(model.layers))
    assert list(layer_runs(model, members)) == oracle.runs(model, members)


@settings(max_examples=EXAMPLES, deadline=None)
@given(splits(), st.integers(1, 20))
def test_a_slower_exchange_never_ends_sooner(
    case: tuple[ColumnCore, Exchange, Job, tuple[int, ...]], more: int
) -> None:
    core, exchange, job, place = case
    assume(len(set(place)) == len(place))
    ends = []
    for latency in (exchange.latency_cycles, exchange.latency_cycles + more):
        chip = ColumnNpu("c", 260, (core,) * (max(place) + 1), None, replace(exchange, latency_cycles=latency))
        ends.append(reference.run(lower(chip, [job])).makespan_cycles)
    assert ends[0] <= ends[1]


LSTM = cell("lstm")
SMALL = {"npe": 64, "ep": 4, "vp": 16}
LARGE = {"npe": 65536, "ep": 32, "vp": 2048}


def stack(layers: int, units: int, order: str = "layer", name: str = "lstm") -> Model:
    return Model("m", (Layer(cell(name), units, units),) * layers, order)


def trace_of(
    model: Model, steps: int, cores: tuple[int, ...], split: str, numbers: dict[str, int], **more: Any
) -> Trace:
    """A job alone on equal cores; `more`: of the exchange and of the cores."""
    exchange = Exchange(**{key: more.pop(key) for key in ("latency_cycles", "width") if key in more})
    core = ColumnCore(**numbers, threads=max(map(cores.count, cores)), **more)
    chip = ColumnNpu("c", 260, (core,) * (max(cores) + 1), None, exchange)
    return reference.run(lower(chip, [Job("j", model, steps, cores=cores, split=split)]))


def cycles(*arguments: Any, **more: Any) -> int:
    return trace_of(*arguments, **more).makespan_cycles


def test_the_worked_example_of_section_9() -> None:
    assert cycles(stack(1, 8), 2, (0,), "", SMALL) == 115
    trace = trace_of(stack(1, 8), 2, (0, 1), "rows", SMALL)
    assert trace.makespan_cycles == 124
    tiles = [[start for start, _ in issues(trace, core, 0)] for core in (0, 1)]
    assert tiles == [[0, 1, 2, 3, 4, 5, 55, 63], [0, 1, 2, 3, 4, 5, 63, 64]]
    assert [[start for start, _ in issues(trace, core, 2)] for core in (0, 1)] == [[55, 115], [55, 116]]


def test_a_narrow_link_sends_as_fast_as_it_can_without_gaps() -> None:
    # 16 units in blocks of 4 over 2 cores, one unit a turn in the tail: the link, twice as wide, waits for each block's
    # last pair, 2 cycles later than its first
    trace = trace_of(stack(1, 16), 1, (0, 1), "rows", SMALL, width=2, tail_width=1)
    tails = [start for start, _ in issues(trace, 0, 1)]
    assert [start for start, _ in issues(trace, 0, 2)] == [start + 36 + 2 for start in tails]
    # four times as narrow as the tail: each block waits for the one before it
    trace = trace_of(stack(1, 16), 1, (0, 1), "rows", SMALL, width=1, tail_width=4)
    tails = [start for start, _ in issues(trace, 0, 1)]
    first, second = (start for start, _ in issues(trace, 0, 2))
    assert (first, second) == (tails[0] + 36, max(tails[1] + 36, first + 4))
    assert trace.makespan_cycles == second + 3 + 8


def test_rows_win_where_the_matrix_is_large_and_lose_where_it_is_small() -> None:
    large = {
        cores: cycles(stack(1, 2048), 10, tuple(range(cores)), "rows" if cores > 1 else "", LARGE)
        for cores in (1, 2, 4)
    }
    assert large[4] < large[2] < large[1]
    # no more than four times as fast, and the array of a core alone sets a bound
    assert large[1] / large[4] <= 4
    assert large[4] >= 10 * 2 * (2048 // 32) * 4 * 512 // 2048
    small = {
        cores: cycles(stack(1, 64), 10, tuple(range(cores)), "rows" if cores > 1 else "", LARGE) for cores in (1, 4)
    }
    assert small[1] < small[4] <= small[1] + 10 * (8 + 1)


def test_pipelines_win_with_many_steps_of_many_layers_and_not_with_one() -> None:
    model = stack(4, 512)
    one, four = cycles(model, 20, (0,), "", LARGE), cycles(model, 20, (0, 1, 2, 3), "layers", LARGE)
    assert one / 4 < four < one / 2
    by_step = cycles(stack(4, 512, "step"), 1, (0,), "", LARGE)
    assert cycles(model, 1, (0, 1, 2, 3), "layers", LARGE) > by_step
    # threads of one core need no exchange, and share the array
    threads = cycles(model, 20, (0, 0, 0, 0), "layers", LARGE)
    assert four < threads < one
    assert threads >= 20 * 4 * 32


def test_the_pipeline_starts_as_soon_as_the_layer_below_has_a_step() -> None:
    alone = cycles(stack(1, 512), 1, (0,), "", LARGE)
    trace = trace_of(stack(2, 512), 5, (0, 1), "layers", LARGE)
    # the first of 8 turns is visible 7 cycles before the last
    assert issues(trace, 1, 0)[0][0] == alone - 7 + 8


@pytest.mark.parametrize(("split", "model"), [("rows", stack(2, 8)), ("layers", stack(2, 8))])
def test_threads_of_one_core_exchange_nothing(split: str, model: Model) -> None:
    core = ColumnCore(**SMALL)
    for place, sent in (((3, 3), False), ((3, 5), True)):
        phases = split_phases(model, core, 2, split, place, Exchange())
        operations = [each for phase in phases for each in phase.body.operations]
        assert {each.member for each in operations} == {0, 1}
        assert {each.takes for each in operations} == {None, 0, 1}
        assert any(each.label == "exchange" for each in operations) == sent


def test_weights_are_shared_out() -> None:
    model = stack(3, 10)
    assert share_weights(model, "rows", (0, 1, 2)) == 3 * 4 * 4 * 20
    assert share_weights(model, "layers", (0, 1)) == 2 * share_weights(model, "layers", (0, 1, 2)) == 2 * 4 * 10 * 20
    assert share_weights(model, "layers", (0, 1, 0)) == 2 * 4 * 10 * 20
    # 4 cores that hold a fourth each: nothing has to be loaded
    core = ColumnCore(npe=64, ep=4, vp=16, weight_kib=8)
    big = Model("m", (Layer(LSTM, 64, 64),))
    chip = ColumnNpu("c", 260, (core,) * 4)
    assert lower(chip, [Job("j", big, 2, split="rows")]).tasks[0].content is None
    with pytest.raises(InputError, match="its weights take 16 KiB"):
        lower(chip, [Job("j", big, 2, cores=(0, 1), split="rows")])


@pytest.mark.parametrize(
    ("split", "place", "threads"), [("rows", (0, 1), 1), ("layers", (0, 1), 1), ("layers", (0, 0), 2)]
)
def test_weights_that_do_not_fit_are_streamed_to_each_member(split: str, place: tuple[int, ...], threads: int) -> None:
    job = Job("j", stack(2, 64, "step"), 3, cores=place, split=split)
    ends = []
    for kib in (64, 8):
        core = ColumnCore(**SMALL, weight_kib=kib, threads=threads)
        program = lower(ColumnNpu("c", 260, (core,) * (max(place) + 1), Memory(gb_per_s=2)), [job])
        trace = reference.run(program)
        ends.append(trace.makespan_cycles)
        assert work(program) == job.macs
        streams = [each for phase in phases_of(program) for each in phase.body.operations if "stream" in each.label]
        if kib == 64:
            assert not streams
            continue
        # what is not streamed, and room for two row blocks of each member, fits on its core
        streamed = {each.place[:3] for each in streams}
        tiles = [each for phase in phases_of(program) for each in phase.body.operations if each.label == "mvm"]
        if split == "layers":
            kept: dict[int, int] = {}
            for each in tiles:
                if each.place[:3] not in streamed:
                    on = place[each.member]
                    kept[on] = kept.get(on, 0) + each.work * each.count
            assert all(weights + 2 * 16 * 128 * place.count(on) <= 8 * 1024 for on, weights in kept.items())
    assert ends[0] < ends[1]


REFUSED = [
    ("rows", stack(1, 8, name="lstm-layernorm"), (0, 1), "takes a mean over all units"),
    ("rows", stack(1, 3), (0, 1, 2, 3), "layer 0 has 3 hidden units for 4 cores"),
    ("rows", stack(1, 999), (*range(4), *range(5, 258)), "at most 256 cores"),
    ("rows", stack(1, 8), (0, 0), "names core 0 twice"),
    ("rows", stack(1, 8), (0,), "needs at least two cores, got 1"),
    ("layers", stack(2, 8), (0,), "needs at least two cores, got 1"),
    ("layers", stack(2, 8), (0, 1, 2), "3 members for 2 layers"),
    ("layers", stack(3, 8), (0, 0, 0), "takes 3 threads of core 0, which has 2"),
    ("layers", Model("m", (Layer(LSTM, 8, 8, True), Layer(LSTM, 8, 16))), (0, 1), "layer 0 is bidirectional"),
    ("rows", stack(1, 8), (0, 4), "core 4 is not like core 0"),
    ("rows", stack(1, 8), (0, 258), "there is no core 258"),
    ("rows", stack(1, 8), (4, 0), "core 0 is not like core 4"),
]


@pytest.mark.parametrize(("split", "model", "cores", "text"), REFUSED)
def test_what_cannot_be_split_so(split: str, model: Model, cores: tuple[int, ...], text: str) -> None:
    core = ColumnCore(**SMALL, threads=2)
    chip = ColumnNpu("c", 260, (*(core,) * 4, ColumnCore(npe=64, ep=4, vp=8), *(core,) * 253))
    with pytest.raises(InputError, match=text):
        lower(chip, [Job("j", model, 2, cores=cores, split=split)])


def test_shares_may_fit_where_the_whole_does_not() -> None:
    core = ColumnCore(npe=64, ep=4, vp=16, block_order="column")
    model = stack(1, 16)
    assert core.refusal(model)
    assert split_refusal(model, core, "rows", 2) is None
    assert "needs accumulator_banks >= 2, got accumulator_banks 1" in str(
        split_refusal(model, ColumnCore(npe=64, ep=4, vp=16, block_order="column", accumulator_banks=1), "rows", 2)
    )
    assert "needs vp >= 4" in str(split_refusal(model, ColumnCore(npe=64, ep=4, vp=3), "rows", 2))
    with pytest.raises(InputError, match="needs vp >= 4"):
        lower(ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=3),) * 2), [Job("j", model, 2, split="rows")])


def test_a_split_job_does_not_preempt() -> None:
    chip = ColumnNpu("c", 260, (ColumnCore(**SMALL),) * 2)
    with pytest.raises(InputError, match="does not stop others"):
        lower(chip, [Job("j", stack(1, 8), 2, split="rows", dispatch="priority", preempts=True)])


def test_exchange_numbers_are_checked() -> None:
    with pytest.raises(InputError, match=r"exchange\.width: must be at least 1, got 0"):
        ColumnNpu("c", 260, (ColumnCore(**SMALL),), None, Exchange(width=0))


def test_split_and_plain_jobs_side_by_side() -> None:
    chip = ColumnNpu("c", 260, (ColumnCore(**SMALL),) * 3)
    jobs = [Job("a", stack(1, 16), 3, split="rows", cores=(1, 2)), Job("b", stack(1, 16), 3)]
    program = lower(chip, [*jobs, Job("c", stack(2, 16), 3, split="layers", cores=(0, 1))])
    trace = reference.run(program)
    plain = reference.run(lower(chip, jobs[1:]))
    assert trace.task("core").tolist() == [1, 0, 0]
    assert trace.task("finish")[1] == plain.makespan_cycles
    # it takes both cores together, when both have a free thread
    assert trace.task("admitted")[2] == max(trace.task("finish")[:2])
