"""Cases of EdgeDRNN for `tools/contract.py`: the numbers with the clock of the text, and the Program on an engine.

The clock here is written from docs/edgedrnn.md, section 6, alone: it knows no Program. It also draws what comes late,
and which updates are lost where a layer has one group of outputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lstmsim.engines import run
from lstmsim.machines.edgedrnn.lowering import ACTIVATION, MAC, UNITS, Lowering, Timing
from lstmsim.machines.edgedrnn.numbers import Entry, Ints, Layer, Sizes, added, walked_over, wrapped
from lstmsim.program.program import Buffer, Core, Program, Task

__all__ = ["Clock", "differences", "finals_of", "mistakes_of", "program_of", "run_numbers"]

_DEFAULTS = {"fifo": 32, "thx": 0, "thh": 0, "lat": 1, "gap": 0, "period": 1, "maxout": 0, "x0": 10, "base": 0}
_DEFAULTS |= {"wmax": 127, "xmax": 256, "pchg": 50, "xstep": 0, "xint": 0, "xwait": 0, "wthr": 0, "ostall": 0}
_DEFAULTS |= {"wseed": 0}
_MASK = 2**64 - 1


def mistakes_of(case: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with the keys of a case, as (key, sentence) pairs."""
    for key in ("pe", "sizes", "T", "seed"):
        if key not in case:
            yield key, "is missing"
    sizes = case.get("sizes")
    if sizes is not None and not (isinstance(sizes, list) and len(sizes) > 1):
        yield "sizes", "must be a list of the inputs and of each layer's hidden size"
    others = ("name", "sizes", "T", "pe", "seed", "xhot", "weights_bytes", "inputs")
    known = (*_DEFAULTS, *others)
    for key in case:
        if key not in known:
            yield key, "is no key of such a case"
        elif key not in ("name", "sizes", "weights_bytes", "inputs") and type(case[key]) not in (int, type(None)):
            yield key, f"must be a whole number, got {case[key]!r}"


def stream(seed: int) -> Iterator[int]:
    """The numbers of splitmix64, 64 bits each."""
    state = seed & _MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        yield z ^ (z >> 31)


def _layers(case: Mapping[str, Any]) -> list[tuple[Sizes, int]]:
    """Sizes of each layer and the number of its first column."""
    sizes, made, first = case["sizes"], [], 0
    for number, (inputs, hidden) in enumerate(pairwise(sizes)):
        walked = inputs if number else walked_over(inputs, case["pe"])
        made.append((Sizes(walked, hidden, case["pe"]), first))
        first += inputs + hidden + 1
    return made


def _data(case: Mapping[str, Any]) -> tuple[list[Layer], Ints]:
    """Layers with their weights, and inputs, drawn as section 9 says."""
    rest, inputs = (each >> 32 for each in stream(case["seed"])), case["sizes"][0]
    layers = _layers(case)
    real = [inputs, *(each.walked for each, _ in layers[1:])]
    ends = [(first + own + each.hidden + 1) * 3 * each.hidden for (each, first), own in zip(layers, real, strict=True)]
    most = 2 * case["wmax"] + 1
    weights = np.array([next(rest) % most - case["wmax"] for _ in range(max(ends))], dtype=np.int64)
    made = []
    for (sizes, first), own in zip(layers, real, strict=True):
        columns = weights[first * 3 * sizes.hidden :][: (own + sizes.hidden + 1) * 3 * sizes.hidden]
        columns = columns.reshape(-1, 3 * sizes.hidden)
        added_zeros = np.zeros((sizes.walked - own, 3 * sizes.hidden), np.int64)
        made.append(Layer(sizes, np.concatenate([columns[: own + 1], added_zeros, columns[own + 1 :]])))
    x, now = np.zeros((case["T"], layers[0][0].walked), np.int64), [0] * inputs
    for step in range(case["T"]):
        for each in range(inputs):
            if each < case.get("xhot", inputs) and next(rest) % 100 < case["pchg"]:
                change = next(rest) % (2 * case["xmax"] + 1) - case["xmax"]
                if case["xstep"] > 0:
                    drawn = next(rest) % (2 * case["xstep"] + 1) - case["xstep"]
                    change = (now[each] + drawn + 32768) % 65536 - 32768
                now[each] = change
        x[step, :inputs] = now
    return made, x


class Clock:
    """Section 6: cycles of one layer-step after the other."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.case = case
        self.final = case["x0"] + 1
        self.free = -(10**9)
        self.valid, self.taken = case["x0"], case["x0"] - 1
        self.late = stream(case["wseed"]) if case["wthr"] else None
        self.lateness: list[int] = []
        self.input_waits = stream(case["wseed"] + 77) if case["xwait"] else None
        self.sink = stream(case["wseed"] + 777) if case["ostall"] else None
        self.looked = -1
        self.is_ready = True

    def layer_step(self, entries: Sequence[Entry], sizes: Sizes, step: int, layer: int, *, last: bool) -> list[int]:
        """[bias cycle, first activation, last output], and `beats` and `outputs` of it."""
        self.beats: list[list[int]] = []
        self.done: list[int] = []
        self.arrived: list[int] = []
        self.accepted: list[int] = []
        self.ends: list[int] = []
        begin, cycle, tick, read = self.final + 1, self.final + 1, 0, 0
        waiting = {each.place: each for each in entries}
        under_way: list[tuple[int, Entry]] = []
        gaps = {1 + sizes.walked: 2}
        pushed = 0
        if layer == 0 and step:
            self.valid = max(self.valid, self.case["x0"] + step * self.case["xint"], self.taken + 1)
        while pushed < len(entries):
            full = pushed >= self.case["fifo"] and self.arrived[pushed - self.case["fifo"]] > cycle
            if full:
                cycle = self.arrived[pushed - self.case["fifo"]]
                continue
            if under_way and under_way[0][0] == tick - 2:
                self._push(under_way.pop(0)[1], cycle, sizes)
                pushed += 1
            if gaps.get(read, 0):
                gaps[read] -= 1
            elif not (layer == 0 and 0 < read <= sizes.walked and self.valid > cycle):
                if read in waiting:
                    under_way.append((tick, waiting[read]))
                if layer == 0 and 0 < read <= sizes.walked and read % sizes.lanes == 0:
                    self.taken = cycle
                    wait = next(self.input_waits) % (self.case["xwait"] + 1) if self.input_waits else 0
                    self.valid = cycle + 1 + wait
                read += 1
            tick += 1
            cycle += 1
        activation = self.done[-1] + 4
        self.outputs = self._outputs(activation, sizes.groups, stalls=last)
        self.final = self.outputs[-1]
        return [begin, activation, self.final]

    def _push(self, entry: Entry, cycle: int, sizes: Sizes) -> None:
        at = max(cycle + 2, self.done[-1] + 1) if self.done else cycle + 2
        self.arrived.append(at)
        if not entry.delta:
            self.done.append(at)
            self.beats.append([])
            return
        command = max(cycle + 2, self.accepted[-1] + 1 if self.accepted else 0)
        limit = self.case["maxout"]
        if limit and len(self.ends) >= limit:
            command = max(command, self.ends[-limit] + 1)
        self.accepted.append(command)
        beats: list[int] = []
        for number in range(sizes.beats):
            offered = max(command + self.case["lat"], self.free)
            if self.late:
                before = offered
                while next(self.late) % 100 < self.case["wthr"]:
                    offered += 1
                self.lateness.append(offered - before)
            beats.append(offered if number else max(at, offered))
            self.free = beats[-1] + self.case["period"]
        self.free += self.case["gap"]
        self.beats.append(beats)
        self.done.append(beats[-1])
        self.ends.append(beats[-1])

    def _outputs(self, activation: int, groups: int, *, stalls: bool) -> list[int]:
        made, cycle = [], activation + 10
        for group in range(groups):
            while stalls and self.sink and group < groups - 1 and not self._ready(cycle):
                cycle += 1
            made.append(cycle)
            cycle += 5
        return made

    def _ready(self, cycle: int) -> bool:
        while self.looked < cycle:
            self.looked += 1
            self.is_ready = next(self.sink) % 100 >= self.case["ostall"]  # type: ignore[arg-type]
        return self.is_ready


def run_numbers(case: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[tuple[Entry, ...], Sizes]], Clock]:
    """What the case expects, from the numbers and the clock of the text; entries of each layer-step; the clock."""
    case = {**_DEFAULTS, **{key: value for key, value in case.items() if value is not None}}
    layers, x = _data(case)
    clock, thresholds = Clock(case), (_signed(case["thx"]), _signed(case["thh"]))
    made: dict[str, Any] = {"layer_steps": [], "nonzero_bias_x_h": [], "output_beat_cycles": [], "lost_updates": 0}
    steps, outputs, own_entries = [], [], []
    for step in range(case["T"]):
        values = x[step]
        for number, layer in enumerate(layers):

            def add(
                entries: Sequence[Entry], columns: Ints, sums: Ints, sizes: Sizes, at: tuple[int, int] = (step, number)
            ) -> Ints:
                made["layer_steps"].append(clock.layer_step(entries, sizes, *at, last=at[1] == len(layers) - 1))
                if sizes.groups > 1:
                    return added(entries, columns, sums, sizes)
                sums, lost = _with_lost_updates(entries, columns, sums, sizes, clock.beats)
                made["lost_updates"] += lost
                return sums

            entries = layer.step(values, thresholds, add)
            values = layer.h
            walked = layer.sizes.walked
            nonzero = [each.place for each in entries if each.delta]
            parts = [sum(each == 0 for each in nonzero), sum(0 < each <= walked for each in nonzero)]
            made["nonzero_bias_x_h"].append([*parts, len(nonzero) - sum(parts)])
            own_entries.append((entries, layer.sizes))
        outputs.append(values)
        steps.append(clock.final)
        made["output_beat_cycles"].append(clock.outputs)
    made["last_output_cycle_per_step"] = steps
    made["cycles_per_step"] = [two - one for one, two in zip([case["x0"] + 1, *steps], steps, strict=False)]
    made["outputs_sha256_int16le"] = hashlib.sha256(np.stack(outputs).astype("<i2").tobytes()).hexdigest()
    made["outputs_first_step"], made["outputs_last_step"] = outputs[0][:64].tolist(), outputs[-1][:64].tolist()
    made["outputs"] = np.stack(outputs).tolist()
    return made, own_entries, clock


def _signed(threshold: int) -> int:
    """A register of ten bits, the upper half of which is negative."""
    return (threshold + 512) % 1024 - 512


def _with_lost_updates(
    entries: Sequence[Entry], columns: Ints, sums: Ints, sizes: Sizes, beats: Sequence[Sequence[int]]
) -> tuple[Ints, int]:
    """Sums where a beat reads what beats at least four cycles before it left, and how many read too early."""
    left: dict[int, list[tuple[int, Ints]]] = {row: [(-(10**9), sums[row])] for row in range(4)}
    lost = 0
    for entry, cycles in zip(entries, beats, strict=True):
        if not entry.delta:
            continue
        weights = columns[entry.place].reshape(3, sizes.hidden)
        for gate, cycle in enumerate(cycles):
            row = gate if gate < 2 else (3 if entry.place <= sizes.walked else 2)
            lost += left[row][-1][0] > cycle - 4
            read = next(value for at, value in reversed(left[row]) if at <= cycle - 4)
            left[row].append((cycle, wrapped(read + weights[gate] * entry.delta, 24)))
    return np.stack([left[row][-1][1] for row in range(4)]), lost


def program_of(case: Mapping[str, Any], steps: Sequence[tuple[Sequence[Entry], Sizes]], late: Sequence[int]) -> Program:
    """The Program of a case from the entries of its layer-steps."""
    case = {**_DEFAULTS, **{key: value for key, value in case.items() if value is not None}}
    timing = Timing(case["lat"], case["period"], case["gap"], case["maxout"])
    lowering, layers = Lowering(timing, late or None), len(case["sizes"]) - 1
    waits = stream(case["wseed"] + 77) if case["xwait"] else None
    for number, (entries, sizes) in enumerate(steps):
        step, layer = divmod(number, layers)
        own = _input_waits(entries, sizes, waits, case["xwait"], number) if waits and layer == 0 else None
        lowering.add(entries, sizes, step, layer, own)
    phases = tuple(lowering.phases)
    task = Task("job", ((0, phases),), ((0, (Buffer("fifo", case["fifo"]),)),), (0,), case["x0"], case["xint"])
    return Program((Core(0, UNITS, 1, MAC),), (task,))


def _input_waits(
    entries: Sequence[Entry], sizes: Sizes, waits: Iterator[int], most: int, number: int
) -> tuple[list[int], int]:
    """For each entry how much later its input comes, behind the first beat; and the wait of that one."""
    beats = sizes.walked // sizes.lanes
    first = 0 if not number else next(waits) % (most + 1)
    drawn = [0]
    drawn += [next(waits) % (most + 1) for _ in range(beats - 1)]
    made, passed = [], 0
    for entry in entries:
        needed = min(max(0, -(-entry.place // sizes.lanes)), beats)
        made.append(sum(drawn[passed:needed]))
        passed = max(passed, needed)
    return made, first


def differences(case: Mapping[str, Any], expected: Mapping[str, Any], engine: str) -> list[str]:
    """A line for each key of what a case expects that numbers, clock or engine give otherwise."""
    made, steps, clock = run_numbers(case)
    lines = [f"numbers: {key}" for key, value in expected.items() if made.get(key) != value]
    if case.get("ostall"):
        return lines
    trace = run(program_of(case, steps, clock.lateness), engine)
    finals = finals_of(trace, [sizes.groups for _, sizes in steps])
    if finals != [each[1:] for each in expected["layer_steps"]]:
        lines.append("engine: first activation and last output of layer-steps")
    return lines


def finals_of(trace: Any, groups: Sequence[int]) -> list[list[int]]:
    """First activation and last output cycle of each layer-step in a trace of the only job."""
    columns = [trace.issue(name).tolist() for name in ("start", "phase", "operation", "unit")]
    made: dict[int, list[int]] = {}
    for start, phase, _, unit in sorted(zip(*columns, strict=True)):
        if unit == ACTIVATION:
            made.setdefault(phase, []).append(start)
    return [[starts[-1] - 5 * groups[phase] - 5, starts[-1]] for phase, starts in sorted(made.items())]
