"""What if: every alternative is the simulation of the changed chip, refusals and harm included."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from lstmsim import engines, machines
from lstmsim.analysis.explanations import what_if as module
from lstmsim.analysis.explanations.what_if import Alternative, Price, WhatIf, proposed, what_if
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines import registry
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Exchange, Memory
from lstmsim.machines.registry import target_of
from lstmsim.machines.row.npu import RowNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Chip, Job, Scenario
from tests.strategies import examples, scenarios
from tests.toy_target.cpu import ToyChip, ToyCore

CORE = ColumnCore(npe=65536, ep=32, vp=2048, threads=2, tree_inputs=64, cat=2, switch_cycles=2)
MODEL = Model("m", (Layer(cell("lstm"), 512, 512),))
JOBS = tuple(Job(name, MODEL, steps=20) for name in "abc")


def makespan(chip: Chip, jobs: tuple[Job, ...] = JOBS) -> int:
    return engines.run(machines.lower(chip, jobs)).makespan_cycles


def column(**changed: int) -> ColumnNpu:
    return ColumnNpu("c", 260, (replace(CORE, **changed),))


def test_each_alternative_is_a_simulation_of_its_own() -> None:
    base = makespan(column())
    tried = {each.name: each for each in what_if(Scenario(column(), JOBS), base, 100).alternatives}
    expected = {
        "one more thread": column(threads=3),
        "ep doubled": column(ep=64, vp=1024),
        "tail twice as wide": column(tail_width=128),
        "one more bank": column(accumulator_banks=3),
        "npe and vp doubled": column(npe=131072, vp=4096),
        "npe and ep doubled": column(npe=131072, ep=64),
        "switches for free": column(switch_cycles=0),
    }
    for name, chip in expected.items():
        assert tried[name].cycles == makespan(chip)
        assert tried[name].saved_cycles == base - makespan(chip)
    assert tried["npe and vp doubled"].utilization == 3 * JOBS[0].macs / (
        131072 * makespan(column(npe=131072, vp=4096))
    )


def test_what_the_chip_refuses_is_said_and_stands_last() -> None:
    last = what_if(Scenario(column(), JOBS), makespan(column()), 100).alternatives[-1]
    assert (last.name, last.cycles, last.saved_cycles) == ("ep halved", None, 0)
    assert last.refused == (
        "an adder tree of 64 inputs with CAT-2 gives ep 64, 32; got 16: set `tree_inputs` to 16, or to null with "
        "`cat` 1, which allows any ep"
    )


def test_what_a_job_refuses_is_said_too() -> None:
    core = ColumnCore(npe=64, ep=16, vp=4)
    job = Job("a", Model("m", (Layer(cell("lstm"), 8, 8),)), steps=2)
    tried = what_if(Scenario(ColumnNpu("c", 260, (core,)), (job,)), 1, 1)
    (refused,) = (each for each in tried.alternatives if each.name == "ep doubled")
    assert "needs vp >= 4, got vp 2" in refused.refused


def test_ep_of_1_cannot_be_halved() -> None:
    core = ColumnCore(npe=64, ep=1, vp=64)
    job = Job("a", Model("m", (Layer(cell("lstm"), 8, 8),)), steps=2)
    tried = what_if(Scenario(ColumnNpu("c", 260, (core,)), (job,)), 1, 1)
    (refused,) = (each for each in tried.alternatives if each.name == "ep halved")
    assert refused.cycles is None


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(scenarios())
def test_alternatives_are_in_order_of_what_they_save(scenario: Scenario) -> None:
    base = makespan(scenario.chip, scenario.jobs)
    tried = what_if(scenario, base, 1).alternatives
    known = [each for each in tried if each.cycles is not None]
    assert tried[: len(known)] == tuple(known)
    assert [each.saved_cycles for each in known] == sorted((each.saved_cycles for each in known), reverse=True)
    assert all(each.refused for each in tried[len(known) :])


def test_a_long_run_gets_fewer_alternatives_and_progress_counts_them() -> None:
    calls: list[tuple[int, int]] = []
    scenario = Scenario(column(), JOBS)
    tried = what_if(scenario, makespan(column()), module.MAX_ROWS, lambda done, total: calls.append((done, total)))
    assert len(tried.alternatives) == 2
    assert tried.left_out == tuple(each.name for each in proposed(scenario)[2:])
    assert (tried.pairs, tried.pairs_left_out) == ((), None)
    assert calls == [(0, 2), (1, 2), (2, 2)]


def test_a_row_npu() -> None:
    chip = load_chip("brainwave-s10")
    assert isinstance(chip, RowNpu)
    jobs = (Job("a", MODEL, steps=5),)
    tried = what_if(Scenario(chip, jobs), makespan(chip, jobs), 1)
    core = chip.cores[0]
    fast = replace(core, dispatch_cycles=1, by_cell=tuple(replace(each, dispatch_cycles=1) for each in core.by_cell))
    assert tried.best is not None
    assert (tried.best.name, tried.best.detail) == ("faster dispatch", "dispatch_cycles 59 -> 1")
    assert tried.best.cycles == makespan(replace(chip, cores=(fast,)), jobs)


def test_full_batches_do_more_work_and_say_so() -> None:
    chip = load_chip("intel-npu-rtl")
    assert isinstance(chip, RowNpu)
    jobs = (Job("a", MODEL, steps=5),)
    tried = {each.name: each for each in what_if(Scenario(chip, jobs), makespan(chip, jobs), 1).alternatives}
    assert tried["full batches"].detail == "batch 1 -> 6"
    assert tried["full batches"].work == 6
    assert tried["full batches"].cycles == makespan(chip, (replace(jobs[0], batch=6),))
    assert "replicas doubled" not in tried
    rounds = (replace(jobs[0], batch=12),)
    assert "replicas doubled" in [each.name for each in target_of(chip.kind).changes(chip, rounds)]


def test_unlike_cores_are_changed_together() -> None:
    chip = ColumnNpu("c", 260, (CORE, replace(CORE, threads=4)))
    (first, *_) = target_of(chip.kind).changes(chip, JOBS)
    assert first.detail == "threads of each core"
    assert isinstance(first.chip, ColumnNpu)
    assert [core.threads for core in first.chip.cores] == [3, 5]


def test_a_policy_of_threads_is_tried_where_there_are_several_and_several_jobs() -> None:
    later = tuple(replace(job, arrival=number) for number, job in enumerate(JOBS))
    for threads, jobs, tried in ((2, later, True), (1, later, False), (2, JOBS, True), (2, JOBS[:1], False)):
        chip = column(threads=threads)
        several = {each.name: each.chip for each in proposed(Scenario(chip, jobs))}
        assert ("fine-grained threads" in several) == tried
    fine = ColumnNpu("c", 260, (replace(CORE, thread_policy="fine"),))
    assert {each.name: each.chip for each in proposed(Scenario(column(), later))}["fine-grained threads"] == fine


def test_shortest_job_first_is_tried_on_every_machine_where_unequal_jobs_come_over_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry.KINDS, "toy-cpu", "tests.toy_target.target")
    longer = replace(JOBS[2], steps=40)
    later = (JOBS[0], replace(JOBS[1], arrival=1, steps=40), replace(JOBS[2], arrival=2, steps=5))
    for chip in (column(threads=1), load_chip("brainwave-s10"), ToyChip("t", 100, (ToyCore(lanes=8),))):
        (shortest,) = (each for each in proposed(Scenario(chip, later)) if each.name == "shortest job first")
        assert (shortest.detail, shortest.chip) == ("dispatch fcfs -> sjf", chip)
        assert shortest.jobs == tuple(replace(job, dispatch="sjf") for job in later)
    by_rank = tuple(replace(job, dispatch="edf") for job in later)
    alike = tuple(replace(job, steps=20) for job in later)
    for jobs in ((*JOBS[:2], longer), by_rank, alike):
        assert "shortest job first" not in [each.name for each in proposed(Scenario(column(), jobs))]


def test_who_goes_first_is_tried_before_all_else() -> None:
    later = (JOBS[0], replace(JOBS[1], arrival=1, steps=40))
    names = [each.name for each in proposed(Scenario(column(), later))]
    assert names[:3] == ["fine-grained threads", "shortest job first", "one more thread"]


def test_links_and_memories_are_tried_too() -> None:
    """A narrow exchange binds: twice the width saves what half the latency cannot."""
    core = ColumnCore(npe=1024, ep=16, vp=64)
    chip = ColumnNpu("c", 100, (core, core), exchange=Exchange(latency_cycles=1, width=1))
    jobs = (Job("a", Model("m", (Layer(cell("lstm"), 64, 64),)), steps=10, split="rows"),)
    tried = {each.name: each for each in what_if(Scenario(chip, jobs), makespan(chip, jobs), 100).alternatives}
    assert tried["exchange twice as wide"].saved_cycles > 0 == tried["exchange latency halved"].saved_cycles
    assert tried["no job split"].cycles == makespan(chip, (replace(jobs[0], split=""),))
    tight = replace(core, weight_kib=256)
    memory = Memory(gb_per_s=1)
    chip = ColumnNpu("c", 100, (tight,), memory)
    jobs = (Job("a", MODEL, steps=2),)
    tried = {each.name: each for each in what_if(Scenario(chip, jobs), makespan(chip, jobs), 100).alternatives}
    faster = ColumnNpu("c", 100, (tight,), replace(memory, gb_per_s=2))
    assert tried["memory twice as fast"].cycles == makespan(faster, jobs)
    roomy = ColumnNpu("c", 100, (replace(tight, weight_kib=512),), memory)
    assert tried["room for weights doubled"].cycles == makespan(roomy, jobs)


def test_pairs_are_simulated_where_a_change_helps_and_are_counted() -> None:
    """One thread and three jobs: a second thread with halved latencies, and orders of threads that only it makes."""
    jobs, calls = JOBS, list[tuple[int, int]]()
    scenario = Scenario(column(threads=1, switch_cycles=0), jobs)
    base = makespan(scenario.chip, jobs)
    tried = what_if(scenario, base, 100, lambda done, total: calls.append((done, total)))
    by_names = {each.pair: each for each in tried.pairs}
    assert len(tried.pairs) == module.MOST_PAIRS == len(by_names)
    assert tried.pairs_left_out is not None
    assert tried.pairs_left_out > 0
    assert calls[-1] == (len(tried.alternatives) + len(tried.pairs),) * 2
    assert "fine-grained threads" not in {each.name for each in tried.alternatives}
    both = by_names["one more thread", "fine-grained threads"]
    fine = replace(CORE, threads=2, switch_cycles=0, thread_policy="fine")
    assert (both.name, both.detail) == (
        "one more thread + fine-grained threads",
        "threads 1 -> 2, thread_policy coarse -> fine",
    )
    assert both.cycles == makespan(ColumnNpu("c", 260, (fine,)), jobs)
    halved = replace(CORE.latency, **{name: -(-value // 2) for name, value in vars(CORE.latency).items() if value})
    quick = by_names["one more thread", "latencies halved"]
    assert quick.cycles == makespan(ColumnNpu("c", 260, (replace(fine, thread_policy="coarse", latency=halved),)), jobs)
    assert base - quick.saved_cycles == quick.cycles
    helping = {each.name for each in tried.alternatives if each.saved_cycles > 0 or each.utilization > 0.4498}
    assert all(each.pair is not None and helping & set(each.pair) for each in tried.pairs)
    saved = [each.saved_cycles for each in tried.pairs]
    assert saved == sorted(saved, reverse=True)


def test_one_more_core_is_tried_where_several_jobs_may_use_it() -> None:
    for chip in (column(), load_chip("brainwave-s10")):
        made = {each.name: each for each in target_of(chip.kind).changes(chip, JOBS)}
        assert made["one more core"].detail == "cores 1 -> 2"
        assert made["one more core"].chip == replace(chip, cores=chip.cores * 2)
        assert "one more core" not in {each.name for each in target_of(chip.kind).changes(chip, JOBS[:1])}


def _saving(name: str, saved: int, more: float | None = None) -> Alternative:
    price = None if more is None else Price(f"{more}", more)
    return Alternative(name, "", 10_000 - saved, saved, 0.5, price=price)


def test_of_changes_that_save_the_same_the_cheapest_is_named() -> None:
    singles = (_saving("unknown", 100), _saving("dear", 100, 2.9), _saving("cheap", 100, 1.0), _saving("less", 90, 0.0))
    pairs = (_saving("dear pair", 500, 2.9), _saving("cheap pair", 500, 1.0))
    tried = WhatIf(10_000, singles, pairs=pairs)
    assert tried.best is singles[2]
    assert tried.best_pair is pairs[1]


@pytest.mark.parametrize(("saved", "named"), [(1001, False), (1099, False), (1100, True)])
def test_a_pair_is_named_only_if_its_second_half_saves_something_to_speak_of(saved: int, named: bool) -> None:
    tried = WhatIf(10_000, (_saving("one", 1000),), pairs=(_saving("one + other", saved),))
    assert (tried.best_pair is not None) == named
