"""The clock that generated hardware of this machine reaches, by its design: a model made from builds.

`clock.json` beside this module has the model: time of a cycle as a sum of features, each with its nanoseconds, for
which designs it was fitted, and how well it told the clock of designs that were held out. It is written by
`experiments/clock/model.py` from the builds in `experiments/clock/built.csv`. Beyond the designs that were fitted it
tells nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import as_data, keys_of
from lstmsim.machines.bounds import Column
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Latency
from lstmsim.machines.column.subset import outside
from lstmsim.machines.rtl import ClockModel
from lstmsim.model.model import Precision
from lstmsim.model.scenario import Scenario

#: Keys of a core that the designs of the fit differ in. All others have their defaults.
_CORE = ("npe", "ep", "vp", "threads", "tail_width", "latency")
_PRECISION = ("accumulator_bits", "formats", "shift")
#: Numbers or words of a design by name; numbers may be columns, one number for each of many designs.
Facts = Mapping[str, Any]


def _log(name: str) -> Callable[[Facts], Column]:
    return lambda facts: np.log2(np.asarray(facts[name], float))


def _below(cycles: int) -> Callable[[Facts], Column]:
    return lambda facts: np.where(np.asarray(facts["convert"]) < cycles, 1.0, 0.0)


#: What may make a cycle longer, by name; the reason stands beside it.
FEATURES: Mapping[str, Callable[[Facts], Column]] = {
    # everything
    "constant": lambda facts: np.asarray(1.0),
    # operands fan out to so many multipliers, which lie apart
    "log2 multipliers": _log("multipliers"),
    # so many vectors' elements are chosen for each place of a tile
    "log2 ep": _log("ep"),
    # so many threads are asked which may issue, and each row keeps as many sums
    "log2 threads": _log("threads"),
    # results go to so many lanes
    "log2 lanes": _log("tail_width"),
    # memory of the adapter's constants and a block of its product in one cycle
    "convert below 5": _below(5),
    # adder of the product's blocks and the shift in one cycle
    "convert below 6": _below(6),
    # last sum of the adapter and its saturation in one cycle
    "convert below 7": _below(7),
    # carry chains of the array and the adapter
    "sums, 8 bits": lambda facts: np.asarray(facts["accumulator_bits"], float) / 8,
    # a barrel shifter in the adapter and not wires
    "shifts by row": lambda facts: np.asarray(float(facts["shift"] == "row")),
    # formats of lanes are chosen by pass
    "formats by pass": lambda facts: np.asarray(float(facts["formats"] == "own" and facts["layers"] > 1)),
    # states of so many units and threads in memories of logic, or of blocks
    "log2 states": lambda facts: np.log2(np.asarray(facts["threads"], float) * facts["hidden"]),
    # blocks that wait for values are chosen by age
    "cell gru": lambda facts: np.asarray(float(facts["cell"] == "gru")),
    # a narrow tail, without states of its own
    "cell rnn": lambda facts: np.asarray(float(facts["cell"] == "rnn")),
    # the control has a row for each layer
    "layers": lambda facts: np.asarray(float(facts["layers"])),
    # numbers of jobs are compared, and one more is counted for each thread, where a context becomes free
    "log2 jobs": lambda facts: np.log2(float(facts["jobs"])),
    "log2 jobs x log2 threads": lambda facts: np.log2(np.asarray(facts["threads"], float)) * np.log2(facts["jobs"]),
    # the memory of frames is put together of blocks
    "log2 frames": lambda facts: np.log2(float(facts["jobs"] * facts["steps"])),
}


@cache
def model() -> ClockModel:
    """The model of `clock.json`; `InputError` while it was not made."""
    file = files(__package__) / "clock.json"
    if not file.is_file():
        text = "there is no clock model: experiments/clock/built.csv has too few builds to make one"
        raise InputError(Mistake("clock", text))
    data = json.loads(file.read_text(encoding="utf-8"))
    return ClockModel(**data, current=data["verilog"] == modules())


def modules() -> str:
    """The Verilog that is the same in every design, as the first digits of a hash."""
    own = hashlib.sha256()
    for each in sorted((files(__package__) / "rtl" / "verilog").iterdir(), key=lambda each: each.name):
        if each.name.endswith((".v", ".vh")):
            own.update(each.name.encode() + each.read_bytes())
    return own.hexdigest()[:12]


def facts_of(scenario: Scenario, entry: Mapping[str, Any]) -> dict[str, Any]:
    """What the model asks of a design; entry: its core as files have it, whose numbers may be columns."""
    core = {name: entry.get(name, keys_of(ColumnCore)[name].default) for name in _CORE}
    # left out, it follows the others
    if entry.get("vp") is None:
        core["vp"] = np.asarray(core["npe"]) // np.maximum(core["ep"], 1)
    first = scenario.jobs[0].model.layers[0]
    return {
        **{name: core[name] for name in ("ep", "vp", "threads", "tail_width")},
        "multipliers": np.asarray(core["ep"]) * core["vp"],
        "convert": _latency(entry).get("convert", Latency().convert),
        "cell": first.cell.name,
        "hidden": max(layer.hidden for layer in scenario.jobs[0].model.layers),
        "input": first.input,
        "layers": len(scenario.jobs[0].model.layers),
        "jobs": len(scenario.jobs),
        "steps": max(job.steps for job in scenario.jobs),
        **{name: getattr(scenario.precision, name) for name in _PRECISION},
    }


def _latency(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The pipeline depths that an entry of a core names."""
    return dict(entry.get("latency") or {})


def clocks(
    scenario: Scenario, entries: Sequence[Mapping[str, Any]], counts: Sequence[int]
) -> tuple[Column, dict[str, Column]]:
    """The clock of designs in MHz, and by reason of which it cannot be told.

    scenario: one of the designs; entries, counts: their cores as files have them, whose numbers may be columns (one
        number for each design), and how many there are of each.
    """
    facts, why = facts_of(scenario, entries[0]), _outside(scenario, entries, counts)
    own = model()
    ns = sum((each * FEATURES[name](facts) for name, each in own.ns.items()), np.asarray(0.0))
    # tenths: further digits would be no more than noise of the placement
    return np.round(1000 / ns, 1), {name: np.asarray(wrong) for name, wrong in why.items() if np.any(wrong)}


def clock(scenario: Scenario) -> tuple[float, str]:
    """The clock of a design in MHz, and why it cannot be told; empty: it can."""
    chip = scenario.chip
    mhz, why = clocks(scenario, [as_data(each) for each in chip.cores], [1] * len(chip.cores))
    return float(mhz), ", ".join(why)


def _outside(scenario: Scenario, entries: Sequence[Mapping[str, Any]], counts: Sequence[int]) -> dict[str, Column]:
    """By reason, which designs are unlike those that were fitted."""
    chip, own = scenario.chip, model()
    assert isinstance(chip, ColumnNpu)
    facts = facts_of(scenario, entries[0])
    models = {job.model for job in scenario.jobs}
    plain = all(
        layer.directions == 1 and not layer.reverse and layer.projection is None for layer in next(iter(models)).layers
    )
    precision = {name: value for name, value in asdict(scenario.precision).items() if name not in _PRECISION}
    usual = asdict(Precision())
    alone = len(models) == 1 and plain and len({layer.cell for layer in next(iter(models)).layers}) == 1
    # layers of the fit are of one width, and what a later one reads has that width
    equal = all(
        len({layer.hidden for layer in one.layers} | {each.input for each in one.layers[1:]}) < 2 for one in models
    )
    why: dict[str, Column] = {
        "not written as Verilog": bool(outside(chip, scenario.jobs)),
        "several cores": sum(counts) > 1,
        "a memory beside the chip": chip.memory is not None,
        "other than one model with layers of one kind, in one direction": not alone,
        "layers of different widths": not equal,
        "layer_order not layer": any(one.layer_order != "layer" for one in models),
        "other widths": any(usual[name] != value for name, value in precision.items()),
    }
    why |= {f"{name} {facts[name]}": facts[name] not in known for name, known in own.words.items()}
    for name, (low, high) in own.numbers.items():
        numbers = np.asarray(facts[name])
        why[f"{name} not from {low} to {high}"] = (numbers < low) | (numbers > high)
    most = own.lanes.get(facts["cell"], 0)
    why[f"more than {most} lanes of cell {facts['cell']}"] = np.asarray(facts["tail_width"]) > most
    return why | _others(entries[0])


def _others(entry: Mapping[str, Any]) -> dict[str, Column]:
    """Keys of a core that have no other value than the default in any design of the fit."""
    why: dict[str, Column] = {}
    usual = as_data(Latency())
    for name, value in _latency(entry).items():
        if name != "convert":
            why[f"latency.{name} not {usual[name]}"] = np.asarray(value != usual[name])
    for name, each in keys_of(ColumnCore).items():
        if name not in _CORE and name in entry:
            why[f"{name} not {each.default}"] = np.asarray(entry[name] != each.default)
    return why
