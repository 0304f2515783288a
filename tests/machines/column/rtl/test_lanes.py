"""The generated lanes against the fixed-point arithmetic: nodes alone, and whole cells without others' schedule."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from lstmsim.machines.column.npu import ColumnCore, Latency
from lstmsim.machines.column.rtl.lanes.lanes_module import lane_files
from lstmsim.machines.column.rtl.lanes.netlist import Netlist, Pipeline, Signal, spread
from lstmsim.machines.column.rtl.lanes.operations import Operand, Result, compute, places
from lstmsim.machines.column.rtl.words import passes_of
from lstmsim.model.cell import Cell, stage_of
from lstmsim.model.cells import cell, graph
from lstmsim.model.model import Precision
from lstmsim.model.numerics.fixed_point import QFormat, combine, saturate
from tests.machines.column.rtl.bench import numbers, simulated
from tests.machines.column.rtl.lane_work import Work, models_of
from tests.machines.column.rtl.random_cells import random_cell
from tests.studies.rtl.needed import long_run, needs_icarus

OPERATIONS = ("add", "subtract", "maximum", "minimum", "multiply", "relu", "divide", "rsqrt")


class Nodes:
    """Single nodes in one module: each with widths, formats by class and a latency of its own."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.net, self.inputs, self.made = Netlist(), {}, []  # type: ignore[var-annotated]
        for operation in OPERATIONS:
            for _ in range(3):
                self._draw(operation)

    def _draw(self, operation: str) -> None:
        own, number = self.random, len(self.made)
        bits = [own.choice((2, 4, 8, 16, 24)) for _ in range(1 if operation in ("relu", "rsqrt") else 2)]
        span, out = own.choice((3, 12, 40, 80)), own.choice((4, 8, 16, 24))
        fractions = [[own.randint(-span, span) for _ in range(3)] for _ in bits]
        result = [own.randint(-span, span) for _ in range(3)]
        if operation == "rsqrt":
            result = [(own.choice((0, out)) + own.randint(-4, 10) - each) // 2 for each in fractions[0]]
        latency = own.choice((1, 2, 3, 5, 8, 16, 40))
        names = [f"i{number}_{place}" for place in range(len(bits))]
        self.inputs |= dict(zip(names, bits, strict=True))
        operands = [
            Operand(Signal(*each), tuple(own_))
            for each, own_ in zip(zip(names, bits, strict=True), fractions, strict=True)
        ]
        order = places(operation)
        pipe = Pipeline(self.net, f"n_{number}", 0, spread(latency, order) if order else (latency,))
        ends = compute(pipe, operation, operands, Result(out, tuple(result)))
        self.made.append((operation, names, fractions, result, out, latency, ends))

    @property
    def text(self) -> str:
        ports = [f"input wire signed [{bits - 1}:0] {name}" for name, bits in self.inputs.items()]
        outputs = [f"output wire [{made[4] - 1}:0] {end}{i}" for i, made in enumerate(self.made) for end in "yz"]
        last = max(cycle for _, cycle in self.net.controls)
        held = [f"reg [1:0] class_{i}; always @(posedge clock) class_{i} <= class_{i - 1};" for i in range(1, last + 1)]
        ends = [
            f"assign y{i} = {made[6][1].name}; assign z{i} = {made[6][0].name};" for i, made in enumerate(self.made)
        ]
        head = ", ".join(["input wire clock", "input wire [1:0] class_0", *ports, *outputs])
        return "\n".join(
            ["`default_nettype none", f"module nodes({head});", *held, self.net.text, *ends, "endmodule\n"]
        )

    def value(self, bits: int) -> int:
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        near = self.random.randint(max(low, -9), min(9, high))
        return self.random.choice(
            (self.random.randint(low, high), self.random.randint(low, high), low, high, 0, -1, near)
        )


@pytest.mark.slow
@needs_icarus
def test_a_node_is_exact_for_all_formats_widths_and_latencies(tmp_path: Path) -> None:
    nodes = Nodes(seed=1)
    cycles = [{"class_0": nodes.random.randrange(3)} for _ in range(120)]
    for each in cycles:
        each |= {name: nodes.value(bits) for name, bits in nodes.inputs.items()}
    outputs = {f"{end}{i}": made[4] for i, made in enumerate(nodes.made) for end in "yz"}
    given = simulated(
        tmp_path,
        "nodes",
        {},
        {"class_0": 2} | nodes.inputs,
        outputs,
        cycles + [{}] * 41,
        written={"nodes.v": nodes.text},
    )
    for i, (operation, names, fractions, result, bits, latency, _) in enumerate(nodes.made):
        for cycle, each in enumerate(cycles):
            own = each["class_0"]
            operands = [(np.array([each[name]]), one[own]) for name, one in zip(names, fractions, strict=True)]
            exact = combine(operation, operands, result[own])
            value = int(saturate(exact, QFormat(bits, result[own]))[0][0])
            # in front of its last register a node's value is there a cycle earlier
            there = given[cycle + latency][f"y{i}"], given[cycle + latency - 1][f"z{i}"]
            assert [numbers(one, bits, sign=True)[0] for one in there] == [value] * 2, (
                operation,
                operands,
                result[own],
            )


#: Cells side by side on one core, each on a thread of its own; latencies, widths of the tail and of numbers.
_KEYWORDS = Cell(
    "keywords",
    (stage_of("table[x h] cell[x h]"),),
    graph("before tanh table; c_q add cell c; c' multiply before c_q; end' relu c'; h' quantize end'"),
    {"h": "h'", "c": "c'"},
)
_QUICK = dict.fromkeys(vars(Latency()), 1) | {"read": 0, "convert": 0, "quantize": 0, "writeback": 0}
_SLOW = dict.fromkeys(vars(Latency()), 11)
WORKS = {
    "at once": (("dense-relu", "gru-lbr0", "lstm-projection"), _QUICK, 2, Precision(vector_bits=5, tail_bits=9)),
    "late": (("gru", "mingru", "rnn"), _SLOW, 3, Precision(activation="table", state_bits=24, multiplier_bits=20)),
    "means": (
        ("lstm-layernorm", "lstm-peephole"),
        _QUICK | {"elementwise_add": 3},
        3,
        Precision(tail_bits=24, activation_entries=32),
    ),
    "apart": (("gru-lbr0", "gru-lbr0", 39), {"divide": 5}, 2, Precision()),
    "graphs": ((11, 21, 39), _QUICK | {"divide": 5, "activation": 4}, 2, Precision(activation_entries=16)),
    "seen": (("lstm", "slstm"), {}, 2, Precision(vector_bits=16, activation_entries=32)),
    "two formats": ((23, 23, "keywords", "keywords"), {"quantize": 0, "divide": 40}, 1, Precision(activation_range=2)),
}


def _work(name: str, initial: bool = False) -> Work:
    names, latency, width, precision = WORKS[name]
    cells = [random_cell(each) if isinstance(each, int) else _named(each) for each in names]
    gates = [len(stage.gates) for each in cells for stage in each.stages]
    # units of row blocks are multiples of the tail's width, or stages have the same unit in different lanes
    vp = width * int(np.lcm.reduce(gates)) if name != "apart" else 6
    core = ColumnCore(vp * 2, 2, vp, threads=len(cells), tail_width=width, latency=Latency(**latency))
    return Work(models_of(*cells), core, precision, seed=5, initial=initial)


def _named(name: str) -> Cell:
    return _KEYWORDS if name == "keywords" else cell(name)


@pytest.mark.slow
@pytest.mark.halved
@needs_icarus
@pytest.mark.parametrize("name", WORKS)
def test_lanes_give_what_the_arithmetic_gives(name: str, tmp_path: Path) -> None:
    _work(name, initial=name in ("at once", "graphs", "apart")).run(tmp_path)


_USUAL_MUTANTS = ("wraps",)
#: Changes of the Verilog that give other numbers.
MUTANTS = {
    "rounds down": ("_half;", "_half - 1;"),
    "wraps": ("_inside ? ", "_inside || 1'b1 ? "),
    "lowest number of a vector": ("16'sh8001 :", "16'sh8000 :"),
    "state of step 0": ("zero_0 ?", "1'b0 ?"),
    "state of another turn": ("[turn_0]", "[turn_0 ^ 1'b1]"),
    "end of a table": ("_above ? {8{1'b1}}", "_above ? 8'd254"),
    "rise of a table": ("_rest;", "_rest + 1;"),
}


@pytest.mark.slow
@needs_icarus
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in _USUAL_MUTANTS else long_run) for each in MUTANTS]
)
def test_a_change_of_a_lane_is_seen(name: str, tmp_path: Path) -> None:
    old, new = MUTANTS[name]

    def changed(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    with pytest.raises(AssertionError, match="y_"):
        _work("seen").run(tmp_path, changed)


def test_the_same_design_gives_the_same_bytes() -> None:
    first, second = (
        lane_files(each.design, each.numbers, passes_of(each.design, each.numbers))
        for each in (_work("graphs"), _work("graphs"))
    )
    assert first == second
