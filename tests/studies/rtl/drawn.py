"""Random scenarios of what docs/rtl.md section 3 says can be built, as mappings: small, legal, nasty.

A scenario is made of two questions, so it can be drawn by hypothesis (`mappings`) as well as from a seed (`seeded`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

from lstmsim.model.cells import CELLS
from tests.studies.rtl.drawn_cells import Choices, own_cell

__all__ = ["INITIAL", "MULTIPLIERS", "mappings", "seeded"]

T = TypeVar("T")

#: In the place of the file with which a job begins; the numbers that are written there are drawn from its seed.
INITIAL = "initial-{}.safetensors"
#: Most multipliers of a chip.
MULTIPLIERS = 100
#: One stage, one segment, no parameters.
PLAIN = ("lstm", "lstm", "gru", "gru", "rnn", "rnn-relu", "dense", "dense-relu", "dense-tanh", "dense-sigmoid")
#: Parameters, stages, segments, waiting states, division.
FURTHER = tuple(sorted(set(CELLS) - set(PLAIN)))


class _Seeded(Choices):
    """Answers from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def whole(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def one(self, options: Sequence[T]) -> T:
        return self.random.choice(options)


class _Drawn(Choices):
    """Answers by hypothesis, which makes them smaller where a test fails."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def whole(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def one(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))


def seeded(seed: int) -> dict[str, Any]:
    """The scenario of a seed."""
    return _scenario(_Seeded(seed))


@st.composite
def mappings(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a scenario."""
    return _scenario(_Drawn(draw))


def _scenario(ask: Choices) -> dict[str, Any]:
    count = ask.one([1, 1, 1, 2, 3])
    plain = ask.one([True, True, False])
    own = {} if ask.one([True, True, False]) else {"own": own_cell(ask, plain)}
    kinds = [ask.one([*(PLAIN if plain else PLAIN + FURTHER), *(["own"] * 4 if own else [])]) for _ in range(2)]
    recurrent = {name: _recurrent(name, own) for name in kinds}
    models = [_model(ask, f"m{number}", kinds, recurrent) for number in range(ask.one([1, 1, 2]))]
    gates = _most_gates(models, own)
    cores = [_core(ask, gates, MULTIPLIERS // count, models) for _ in range(count)]
    jobs = [_job(ask, number, models, recurrent, count) for number in range(ask.one([1, 1, 2, 3, 5, 8]))]
    chip = {"kind": "column-npu", "name": "drawn", "frequency_mhz": 100, "cores": cores}
    return {"name": "drawn", "chip": chip, "cells": own, "jobs": jobs, "precision": _precision(ask)}


def _most_gates(models: Sequence[Mapping[str, Any]], own: Mapping[str, Any]) -> int:
    """The rows of a unit in the array, in the stage of all cells that has the most."""
    most = 1
    for name in {layer["cell"] for model in models for layer in model["layers"]}:
        stages = own[name]["stages"] if name in own else None
        counts = [len(each["gates"]) for each in stages] if stages else [len(s.gates) for s in CELLS[name].stages]
        most = max(most, *counts)
    return most


def _recurrent(name: str, own: Mapping[str, Any]) -> bool:
    """Whether a cell has states that are read: a layer of others has no direction, and begins with nothing."""
    if name not in own:
        return CELLS[name].recurrent
    return len(own[name]["states"]) > 1 or "'h'" in str(own[name]["stages"])


def _model(ask: Choices, name: str, kinds: Sequence[str], recurrent: Mapping[str, bool]) -> dict[str, Any]:
    order = ask.one(["layer", "step"])
    layers: list[dict[str, Any]] = []
    size = ask.whole(1, 8)
    for number in range(ask.one([1, 1, 2, 3])):
        kind = kinds[0] if number == 0 else ask.one(kinds)
        layer: dict[str, Any] = {"cell": kind, "hidden": ask.whole(1, 9), "input": size}
        way = ask.one(["", "bidirectional", "reverse"]) if order == "layer" and recurrent[kind] else ""
        if way:
            layer[way] = True
        if kind == "lstm-projection":
            layer["projection"] = ask.whole(1, 6)
        layers.append(layer)
        size = layer.get("projection", layer["hidden"]) * (2 if layer.get("bidirectional") else 1)
    return {"name": name, "layers": layers, "layer_order": order}


def _core(ask: Choices, gates: int, most: int, models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = gates * ask.whole(1, 4) + ask.one([0, 0, 1, 2])
    rows = max(gates, min(rows, most))
    columns = ask.whole(1, max(1, min(8, most // rows)))
    wide = columns * ask.one([1, 1, 1, 2, 4])
    order = ask.one(["row", "row", "column"])
    core: dict[str, Any] = {
        "ep": columns,
        "vp": rows,
        "npe": max(columns * rows, wide) + ask.one([0, 0, 3]),
        "threads": ask.whole(1, 4),
        "tail_width": ask.one([1, 1, 2, 3, 4, 6, 8]),
        # in column order each row block needs a bank; no layer has more blocks than units
        "accumulator_banks": ask.one([1, 2, 2, 3, 5]) if order == "row" else ask.one([9, 10]),
        "block_order": order,
        "thread_policy": ask.one(["coarse", "fine"]),
        "switch_cycles": ask.one([0, 0, 1, 3]),
        "latency": _latency(ask),
    }
    if wide > columns:
        # what adds up in the tree needs adders of one cycle
        core |= {"tree_inputs": wide, "cat": wide // columns}
        core["latency"]["add"] = 1
    return core


_LATENCIES = ("multiply", "add", "accumulate", "activation", "elementwise_multiply", "elementwise_add", "divide")
_FROM_ZERO = ("read", "convert", "quantize", "writeback")


def _latency(ask: Choices) -> dict[str, int]:
    """All short, all long, or mixed; some keep their default."""
    most = ask.one([1, 3, 8])
    own = {name: ask.whole(1, most) for name in _LATENCIES if ask.one([True, True, False])}
    zero = {name: ask.whole(0, most) if ask.one([True, False]) else 0 for name in _FROM_ZERO if ask.one([True, False])}
    return own | zero


def _job(
    ask: Choices, number: int, models: Sequence[Mapping[str, Any]], recurrent: Mapping[str, bool], cores: int
) -> dict[str, Any]:
    model = ask.one(models)
    job: dict[str, Any] = {
        "name": f"j{number}",
        "model": model,
        "steps": ask.whole(1, 4),
        "arrival": ask.one([0, 0, 0, 1, 7, 40, 150]),
        "frame_interval": ask.one([0, 0, 0, 3, 30]),
    }
    if cores > 1 and ask.one([True, False]):
        allowed = [core for core in range(cores) if ask.one([True, False])]
        job["cores"] = allowed or [ask.whole(0, cores - 1)]
    if ask.one([True, False, False, False]) and any(recurrent[each["cell"]] for each in model["layers"]):
        job["initial"] = INITIAL.format(ask.whole(0, 99))
    return job


def _precision(ask: Choices) -> dict[str, Any]:
    keys: dict[str, Callable[[], Any]] = {
        "weight_bits": lambda: ask.whole(3, 12),
        "vector_bits": lambda: ask.whole(3, 12),
        "accumulator_bits": lambda: ask.whole(8, 36),
        "multiplier_bits": lambda: ask.whole(4, 20),
        "tail_bits": lambda: ask.whole(4, 20),
        "state_bits": lambda: ask.whole(4, 20),
        "weight_scale": lambda: ask.one(["row", "tensor"]),
        "activation": lambda: ask.one(["linear", "table"]),
        "activation_entries": lambda: ask.one([2, 4, 16, 64, 256]),
        "activation_range": lambda: ask.one([2, 4, 8, 32]),
        "formats": lambda: ask.one(["own", "shared"]),
        "shift": lambda: ask.one(["row", "common"]),
    }
    return {key: value() for key, value in keys.items() if ask.one([True, False])}
