"""`tools/contract.py`: what it says of cases that are as expected, that differ, that cannot be run or read."""

from __future__ import annotations

import copy
import doctest
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lstmsim.engines import ENGINES
from tools import contract

#: The worked example of docs/timing.md: an LSTM of 512 on ep 32, vp 2048.
CASE: dict[str, Any] = {
    "name": "worked",
    "scenario": {
        "chip": {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 65536, "ep": 32, "vp": 2048}]},
        "jobs": [{"model": {"layers": [{"cell": "lstm", "hidden": 512, "input": 512}]}, "steps": 20}],
    },
    "expect": {
        "makespan_cycles": 1423,
        "jobs": [{"core": 0, "thread": 0, "start": 0, "finish": 1423}],
        "cores": [{"cycles": {"busy": 640, "hazard": 722, "drain": 61}, "macs": 20 * 4 * 512 * 1024}],
    },
}


@pytest.fixture
def outcome(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Any], tuple[int, list[str], str]]:
    """Runs the tool on these cases (or this text): exit code, lines printed, errors."""

    def tried(cases: Any) -> tuple[int, list[str], str]:
        file = tmp_path / "cases.json"
        text = cases if isinstance(cases, str | bytes) else json.dumps(cases)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        code = contract.main([str(file)])
        printed = capsys.readouterr()
        return code, printed.out.splitlines(), printed.err

    return tried


def changed(*path: str | int, value: Any) -> dict[str, Any]:
    """The worked example with something else at that path."""
    case = copy.deepcopy(CASE)
    inner: Any = case
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return case


def test_cases_as_expected(outcome: Callable[[Any], tuple[int, list[str], str]]) -> None:
    zeros = changed("expect", "cores", 0, "cycles", "idle", value=0)
    assert outcome([CASE, zeros]) == (0, ["2 of 2 cases as expected"], "")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("makespan_cycles",), 1422, "makespan_cycles: expected 1422, got 1423"),
        (("jobs", 0, "core"), 1, "jobs.0.core: expected 1, got 0"),
        (("jobs", 0, "thread"), 1, "jobs.0.thread: expected 1, got 0"),
        (("jobs", 0, "start"), 1, "jobs.0.start: expected 1, got 0"),
        (("jobs", 0, "start"), False, "jobs.0.start: expected false, got 0"),
        (("jobs", 0, "finish"), None, "jobs.0.finish: expected null, got 1423"),
        (("jobs", 0, "late"), 3, "jobs.0.late: expected 3, got nothing"),
        (("jobs",), [], "jobs: expected 0 entries, got 1"),
        (("cores", 0, "cycles", "busy"), 641, "cores.0.cycles.busy: expected 641, got 640"),
        (("cores", 0, "cycles", "idle"), 1, "cores.0.cycles.idle: expected 1, got 0"),
        (("cores", 0, "cycles", "drain"), 0, "cores.0.cycles.drain: expected 0, got 61"),
        (("cores", 0, "cycles", "naps"), 7, "cores.0.cycles.naps: expected 7, got 0"),
        (("cores", 0, "macs"), 1, f"cores.0.macs: expected 1, got {20 * 4 * 512 * 1024}"),
        (("cores", 0), {"macs": 20 * 4 * 512 * 1024}, 'cores.0.cycles: expected nothing, got {"busy": 640, "hazard'),
    ],
)
def test_every_difference_is_a_line_for_each_engine(
    outcome: Callable[[Any], tuple[int, list[str], str]], path: tuple[str | int, ...], value: Any, said: str
) -> None:
    code, lines, errors = outcome([CASE, changed("expect", *path, value=value)])
    assert (code, errors, lines[-1]) == (1, "", "1 of 2 cases as expected")
    assert len(lines) == 1 + len(ENGINES)
    for engine, line in zip(ENGINES, lines, strict=False):
        assert line.startswith(f"worked: {engine}: {said}")


def test_one_engine_alone_can_be_wrong(
    outcome: Callable[[Any], tuple[int, list[str], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = contract.result

    def wrong(scenario: Any, engine: str) -> dict[str, Any]:
        simulated = right(scenario, engine)
        return simulated if engine == "fast" else {**simulated, "makespan_cycles": 1424}

    monkeypatch.setattr(contract, "result", wrong)
    line = "worked: reference: makespan_cycles: expected 1423, got 1424"
    assert outcome([CASE]) == (1, [line, "0 of 1 cases as expected"], "")


def test_a_scenario_that_is_refused_differs(outcome: Callable[[Any], tuple[int, list[str], str]]) -> None:
    code, lines, _ = outcome([changed("scenario", "chip", "cores", 0, "ep", value=0), CASE])
    assert (code, lines[-1]) == (1, "1 of 2 cases as expected")
    assert [line.split(": refused: ")[0] for line in lines[:-1]] == [f"worked: {engine}" for engine in ENGINES]
    assert "at least 1" in lines[0]


@pytest.mark.parametrize(
    ("keys", "machine"),
    [
        ({"machine": {}, "kind": "tea"}, "multi-core CPU with cases of this kind"),
        ({"device": {}, "kind": "relief"}, "device with cases of this kind"),
    ],
)
def test_what_was_not_simulated_is_not_as_expected(
    outcome: Callable[[Any], tuple[int, list[str], str]], keys: dict[str, Any], machine: str
) -> None:
    line = f"other: not simulated, for there is no such machine in lstmsim: {machine}"
    assert outcome([{"name": "other", "expect": {}, **keys}, CASE]) == (1, [line, "1 of 2 cases as expected"], "")


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ("[{]", ":1:3: is not JSON"),
        (b"[\xff]", "is not JSON that can be read: 'utf-8'"),
        ("[" * 100_000, "is not JSON that can be read"),
        ('[{"name": "a", "name": "b"}]', "the key 'name' stands twice"),
        ("{}", "must be a list of at least one case, got a value of type dict"),
        ("[]", "must be a list of at least one case, got an empty list"),
        ([7], "0: a case must be a mapping, got a value of type int"),
        ([CASE, {"expect": {}}], "1.name: every case needs a name"),
        ([{"name": "a", "scenario": {}}], "0.expect: case 'a' needs a mapping of what is expected"),
        ([{"name": "a", "expect": {}}], "0: case 'a' has nothing to run: expected 'scenario'"),
        ([{"name": "a", "scenario": "file.yaml", "expect": {}}], "0.scenario: case 'a' needs the keys"),
        ([{"name": "a", "scenario": {}, "expect": {"jobs": []}}], "0.expect.cores: missing in case 'a'"),
    ],
)
def test_files_that_are_no_cases(outcome: Callable[[Any], tuple[int, list[str], str]], cases: Any, said: str) -> None:
    code, lines, errors = outcome(cases)
    assert (code, lines) == (2, [])
    assert said in errors


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([CASE, changed("expect", "makespan_cycles", value=1)]))
    command = [sys.executable, contract.__file__, "cases.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "1 of 2 cases as expected")
    # the process ends with what `main` gives
    monkeypatch.chdir(tmp_path)
    assert contract.main(["missing.json"]) == 2
    assert capsys.readouterr().err == "missing.json: cannot be read: No such file or directory\n"
    assert contract.main(["."]) == 2
    with pytest.raises(SystemExit) as ended:
        contract.main([])
    assert ended.value.code == 2


def test_examples_of_the_tool() -> None:
    outcome = doctest.testmod(contract)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


DATA = Path(__file__).parents[1] / "data"
#: Cases of the multi-core CPU by kind.
CPU_CASES: dict[str, Any] = {
    each["kind"]: each for each in json.loads((DATA / "contract_cases_gemm.json").read_text(encoding="utf-8"))
}


@pytest.mark.parametrize(
    ("kind", "path", "value", "said"),
    [
        ("plan", "machine.mr", 0, "machine.mr: must be a whole number from 1 on, got 0"),
        ("plan", "machine.nr", "6", "machine.nr: must be a whole number from 1 on, got '6'"),
        ("plan", "machine.memory_latency", -1, "machine.memory_latency: must be a whole number from 0 on, got -1"),
        ("plan", "machine.l2_ways", None, "machine.l2_ways: must be a whole number from 1 on, got nothing"),
        ("plan", "machine.fill", [1, 0], "machine.fill: must be two whole numbers from 1 on, got a list"),
        ("plan", "machine.overlap", 1, "machine.overlap: must be true or false, got 1"),
        ("plan", "K", True, "K: must be a whole number from 1 on, got true"),
        ("plan", "threads", 65, "threads: must be at most 64, the cores of the machine, got 65"),
        ("run", "caches", "hot", "caches: must be cold or warm, got 'hot'"),
        ("relief", "threads", 3, "cut: is for 5 threads, but the case has threads 3"),
        ("relief", "cut", 7, "cut: must be a mapping, got 7"),
        ("numbers", "cut.kb", 0, "cut.kb: must be a whole number from 1 on, got 0"),
        ("numbers", "cut.kind", "KN", "cut.kind: must be MN, MK, NK or MNK, got 'KN'"),
        ("numbers", "sub_blocks", [1, 2], "sub_blocks: must be null or 4 whole numbers from 1 on, got a list"),
        ("job", "layers", [[8, 0]], "layers: must be a list of pairs of whole numbers from 1 on, got a list"),
        ("job", "frame_interval", "x", "frame_interval: must be a whole number from 0 on, got 'x'"),
        ("job", "cell", "lsmt", "cell: must be "),
    ],
)
def test_a_wrong_key_of_a_case_of_the_cpu_is_a_sentence(
    outcome: Callable[[Any], tuple[int, list[str], str]], kind: str, path: str, value: Any, said: str
) -> None:
    case = copy.deepcopy(CPU_CASES[kind])
    *outer, last = path.split(".")
    inner = case
    for key in outer:
        inner = inner[key]
    inner[last] = value
    code, lines, errors = outcome([CASE, case])
    assert (code, lines) == (2, [])
    assert f": 1.{said}" in errors
    assert f", in case '{case['name']}'" in errors
    del inner[last]
    assert f": 1.{path}: must be " in outcome([CASE, case])[2]


def test_a_cut_that_leaves_a_part_out_says_so(outcome: Callable[[Any], tuple[int, list[str], str]]) -> None:
    case = copy.deepcopy(CPU_CASES["relief"])
    case["cut"]["kb"] = 1
    code, lines, _ = outcome([case])
    assert code == 1
    assert lines[0].startswith(f"{case['name']}: fast: refused: ")


#: A case of fused kernels, a small one.
FUSED_CASE: dict[str, Any] = json.loads((DATA / "contract_cases_fusion.json").read_text(encoding="utf-8"))[1]


def test_cases_of_fused_kernels(outcome: Callable[[Any], tuple[int, list[str], str]]) -> None:
    wrong = copy.deepcopy(FUSED_CASE)
    wrong["expect"]["plans"][0]["groups"][0]["mapping"]["piece"] += 1
    wrong["expect"]["modes"]["xla"]["read"] += 4
    code, lines, _ = outcome([FUSED_CASE, wrong])
    assert (code, lines[-1]) == (1, "1 of 2 cases as expected")
    assert lines[0] == f"{wrong['name']}: fast: plans.0.groups.0.mapping.piece: expected 513, got 512"
    assert [line.split(": ")[1:3] for line in lines[1:-1]] == [
        ["fast", "modes.xla.read"],
        ["reference", "plans.0.groups.0.mapping.piece"],
        ["reference", "modes.xla.read"],
    ]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("device", "sms"), "80", "device.sms: must be a whole number from 1 on, got '80'"),
        (("device", "split_rule"), "cost", "split_rule: must be paper or costed, got 'cost'"),
        (("device", "block_threads"), 1000, "block_threads: must be a multiple of 32"),
        (("graph", "nodes", 1, "axes"), [7], "nodes.1.axes.0: must be from 0 to 1"),
        (("graph", "nodes", 1, "op"), "reduce_sun", "reduce_sum"),
    ],
)
def test_a_case_of_fused_kernels_that_is_refused_is_a_sentence(
    outcome: Callable[[Any], tuple[int, list[str], str]], path: tuple[str | int, ...], value: Any, said: str
) -> None:
    case = copy.deepcopy(FUSED_CASE)
    inner: Any = case
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    code, lines, _ = outcome([case])
    assert code == 1
    assert lines[0].startswith(f"{case['name']}: fast: refused: ")
    assert said in lines[0]


def test_a_case_of_fused_kernels_without_a_number(outcome: Callable[[Any], tuple[int, list[str], str]]) -> None:
    case = copy.deepcopy(FUSED_CASE)
    del case["device"]["sms"], case["device"]["warp"]
    assert outcome([case])[1][0] == f"{case['name']}: fast: refused: device: has no sms or warp"
