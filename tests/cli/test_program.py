"""`lstmsim program`, and the option of `simulate` that writes what it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.base.errors import DeadlockError, InputError
from lstmsim.files.yaml.document import yaml_text
from lstmsim.program.flat import flat_program
from lstmsim.program.flatten import flat_of
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Buffer, Core, Phase, Program, Task, Unit
from tests.cli.runner import call

SCENARIO: dict[str, Any] = {
    "chip": "column-npu-4x16k",
    "jobs": [{"name": "speech", "model": "gru-512", "steps": 3, "count": 30}, {"model": "lstm-256", "steps": 2}],
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(yaml_text(SCENARIO), encoding="utf-8")


def done(*arguments: str) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.needs_core
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_kept_program_gives_the_cycles_and_the_trace_of_its_scenario(engine: str) -> None:
    report = json.loads(done("simulate", "s.yaml", "--program", "p.npz", "--trace", "ours.csv", "--json", "-"))
    data = json.loads(done("program", "p.npz", "--engine", engine, "--trace", "theirs.csv", "--json", "-"))
    assert Path("ours.csv").read_bytes() == Path("theirs.csv").read_bytes()
    assert (data["chip"], data["frequency_mhz"]) == (report["chip"], report["frequency_mhz"])
    assert data["engine"] == engine
    assert data["makespan_cycles"] == report["makespan_cycles"]
    for ours, theirs in zip(report["cores"], data["cores"], strict=True):
        assert ours["macs"] == theirs["macs"]
        assert ours["cycles"] == {name: theirs["cycles"][name] for name in ours["cycles"]}
    for job, task in zip(report["jobs"], data["tasks"], strict=True):
        assert {key: job[key] for key in task} == task


@pytest.mark.needs_core
def test_the_text_says_what_is_in_the_program() -> None:
    done("simulate", "s.yaml", "--program", "p.npz")
    text = done("program", "p.npz")
    totals = lstmsim.run_program("p.npz").totals
    answer = f"makespan {totals.makespan_cycles:,} cycles, {totals.issues.sum():,} issues"
    chip = "column-npu-4x16k at 260 MHz, engine fast"
    assert text.startswith(f"{answer}\n\n{chip}\nPROGRAM: cores 4, units 8, tasks 31, bodies ")
    program = lstmsim.load_program("p.npz").program
    assert f"operations {sum(operations(task) for task in program.tasks):,}\n" in text
    assert text.endswith("\n... and 11 more tasks; --json FILE has them\n")


def operations(task: Task) -> int:
    return sum(len(phase.body.operations) * phase.repeat for phase in task.variants[0][1])


def program(*operations: Operation, **more: Any) -> Program:
    task = Task("t", ((0, (Phase(Body(operations), 2),)),), ((0, (Buffer("banks", 1),)),), (0,), **more)
    return Program((Core(0, (Unit("array", "coarse"),)),), (task,))


def test_a_task_that_is_rejected_has_no_core_and_no_finish() -> None:
    long, late = program(Operation(0, cycles=50, result_cycles=50)), program(Operation(0), queue_limit=0, release=1)
    result = lstmsim.run_program(Program(long.cores, (*long.tasks, *late.tasks)))
    (_, row) = result.to_records()
    assert (row["core"], row["thread"], row["start"], row["finish"], row["arrival"]) == (None, None, None, None, 1)
    assert "t        -       -        1      -       -" in result.to_text()


def test_tables_written_with_numpy_are_kept_and_run() -> None:
    flat = flat_of(program(Operation(0, count=5)))
    lstmsim.save_program(flat, "p.npz")
    assert lstmsim.load_program("p.npz").flat == flat
    assert "t0" in done("program", "p.npz")
    assert lstmsim.run_program(flat).makespan_cycles == 10


def test_programs_that_break_rules_are_input_at_fault() -> None:
    for wrong in (program(Operation(3)), flat_of(program(Operation(3)))):
        with pytest.raises(InputError, match=r"^program: task t0?: kind 0, phase 0, operation 0: unit 3 does"):
            lstmsim.run_program(wrong)
    with pytest.raises(InputError, match=r"^program: table head: its names of cycles are not those"):
        lstmsim.save_program(flat_program({}), "p.npz")
    lstmsim.save_program(flat_of(program(Operation(3))), "p.npz")
    result = call("program", "p.npz")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("p.npz: task t0: kind 0, phase 0, operation 0: unit 3 does not exist")
    for engine in ("fast", "reference"):
        with pytest.raises(DeadlockError, match=r"task t: operation on unit 0 waits for a free slot of buffer 0"):
            lstmsim.run_program(program(Operation(0, takes=0)), engine=engine)


@pytest.mark.needs_core
def test_a_trace_that_is_too_long_to_keep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.studies.simulate.run.MAX_TRACE_OPERATIONS", 3)
    assert len(lstmsim.run_program(program(Operation(0))).trace.issues) == 2
    result = lstmsim.run_program(program(Operation(0), Operation(0)))
    with pytest.raises(InputError, match="a trace of 4 operations is too long to keep, at most 3 are recorded"):
        _ = result.trace


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["no.npz"], "no.npz: no such file or folder"),
        (["s.yaml"], "s.yaml: is no .npz file, expected a program, as lstmsim.save_program writes it"),
        (["p.npz", "--trace", "a.xls"], "--trace a.xls: expected a file name that ends in"),
        (["p.npz", "--engine", "slow"], "'slow' is not one of"),
        (["p.npz", "--json", "no/a.json"], "there is no folder"),
    ],
)
def test_refused(arguments: list[str], reported: str) -> None:
    lstmsim.save_program(program(Operation(0)), "p.npz")
    result = call("program", *arguments)
    assert result.exit_code == 2
    assert reported in result.stderr
    with pytest.raises(InputError, match="save_program: expects a Run, a Program or a FlatProgram"):
        lstmsim.save_program(np.zeros(3), "p.npz")  # type: ignore[arg-type]


def test_only_npz_is_a_name_for_a_program() -> None:
    result = call("simulate", "s.yaml", "--program", "p.json")
    assert result.exit_code == 2
    assert "--program p.json: expected a file name that ends in .npz" in result.stderr


@pytest.mark.needs_core
def test_the_text_of_many_cores_is_short_and_has_no_names_that_do_not_occur() -> None:
    layers = [{"cell": "rnn", "hidden": 8, "input": 8}]
    scenario = {"chip": "v100", "jobs": [{"name": "a", "model": {"layers": layers}, "steps": 1}]}
    Path("v.yaml").write_text(yaml_text(scenario), encoding="utf-8")
    done("simulate", "v.yaml", "--program", "v.npz")
    text = done("program", "v.npz")
    cores = text.split("\n\n")[2].splitlines()
    assert len(cores) == 23
    assert cores[-1] == "... and 63 more cores; --json FILE has them"
    assert "memory" in cores[1]
    assert not {"switch", "hazard", "backpressure", "input"} & set(cores[1].split())


@pytest.mark.needs_core
def test_a_name_that_no_row_of_a_trace_can_have_is_a_mistake_of_the_file() -> None:
    unit = Unit("ALU 0", "fifo")
    task = Task("t", ((0, (Phase(Body((Operation(0), Operation(1))), 1),)),), (), (0,))
    lstmsim.save_program(Program((Core(0, (Unit("array", "coarse"), unit)),), (task,)), "p.npz")
    result = call("program", "p.npz", "--trace", "t.csv")
    assert result.exit_code == 2
    assert "p.npz: core 0: no unit can be called 'ALU 0': a name is 1 to 30 lower-case letters" in result.stderr
    assert not Path("t.csv").exists()
