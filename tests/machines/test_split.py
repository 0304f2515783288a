"""One model on several cores: by hand, refusals, weights, when it pays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.engines.reference import run as reference
from lstmsim.machines import lower
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Exchange, Memory
from lstmsim.machines.column.phases import share_weights, split_phases, split_refusal
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from lstmsim.program.trace import Trace
from tests.splits import issues, phases_of, work

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


def test_elements_leave_as_they_come_out_of_the_tail() -> None:
    # 16 units in blocks of 4 over 2 cores, one unit a turn in the tail: the link takes one a cycle, however wide it is
    for width in (1, 2, 3, 64):
        trace = trace_of(stack(1, 16), 1, (0, 1), "rows", SMALL, width=width, tail_width=1)
        tails = [start for start, _ in issues(trace, 0, 1)]
        assert [start for start, _ in issues(trace, 0, 2)] == [start + 36 for start in tails]
        # the last of 4 turns on the link, then its latency
        assert trace.makespan_cycles == tails[-1] + 36 + 3 + 8
    # four times as narrow as the tail: each block waits for the one before it
    trace = trace_of(stack(1, 16), 1, (0, 1), "rows", SMALL, width=1, tail_width=4)
    tails = [start for start, _ in issues(trace, 0, 1)]
    first, second = (start for start, _ in issues(trace, 0, 2))
    assert (first, second) == (tails[0] + 36, max(tails[1] + 36, first + 4))
    assert trace.makespan_cycles == second + 3 + 8


def test_a_wider_link_is_never_slower() -> None:
    """Four of 16k, one lstm-512: each member has one block of 128 units, two turns of the tail."""
    quarter = {"npe": 16384, "ep": 16, "vp": 1024}
    ends = [cycles(stack(1, 512), 8, (0, 1, 2, 3), "rows", quarter, width=width) for width in (16, 48, 64, 65, 128)]
    assert ends[0] > ends[1] > ends[2] == ends[3] == ends[4]


def test_threads_that_share_a_core_may_change_their_order() -> None:
    """Section 9.5 promises nothing here: what arrives sooner is worked on sooner, and something else later."""
    sizes = [8, 6, 2, 16, 8, 16]
    names = ("gru", "lstm", "lstm", "rnn", "gru-lbr0")
    layers = tuple(Layer(cell(name), sizes[at + 1], sizes[at]) for at, name in enumerate(names))
    core = {"npe": 64, "ep": 4, "vp": 4, "tail_width": 4, "accumulator_banks": 1}
    ends = [
        cycles(Model("m", layers), 2, (1, 1, 1, 0, 1), "layers", core, latency_cycles=0, width=width)
        for width in (2, 16)
    ]
    assert ends == [1336, 1346]


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
    assert lower(chip, [Job("j", big, 2, split="rows")]).tasks[0].weight_set is None
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
        streamed = {(each.place[:3], each.takes) for each in streams}
        assert streamed
        for on in set(place):
            kept = sum(
                each.work * each.count
                for phase in phases_of(program)
                for each in phase.body.operations
                # weight buffers come after the accumulators of all members
                if each.label == "mvm" and place[each.member] == on
                if (each.place[:3], each.member + len(place)) not in streamed
            )
            # beside what stays there is room for two row blocks of each member
            assert kept + 2 * 16 * 128 * place.count(on) <= 8 * 1024
    assert ends[0] < ends[1]


REFUSED = [
    ("rows", stack(1, 8, name="lstm-layernorm"), (0, 1), "takes a mean over all units"),
    ("rows", stack(1, 3), (0, 1, 2, 3), "layer 0 has 3 hidden units for 4 cores"),
    ("rows", stack(1, 999), (*range(4), *range(5, 258)), "at most 256 cores"),
    ("rows", stack(1, 8), (0, 0), "names core 0 twice"),
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


@pytest.mark.parametrize("split", ["rows", "layers"])
@pytest.mark.parametrize("model", [stack(2, 8), stack(1, 8, name="lstm-layernorm"), stack(3, 8, "step")])
def test_one_core_splits_nothing(split: str, model: Model) -> None:
    core = ColumnCore(**SMALL, threads=2)
    order: dict[str, Any] = {"dispatch": "priority", "preempts": True}
    for cores, named in ((1, None), (3, (2,))):
        chip = ColumnNpu("c", 260, (core,) * cores)
        plain = [Job("a", model, 3, cores=named), Job("b", model, 3, 40, cores=named, priority=1, **order)]
        program = lower(chip, [replace(job, split=split) for job in plain])
        assert program == lower(chip, plain)
        assert len(program.cores[0].units) == 2


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


def test_a_split_job_does_not_preempt_and_is_not_stopped() -> None:
    chip = ColumnNpu("c", 260, (ColumnCore(**SMALL),) * 2)
    order: dict[str, Any] = {"dispatch": "priority", "preempts": True}
    first = Job("a", stack(1, 16), 9, split="rows", **order)
    urgent = Job("b", stack(1, 16), 2, 100, priority=9, **order)
    last = Job("c", stack(1, 16), 2, 700, split="rows", priority=10, **order)
    trace = reference.run(lower(chip, [first, urgent, last]))
    a, b, c = trace.task("finish").tolist()
    assert a == reference.run(lower(chip, [first])).makespan_cycles
    assert trace.task("admitted").tolist() == [0, a, b]
    assert c > b
    assert len(trace.pauses) == 0


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
