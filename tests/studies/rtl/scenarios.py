"""Random scenarios of the subset that can be written as Verilog: small, and as nasty as the rules allow.

`python -m tests.studies.rtl.scenarios STEP FIRST COUNT [--numbers] [--simulator NAME]` compares so many, one
after the other.
"""

from __future__ import annotations

import argparse
import itertools
import random
import tempfile
import time
from typing import Any

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.machines.registry import capability
from lstmsim.studies.rtl.run import DEEP_CYCLES
from lstmsim.studies.simulate.run import Run

__all__ = ["drawn", "split", "step_of", "streamed"]

#: Cells by the step of docs/rtl.md that brings them.
CELLS = {
    1: ("lstm", "lstm", "gru", "rnn", "rnn-relu", "dense", "dense-tanh", "dense-sigmoid", "light"),
    2: ("lstm", "gru", "rnn", "dense-tanh", "rnn-relu", "light"),
    3: ("lstm-peephole", "lstm-projection", "gru-lbr0", "lstm-layernorm", "slstm", "mingru", "lstm", "gru"),
    4: (
        *("lstm", "gru", "rnn", "dense-tanh", "lstm-peephole", "lstm-projection", "gru-lbr0", "mingru", "light"),
        *("apart", "h-first", "lstm-layernorm"),
    ),
    5: ("lstm", "gru", "rnn", "lstm-projection", "gru-lbr0", "lstm-peephole", "lstm-layernorm", "light"),
}
#: The cell of experiments/scenarios/own_cell.yaml.
LIGHT = {
    "stages": [{"gates": {"z": ["x", "h"], "n": ["x", "h"]}}],
    "nodes": {
        "zt": "sigmoid z",
        "nt": "relu n",
        "hn": "subtract s nt",
        "zh": "multiply zt hn",
        "hf": "add nt zh",
        "h'": "quantize hf",
    },
    "states": {"h": "h'", "s": "hf"},
}
#: Cells with several vectors of a block for other cores, and with a product behind the one that makes h.
SENDERS = {
    "apart": {
        "stages": [{"gates": {"a": ["x", "h"], "b": ["x", "h"]}}, {"gates": {"n": ["x", "q", "r"]}}],
        "nodes": {
            "at": "sigmoid a",
            "bt": "tanh b",
            "p": "multiply at bt",
            "q": "quantize p",
            "r": "quantize at",
            "s": "tanh n",
            "h'": "quantize s",
        },
        "states": {"h": "h'"},
    },
    "h-first": {
        "stages": [{"gates": {"a": ["x", "h"]}}, {"gates": {"p": ["m"]}}],
        "nodes": {
            "at": "sigmoid a",
            "ct": "multiply at c",
            "h'": "quantize ct",
            "m": "quantize at",
            "pt": "tanh p",
            "c'": "add pt c",
        },
        "states": {"h": "h'", "c": "c'"},
    },
}
_LATENCIES = ("read", "multiply", "add", "accumulate", "convert", "activation", "elementwise_multiply")
_LATENCIES += ("elementwise_add", "quantize", "writeback")


def step_of(seed: int) -> int:
    """The step of docs/rtl.md that a seed is drawn from: half of them from the first one."""
    return (1, 2, 1, 3)[seed % 4]


def streamed(seed: int) -> dict[str, Any]:
    """Draw a scenario with weights that are streamed."""
    return drawn(seed, 5)


def split(seed: int) -> dict[str, Any]:
    """Draw a scenario with split jobs."""
    return drawn(seed, 4)


def drawn(seed: int, step: int) -> dict[str, Any]:
    """Draw a scenario of a step: the same one for the same seed. What is refused is drawn anew."""
    chance = random.Random(f"{step}, {seed}")
    while True:
        scenario = _streamed(chance) if step == 5 else _scenario(chance, step)
        try:
            loaded = (_shortened(scenario) if step == 5 else lstmsim.run(scenario)).scenario
            hardware = capability(loaded.chip.kind, "generated")
            assert hardware is not None
            design = hardware.design if step == 5 else None
            if design and design(loaded, loaded.precision).memory is None:
                continue
            wanted = step != 4 or any(job.settled(len(loaded.chip.cores)).split for job in loaded.jobs)
            if wanted and not hardware.refusals(loaded, loaded.precision):
                return scenario
        except InputError:
            continue


def _scenario(chance: random.Random, step: int) -> dict[str, Any]:
    many = {1: 0.0, 2: 0.6, 3: 0.3, 4: 1.0}[step]
    count = chance.randint(2, 3) if step >= 2 and chance.random() < many else 1
    cores = [_core(chance, step) for _ in range(count)]
    if chance.random() < 0.5 or step == 4:
        cores = cores[:1] * count
    kinds = [chance.choice(CELLS[step])] if step == 1 or chance.random() < 0.3 else list(CELLS[step])
    models = [_model(chance, f"m{number}", kinds, step) for number in range(chance.choice((1, 1, 2)))]
    jobs = [_job(chance, number, models, count) for number in range(chance.choice((1, 2, 2, 3, 5, 8)))]
    chip: dict[str, Any] = {"kind": "column-npu", "name": "drawn", "frequency_mhz": 100, "cores": cores}
    cells: dict[str, Any] = {"light": LIGHT}
    if step == 4:
        chip["exchange"] = {"latency_cycles": chance.choice((0, 1, 2, 8, 30)), "width": chance.choice((1, 2, 3, 64))}
        cells |= SENDERS
        for job in jobs:
            _split(chance, job, count)
    return {"name": "drawn", "chip": chip, "cells": cells, "jobs": jobs, "precision": _precision(chance)}


def _streamed(chance: random.Random) -> dict[str, Any]:
    """A scenario in which a model does not fit on any of its cores."""
    ep, vp = chance.choice((2, 3, 4, 5)), chance.choice((4, 5, 6, 8, 12))
    core = _core(chance, 5) | {
        "npe": ep * vp,
        "ep": ep,
        "vp": vp,
        "weight_kib": 1,
        "weight_bits": chance.choice((8, 16)),
    }
    core["block_order"] = "row"
    # 8000 gb_per_s / frequency_mhz bits a cycle, less than a tile
    memory = {
        "gb_per_s": chance.choice((0.1, 0.3, 0.7, 1.3)),
        "latency_cycles": chance.choice((0, 1, 10, 64)),
        "prefetch_blocks": chance.choice((1, 2, 2, 3)),
    }
    cores = [core] * chance.choice((1, 1, 2))
    if len(cores) == 2 and chance.random() < 0.3:
        cores[1] = {key: value for key, value in core.items() if key != "weight_kib"}
    model = _model(chance, "m", list(CELLS[5]), 5)
    for layer in model["layers"]:
        layer["hidden"] += 9
        if "projection" in layer:
            layer["projection"] += 4
    for below, layer in itertools.pairwise(model["layers"]):
        layer["input"] = below.get("projection", below["hidden"]) * (1 + ("bidirectional" in below))
    jobs = [_job(chance, number, [model], len(cores)) for number in range(chance.choice((1, 2, 3, 5)))]
    small = {"name": "small", "layers": [{"cell": "rnn", "hidden": 3, "input": 2}]}
    if "weight_kib" not in cores[-1]:
        jobs.append({"name": "small", "model": small, "steps": 3, "cores": [1]})
    chip = {"kind": "column-npu", "name": "drawn", "frequency_mhz": 100, "cores": cores, "memory": memory}
    return {"name": "drawn", "chip": chip, "cells": {"light": LIGHT}, "jobs": jobs, "precision": _precision(chance)}


def _shortened(scenario: dict[str, Any]) -> Run:
    """Take steps, then jobs from a scenario until it is short enough for a comparison of all numbers; its run."""
    jobs = scenario["jobs"]
    while (run := lstmsim.run(scenario)).report.makespan_cycles * len(run.scenario.chip.cores) > DEEP_CYCLES:
        longest = max(jobs, key=lambda job: int(job["steps"]))
        if longest["steps"] > 1 + (len(jobs) > 1):
            longest["steps"] -= 1
        elif len(jobs) > 1:
            jobs.pop(0)
        else:
            raise InputError("its only step is too long")
    return run


def _split(chance: random.Random, job: dict[str, Any], cores: int) -> None:
    """Let most jobs be split; what cannot be is refused, and drawn anew."""
    if chance.random() < 0.2:
        return
    layers = job["model"]["layers"]
    one_way = not any("bidirectional" in each or "reverse" in each for each in layers)
    ways = ["rows", "rows", "auto"] + ["layers", "layers"] * (len(layers) > 1 and one_way)
    job["split"] = chance.choice(ways)
    job.pop("cores", None)
    if job["split"] == "layers":
        job["cores"] = [chance.randrange(cores) for _ in range(chance.randint(2, len(layers)))]
    elif chance.random() < 0.5:
        job["cores"] = chance.sample(range(cores), chance.randint(2, cores))


def _core(chance: random.Random, step: int) -> dict[str, Any]:
    ep, vp = chance.choice((1, 2, 3, 4, 4, 5, 8)), chance.choice((4, 5, 6, 8, 8, 12, 16))
    core: dict[str, Any] = {"npe": ep * vp + chance.choice((0, 0, 3)), "ep": ep, "vp": vp}
    core["tail_width"] = chance.choice((1, 1, 2, 3, 4))
    core["threads"] = chance.choice((1, 2, 2, 3, 4))
    core["accumulator_banks"] = chance.choice((1, 2, 2, 3))
    core["thread_policy"] = chance.choice(("coarse", "fine"))
    core["switch_cycles"] = chance.choice((0, 0, 1, 3))
    core["block_order"] = chance.choice(("row", "column"))
    low = chance.choice((0, 1))
    most = chance.choice((1, 2, 4, 6))
    core["latency"] = {name: chance.randint(low, most) for name in _LATENCIES if chance.random() < 0.8}
    if step == 2 and chance.random() < 0.3:
        core |= {"cat": 4, "tree_inputs": ep * chance.choice((1, 2, 4))}
        core["latency"]["add"] = 1
    return core


def _model(chance: random.Random, name: str, kinds: list[str], step: int) -> dict[str, Any]:
    layers: list[dict[str, Any]] = []
    width = chance.randint(1, 9)
    order = chance.choice(("layer", "layer", "step"))
    kind = chance.choice(kinds)
    for _ in range(chance.choice((1, 1, 2, 3))):
        hidden = chance.randint(1, 9)
        layer: dict[str, Any] = {"cell": kind if step == 1 else chance.choice(kinds), "hidden": hidden, "input": width}
        if layer["cell"] == "lstm-projection":
            layer["projection"] = hidden = chance.randint(1, 6)
        if order == "layer" and chance.random() < 0.3:
            layer["bidirectional"] = True
            hidden *= 2
        elif order == "layer" and chance.random() < 0.15:
            layer["reverse"] = True
        layers.append(layer)
        width = hidden
    return {"name": name, "layers": layers, "layer_order": order}


def _job(chance: random.Random, number: int, models: list[dict[str, Any]], cores: int) -> dict[str, Any]:
    job: dict[str, Any] = {"name": f"j{number}", "model": chance.choice(models), "steps": chance.randint(1, 5)}
    if chance.random() < 0.5:
        job["arrival"] = chance.choice((0, 1, 7, 60, 137))
    if chance.random() < 0.4:
        job["frame_interval"] = chance.choice((1, 9, 40))
    if cores > 1 and chance.random() < 0.5:
        job["cores"] = sorted(chance.sample(range(cores), chance.randint(1, cores)))
    return job


def _precision(chance: random.Random) -> dict[str, Any]:
    return {
        "weight_bits": chance.randint(3, 10),
        "vector_bits": chance.randint(3, 10),
        "accumulator_bits": chance.choice((10, 16, 24, 32)),
        "multiplier_bits": chance.randint(4, 18),
        "tail_bits": chance.randint(6, 20),
        "state_bits": chance.randint(6, 20),
        "weight_scale": chance.choice(("row", "tensor")),
        "activation": chance.choice(("table", "linear")),
        "activation_entries": chance.choice((4, 16, 64, 256)),
        "activation_range": chance.choice((2, 4, 8)),
        "formats": chance.choice(("own", "own", "shared")),
        "shift": chance.choice(("row", "row", "common")),
    }


def main() -> int:
    """Compare scenarios and say of each what came out; the exit code is how many differ, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", type=int, choices=tuple(CELLS))
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--numbers", action="store_true")
    parser.add_argument("--simulator", default="icarus")
    given = parser.parse_args()
    counts = {"equal": 0, "DIFFERENT": 0, "refused": 0, "FAILED": 0}
    for seed in range(given.first, given.first + given.count):
        start = time.perf_counter()
        verdict, why = _verdict(drawn(seed, given.step), given.numbers, given.simulator)
        counts[verdict] += 1
        if verdict != "equal":
            print(f"{seed}: {verdict} {why} ({time.perf_counter() - start:.1f} s)", flush=True)
    print(counts)
    return min(1, counts["DIFFERENT"] + counts["FAILED"])


def _verdict(scenario: dict[str, Any], numbers: bool, simulator: str) -> tuple[str, str]:
    options: dict[str, Any] = {"random_weights": 1} if numbers else {"timing_only": True}
    with tempfile.TemporaryDirectory() as folder:
        try:
            report = lstmsim.run_rtl(scenario, f"{folder}/out", verify=True, simulator=simulator, **options)
        except InputError as error:
            return "refused", str(error).splitlines()[0]
        except Exception as error:  # a fault of the generator is a verdict too
            return "FAILED", f"{type(error).__name__}: {error}"[:300]
    assert report.verified is not None
    if report.verified.equal:
        return "equal", ""
    return "DIFFERENT", report.to_dict()["verified"]["differences"][0]["text"]


if __name__ == "__main__":
    raise SystemExit(main())
