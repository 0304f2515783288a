"""The program as a whole: start-up, versions, errors and exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import Result

from lstmsim import __version__, load_scenario
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.cli.group import COMMANDS, lstmsim
from lstmsim.cli.options import progress, status
from tests.cli.runner import call

PROGRAM = [sys.executable, "-c", "from lstmsim.cli import main; main()"]


def call_that_raises(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> Result:
    def fail() -> None:
        raise error

    monkeypatch.setattr(type(lstmsim), "get_command", lambda *_: click.Command("list", callback=fail))
    return call("list")


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    """One process asks for all of it, so that each command is blamed for what it imports first."""
    heavy = ["numpy", "matplotlib", "ruamel", "simpy", "onnx", "vcd"]
    code = f"""
import sys
from lstmsim.cli.group import COMMANDS, lstmsim
kinds = ("models", "chips", "cells", "policies", "experiments")
for arguments in (["--help"], *([name, "--help"] for name in COMMANDS), *(["list", kind] for kind in kinds)):
    lstmsim.main(arguments, standalone_mode=False)
    found = sorted(set({heavy!r}) & set(sys.modules))
    if found:
        sys.exit(f"{{arguments}} imports {{found}}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage: lstmsim") + done.stdout.count("Usage: -c") >= 1 + len(COMMANDS)


def imported_by(words: list[str], **environment: str) -> tuple[set[str], str]:
    """The modules that a command has imported at its end, and the number of BLAS threads that it asked for."""
    code = f"""
import os, sys
from lstmsim.cli import main
sys.argv = ["lstmsim", *{words!r}]
try:
    main()
except SystemExit as end:
    assert not end.code
print(os.environ.get("OPENBLAS_NUM_THREADS", ""), *sys.modules, file=sys.stderr)
"""
    own = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")} | environment
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True, env=own)
    threads, _, names = done.stderr.splitlines()[-1].partition(" ")
    return set(names.split()), threads


def test_a_simulation_imports_only_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text("chip: column-npu-64k\njobs:\n  - {model: lstm-512, steps: 2}\n")
    names, threads = imported_by(["simulate", str(path)])
    unneeded = {"ruamel.yaml", "numpy.ma", "simpy", "matplotlib", "secrets", "lstmsim.analysis.timeline"}
    assert "lstmsim.engines.fast.run" in names
    assert {each for each in names if each in unneeded or each.startswith("lstmsim.traffic.")} == set()
    assert threads == "1"
    path.write_text(path.read_text().replace("steps: 2", "steps: 2, arrival: {kind: fixed, interval_cycles: 9}"))
    names, threads = imported_by(["simulate", str(path)], OMP_NUM_THREADS="2")
    assert "lstmsim.traffic.arrivals" in names
    assert threads == ""


def test_every_command_is_in_the_help() -> None:
    shown = call("--help").output
    assert all(f"\n  {name} " in shown for name in COMMANDS)


def test_version_is_that_of_the_package() -> None:
    assert call("--version").output.startswith(f"lstmsim {__version__} (Python ")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["simulat"], "simulate"),
        (["tineline"], "timeline"),
        (["simulate", "--jsn"], "--json"),
        (["list", "modls"], "models"),
    ],
)
def test_near_misses_are_named(arguments: list[str], hint: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert result.stdout == ""


def test_every_mistake_is_a_line_and_the_code_is_2(monkeypatch: pytest.MonkeyPatch) -> None:
    mistakes = [Mistake("a.yaml:1:2: chip", "missing"), Mistake("", "and nowhere")]
    result = call_that_raises(InputError(mistakes), monkeypatch)
    assert result.exit_code == 2
    assert result.stderr == "a.yaml:1:2: chip: missing\nError: and nowhere\n"


def test_a_flood_of_mistakes_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    result = call_that_raises(InputError([Mistake(f"line {n}", "bad") for n in range(1000)]), monkeypatch)
    lines = result.stderr.splitlines()
    assert len(lines) < 100
    assert lines[-1] == f"... and at least {1000 - (len(lines) - 1)} more mistakes"


def test_a_file_is_left_after_its_first_hundred_mistakes() -> None:
    with pytest.raises(InputError) as reported:
        load_scenario({"chip": "column-npu-16k", "jobs": [1] * 5000})
    assert [str(each) for each in reported.value.mistakes] == [
        f"jobs.{index}: must be a mapping of keys to values, got 1" for index in range(100)
    ]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (LstmsimError("the disk is full"), 1, "Error: the disk is full\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (MemoryError(), 1, "memory"),
        (OSError(5, "Input/output error", "a.png"), 1, "a.png: Input/output error"),
        (ZeroDivisionError("oh\nno"), 1, "internal error: ZeroDivisionError: oh no; please report"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_other_errors_are_a_line_too(
    error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # Standard output is given up after a broken pipe: not that of the test run.
    monkeypatch.setattr("lstmsim.cli.group._abandon_stdout", lambda: None)
    result = call_that_raises(error, monkeypatch)
    assert result.exit_code == code
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == (1 if words else 0)


def test_the_traceback_is_there_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LSTMSIM_DEBUG", "1")
    result = call_that_raises(ZeroDivisionError("oh"), monkeypatch)
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["list", "cells"], ["--help"]])
def test_a_full_standard_output_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["Error: standard output: No space left on device"]


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_a_reader_that_has_gone_is_no_news() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*PROGRAM, "list", "cells"], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="descriptors as POSIX has them")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["list", "cells"], 0, ""),
        (["--version"], 0, ""),
        (["list", "cells", "--json", "list.json"], 0, ""),
        (["list", "cells", "--json", "-"], 2, "--json -: standard output is closed\n"),
    ],
)
def test_a_closed_standard_output_is_no_error_of_ours(
    arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, *arguments]
    path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(shell, cwd=tmp_path, env=os.environ | path, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, message)
    assert (tmp_path / "list.json").exists() == ("list.json" in arguments)


def test_without_a_standard_error_the_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with status("working"), progress("working") as show:
        assert show is None


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_an_interrupt_ends_with_a_word_and_without_files(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text('{"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 2}]}')
    # a shell starts background jobs of scripts with SIGINT ignored, which a process hands on to those that it starts
    code = """
import signal
import time
from lstmsim import engines
from lstmsim.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
def run(*_, **__):
    print("running", flush=True)
    time.sleep(600)
engines.run = run
main()
"""
    command = [
        sys.executable,
        "-c",
        code,
        "simulate",
        str(scenario),
        "--engine",
        "reference",
        "--trace",
        str(tmp_path / "trace.csv"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        rest, message = process.communicate()
    assert (process.returncode, rest, message) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == [scenario]


@pytest.mark.slow
@pytest.mark.needs_core
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_an_interrupt_is_heard_while_the_core_runs(tmp_path: Path) -> None:
    """The core alone would run for 15 seconds and more: it comes back every so many events."""
    scenario = tmp_path / "scenario.json"
    core = '{"npe": 65536, "ep": 32, "vp": 2048, "threads": 4, "thread_policy": "fine"}'
    chip = f'{{"kind": "column-npu", "frequency_mhz": 260, "cores": [{core}]}}'
    # frames come one by one: so no step is left out because it is like those before it
    job = '{"model": "lstm-1024", "steps": 150000, "count": 40, "frame_interval": 1}'
    scenario.write_text(f'{{"chip": {chip}, "jobs": [{job}]}}')
    code = """
import signal
from lstmsim.cli import main
from lstmsim.engines.fast.run import Machine
signal.signal(signal.SIGINT, signal.default_int_handler)
def announced(*arguments, run=Machine.run):
    Machine.run = run
    print("running", flush=True)
    return run(*arguments)
Machine.run = announced
main()
"""
    command = [sys.executable, "-c", code, "simulate", str(scenario)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        rest, message = process.communicate()
        seconds = time.monotonic() - sent
    assert (process.returncode, rest, message) == (130, "", "interrupted\n")
    assert seconds < 2
