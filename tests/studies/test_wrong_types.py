"""Every public function with a value of a wrong type for one argument at a time: a sentence, and nothing else."""

from __future__ import annotations

import functools
import inspect
import signal
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf, nan
from numbers import Real
from pathlib import Path
from typing import Any, NewType, Union, get_args, get_origin

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.base.keys import keys_of, unwrapped
from lstmsim.studies.shared.request import hint_of

FUNCTIONS = [name for name in lstmsim.__all__ if isinstance(getattr(lstmsim, name), types.FunctionType)]
PLAIN: dict[str, Any] = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}
POISSON = {"kind": "poisson", "rate_per_second": 1e5}
RANDOM = {**PLAIN, "jobs": [{"model": "lstm-256", "steps": 1, "count": 3, "arrival": POISSON}]}
SPEC = {"scenario": PLAIN, "axes": {"ep": {"path": "chip.cores.0.ep", "values": [16]}}}
PRODUCT: dict[str, Any] = {"m": 8, "n": 8, "k": 8, "baselines": False, "numbers": False}

HUGE = 10**400
WRONG = [None, 3.5, "x", "", "\0", "\ud800", b"x", [], {}, {3: 4}, [None], ["x"], ("x",), [[]], object(), print, True]
WRONG += [nan, inf, -1, HUGE]
#: Arguments that the sentence calls by the thing that they name.
CALLED = {"source": ("scenario", "graph"), "sizes": ("size",)}
#: Of a picture of nothing, that comes first.
CALLED |= dict.fromkeys(("percentile", "cdf_at"), ("curves",))


@functools.cache
def run() -> Any:
    return lstmsim.run(PLAIN)


@functools.cache
def product() -> Any:
    return lstmsim.run_gemm(**PRODUCT, threads=1)


@functools.cache
def simulated_kernels() -> Any:
    """A report with the times of its kernels."""
    return lstmsim.run_fusion("softmax", sizes={"rows": 8}, numbers=False)


@functools.cache
def fused() -> Any:
    return lstmsim.run_fusion("softmax", cycles=False, numbers=False, modes=["op", "stitch"])


@functools.cache
def designed() -> Any:
    return lstmsim.design(PLAIN, "none", axes={"chip.cores.0.ep": [8, 16]}, jobs=1)


#: Right values of arguments; by the function where they are not the same for all.
RIGHT: dict[str, Callable[[], Any]] = {
    **{name: (lambda: PLAIN) for name in ("scenario", "source")},
    **dict.fromkeys(("result", "timeline", "a", "b"), run),
    **{name: (lambda: None) for name in ("model", "module", "imported", "outputs", "report", "comparison", "curves")},
    **{name: (lambda: None) for name in ("swept", "graph", "diff", "found")},
    "fits": lambda: lstmsim.fit(PLAIN, "ecp5-85"),
    "kind": lambda: "model",
    "name": lambda: "lstm-256",
    "path": lambda: "t.json",
    "file": lambda: "network.onnx",
    "trace": lambda: "t.json",
    "out": lambda: "merged.sqlite",
    "inputs": lambda: ["shard.sqlite"],
    "threads": lambda: [1],
    "folder": lambda: "out",
    "npe": lambda: 16384,
    "device": lambda: "none",
    "program": lambda: "p.npz",
    "spec": lambda: SPEC,
}
OF: dict[str, Callable[[], dict[str, Any]]] = {
    "cell": lambda: {"name": "lstm"},
    "outputs": lambda: {"random_weights": 0},
    "run_sparse": lambda: {"matrix": "m.mtx", "baselines": False},
    "load_chip": lambda: {"name": "edge"},
    "design": lambda: {"axes": {"chip.cores.0.ep": [8, 16]}, "jobs": 1},
    "plot_design": lambda: {"result": designed()},
    "load_graph": lambda: {"source": "softmax"},
    "load_program": lambda: {"path": "p.npz"},
    "save_program": lambda: {"program": run(), "path": "p2.npz"},
    "save_report": lambda: {"path": "r.html"},
    "serve": lambda: {"scenario": RANDOM},
    "saturate": lambda: {"scenario": RANDOM, "bound_ms": 1.0, "tolerance": 0.9, "most_requests": 10},
    "saturate_chips": lambda: {"scenario": RANDOM, "bound_ms": 1.0, "tolerance": 0.9, "most_requests": 10},
    "load_latency": lambda: {"scenario": RANDOM, "loads": [0.3], "requests": 50},
    "run_gemm": lambda: {**PRODUCT, "threads": 1},
    "run_gemm_threads": lambda: {"m": 8, "n": 8, "k": 8, "baselines": False},
    "save_result": lambda: {"report": product(), "path": "r.npy"},
    "plot_threads": lambda: {"report": product()},
    "run_fusion": lambda: {"graph": "softmax", "cycles": False, "numbers": False},
    "plot_fusion": lambda: {"report": fused()},
    "plot_kernels": lambda: {"report": simulated_kernels()},
    "validate": lambda: {"groups": ["brainwave-fitted"]},
}


def right(function: str) -> dict[str, Any]:
    """Right values for the arguments that have no default, and for those that make it quick."""
    own = OF.get(function, dict)()
    needed = [
        name
        for name, each in inspect.signature(getattr(lstmsim, function)).parameters.items()
        if each.default is each.empty and name not in own
    ]
    return {name: RIGHT[name]() for name in needed} | own


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type; what only a type checker imports is something none of these values is."""
    hint = unwrapped(hint)[0]
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in parts)
    if hint in (Any, object) or isinstance(hint, NewType):
        return False
    if hint in (int, float):
        numbers = Real if hint is float else int
        tiny = isinstance(value, numbers) and not isinstance(value, bool) and (isinstance(value, float) or value < HUGE)
        return tiny or (hint is int and value is HUGE)
    if origin in (Sequence, Collection, list, tuple):
        # none of these values is one of the pairs that some functions take
        return origin is not tuple and isinstance(value, list | tuple) and all(fits(each, parts[0]) for each in value)
    if origin is Mapping:
        return isinstance(value, dict) and all(fits(each, parts[0]) for each in value)
    if origin is Callable:
        return callable(value)
    return isinstance(value, origin)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError(f"takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def worth_a_try(value: Any, hint: Any) -> bool:
    """Whether a value of the declared type is tried as well: texts that name nothing, and numbers without sense."""
    kinds = [unwrapped(each)[0] for each in get_args(unwrapped(hint)[0]) or [unwrapped(hint)[0]]]
    if isinstance(value, str):
        return value in ("x", "", "\0", "\ud800")
    number = isinstance(value, int | float) and not isinstance(value, bool) and value != 3.5
    return number and (int in kinds or float in kinds)


def said_of(function: str, argument: str, value: Any, hint: Any) -> str | None:
    """What is wrong with the outcome of a call with this value; None if it is as it must be."""
    call = getattr(lstmsim, function)
    declared = fits(value, hint) or value is inspect.signature(call).parameters[argument].default
    if declared and not worth_a_try(value, hint):
        return None
    try:
        with within(5):
            call(**{**right(function), argument: value})
    except InputError as error:
        sentence = str(error)
        named = (argument, function, *CALLED.get(argument, ()))
        texts = [each for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, str)]
        # a file's keys, and a name that nothing has, are named themselves
        if not any(each in sentence for each in named) and not texts and not isinstance(value, dict):
            return f"names no argument: {sentence!r}"
        expected = any(word in sentence for word in ("must", "expect", "missing", "there is no", "it has", "is for"))
        return None if expected or texts else f"names nothing that is expected: {sentence!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if declared else "is taken"


def shown(value: Any) -> str:
    return "10**400" if value is HUGE else ascii(value)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_value_of_a_wrong_type_is_a_sentence(function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if {"trace", "path", "program"} & inspect.signature(getattr(lstmsim, function)).parameters.keys():
        lstmsim.save_trace(run(), "t.json")
        lstmsim.save_program(run(), "p.npz")
    Path("m.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1.5\n")
    call, wrong = getattr(lstmsim, function), []
    for argument in inspect.signature(call).parameters:
        request = getattr(call, "request", None)
        hint = hint_of(call, argument) if request is None else keys_of(request)[argument].type
        for value in WRONG:
            told = said_of(function, argument, value, hint)
            wrong += [f"{function}({argument}={shown(value)}) {told}"] if told else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_unknown_and_missing_arguments_are_pythons_own_errors(function: str) -> None:
    call = getattr(lstmsim, function)
    with pytest.raises(TypeError, match="no_such_argument"):
        call(**right(function), no_such_argument=1)
    for name, each in inspect.signature(call).parameters.items():
        if each.default is each.empty:
            with pytest.raises(TypeError, match=f"missing .*{name}"):
                call(**{key: value for key, value in right(function).items() if key != name})
