"""The interpreter against one that goes from element to element: the same bits, and faults for the same wrong plans."""

from __future__ import annotations

import os
import random
from dataclasses import asdict, replace

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.graph import COMPUTE, Graph
from lstmsim.model.fusion.interpreter.run import Fault, executed
from lstmsim.model.fusion.plan import MODES, FusionDevice, PlannedKernel
from lstmsim.model.fusion.planner import planned
from lstmsim.model.fusion.schemes import drawn_inputs, evaluated
from tests.model.fusion.plain import odd_device, plain_graph
from tests.model.fusion.random_graphs import random_graph
from tests.oracle import fusion_modes, fusion_plan, fusion_run
from tests.oracle.fusion_plan import Kernel

LONG = "LSTMSIM_EXAMPLES" in os.environ
#: Random graphs: 8 in the usual run, at least 200 in the long one (LSTMSIM_EXAMPLES).
COUNT = max(200, int(os.environ["LSTMSIM_EXAMPLES"])) if LONG else 8


class Drawn:
    """A random graph with numbers, and both plans of it."""

    def __init__(self, seed: int, device: FusionDevice) -> None:
        self.graph: Graph = random_graph(seed)
        self.device, self.plan = device, planned(self.graph, device)
        self.inputs = drawn_inputs(self.graph, seed)
        self.truth = evaluated(self.graph, self.inputs)
        self.plain = plain_graph(self.graph)

    def kernels(self, mode: str) -> list[PlannedKernel]:
        return list(kernels_of(self.graph, self.plan, self.device, mode))

    def plain_kernels(self, mode: str) -> list[Kernel]:
        plans, _ = fusion_plan.plans(self.plain, asdict(self.device))
        return fusion_modes.kernels_of(self.plain, plans, mode, asdict(self.device))

    def plain_run(self, kernels: list[Kernel]) -> dict[int, list[float]]:
        memory = {number: value.reshape(-1).tolist() for number, value in self.inputs.items()}
        calls = [number for number, node in enumerate(self.graph.nodes) if node.kind == COMPUTE]
        results = {number: self.truth[number].reshape(-1).tolist() for number in calls}
        fusion_run.executed(self.plain, kernels, memory, results, asdict(self.device))
        return memory

    def faults(self, kernels: list[PlannedKernel], plain: list[Kernel]) -> tuple[bool, bool]:
        """Whether the interpreter and the plain one find a fault."""
        found = [False, False]
        try:
            executed(self.graph, kernels, self.inputs, self.device)
        except Fault:
            found[0] = True
        try:
            self.plain_run(plain)
        except fusion_run.Fault:
            found[1] = True
        return found[0], found[1]


def drawn(count: int) -> list[Drawn]:
    made = []
    for seed in range(count):
        try:
            made.append(Drawn(seed, odd_device(seed)))
        except InputError:
            continue
    assert len(made) > count // 2
    return made


def test_the_same_bits_in_every_mode() -> None:
    for each in drawn(COUNT):
        wanted = [number for number in each.graph.output_numbers if each.graph.nodes[number].intensive]
        for mode in MODES:
            values = executed(each.graph, each.kernels(mode), each.inputs, each.device)
            plain = each.plain_run(each.plain_kernels(mode))
            for number in wanted:
                assert values[number].reshape(-1).tolist() == plain[number]
                assert np.allclose(plain[number], each.truth[number].reshape(-1), rtol=1e-9, atol=1e-9)


def change(draw: random.Random, kernel: PlannedKernel, plain: Kernel) -> PlannedKernel:
    """A plan with one thing that may be wrong, in both forms; the plain one is changed in place."""
    place = draw.randrange(len(kernel.stages))
    stage, own = kernel.stages[place], plain.stages[place]
    if plain.end_barrier and draw.random() < 0.3:
        plain.end_barrier = False
        return replace(kernel, end_barrier=False)
    if own.barrier:
        own.barrier = False
        stage = replace(stage, grid_barrier=False)
    elif own.buffer > 0:
        own.buffer = 0
        stage = replace(stage, buffer=0)
    elif own.scheme in ("shared", "global") and not own.pieces:
        own.scheme, own.buffer = "register", -1
        stage = replace(stage, scheme="register", buffer=-1)
    return replace(kernel, stages=(*kernel.stages[:place], stage, *kernel.stages[place + 1 :]))


def test_faults_for_the_same_wrong_plans() -> None:
    faults = []
    for seed, each in enumerate(drawn(3 * COUNT)):
        kernels, plain = each.kernels("stitch"), each.plain_kernels("stitch")
        draw = random.Random(seed)
        place = draw.randrange(len(kernels))
        kernels[place] = change(draw, kernels[place], plain[place])
        one, other = each.faults(kernels, plain)
        assert one == other
        faults.append(one)
    assert True in faults
    assert False in faults
