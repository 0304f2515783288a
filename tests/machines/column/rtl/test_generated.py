"""Files and refusals of a generated NPU."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import pytest

from lstmsim.machines.column import generated
from lstmsim.machines.column.npu import Latency
from lstmsim.machines.column.rtl.plan import Design
from lstmsim.machines.column.rtl.tables import config
from lstmsim.model.numerics.jobs import JobData, JobNumbers, fixed_numbers
from lstmsim.model.numerics.weights import random_network, random_stimulus
from lstmsim.studies.shared.loading import load_scenario
from tests.studies.rtl.drawn import seeded

CORE = {"ep": 4, "vp": 16, "npe": 64, "tail_width": 4}
MODEL = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}

#: 3,072 weights.
LARGE = {"name": "l", "layers": [{"cell": "lstm", "hidden": 24, "input": 8}]}


def _mapping(job: Mapping[str, Any], core: Mapping[str, Any], cores: int = 2, **chip: Any) -> dict[str, Any]:
    described = {"kind": "column-npu", "name": "c", "frequency_mhz": 100, "cores": [{**CORE, **core}] * cores}
    return {"chip": {**described, **chip}, "jobs": [{"name": "j", "model": MODEL, "steps": 2, **job}]}


def _design(mapping: dict[str, Any], with_numbers: bool = False) -> tuple[Design, dict[int, JobNumbers] | None]:
    scenario = load_scenario(mapping)
    numbers = None
    if with_numbers:
        networks = {job.model: random_network(job.model, seed=1) for job in scenario.jobs}
        data = {
            index: JobData(networks[job.model], random_stimulus(job.model, job.steps, index), "", "")
            for index, job in enumerate(scenario.jobs)
        }
        numbers = fixed_numbers(data, scenario.precision)
    return generated.design(scenario, scenario.precision, numbers), numbers


def test_a_job_that_follows_others_is_refused_with_the_key_that_says_so() -> None:
    mapping = _mapping({}, {})
    mapping["jobs"].append({**mapping["jobs"][0], "name": "k", "initial": "j"})
    closed = {"kind": "closed", "clients": 1, "think_ms": 0}
    mapping["jobs"].append({**mapping["jobs"][0], "name": "c", "count": 2, "arrival": closed})
    found = [each.location for each in generated.refusals(load_scenario(mapping), None)]
    assert found == ["job k: initial", "job c #2: arrival"]


@pytest.mark.parametrize(
    ("job", "core", "chip", "place"),
    [
        ({"queue_limit": 1}, {}, {}, "job j: queue_limit"),
        ({"patience": 5}, {}, {}, "job j: patience"),
        ({}, {"ep": 2, "tree_inputs": 4, "cat": 2, "latency": {"add": 2}}, {}, "chip c: cores.0.latency.add"),
        # a block of 8 tiles comes in 7 cycles
        ({"model": LARGE}, {"weight_kib": 1}, {"memory": {"gb_per_s": 8}}, "chip c: memory"),
        ({"model": LARGE, "split": "rows"}, {"weight_kib": 1}, {"memory": {"gb_per_s": 1}}, "chip c: memory"),
    ],
)
def test_what_hardware_cannot_do_is_refused_with_its_key(
    job: dict[str, Any], core: dict[str, Any], chip: dict[str, Any], place: str
) -> None:
    assert [each.location for each in generated.refusals(load_scenario(_mapping(job, core, **chip)), None)][:1] == [
        place
    ]


def test_weights_that_lie_on_some_cores_only_are_refused() -> None:
    mapping = _mapping({"model": LARGE}, {})
    mapping["chip"]["cores"] = [{**CORE, "weight_kib": 3}, CORE]
    mapping["jobs"].append({**mapping["jobs"][0], "name": "k", "model": {**LARGE, "name": "other"}, "cores": [1]})
    assert not generated.refusals(load_scenario(mapping), None)
    mapping["jobs"][1].pop("cores")
    (mistake,) = generated.refusals(load_scenario(mapping), None)
    assert mistake.location == "chip c: weight_kib"


@pytest.mark.parametrize(
    ("job", "core"),
    [({"split": "rows"}, {}), ({"cores": [1]}, {"ep": 2, "tree_inputs": 4, "cat": 2}), ({}, {"weight_kib": 1})],
)
def test_what_plays_no_part_is_taken(job: dict[str, Any], core: dict[str, Any]) -> None:
    """A split over one core, a configurable tail with `add: 1`, weights that fit."""
    cores = 1 if "split" in job else 2
    assert not generated.refusals(load_scenario(_mapping(job, core, cores)), None)


def test_weights_of_two_models_that_take_turns_are_refused_and_one_that_is_streamed_is_not() -> None:
    mapping = _mapping({"model": LARGE, "cores": [0]}, {"weight_kib": 1}, memory={"gb_per_s": 1})
    assert not generated.refusals(load_scenario(mapping), None)
    mapping["jobs"].append({**mapping["jobs"][0], "name": "k", "model": {**LARGE, "name": "other"}, "cores": [1]})
    assert not generated.refusals(load_scenario(mapping), None)
    mapping["jobs"][1]["cores"] = [0]
    (mistake,) = generated.refusals(load_scenario(mapping), None)
    assert mistake.location == "chip c: memory"
    assert "take turns" in mistake.sentence


def test_a_key_of_many_jobs_is_told_once() -> None:
    mapping = _mapping({"patience": 3}, {})
    mapping["jobs"] = [{**mapping["jobs"][0], "name": f"j{i}"} for i in range(5)]
    (mistake,) = generated.refusals(load_scenario(mapping), None)
    assert "(as for 4 more)" in mistake.sentence


def test_a_memory_beyond_the_bus_is_refused_before_a_number_is_computed() -> None:
    wide = {"ep": 256, "npe": 4096}
    scenario = load_scenario(_mapping({"steps": 2**18 + 1, "core": 0}, wide))
    (mistake,) = generated.refusals(scenario, scenario.precision)
    assert "the frames of core 0 need more than the 16,777,216 words" in str(mistake)
    assert not generated.refusals(scenario, None)
    scenario = load_scenario(_mapping({"steps": 2**18, "core": 0}, wide))
    assert not generated.refusals(scenario, scenario.precision)


def _tables(text: str) -> dict[str, list[int]]:
    """The localparams of `npu_config.vh`, entries in their order; a plain number is a list of one."""
    tables = {name: [int(value)] for name, value in re.findall(r"^localparam (\w+) = (\d+);", text, re.M)}
    for bits, name, entries in re.findall(r"^localparam \[(\d+):0\] (\w+) = \{([^}]*)\};", text, re.M):
        words = [re.fullmatch(r"(\d+)'([dh])([0-9a-f]+)", each.strip()) for each in entries.split(",")]
        values = []
        for word in words[::-1]:
            assert word is not None
            assert int(word[1]) == tables[f"{name}_B"][0]
            values.append(int(word[3], 10 if word[2] == "d" else 16))
            assert values[-1] < 1 << int(word[1]), "Verilog would cut it"
        assert int(bits) + 1 == len(words) * tables[f"{name}_B"][0]
        tables[name] = values
    return tables


@pytest.mark.parametrize("seed", range(4))
def test_tables_say_what_the_rows_say(seed: int) -> None:
    mapping = seeded(seed)
    for job in mapping["jobs"]:
        job.pop("initial", None)
    design, _ = _design(mapping)
    tables, rows = _tables(config(design)), design.rows
    assert all(tables[f"{name}_B"][0].bit_count() == 1 for name in tables if f"{name}_B" in tables)
    assert tables["P_BLOCKS"] == [row.blocks for row in rows]
    assert tables["P_WEIGHT_BASE"] == [row.weight_base for row in rows]
    reads = [read for row in rows for read in row.reads]
    bits = tables["R_STRIDE_B"][0]
    assert tables["R_STRIDE"] == [read.stride % (1 << bits) for read in reads]
    # what a row refers to begins where that of the rows before it ends
    assert tables["P_READ"] == [sum(len(each.reads) for each in rows[:i]) for i in range(len(rows))]
    assert tables["P_LAST_READ"] == [sum(len(each.reads) for each in rows[: i + 1]) - 1 for i in range(len(rows))]
    assert tables["R_NEED"] == [sum(len(each.needs) for each in reads[:i]) for i in range(len(reads))]
    firsts = iter(tables["G_ROW"])
    done = 0
    for plan in design.cores:
        for program in plan.programs:
            assert next(firsts) == done
            done += len(program.stages) if program else 0
    # a signal takes all of an entry's bits
    for name, signal in (("R_STRIDE", "W_ELEMENT"), ("V_BASE", "W_ELEMENT"), ("J_STEPS", "W_STEP")):
        assert tables[f"{name}_B"][0] >= tables[signal][0]


@pytest.mark.slow
def test_every_name_of_the_tables_is_read() -> None:
    design, numbers = _design(_mapping({}, {}), with_numbers=True)
    files = generated.files(design, numbers, "1.2.3")
    folder = package_files("lstmsim.machines.column.rtl") / "lanes"
    lanes = "".join(each.read_text() for each in folder.iterdir() if each.name.endswith(".py"))
    read = "".join(text for path, text in files.items() if path.endswith((".v", ".vh")) and "config" not in path)
    read += lanes
    names = _tables(files["rtl/npu_config.vh"])
    assert not [name for name in names if not name.endswith("_B") and not re.search(rf"\b{name}\b", read)]


def test_files_are_whole_and_the_same_each_time() -> None:
    first = generated.files(*_design(_mapping({}, {}), with_numbers=True), "1.2.3")
    second = generated.files(*_design(_mapping({}, {}), with_numbers=True), "1.2.3")
    assert list(first.items()) == list(second.items())
    data = {f"data/{name}.hex" for name in ("weights", "frames", "constants", "tables", "parameters", "initial")}
    assert data | {"README.md", "rtl/npu_top.v", "rtl/npu_tail_lane.v", "sim/npu_tb.v", "sim/run.sh"} <= set(first)
    timing = generated.files(*_design(_mapping({}, {})), "1.2.3")
    assert not [path for path in timing if path.startswith("data/")]
    for path, text in {**first, **timing}.items():
        assert text.endswith("\n") or not text, path
        assert not path.endswith((".v", ".md")) or "\t" not in text
        if path.endswith((".v", ".vh")):
            assert all(len(line) <= 120 for line in text.splitlines()), path


def test_hardware_does_not_ask_the_simulator_for_cycles_of_the_tail() -> None:
    folder = Path(str(package_files("lstmsim.machines.column.rtl")))
    asked = re.compile(r"lstmsim\.machines\.column\.passes\b|\.visible_cycles\(")
    # what the log must say is the simulator's
    hardware = (each for each in folder.rglob("*.py") if each.name != "events.py")
    assert [each.name for each in hardware if asked.search(each.read_text())] == []


def test_hardware_does_not_ask_the_simulator_for_the_latency_of_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    first = generated.files(*_design(_mapping({}, {}), with_numbers=True), "1.2.3")
    monkeypatch.setattr(Latency, "mvm_cycles", lambda latency, ep: 100)
    second = generated.files(*_design(_mapping({}, {}), with_numbers=True), "1.2.3")
    assert [path for path in first if path.startswith(("rtl", "data")) and first[path] != second[path]] == []


def test_a_run_without_lstmsim_ends_hardware_that_stands_still(tmp_path: Path) -> None:
    for name, text in {"iverilog": "", "vvp": 'printf "%s\\n" "$*"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("golden", "sim"):
        (tmp_path / name).mkdir()
    for name in ("golden/events.txt", "events.txt"):
        (tmp_path / name).write_text("C 41 busy\nF 42 0\n")
    (tmp_path / "sim/run.sh").write_text(generated.files(*_design(_mapping({}, {})), "1.2.3")["sim/run.sh"])
    path = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", tmp_path / "sim/run.sh"], env=path, capture_output=True, text=True, check=True)
    assert done.stdout == "-n npu.vvp +limit=1042\nequal\n"


def test_verilog_by_hand_is_short() -> None:
    folder = package_files("lstmsim.machines.column.rtl") / "verilog"
    hand = [*folder.iterdir(), *(folder / "sim").iterdir()]
    lengths = {each.name: len(each.read_text().splitlines()) for each in hand if each.name.endswith((".v", ".vh"))}
    assert lengths["npu_tail.v"] > 100
    assert not {name: length for name, length in lengths.items() if length >= 300}


def test_the_readme_of_a_design_has_its_numbers() -> None:
    design, numbers = _design(_mapping({"arrival": 7}, {}), with_numbers=True)
    text = generated.files(design, numbers, "1.2.3")["README.md"]
    assert "lstmsim 1.2.3" in text
    assert "| 0 | 1 | weights | 8 | 512 |" in text, "two blocks of four groups, 16 rows of 4 weights of 8 bits"
    assert "| sums reach the tail | the first turn's sums have passed the adapter | s + 16 | s + 16 |" in text
    assert "lstm h: its turn + 36" in text
    assert "| 0 | j | m | 2 | 7 | 0 | 0 1 |" in text


@pytest.mark.parametrize(
    ("cells", "latency", "words", "advice"),
    [
        (
            [
                "adapter.adapters[5].lane.select_register.out_Q",
                "x_MULT18X18D_P3",
                "adapter.adapters[5].lane.multiplied_Q",
            ],
            {"convert": 4},
            "adapter product of lane 1",
            "latency.convert of 5 instead of 4 gives this path more registers, and changes cycles",
        ),
        (
            [
                "array.rows[3].row.operand_register_Q",
                "array.rows[3].row.products_of_row.blocks[1].block",
                "array.rows[3].row.cells",
            ],
            {"accumulate": 2},
            "array product of row 3 to accumulator of row 3",
            "no latency: from 2 on, latency.accumulate (now 2) gives this path no other register",
        ),
        (
            ["lanes.core_0.own.g_k0[1].lane.n_c_q_r_Q", "lanes.core_0.own.g_k0[1].lane.n_ct_place_r_Q"],
            {},
            "tail lane 1, add c' to tail lane 1, tanh ct",
            "latency.activation (now 8) is how many registers this has",
        ),
    ],
)
def test_a_path_is_named_by_its_parts_and_the_latency_that_would_shorten_it(
    cells: list[str], latency: dict[str, int], words: str, advice: str
) -> None:
    design, _ = _design(_mapping({}, {"latency": latency}, 1))
    inside = [f"board.system.chip.cores[0].built.core.numbers.datapath.{each}" for each in cells]
    assert generated.path_words(design, inside) == (words, advice)


def test_control_has_no_latency_that_would_shorten_its_path() -> None:
    design, _ = _design(_mapping({}, {}, 1))
    cells = ["board.system.schedule_Q", "board.system.chip.cores[0].built.core.issue.threads[1].thread.ready_Q"]
    words, advice = generated.path_words(design, cells)
    assert words == "host bridge to readiness of thread 1"
    assert advice.startswith("no latency")
