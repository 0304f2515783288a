"""The same jobs on several chips: every number is that of a simulation or of a published row, refusals are told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lstmsim as api
from lstmsim import simulate
from lstmsim.base.errors import InputError
from lstmsim.base.units import cycles_to_ms
from lstmsim.files.published import Measurement, deepbench
from lstmsim.files.scenario.scenario_file import load_chip, load_scenario
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.studies.compare.report import defeats
from lstmsim.studies.compare.run import chips_of
from lstmsim.studies.compare.run import compared as compare

LARGE = ColumnNpu("large", 200, (ColumnCore(npe=1024, ep=8, vp=128, threads=2),))
SMALL = ColumnNpu("small", 100, (ColumnCore(npe=64, ep=4, vp=16), ColumnCore(npe=64, ep=4, vp=16)))
NARROW = ColumnNpu("narrow", 100, (ColumnCore(npe=12, ep=4, vp=3),))
LSTM = Model("lstm", (Layer(cell("lstm"), 32, 48),))
GRU = Model("gru", (Layer(cell("gru"), 40, 24),))
JOBS = (Job("a", LSTM, 6), Job("b", GRU, 4, arrival=30), Job("c", LSTM, 6, arrival=50))


def scenario(*jobs: Job, chip: Chip = LARGE) -> Scenario:
    return Scenario(chip, jobs or JOBS)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_the_whole_scenario_has_the_numbers_of_its_simulations(engine: str) -> None:
    compared = compare(scenario(), [LARGE, SMALL], engine=engine)
    assert [each.name for each in compared.machines] == ["large", "small"]
    assert [each.pes for each in compared.machines] == [1024, 128]
    assert [(each.name, each.jobs, each.macs) for each in compared.workloads] == [
        ("scenario", 3, sum(job.macs for job in JOBS))
    ]
    for entry, chip in zip(compared.entries[0], (LARGE, SMALL), strict=True):
        report = simulate(scenario(chip=chip))
        assert entry.cycles == report.makespan_cycles
        assert entry.ms == cycles_to_ms(report.makespan_cycles, chip.frequency_mhz)
        assert (entry.tops, entry.utilization) == (report.tops, report.utilization)
        assert (entry.mean_latency_ms, entry.p99_latency_ms) == (report.latency_ms.mean, report.latency_ms.p99)
        assert sum(entry.losses.values()) == pytest.approx(1)
        assert entry.losses["useful"] == pytest.approx(report.utilization)
    large, small = compared.entries[0]
    assert large.ms is not None
    assert small.ms is not None
    assert compared.speedup(0, 0) == 1
    assert compared.speedup(0, 1) == large.ms / small.ms
    assert compared.speedup_at_equal_pes(0, 1) == pytest.approx(large.ms / small.ms * 1024 / 128)
    assert compared.tops_per_1000_pes(0, 1) == pytest.approx(small.tops / 128 * 1000)  # type: ignore[operator]


def test_each_takes_one_job_of_each_model_alone_from_cycle_0() -> None:
    jobs = (*JOBS, Job("d", LSTM, 7, cores=(0,)), Job("e", GRU, 4))
    compared = compare(scenario(*jobs), [LARGE, SMALL], each=True)
    assert [each.name for each in compared.workloads] == ["lstm, 6 steps", "gru", "lstm, 7 steps"]
    assert {each.jobs for each in compared.workloads} == {1}
    for row, job in enumerate((JOBS[0], replace(JOBS[1], arrival=0), jobs[3])):
        for column, chip in enumerate((LARGE, SMALL)):
            report = simulate(scenario(job, chip=chip))
            assert compared.entries[row][column].cycles == report.makespan_cycles
    product = 1.0
    for row in range(3):
        product *= compared.speedup(row, 1) or 0
    assert compared.mean_speedup(1) == pytest.approx(product ** (1 / 3))


def test_speedup_is_the_product_of_peak_and_utilization_and_defeats_say_so() -> None:
    jobs = (Job("a", LSTM, 6), Job("b", GRU, 4))
    compared = compare(scenario(*jobs), [SMALL, LARGE, NARROW], each=True)
    (first, second) = defeats(compared, 1)
    assert (first.workload, second.workload) == ("lstm", "gru")
    for each, row in ((first, 0), (second, 1)):
        assert each.times == compared.speedup(row, 1)
        assert each.peak_ratio == 1024 * 200 / (128 * 100)
        assert each.utilization_ratio is not None
        assert each.peak_ratio * each.utilization_ratio == pytest.approx(each.times)
        assert each.losses.split()[0] == compared.entries[row][0].main_loss
    assert defeats(compared, 2) == ()


def test_a_refusal_is_an_entry_unless_no_chip_can_run_it() -> None:
    jobs = (Job("a", LSTM, 6), Job("b", GRU, 4))
    compared = compare(scenario(*jobs), [LARGE, NARROW], each=True)
    refused, runs = compared.entries[0][1], compared.entries[1][1]
    assert not refused.known
    assert "cell 'lstm' has 4 gates and needs vp >= 4, got vp 3" in refused.reason
    assert compared.speedup(0, 1) is None
    assert runs.known
    assert compared.mean_speedup(1) == pytest.approx(compared.speedup(1, 1))
    together = compare(scenario(*jobs), [LARGE, NARROW]).entries[0][1]
    assert not together.known
    with pytest.raises(InputError) as error:
        compare(scenario(*jobs), [NARROW], each=True)
    (mistake,) = error.value.mistakes
    assert mistake.location == "lstm"
    assert mistake.sentence.startswith("none of the chips can run it; narrow: ")


def test_a_core_that_a_chip_lacks_is_refused_and_a_batch_becomes_jobs() -> None:
    bound = scenario(Job("a", LSTM, 3, cores=(1,)), chip=SMALL)
    assert "there is no core 1" in compare(bound, [SMALL, LARGE]).entries[0][1].reason
    intel = load_chip("intel-npu-rtl")
    batched = scenario(Job("a", LSTM, 3, batch=6), chip=intel)
    compared = compare(batched, [intel, LARGE])
    assert compared.entries[0][0].known
    alone = scenario(*[Job(name, LSTM, 3) for name in "abcdef"], chip=LARGE)
    assert compared.entries[0][1].cycles == compare(alone, [LARGE]).entries[0][0].cycles
    assert "batched inferences run as jobs" in compared.entries[0][1].remarks[0]


def test_what_a_chip_says_of_its_kernels_stands_among_the_remarks() -> None:
    edge = load_chip("edge")
    tiny = scenario(Job("a", Model("tiny", (Layer(cell("lstm"), 8, 8),)), 2), chip=edge)
    assert isinstance(edge, ParallelDevice)
    chips = [edge, replace(edge, split_rule="costed"), replace(edge, fusion="on")]
    compared = compare(tiny, chips)
    plain, idle, fused = (set(each.remarks) for each in compared.entries[0])
    (said,) = idle - plain
    assert said == f"{edge.name}: split_rule: costed has no effect: only `fusion: on` splits rows, and fusion is cell."
    (cut,) = fused - plain
    assert cut.startswith(f"{edge.name}: Fusion on, split_rule paper: a step of layer 0 of tiny")
    assert "split_rule: costed has no effect" in " ".join(compared.to_text().split())


def test_clients_of_a_batch_wait_for_its_inferences() -> None:
    batches = (Job("a", LSTM, 3, batch=2), Job("b", GRU, 2, batch=3, after=0), Job("c", LSTM, 1, arrival=9, after=1))
    single = [Job("a", LSTM, 3), Job("a", LSTM, 3)]
    single += [Job("b", GRU, 2, after=after) for after in (0, 1, 1)] + [Job("c", LSTM, 1, arrival=9, after=2)]
    intel = load_chip("intel-npu-rtl")
    compared = compare(scenario(*batches, chip=intel), [LARGE]).entries[0][0]
    assert replace(compared, remarks=()) == compare(scenario(*single), [LARGE]).entries[0][0]


ARRIVALS: list[dict[str, Any]] = [
    {"kind": "poisson", "rate_per_second": 1e5},
    {"kind": "bursty", "on_rate_per_second": 1e6, "mean_on_ms": 0.01, "mean_off_ms": 0.1},
    {"kind": "stream", "frame_ms": 0.02, "start_cycle": 5},
    {"kind": "closed", "clients": 2, "think_ms": 0.03},
    {"kind": "file", "path": "ms.csv"},
    {"kind": "file", "path": "cycles.csv"},
    {"kind": "periodic", "interval_cycles": 900, "jitter_cycles": 300},
]


@pytest.mark.halved
@pytest.mark.parametrize("arrival", ARRIVALS, ids=lambda each: each.get("path", each["kind"]))
def test_what_arrives_by_the_second_does_so_at_the_clock_of_each_chip(
    arrival: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ms.csv").write_text("arrival_ms\n0.01\n0.03\n0.05\n0.08\n")
    Path("cycles.csv").write_text("arrival_cycles\n1000\n3000\n5000\n8000\n")
    core = {"npe": 256, "ep": 8, "vp": 32}
    names = ("own.json", "other.json")
    for name, clock in zip(names, (100, 333.5), strict=True):
        Path(name).write_text(json.dumps({"kind": "column-npu", "frequency_mhz": clock, "cores": [core]}))
    layers = [{"cell": "lstm", "hidden": 32, "input": 32}]
    data = {"chip": names[0], "jobs": [{"model": {"layers": layers}, "steps": 2, "count": 4, "arrival": arrival}]}
    Path("s.json").write_text(json.dumps(data))
    expected = [simulate({**data, "chip": name}).makespan_cycles for name in names]
    in_cycles = arrival["kind"] == "periodic" or arrival.get("path") == "cycles.csv"
    assert (expected[0] == expected[1]) == in_cycles
    for source in (data, "s.json", Path("s.json")):
        assert [each.cycles for each in api.compare(source, [names[1]]).entries[0]] == expected
    # A scenario that has been read knows arrivals in cycles only.
    ready = api.compare(load_scenario(data), [names[1]])
    assert [each.cycles for each in ready.entries[0]] == [expected[0]] * 2


def test_a_chip_on_which_requests_come_too_late_says_so(tmp_path: Path) -> None:
    job = {"model": "lstm-512", "steps": 1, "count": 2, "arrival": {"kind": "stream", "frame_ms": 1e6}}
    data = {"chip": "column-npu-64k", "jobs": [job]}
    core = {"npe": 256, "ep": 8, "vp": 32}
    path = tmp_path / "fast.json"
    path.write_text(json.dumps({"kind": "column-npu", "frequency_mhz": 2000, "cores": [core]}))
    own, fast = api.compare(data, [str(path)]).entries[0]
    assert own.known
    text = "comes as late as cycle 2,000,000,000,000, at most 1,000,000,000,000 are simulated"
    assert fast.reason == f"fast: jobs.0.arrival: job 2 of this entry {text}"


def test_the_row_wise_machines_take_part() -> None:
    model = {"layers": [{"cell": "lstm", "hidden": 256, "input": 256}]}
    jobs = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": model, "steps": 4}]})
    chips = chips_of(jobs, ["brainwave-s10", "intel-npu-rtl"])
    fast, reference = (compare(jobs, chips, engine=engine) for engine in ("fast", "reference"))
    assert fast.entries == reference.entries
    assert [each.pes for each in fast.machines] == [65536, 96000, 67200]
    for column, chip in enumerate(chips):
        assert fast.entries[0][column].cycles == simulate(replace(jobs, chip=chip)).makespan_cycles


def test_published_rows_stand_beside_and_match_all_sizes() -> None:
    models = [
        {"model": "deepbench-lstm-256-150"},
        {"model": "lstm-256", "steps": 150},
        {"model": "deepbench-gru-512-1"},
    ]
    data = {"chip": "column-npu-64k", "jobs": [*models, {"model": "lstm-512", "steps": 7}]}
    loaded = load_scenario(data)
    rows = [row for row in deepbench() if row.design in ("Brainwave BW_S10", "Tesla V100", "Titan Xp")]
    compared = compare(loaded, [loaded.chip], each=True, published=rows)
    assert [each.name for each in compared.machines if each.published] == ["Brainwave BW_S10", "Tesla V100", "Titan Xp"]
    brainwave = compared.machines[1]
    assert (brainwave.pes, brainwave.peak_tops) == (96000, 48.0)
    assert "arXiv:1909.13654" in brainwave.source
    entry = compared.entries[0][1]
    assert (entry.ms, entry.tops, entry.utilization, entry.cycles) == (0.425, 0.37, 0.008, None)
    # One job has published sizes under another name, the other has sizes that nobody published.
    assert compared.entries[1][1] == entry
    assert [each.reason for each in compared.entries[3][1:]] == ["not published"] * 3
    # Titan Xp prints no TOPS: they follow from its latency
    own = next(row for row in rows if row.design == "Titan Xp" and (row.task, row.batch) == ("lstm-256-150", 1))
    assert own.tops is None
    assert own.latency_ms is not None
    assert compared.entries[0][3].tops == pytest.approx(own.operations / own.latency_ms / 1e9, rel=0.005)


@pytest.mark.parametrize("change", [{"hidden": 33}, {"input": 32}, {"steps": 7}, {"batch": 2}, {"cell": "gru"}])
def test_a_published_row_of_other_sizes_does_not_match(change: dict[str, object]) -> None:
    row = Measurement("d", "lstm", 32, 48, 6, 1, 2.0, None, None, None, None, "a paper", "")
    one = scenario(JOBS[0])
    assert len(compare(one, [LARGE], published=[row]).machines) == 2
    assert len(compare(one, [LARGE], published=[replace(row, **change)]).machines) == 1  # type: ignore[arg-type]
    assert len(compare(one, [LARGE], published=[replace(row, latency_ms=None)]).machines) == 1
    several = scenario(JOBS[0], JOBS[0])
    assert len(compare(several, [LARGE], published=[row]).machines) == 1
    both = replace(JOBS[0], model=Model("two ways", (replace(LSTM.layers[0], bidirectional=True),)))
    assert len(compare(scenario(both), [LARGE], published=[row]).machines) == 1


def test_chips_are_named_once() -> None:
    loaded = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]})
    assert [each.name for each in chips_of(loaded, ["column-npu-4x16k"], base="column-npu-16k")] == [
        "column-npu-16k",
        "column-npu-4x16k",
    ]
    names = ["column-npu-64k", "brainwave", "column-npu-16k", "column-npu-16k", "colum-npu-4x16k"]
    with pytest.raises(InputError) as error:
        chips_of(loaded, names)
    same, unknown, twice, near = (str(each) for each in error.value.mistakes)
    assert same == "chip 'column-npu-64k': is the same as the scenario's own chip; expected different chips"
    assert unknown.startswith("no chip called 'brainwave'")
    assert twice == "chip 'column-npu-16k': is named twice; expected different chips"
    assert near.endswith("did you mean 'column-npu-4x16k'?")


def test_a_changed_chip_may_stand_beside_its_preset() -> None:
    data = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    changed = load_scenario(data, ["chip.cores.0.ep=16"])
    compared = compare(changed, chips_of(changed, ["column-npu-64k"]))
    assert [each.name for each in compared.machines] == ["column-npu-64k", "column-npu-64k (2)"]
    assert compared.entries[0][1].cycles == simulate(load_scenario(data)).makespan_cycles
    assert compared.entries[0][0].cycles == simulate(changed).makespan_cycles != compared.entries[0][1].cycles


def test_progress_ends_at_the_number_of_runs() -> None:
    seen: list[tuple[int, int]] = []
    compare(scenario(), [LARGE, SMALL], each=True, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(each, 4) for each in range(1, 5)]
