"""The objectives of a sweep: the user chooses any columns, those about the chip included."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.studies.sweep import evaluate
from lstmsim.studies.sweep.run import merge
from lstmsim.studies.sweep.run import sweep as run_sweep
from lstmsim.studies.sweep.spec_file import load_sweep
from lstmsim.studies.sweep.store import Store
from lstmsim.studies.sweep.table import judge
from tests.studies.sweep.specs import CORE, SCENARIO, rows

DEVICE = "stratix-10-gx-2800"
NPE = {"path": "chip.cores.0.npe", "values": [256, 1024]}
EP = {"path": "chip.cores.0.ep", "values": [2, 4, 8]}


def swept(folder: Path, axes: Mapping[str, Any], **others: Any) -> list[dict[str, str]]:
    run_sweep({"scenario": SCENARIO, "axes": axes, **others}, folder, jobs=1)
    return rows(folder)


def front(table: list[dict[str, str]], *names: str) -> list[tuple[str, ...]]:
    return [tuple(row[name] for name in names) for row in table if row["pareto"] == "1"]


def beaten(costs: list[tuple[float, ...]]) -> list[bool]:
    return [any(all(x <= y for x, y in zip(a, b, strict=True)) and a != b for a in costs) for b in costs]


def test_an_idle_chip_is_not_on_the_front_beside_an_equally_fast_smaller_one(tmp_path: Path) -> None:
    # VP stays 32: three quarters of the larger array do nothing.
    table = swept(tmp_path, {"npe": NPE})
    assert table[0]["latency_ms_mean"] == table[1]["latency_ms_mean"]
    assert float(table[1]["utilization"]) == pytest.approx(float(table[0]["utilization"]) / 4)
    assert front(table, "npe") == [("256",)]
    assert {row["objectives"] for row in table} == {"minimise latency_ms_mean, chip_npe"}


def test_threads_of_a_job_are_rivals_and_sizes_of_its_model_are_not(tmp_path: Path) -> None:
    layer = {"cell": "lstm", "hidden": 64, "input": 64}
    scenario = {"chip": "xeon-gold-5122", "jobs": [{"model": {"name": "m", "layers": [layer]}, "steps": 2}]}
    axes = {
        "threads": {"path": "jobs.0.threads", "values": [1, 4]},
        "x": {"path": "jobs.0.model.layers.0.input", "values": [32, 64]},
    }
    run_sweep({"scenario": scenario, "axes": axes}, tmp_path, jobs=1)
    table = rows(tmp_path)
    best = {x: min(float(row["latency_ms_mean"]) for row in table if row["x"] == x) for x in ("32", "64")}
    assert {row["x"] for row in table if row["pareto"] == "1"} == {"32", "64"}
    assert all((row["pareto"] == "1") == (float(row["latency_ms_mean"]) == best[row["x"]]) for row in table)


def test_objectives_are_those_of_the_file_over_any_column(tmp_path: Path) -> None:
    axes = {"npe": NPE, "ep": EP, "vp": {"path": "chip.cores.0.vp", "values": [16, 32]}}
    objectives = {"minimise": ["latency_ms_p99", "dsp"], "maximise": ["utilization", "vp"]}
    table = swept(tmp_path, axes, objectives=objectives, device=DEVICE)
    costs = [
        (float(row["latency_ms_p99"]), float(row["dsp"]), -float(row["utilization"]), -float(row["vp"]))
        for row in table
    ]
    assert [row["pareto"] == "0" for row in table] == beaten(costs)
    assert {row["pareto"] for row in table} == {"0", "1"}
    assert table[0]["objectives"] == "minimise latency_ms_p99, dsp; maximise utilization, vp"


def test_columns_of_the_chip_are_sums_over_its_cores(tmp_path: Path) -> None:
    cores = [{**CORE, "accumulator_banks": 3}, {**CORE, "npe": 512, "threads": 1, "tail_width": 8, "count": 2}]
    scenario = {**SCENARIO, "chip": {**SCENARIO["chip"], "cores": cores}}
    axes = {"npe": {"path": "chip.cores.1.npe", "values": [512, 2048]}}
    table = swept(tmp_path, axes, scenario=scenario)
    names = ("npe", "chip_npe", "threads", "tail_width", "banks")
    assert [tuple(int(row[name]) for name in names) for row in table] == [
        (512, 256 + 2 * 512, 4, 32, 2 * 3 + 2 * 2),
        (2048, 256 + 2 * 2048, 4, 32, 10),
    ]


def test_columns_of_the_device_are_those_of_fit(tmp_path: Path) -> None:
    (row,) = swept(tmp_path, {"ep": {**EP, "values": [8]}}, device=DEVICE)
    answer = lstmsim.fit(SCENARIO, [DEVICE])[0]
    assert (int(row["dsp"]), int(row["m20k"])) == (answer.multipliers.need, answer.memory.need)
    assert (int(row["logic"]), float(row["logic_share"])) == (answer.logic.need, answer.logic.share)
    assert (float(row["dsp_share"]), float(row["m20k_share"])) == (answer.multipliers.share, answer.memory.share)
    assert row["fits"] == str(answer.fits).lower()


def test_without_a_device_nothing_is_counted_on_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.studies.sweep.columns.fit", lambda *_: 1 // 0)
    (row,) = swept(tmp_path, {"ep": {**EP, "values": [8]}})
    assert (row["status"], "dsp" in row) == ("done", False)


def test_points_without_a_number_are_on_no_front_and_counted(tmp_path: Path) -> None:
    axes = {"chip": {"path": "chip", "values": ["column-npu-16k", "intel-npu-rtl"]}}
    table = swept(tmp_path, axes, objectives={"minimise": ["latency_ms_mean", "banks"]})
    assert [row["banks"] for row in table] == ["4", ""]
    assert front(table, "chip") == [("column-npu-16k",)]
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        judged = judge(store)
    assert judged.lacking == {"banks": 1}
    assert judged.lines() == [
        "PARETO FRONT (minimise latency_ms_mean, banks): 1 of 2 points",
        "1 point without banks: on no front",
    ]


@pytest.mark.usefixtures("one_by_one")
def test_other_objectives_simulate_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = {"npe": NPE, "ep": EP}
    first = swept(tmp_path, axes)
    monkeypatch.setattr(evaluate, "simulated", lambda *_: 1 // 0)
    table = swept(tmp_path, axes, objectives={"minimise": "dsp", "maximise": ["tops"]}, device=DEVICE)
    assert [row["makespan_cycles"] for row in table] == [row["makespan_cycles"] for row in first]
    assert all(row["dsp"] for row in table)
    assert table[0]["objectives"] == "minimise dsp; maximise tops"


def test_shards_are_judged_when_they_are_joined(tmp_path: Path) -> None:
    spec = {"scenario": SCENARIO, "axes": {"npe": NPE, "ep": EP}, "objectives": {"minimise": ["ep", "adders"]}}
    whole = swept(tmp_path, spec["axes"], objectives=spec["objectives"])
    for shard in (1, 2):
        run_sweep(spec, tmp_path, jobs=1, shard=(shard, 2))
    halves = [tmp_path / f"sweep-{number}-of-2.sqlite" for number in (1, 2)]
    merge(tmp_path / "all.sqlite", halves)
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "sweep.csv").read_bytes()
    assert front(whole, "ep")
    run_sweep({**spec, "objectives": {"minimise": ["adders"]}}, tmp_path, jobs=1, shard=(2, 2))
    with pytest.raises(InputError, match="is of another sweep"):
        merge(tmp_path / "other.sqlite", halves)


def test_a_number_of_which_a_part_is_not_known_is_no_number(tmp_path: Path) -> None:
    # No source says how many independent products a tensor block takes, which the tail needs.
    device, scenario = "stratix-10-nx-2100", {**SCENARIO, "precision": {"weight_bits": 8, "vector_bits": 8}}
    lower = lstmsim.fit(scenario, [device])[0]
    assert (lower.multipliers.at_least, lower.multipliers.need is None) == (True, False)
    (row,) = swept(tmp_path, {"ep": {**EP, "values": [8]}}, scenario=scenario, device=device)
    assert (row["dsp"], row["dsp_share"], row["fits"]) == ("", "", "")
    assert (int(row["m20k"]), int(row["logic"])) == (lower.memory.need, lower.logic.need)
    objectives = {"minimise": ["latency_ms_mean", "dsp"]}
    swept(tmp_path, {"ep": EP}, scenario=scenario, device=device, objectives=objectives)
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        assert judge(store).lines() == [
            "PARETO FRONT (minimise latency_ms_mean, dsp): 0 of 3 points",
            "3 points without dsp: on no front",
        ]


def test_a_chip_that_another_core_could_not_hold_has_no_count(tmp_path: Path) -> None:
    # The second core has too few rows for four gates: no job runs there, and `fit` wants all cores to hold all models.
    cores = [CORE, {**CORE, "vp": 2}]
    (row,) = swept(
        tmp_path,
        {"ep": {**EP, "values": [8]}},
        scenario={**SCENARIO, "chip": {**SCENARIO["chip"], "cores": cores}},
        device=DEVICE,
    )
    assert (row["status"], row["dsp"], row["fits"]) == ("done", "", "")


MISTAKES = [
    (
        {"objectives": {"minimise": ["latency_p99"]}},
        "objectives.minimise.0: no column called 'latency_p99'; did you mean",
    ),
    ({"objectives": {"minimize": ["ep"]}}, "objectives.minimize: unknown key; did you mean 'minimise'?"),
    ({"objectives": {"minimise": ["ep", "ep"]}}, "objectives.minimise.1: ep is an objective already (minimise ep)"),
    ({"objectives": {"minimise": ["ep"], "maximise": ["ep"]}}, "objectives.maximise.0: ep is an objective already"),
    ({"objectives": {"minimise": []}}, "objectives.minimise: must name at least one column"),
    ({"objectives": {"minimise": 5}}, "objectives.minimise: must be a list of columns of the table, got 5"),
    ({"objectives": {}}, "objectives: must be like {minimise: [latency_ms_p99, npe]"),
    ({"objectives": ["ep"]}, "objectives: must be like"),
    ({"objectives": {"minimise": [3]}}, "objectives.minimise.0: must be a column of the table, got 3"),
    ({"objectives": {"minimise": ["status"]}}, "objectives.minimise.0: no column called 'status'"),
    ({"objectives": {"minimise": ["dsp"]}}, "dsp is counted on an FPGA: name one, for example `device: stratix-10"),
    ({"objectives": {"minimise": ["word"]}}, "word is an axis with a value that is no number ('coarse')"),
    (
        {"device": "stratix-10-gx-280"},
        "device: no device called 'stratix-10-gx-280'; did you mean 'stratix-10-gx-2800'?",
    ),
    ({"device": 5}, "device: must be the name of an FPGA or its file, got 5"),
]


@pytest.mark.parametrize(("keys", "sentence"), MISTAKES)
def test_every_mistake_is_a_sentence(keys: dict[str, Any], sentence: str) -> None:
    word = {"path": "chip.cores.0.thread_policy", "values": ["coarse", "fine"]}
    with pytest.raises(InputError) as caught:
        load_sweep({"scenario": SCENARIO, "axes": {"ep": EP, "word": word}, **keys})
    assert sentence in str(caught.value)


def test_a_device_file_is_found_from_the_sweep_file_and_counts_anew_when_it_changes(tmp_path: Path) -> None:
    from lstmsim.studies.fit.device import device_files

    text = device_files()[DEVICE].read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    model = "{name: m, layers: [{cell: lstm, hidden: 24, input: 24}]}"
    chip = "{kind: column-npu, frequency_mhz: 100, cores: [{npe: 256, ep: 8, vp: 32}]}"
    (tmp_path / "s.yaml").write_text(
        f"scenario: {{chip: {chip}, jobs: [{{model: {model}, steps: 2}}]}}\n"
        "axes: {ep: {path: chip.cores.0.ep, values: [8]}}\ndevice: mine.yaml\nobjectives: {minimise: [dsp_share]}\n"
    )
    shares = []
    for multipliers in ("5760", "576"):
        (tmp_path / "mine.yaml").write_text(text.replace("multipliers: 5760", f"multipliers: {multipliers}"))
        run_sweep(tmp_path / "s.yaml", tmp_path / "out", jobs=1)
        shares.append(float(rows(tmp_path / "out")[0]["dsp_share"]))
    assert shares[1] == pytest.approx(10 * shares[0])
