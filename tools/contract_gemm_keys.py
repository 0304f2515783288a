"""What the keys of a case of the multi-core CPU must be, so that a wrong one is a sentence and no traceback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lstmsim.base.keys import keys_of
from lstmsim.base.wording import listed, show
from lstmsim.machines.gemm import CACHES
from lstmsim.machines.gemm import KINDS as CUTS
from lstmsim.machines.multicore.chip import HASHES, CpuCore, MulticoreCpu
from lstmsim.machines.target import COMMON
from lstmsim.model.cells import CELLS

__all__ = ["NUMBERS", "OF_CORES", "USUAL", "mistakes_of"]

#: The numbers of a core, and all numbers of a machine.
OF_CORES = tuple(keys_of(CpuCore))
NUMBERS = ("cores", *(name for name in keys_of(MulticoreCpu) if name not in COMMON), *OF_CORES)

#: What a machine has that does not say it: the text of the cases has no hash, and no kernel for one row.
USUAL: Mapping[str, Any] = {"llc_hash": "bits", "gemv": False}

#: Numbers of a machine that may be 0 end so; the others divide, or count something without which there is no machine.
_FROM_0 = ("_cycles", "_per_line", "_latency")
_SIZES = ("M", "N", "K")
#: Kind of a case -> its whole numbers from 1 on.
_COUNTS = {
    "plan": (*_SIZES, "threads"),
    "run": (*_SIZES, "threads"),
    "relief": (*_SIZES, "threads"),
    "numbers": (*_SIZES, "threads"),
    "job": ("steps", "batch", "threads"),
}


def mistakes_of(case: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each key that is missing or wrong, and what it must be.

    case: with a `machine` that is a mapping and a `kind` of `tools/contract_gemm.py`.

    >>> machine = {"cores": 0}
    >>> dict(mistakes_of({"kind": "plan", "machine": machine, "M": 8, "N": 8, "K": 8, "threads": 1}))["machine.cores"]
    'must be a whole number from 1 on, got 0'
    """
    machine, kind = case["machine"], case["kind"]
    yield from _machine(machine)
    for key in _COUNTS[kind]:
        yield from _whole(case, key, 1)
    cores, threads = machine.get("cores"), case.get("threads")
    if _is_whole(cores, 1) and _is_whole(threads, 1) and threads > cores:
        yield "threads", f"must be at most {cores}, the cores of the machine, got {threads}"
    if kind == "run":
        yield from _one_of(case, "caches", CACHES)
    if kind in ("relief", "numbers"):
        yield from _cut(case.get("cut"), threads)
        sub = case.get("sub_blocks", ())
        if sub is not None and not _wholes(sub, 4):
            yield "sub_blocks", f"must be null or 4 whole numbers from 1 on, got {show(sub)}"
    if kind == "job":
        yield from _one_of(case, "cell", CELLS)
        layers = case.get("layers")
        if not isinstance(layers, list) or not layers or not all(_wholes(each, 2) for each in layers):
            yield "layers", f"must be a list of pairs of whole numbers from 1 on, got {show(layers)}"
        for key in ("arrival", "frame_interval"):
            yield from _whole(case, key, 0)


def _machine(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    keys = {**USUAL, **given}
    for name in NUMBERS:
        place, value = f"machine.{name}", keys.get(name)
        if name in ("overlap", "exact_rows", "gemv"):
            if not isinstance(value, bool):
                yield place, f"must be true or false, got {show(value)}"
        elif name == "llc_hash":
            yield from ((f"machine.{key}", text) for key, text in _one_of(keys, name, HASHES))
        elif name in ("fill", "buffer_fill"):
            if not _wholes(value, 2):
                yield place, f"must be two whole numbers from 1 on, got {show(value)}"
        else:
            yield from ((f"machine.{key}", text) for key, text in _whole(keys, name, int(not name.endswith(_FROM_0))))


def _cut(cut: object, threads: object) -> Iterator[tuple[str, str]]:
    if not isinstance(cut, dict):
        yield "cut", f"must be a mapping, got {show(cut)}"
        return
    wrong = [*_one_of(cut, "kind", CUTS), *(each for key in _CUT for each in _whole(cut, key, 1))]
    yield from ((f"cut.{place}", text) for place, text in wrong)
    if not wrong and cut["pm"] * cut["pn"] * cut["pk"] != threads:
        yield "cut", f"is for {cut['pm'] * cut['pn'] * cut['pk']} threads, but the case has threads {show(threads)}"


_CUT = ("pm", "pn", "pk", "mb", "nb", "kb")


def _one_of(keys: Mapping[str, Any], key: str, known: Any) -> Iterator[tuple[str, str]]:
    if keys.get(key) not in list(known):
        yield key, f"must be {listed(known)}, got {show(keys.get(key))}"


def _whole(keys: Mapping[str, Any], key: str, low: int) -> Iterator[tuple[str, str]]:
    if not _is_whole(keys.get(key), low):
        yield key, f"must be a whole number from {low} on, got {show(keys.get(key))}"


def _wholes(value: object, count: int) -> bool:
    return isinstance(value, list) and len(value) == count and all(_is_whole(each, 1) for each in value)


def _is_whole(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low
