"""`lstmsim.X`: every public name is there, and every command has a function that does the same."""

from __future__ import annotations

import ast
import json
import pydoc
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.cli.group import COMMANDS
from lstmsim.files.yaml.document import yaml_text
from lstmsim.importers.tensors import write_safetensors
from tests.cli import runner
from tests.core_needed import names_with_core
from tests.studies.board.scenarios import TINY

POISSON = {"kind": "poisson", "rate_per_second": 1e5}
RANDOM: dict[str, Any] = {
    "chip": "column-npu-16k",
    "jobs": [{"model": "lstm-256", "steps": 1, "count": 40, "arrival": POISSON}],
}
PLAIN: dict[str, Any] = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}
SWEEP = {"scenario": PLAIN, "axes": {"ep": {"path": "chip.cores.0.ep", "values": [8, 16, 32]}}}

#: The function of each command whose name is not the command's with `_` for `-`.
NAMES = {"import": "import_model", "list": "list_known", "program": "run_program"}
NAMES |= {"sparse": "run_sparse", "gemm": "run_gemm", "fuse": "run_fusion", "rtl": "run_rtl", "board": "run_board"}


def function_of(command: str) -> str:
    return NAMES.get(command, command.replace("-", "_"))


def printed(*arguments: str) -> Any:
    result = runner.call(*arguments, "--json", "-")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def same(result: Any, *arguments: str) -> None:
    assert json.loads(json.dumps(result)) == printed(*arguments)


def file(name: str, content: dict[str, Any]) -> str:
    Path(name).write_text(yaml_text(content), encoding="utf-8")
    return name


def simulate() -> None:
    made = lstmsim.run(PLAIN).to_dict()
    same(made, "simulate", file("scenario.yaml", PLAIN))
    # The report alone does not know the scenario.
    assert lstmsim.simulate(PLAIN).to_dict().items() <= made.items()


def compare() -> None:
    result = lstmsim.compare(file("scenario.yaml", PLAIN), "column-npu-64k")
    same(result.to_dict(), "compare", "scenario.yaml", "--chip", "column-npu-64k")


def diff() -> None:
    result = lstmsim.diff(file("scenario.yaml", PLAIN), overrides=["jobs.0.steps=4"])
    same(result.to_dict(), "diff", "scenario.yaml", "--set", "jobs.0.steps=4")


def validate() -> None:
    same(lstmsim.validate("brainwave-fitted").to_dict(), "validate", "brainwave-fitted")


def accuracy() -> None:
    result = lstmsim.accuracy(file("scenario.yaml", PLAIN), random_weights=0, bits=[6])
    same(result.to_dict(), "accuracy", "scenario.yaml", "--random-weights", "0", "--bits", "6:6")


def serve() -> None:
    same(lstmsim.serve(file("scenario.yaml", RANDOM)).to_dict(), "serve", "scenario.yaml")


def saturate() -> None:
    result = lstmsim.saturate(file("scenario.yaml", RANDOM), 0.002, tolerance=0.3, most_requests=3000)
    options = ("--bound-ms", "0.002", "--tolerance", "0.3", "--most-requests", "3000")
    same(result.to_dict(), "saturate", "scenario.yaml", *options)


def load_latency() -> None:
    result = lstmsim.load_latency(file("scenario.yaml", RANDOM), loads=[0.2, 0.4], requests=300)
    options = ("--loads", "0.2,0.4", "--requests", "300", "--jobs", "1")
    same(result.to_dict(), "load-latency", "scenario.yaml", *options)


def fit() -> None:
    result = lstmsim.fit(file("scenario.yaml", PLAIN), "stratix-10-gx-2800", with_energy=True)
    same(result.to_dict(), "fit", "scenario.yaml", "--device", "stratix-10-gx-2800", "--energy")


def run_sparse() -> None:
    result = lstmsim.run_sparse("silero-vad-16k:l0", "spmv", prune=0.98, chip="edge", ablate=True)
    arguments = ("--kernel", "spmv", "--prune", "0.98", "--chip", "edge", "--ablate")
    same(result.to_dict(), "sparse", "silero-vad-16k:l0", *arguments)


def run_gemm() -> None:
    result = lstmsim.run_gemm(8, 64, 512, threads=8, ablate=True, settings={"traffic": 4})
    same(result.to_dict(), "gemm", "8", "64", "512", "--threads", "8", "--ablate", "--set", "traffic=4")


def run_fusion() -> None:
    result = lstmsim.run_fusion(
        "figure-4", sizes=["rows=16"], settings={"split_rule": "costed"}, modes=["tvm", "stitch"]
    )
    arguments = ("--size", "rows=16", "--set", "split_rule=costed", "--modes", "stitch,tvm")
    same(result.to_dict(), "fuse", "figure-4", *arguments)


def run_rtl() -> None:
    result = lstmsim.run_rtl(file("scenario.yaml", PLAIN), "design", timing_only=True)
    same(result.to_dict(), "rtl", "scenario.yaml", "--out", "design", "--timing-only")


def run_board() -> None:
    pytest.importorskip("serial", reason="there is no pyserial: pip install 'lstmsim[board]'")
    if shutil.which("iverilog") is None:
        pytest.skip("there is no iverilog: apt install iverilog")
    lstmsim.run_rtl({**TINY, "jobs": TINY["jobs"][1:]}, "board", random_weights=0, board="ulx3s-85f")
    result = lstmsim.run_board("board", simulator="icarus")
    assert result.equal
    assert "EQUAL in every admission and finish" in " ".join(result.to_text().split())
    same(result.to_dict(), "board", "run", "board", "--simulator", "icarus")


def search() -> None:
    result = lstmsim.search(file("scenario.yaml", PLAIN), 4096)
    same(result.to_dict(), "search", "scenario.yaml", "--npe", "4096")


def design() -> None:
    axes = {"chip.cores.0.ep": [4, 8, 16], "chip.cores.0.threads": [1, 2]}
    result = lstmsim.design(file("scenario.yaml", PLAIN), "alveo-u250", minimise=["cycles", "npe"], axes=axes, jobs=1)
    options = ("--axis", "chip.cores.0.ep=4,8,16", "--axis", "chip.cores.0.threads=1,2", "--jobs", "1")
    same(result.to_dict(), "design", "scenario.yaml", "--device", "alveo-u250", "--minimise", "cycles,npe", *options)


def sweep() -> None:
    result = lstmsim.sweep(file("sweep.yaml", SWEEP), "ours", jobs=1)
    called = runner.call("sweep", "sweep.yaml", "--out", "theirs", "--jobs", "1")
    assert called.exit_code == 0, called.output
    assert called.stdout.startswith(result.to_text())
    assert Path("ours/sweep.csv").read_bytes() == Path("theirs/sweep.csv").read_bytes()
    assert [row["ep"] for row in result.to_records()] == [8, 16, 32]


def merge() -> None:
    file("sweep.yaml", SWEEP)
    shards = [lstmsim.sweep("sweep.yaml", "out", jobs=1, shard=(part, 2)).path for part in (1, 2)]
    result = lstmsim.merge("ours.sqlite", shards)
    called = runner.call("merge", "theirs.sqlite", *shards)
    assert called.exit_code == 0, called.output
    assert called.stdout.startswith(result.to_text())
    assert Path("ours.csv").read_bytes() == Path("theirs.csv").read_bytes()


def timeline() -> None:
    lstmsim.save_trace(lstmsim.trace(PLAIN), "trace.csv")
    lstmsim.timeline("trace.csv", "ours.svg", start=10, end=90)
    called = runner.call("timeline", "trace.csv", "--from", "10", "--to", "90", "--out", "theirs.svg")
    assert called.exit_code == 0, called.output
    assert Path("ours.svg").read_bytes() == Path("theirs.svg").read_bytes()


def run_program() -> None:
    run = lstmsim.run(file("scenario.yaml", PLAIN))
    lstmsim.save_program(run, "ours.npz")
    called = runner.call("simulate", "scenario.yaml", "--program", "theirs.npz")
    assert called.exit_code == 0, called.output
    assert Path("ours.npz").read_bytes() == Path("theirs.npz").read_bytes()
    result = lstmsim.run_program(lstmsim.load_program("ours.npz"))
    assert result.makespan_cycles == run.report.makespan_cycles
    same(result.to_dict(), "program", "theirs.npz")


def import_model() -> None:
    tensors = {"weight_ih_l0": np.ones((32, 4)), "weight_hh_l0": np.ones((32, 8))}
    write_safetensors("speech.safetensors", tensors)
    Path("ours").mkdir()
    Path("theirs").mkdir()
    lstmsim.import_model("speech.safetensors", "ours/m.yaml", name="mine", licence="MIT")
    options = ("--out", "theirs/m.yaml", "--name", "mine", "--licence", "MIT")
    called = runner.call("import", "speech.safetensors", *options)
    assert called.exit_code == 0, called.output
    for name in ("m.yaml", "m.safetensors"):
        assert Path("ours", name).read_bytes() == Path("theirs", name).read_bytes()
    with pytest.raises(lstmsim.InputError, match="exists already; force=True replaces it"):
        lstmsim.import_model("speech.safetensors", "ours/m.yaml")


def list_known() -> None:
    same(lstmsim.list_known(), "list")
    same(lstmsim.list_known("devices"), "list", "devices")


def schema() -> None:
    called = runner.call("schema", "chip")
    assert called.exit_code == 0, called.output
    assert json.loads(called.stdout) == json.loads(json.dumps(lstmsim.schema("chip")))


def init() -> None:
    Path("ours").mkdir()
    lstmsim.init("ours/s.yaml")
    called = runner.call("init", "s.yaml")
    assert called.exit_code == 0, called.output
    for name in ("s.yaml", "lstmsim-scenario.schema.json"):
        assert Path("ours", name).read_bytes() == Path(name).read_bytes()


#: A case for each command.
CASES: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        *(
            simulate,
            compare,
            diff,
            validate,
            accuracy,
            serve,
            saturate,
            load_latency,
            fit,
            search,
            design,
            sweep,
            merge,
            timeline,
        ),
        *(run_sparse, run_gemm, run_fusion, run_rtl, run_board, run_program, import_model, list_known, schema, init),
    )
}


@pytest.mark.parametrize(
    "command",
    [
        *names_with_core((each for each in COMMANDS if each != "board"), {"validate", "saturate", "load-latency"}),
        pytest.param("board", marks=pytest.mark.slow),
    ],
)
def test_the_function_does_what_its_command_does(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert callable(getattr(lstmsim, function_of(command)))
    CASES[function_of(command)]()


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(lstmsim.__all__) == lstmsim.__all__
    for name in lstmsim.__all__:
        value = getattr(lstmsim, name)
        assert callable(value), name
        assert value.__doc__, name
    assert set(lstmsim.__all__) <= set(dir(lstmsim))


def test_every_public_name_has_one_home_and_type_checkers_see_the_same() -> None:
    stub = ast.parse(Path(f"{lstmsim.__file__}i").read_text())
    imports = [each for each in stub.body if isinstance(each, ast.ImportFrom)]
    names = [alias.name for each in imports for alias in each.names]
    assert [alias.asname for each in imports for alias in each.names] == names
    assert sorted(names) == lstmsim.__all__
    assert all(len(each.names) == 1 for each in imports)
    assert all(lstmsim._home_of(name) == each.module for each, name in zip(imports, names, strict=True))


def test_no_module_bears_the_name_of_a_function() -> None:
    folder = Path(lstmsim.__file__).parent
    modules = {each.stem for each in folder.iterdir() if each.is_dir() or each.suffix == ".py"}
    assert not modules & set(lstmsim.__all__)


@pytest.mark.slow
def test_a_verb_stays_a_function_whatever_is_imported_first() -> None:
    names = ", ".join(sorted({function_of(each) for each in COMMANDS}))
    code = f"import pkgutil, importlib, lstmsim\nfrom lstmsim import {names}\n"
    code += "for each in pkgutil.iter_modules(lstmsim.__path__, 'lstmsim.'):\n"
    code += "    each.name == 'lstmsim.__main__' or importlib.import_module(each.name)\n"
    code += f"assert all(callable(getattr(lstmsim, each)) for each in {names.split(', ')!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, lstmsim; dir(lstmsim)\n"
    code += "assert not {'numpy', 'matplotlib', 'ruamel', 'pandas', 'click'} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_misspelt_name_says_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'simulte'; did you mean 'simulate'\?"):
        _ = lstmsim.simulte
    with pytest.raises(AttributeError, match=r"no attribute 'qqqqq'$"):
        _ = lstmsim.qqqqq


def test_help_shows_what_there_is() -> None:
    text = pydoc.plain(pydoc.render_doc(lstmsim))
    for name in ("simulate", "load_latency", "import_model", "to_pandas()"):
        assert name in text
    assert "simulate(scenario" in text
