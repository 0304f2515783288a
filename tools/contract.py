"""Run the cases of a timing contract on both engines and say where results differ from what the cases expect.

    python tools/contract.py FILE

The file is a JSON list of cases. A case has a `name`, a `scenario` (the keys of a scenario file) and what is expected
of it: `makespan_cycles`, `jobs` (each with `core`, `thread`, `start`, `finish`) and `cores` (each with `cycles` by name
and `macs`). A name of cycles that one side leaves out counts 0 there; everything else has to stand on both sides.
A case with a `device` and a `kind` of `tools/contract_sparse.py` is one of the parallel device, one with a `device` and
a `graph` of its fused kernels (`tools/contract_fusion.py`); a case with a `machine` and a `kind` of
`tools/contract_gemm.py` is one of the multi-core CPU. A file of EdgeDRNN is a mapping with `cases`, each with its
`case` and what is `expected` of numbers and cycles (`tools/contract_edgedrnn.py`).

A case of batching has a `scenario` and what is `expected`: `jobs`, `batches`, `makespan` and, of the column-wise NPU,
`cores` (`tools/contract_batching.py`).

Each difference is a line, with the case, the engine and the key. The last line is `N of M cases as expected`. A case of
a machine that lstmsim does not have is no case as expected, and a line says which machine is missing: nothing that was
not simulated passes. A scenario that lstmsim refuses is a difference too.

Exit code: 0 if all cases are as expected, 1 if any is not, 2 if the file cannot be read as such a list (nothing is
simulated then).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# so that the tool runs from everywhere
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lstmsim import run
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.engines import ENGINES
from tools import (
    contract_batching,
    contract_edgedrnn,
    contract_fusion,
    contract_gemm,
    contract_gemm_keys,
    contract_sparse,
)

__all__ = ["differences", "main", "missing_machine", "read_cases", "result"]

#: What every expectation of a scenario holds.
EXPECTED = ("makespan_cycles", "jobs", "cores")
#: Keys that tell a case of another machine, and that machine. The first line whose keys a case has is meant.
MISSING_MACHINES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"device"}), "device with cases of this kind"),
    (frozenset({"machine"}), "multi-core CPU with cases of this kind"),
)
#: Stands for a value that is not there.
_NOTHING = object()


def result(scenario: Mapping[str, Any], engine: str) -> dict[str, Any]:
    """What the engine makes of the scenario, laid out as the `expect` of a case.

    scenario: the keys of a scenario file.
    engine: a key of `lstmsim.engines.ENGINES`.
    Raises `LstmsimError` where the scenario is refused.

    >>> cores = [{"npe": 65536, "ep": 32, "vp": 2048}]
    >>> chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": cores}
    >>> model = {"layers": [{"cell": "lstm", "hidden": 512, "input": 512}]}
    >>> result({"chip": chip, "jobs": [{"model": model, "steps": 20}]}, "fast")["jobs"]
    [{'core': 0, 'thread': 0, 'start': 0, 'finish': 1423}]
    """
    report = run(scenario, engine=engine).report
    return {
        "makespan_cycles": report.makespan_cycles,
        "jobs": [
            {"core": job.core, "thread": job.thread, "start": job.start, "finish": job.finish} for job in report.jobs
        ],
        "cores": [{"cycles": dict(core.cycles), "macs": core.macs} for core in report.cores],
    }


def differences(case: Mapping[str, Any], engine: str) -> list[str]:
    """A line for each difference between the case's expectation and the engine's result; none if all is as expected.

    case: has an `expect` and a `scenario`, or what the tool of another machine needs.
    engine: a key of `lstmsim.engines.ENGINES`.
    """
    try:
        if _of_edgedrnn(case):
            return contract_edgedrnn.differences(case["edgedrnn"], case["expect"], engine)
        if "expected" in case:
            return list(_different(_whole(case["expect"]), _whole(contract_batching.result(case, engine)), ()))
        if _of_device(case):
            return list(_different(case["expect"], contract_sparse.result(case, engine), ()))
        if _of_graph(case):
            return list(_different(case["expect"], contract_fusion.result(case, engine), ()))
        if _of_cpu(case):
            return list(_different(case["expect"], contract_gemm.result(case, engine), ()))
        simulated = result(case["scenario"], engine)
    except LstmsimError as error:
        return [f"refused: {'; '.join(str(error).splitlines())}"]
    return list(_different(_whole(case["expect"]), _whole(simulated), ()))


def _whole(value: Any, key: object = None) -> Any:
    """The same without names of cycles that count 0."""
    if isinstance(value, Mapping):
        inner = {name: _whole(each, name) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each != 0} if key == "cycles" else inner
    return [_whole(each) for each in value] if isinstance(value, list) else value


def _different(expected: Any, simulated: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Lines for all leaves below `path` that differ."""
    if isinstance(expected, dict) and isinstance(simulated, dict):
        for key in [*expected, *(key for key in simulated if key not in expected)]:
            yield from _different(expected.get(key, _NOTHING), simulated.get(key, _NOTHING), (*path, str(key)))
    elif isinstance(expected, list) and isinstance(simulated, list):
        if len(expected) != len(simulated):
            yield f"{'.'.join(path)}: expected {len(expected)} entries, got {len(simulated)}"
        for number, (one, other) in enumerate(zip(expected, simulated, strict=False)):
            yield from _different(one, other, (*path, str(number)))
    elif expected != simulated or isinstance(expected, bool) != isinstance(simulated, bool):
        yield f"{'.'.join(path)}: expected {_shown(expected, path)}, got {_shown(simulated, path)}"


def _shown(value: Any, path: tuple[str, ...]) -> str:
    if value is _NOTHING:
        return "0" if "cycles" in path[:-1] else "nothing"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_cases(path: str) -> list[dict[str, Any]]:
    """The cases of a file, each with a name and either a scenario with its expectation or another machine's keys.

    path: of a JSON file.
    Raises `InputError` with every mistake if the file is not laid out as the docstring of this file says.
    """
    try:
        cases = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_without_doubles)
    except OSError as error:
        raise InputError(Mistake(path, f"cannot be read: {error.strerror or error}")) from error
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise InputError(Mistake(place, f"is not JSON: {error.msg}")) from error
    except (ValueError, RecursionError) as error:
        raise InputError(Mistake(path, f"is not JSON that can be read: {error}")) from error
    if isinstance(cases, dict) and isinstance(cases.get("cases"), list):
        cases = [_edgedrnn(each) for each in cases["cases"]]
    if isinstance(cases, list):
        cases = [contract_batching.laid_out(each) for each in cases]
    if not isinstance(cases, list) or not cases:
        what = "an empty list" if cases == [] else f"a value of type {type(cases).__name__}"
        raise InputError(Mistake(path, f"must be a list of at least one case, got {what}"))
    mistakes = [Mistake(f"{path}: {place}", text) for place, text in _mistakes(cases)]
    if mistakes:
        raise InputError(mistakes)
    return cases


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping; of a key that stands twice the second value would silently win."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise ValueError(f"the key {twice!r} stands twice in the same mapping")
    return mapping


def _mistakes(cases: list[Any]) -> Iterator[tuple[str, str]]:
    for number, case in enumerate(cases):
        if not isinstance(case, dict):
            yield str(number), f"a case must be a mapping, got a value of type {type(case).__name__}"
        elif not isinstance(case.get("name"), str):
            yield f"{number}.name", "every case needs a name (a text)"
        elif not isinstance(case.get("expect"), dict):
            yield f"{number}.expect", f"case {case['name']!r} needs a mapping of what is expected"
        elif "scenario" not in case and not _machine(case):
            known = "'scenario', or the keys of a machine that lstmsim does not have yet: 'machine' or 'device'"
            yield str(number), f"case {case['name']!r} has nothing to run: expected {known}"
        elif "scenario" in case:
            if not isinstance(case["scenario"], dict):
                yield f"{number}.scenario", f"case {case['name']!r} needs the keys of a scenario file"
            needed = contract_batching.EXPECTED if "expected" in case else EXPECTED
            for key in (key for key in needed if key not in case["expect"]):
                yield f"{number}.expect.{key}", f"missing in case {case['name']!r}"
        elif _of_edgedrnn(case):
            for key, text in contract_edgedrnn.mistakes_of(case["edgedrnn"]):
                yield f"{number}.case.{key}", f"{text}, in case {case['name']!r}"
        elif _of_cpu(case) and "error" not in case["expect"]:
            for key, text in contract_gemm_keys.mistakes_of(case):
                yield f"{number}.{key}", f"{text}, in case {case['name']!r}"


def _edgedrnn(each: Any) -> Any:
    """A case of EdgeDRNN as all other files lay out theirs; anything else stays as it is."""
    if not isinstance(each, dict) or not isinstance(each.get("case"), dict):
        return each
    return {"name": each["case"].get("name"), "edgedrnn": each["case"], "expect": each.get("expected")}


def _of_edgedrnn(case: Mapping[str, Any]) -> bool:
    """Whether it is a case of EdgeDRNN."""
    return isinstance(case.get("edgedrnn"), dict)


def _of_device(case: Mapping[str, Any]) -> bool:
    """Whether it is a case of the parallel device."""
    return isinstance(case.get("device"), dict) and case.get("kind") in {"device", *contract_sparse.KINDS}


def _of_graph(case: Mapping[str, Any]) -> bool:
    """Whether it is a case of fused kernels."""
    return isinstance(case.get("device"), dict) and isinstance(case.get("graph"), dict) and "kind" not in case


def _of_cpu(case: Mapping[str, Any]) -> bool:
    """Whether it is a case of the multi-core CPU."""
    return isinstance(case.get("machine"), dict) and case.get("kind") in contract_gemm.KINDS


def _machine(case: Mapping[str, Any]) -> str:
    if _of_edgedrnn(case):
        return "EdgeDRNN"
    if _of_device(case) or _of_graph(case):
        return "parallel device"
    if _of_cpu(case):
        return "multi-core CPU"
    return next((name for keys, name in MISSING_MACHINES if keys <= case.keys()), "")


def missing_machine(case: Mapping[str, Any]) -> str:
    """The machine that the case is about, if lstmsim does not have it; else an empty text.

    case: as `read_cases` gives it.

    >>> missing_machine({"name": "a", "machine": {"cores": 64}, "kind": "tea", "expect": {}})
    'multi-core CPU with cases of this kind'
    """
    known = _of_device(case) or _of_graph(case) or _of_cpu(case) or _of_edgedrnn(case)
    return "" if "scenario" in case or known else _machine(case)


def main(arguments: list[str] | None = None) -> int:
    """Runs every case of a file and prints what differs; the exit code.

    arguments: those of the command line, without the program's name (None: of this process).
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", metavar="FILE", help="a JSON list of cases")
    path = parser.parse_args(arguments).file
    try:
        cases = read_cases(path)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    good = 0
    for case in cases:
        machine = missing_machine(case)
        if machine:
            lines = [f"not simulated, for there is no such machine in lstmsim: {machine}"]
        else:
            lines = [f"{engine}: {line}" for engine in ENGINES for line in differences(case, engine)]
        for line in lines:
            print(f"{case['name']}: {line}", flush=True)
        good += not lines
    print(f"{good} of {len(cases)} cases as expected")
    return 0 if good == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
