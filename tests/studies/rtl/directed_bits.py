"""Scenarios for traps of the numbers (docs/rtl.md section 9); `tests.studies.rtl.directed` has those of the control.

Each entry says what it shows that most scenarios do not.
"""

from __future__ import annotations

from typing import Any

__all__ = ["BITS", "WORKED"]

#: Latencies that are short, so that a scenario is over soon, and all different, so that none can stand for another.
LATENCY = {
    "read": 1,
    "multiply": 2,
    "add": 1,
    "accumulate": 3,
    "convert": 2,
    "activation": 5,
    "elementwise_multiply": 3,
    "elementwise_add": 2,
    "quantize": 1,
    "writeback": 1,
    "divide": 7,
}
#: All that may be 0 is 0, the rest is 1.
NONE = {name: 0 if name in ("read", "convert", "quantize", "writeback") else 1 for name in LATENCY}


def _core(ep: int, vp: int, **keys: Any) -> dict[str, Any]:
    latency = {**LATENCY, **keys.pop("latency", {})}
    return {"npe": ep * vp, "ep": ep, "vp": vp, "tail_width": 2, **keys, "latency": latency}


def _layer(cell: str, hidden: int, size: int, **keys: Any) -> dict[str, Any]:
    return {"cell": cell, "hidden": hidden, "input": size, **keys}


def _model(*layers: dict[str, Any], name: str = "m", order: str = "layer") -> dict[str, Any]:
    return {"name": name, "layers": list(layers), "layer_order": order}


def _job(name: str, model: dict[str, Any], steps: int, arrival: int = 0, **keys: Any) -> dict[str, Any]:
    return {"name": name, "model": model, "steps": steps, "arrival": arrival, **keys}


def _scenario(
    *jobs: dict[str, Any], cores: list[dict[str, Any]], cells: dict[str, Any] | None = None, **precision: Any
) -> dict[str, Any]:
    """A scenario of jobs on a chip."""
    chip = {"kind": "column-npu", "name": "directed", "frequency_mhz": 100, "cores": cores}
    mapping = {"name": "directed", "chip": chip, "jobs": list(jobs), "precision": precision}
    return mapping if cells is None else {**mapping, "cells": cells}


#: Nodes with names that are words of Verilog, SystemVerilog, Icarus, Verilator or Yosys, and signals of the modules.
NAMED = {
    "stages": [{"gates": {"before": ["x", "h"], "wire": ["x", "h"], "table": {"config": ["h"], "bit": ["x"]}}}],
    "nodes": {
        "cell": "sigmoid before",
        "cell'": "subtract 1 cell",
        "reg": "multiply config clock",
        "begin": "maximum wire reg",
        "σ": "minimum bit begin",
        "d_valid": "exp cell'",
        "y": "multiply d_valid σ",
        "design": "add y cell",
        "use": "quantize design",
    },
    "states": {"h": "use", "clock": "design"},
}
#: Constants on both sides of every operation, small and large: values of formats far apart, shifts to both sides.
SCALED = {
    "stages": [{"gates": {"a": ["x", "h"], "b": ["x", "h"]}}],
    "nodes": {
        "a1": "multiply 0.0007 a",
        "a2": "multiply a1 900",
        "b1": "multiply b 37",
        "s1": "add b1 s",
        "s2": "multiply 0.02 s1",
        "d": "subtract a2 s2",
        "e": "maximum -0.25 d",
        "hf": "minimum e 0.5",
        "h'": "quantize hf",
    },
    "states": {"h": "h'", "s": "s2"},
}
#: Sums of sums: each of them is beyond its format where those that it adds are at the ends of theirs.
PILED = {
    "stages": [{"gates": {"a": ["x", "h"], "b": ["x", "h"], "c": ["x", "h"], "d": ["x", "h"]}}],
    "nodes": {"ab": "add a b", "abc": "add ab c", "abcd": "subtract abc d", "h'": "quantize abcd"},
    "states": {"h": "h'"},
}
#: A mean of values that are not 0 where the sums are: units that do not count would show.
MEAN = {
    "stages": [{"gates": {"a": ["x", "h"], "b": ["x", "h"]}}],
    "nodes": {"at": "sigmoid a", "m": "mean at", "d": "subtract at m", "e": "multiply d b", "h'": "quantize e"},
    "states": {"h": "h'"},
}
#: Values that reach the ends of both tables.
STEEP = {
    "stages": [{"gates": {"a": ["x", "h"], "b": ["x", "h"]}}],
    "nodes": {
        "a1": "multiply 40 a",
        "at": "sigmoid a1",
        "b1": "multiply -40 b",
        "bt": "log_sigmoid b1",
        "bl": "multiply 0.02 bt",
        "hf": "subtract at bl",
        "h'": "quantize hf",
    },
    "states": {"h": "h'"},
}

_LSTM = _model(_layer("lstm", 5, 3))

BITS: dict[str, dict[str, Any]] = {
    # trap 1, 4, 24: several jobs of one model, one after the other on one context; no h, c, sum or weight is left over
    "second_on_a_context": _scenario(_job("a", _LSTM, 2), _job("b", _LSTM, 2), cores=[_core(2, 8)]),
    # trap 2
    "names": _scenario(
        _job("a", _model(_layer("own", 3, 2)), 3), cores=[_core(2, 6)], cells={"own": NAMED}, tail_bits=14
    ),
    # trap 3 and section 7: 2 * hidden is a multiple of the banks (4) and of no group, a layer reads both directions
    "both_directions": _scenario(
        _job("a", _model(_layer("rnn", 6, 3, bidirectional=True), _layer("gru", 3, 12)), 3, frame_interval=11),
        cores=[_core(4, 3, tail_width=4, accumulator_banks=1)],
    ),
    # trap 8, 10, 12: small words everywhere, sums that wrap, words behind the adapter that saturate
    "narrow": _scenario(
        _job("a", _model(_layer("lstm", 4, 5), _layer("dense", 3, 4)), 3, arrival=3),
        cores=[_core(4, 8, block_order="column", accumulator_banks=3)],
        accumulator_bits=9,
        weight_bits=6,
        vector_bits=5,
        tail_bits=5,
        state_bits=4,
        multiplier_bits=5,
    ),
    # trap 10: calibrated on frames that are calmer than those to come, so adapters and nodes saturate
    "beyond_calibration": _scenario(
        _job("a", _model(_layer("own", 4, 4), _layer("lstm", 3, 4)), 4),
        cores=[_core(4, 8)],
        cells={"own": PILED},
        calibration="calm-0.1.npy",
    ),
    # trap 8, 10: shifts to both sides of every node, formats far apart
    "scaled": _scenario(
        _job("a", _model(_layer("own", 3, 2)), 4),
        cores=[_core(2, 4, tail_width=1)],
        cells={"own": SCALED},
        tail_bits=20,
        state_bits=11,
        multiplier_bits=9,
        formats="shared",
        shift="common",
    ),
    # trap 9: arguments at and beyond the ends of the table, few entries
    "table_ends": _scenario(
        _job("a", _model(_layer("own", 3, 2)), 4),
        cores=[_core(2, 4)],
        cells={"own": STEEP},
        activation_entries=4,
        activation_range=2,
        tail_bits=16,
    ),
    # trap 9, 13, 15: steps instead of pieces; two sums in a gate, the state at two depths, h columns first
    "two_sums": _scenario(
        _job("a", _model(_layer("gru", 3, 2), _layer("gru", 4, 3), order="step"), 3),
        cores=[_core(3, 6, threads=2, latency={"activation": 2, "elementwise_multiply": 7})],
        activation="table",
    ),
    # trap 11: h a little beyond what three bits were calibrated on, so that -4 is what it would be
    "symmetric": _scenario(
        _job("a", _model(_layer("dense", 6, 6), _layer("dense", 8, 6)), 8),
        cores=[_core(4, 4)],
        vector_bits=3,
        calibration="calm-1.5.npy",
    ),
    # trap 14, 5.7: nothing stands between the last operation and the write port, nothing before the array
    "no_latencies": _scenario(
        _job("a", _model(_layer("gru", 4, 3), _layer("dense", 3, 4)), 2), cores=[_core(2, 6, latency=NONE)]
    ),
    # several kinds of cell on a core; one unit of one input in one step; vp is the gates of the largest; a wide tail
    "one_of_all": _scenario(
        _job("a", _model(_layer("lstm", 1, 1)), 1),
        _job("b", _model(_layer("dense-sigmoid", 1, 1), name="d"), 1),
        cores=[_core(1, 4, tail_width=3)],
    ),
    # parameters, states written in the one segment and read in the next step
    "parameters": _scenario(_job("a", _model(_layer("lstm-peephole", 3, 2)), 2), cores=[_core(2, 4)]),
    # stages: r*h is read by the second product; a projection's rows are not the units of the first stage
    "stages": _scenario(
        _job("a", _model(_layer("gru-lbr0", 3, 2), _layer("lstm-projection", 3, 3, projection=2)), 2),
        cores=[_core(2, 5)],
    ),
    # segments: reductions, later segments without adapter, ages between threads
    "segments": _scenario(
        *(_job(name, _model(_layer("lstm-layernorm", 3, 2)), 2) for name in "ab"),
        cores=[_core(2, 8, threads=2, tail_width=2)],
        tail_bits=20,
        state_bits=18,
    ),
    # the last turn of a row block, and the last row block, have less units than lanes
    "mean": _scenario(
        _job("a", _model(_layer("own", 5, 2)), 3), cores=[_core(2, 6, tail_width=2)], cells={"own": MEAN}
    ),
    # the worked example of docs/timing.md section 9 on one core, with lanes for the units of a block: 115 cycles
    "worked_115": {
        **_scenario(_job("a", _model(_layer("lstm", 8, 8)), 2), cores=[]),
        "chip": {
            "kind": "column-npu",
            "name": "worked",
            "frequency_mhz": 100,
            "cores": [{"npe": 64, "ep": 4, "vp": 16, "tail_width": 4}],
        },
    },
}

_EIGHTH = {"npe": 1024, "tail_width": 8}

#: The worked examples of docs/timing.md sections 6 and 8 with an eighth of everything, cycles alone.
WORKED: dict[str, dict[str, Any]] = {
    "one_lstm": _scenario(_job("a", _model(_layer("lstm", 64, 64)), 20), cores=[{**_EIGHTH, "ep": 4, "vp": 256}]),
    "two_lstm": _scenario(
        *(_job(name, _model(_layer("lstm", 64, 64)), 20) for name in "ab"),
        cores=[{**_EIGHTH, "ep": 4, "vp": 256, "threads": 2}],
    ),
    "gru_lbr0": _scenario(_job("a", _model(_layer("gru-lbr0", 64, 64)), 20), cores=[{**_EIGHTH, "ep": 4, "vp": 256}]),
}
