"""The pass without one of its checks makes plans that are faults."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from lstmsim.model.fusion import planner
from lstmsim.model.fusion import planner as layout
from lstmsim.model.fusion.graph import CONSTANT
from lstmsim.model.fusion.interpreter.checks import difference_of_run
from lstmsim.model.fusion.interpreter.run import Fault
from lstmsim.model.fusion.plan import GLOBAL, REGISTER, SHARED
from lstmsim.model.fusion.planner import Buffers, planned
from tests.model.fusion.random_graphs import DEVICES, random_graph


def runs(seeds: range, device: str) -> Counter[str]:
    """How many stitched plans of random graphs are right, faults, or wrong numbers."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        graph = random_graph(seed)
        try:
            kernels = [each.kernel for each in planned(graph, DEVICES[device]).subgraphs]
            far = difference_of_run(graph, kernels, DEVICES[device])
            outcomes["right" if far.equal else "wrong"] += 1
        except Fault as fault:
            outcomes[" ".join(fault.why.split()[:3])] += 1
    return outcomes


def without_cycles(patch: pytest.MonkeyPatch) -> None:
    def connected(graph):
        of = list(range(len(graph.nodes)))
        for number, node in enumerate(graph.nodes):
            for operand in graph.operands[number]:
                if operand != CONSTANT and node.intensive and graph.nodes[operand].intensive:
                    of = [of[number] if each == of[operand] else each for each in of]
        parts = [[number for number in range(len(of)) if of[number] == each] for each in dict.fromkeys(of)]
        return tuple(tuple(each) for each in parts if graph.nodes[each[0]].intensive), ()

    patch.setattr(planner, "clusters", connected)


def without_locality(patch: pytest.MonkeyPatch) -> None:
    schemes = layout.schemes

    def local(graph, placed, reads, overflowed):
        known = schemes(graph, placed, reads, overflowed)
        forced = {number for number, each in known.items() if each.scheme == GLOBAL and not each.partials}
        # what overflowed stays where it is, or else it would overflow again and again
        return known | {number: replace(known[number], scheme=SHARED) for number in forced - set(overflowed)}

    patch.setattr(layout, "schemes", local)


def without_threads(patch: pytest.MonkeyPatch) -> None:
    schemes = layout.schemes

    def registers(*arguments):
        return {
            number: replace(reason, scheme=REGISTER) if reason.scheme == SHARED else reason
            for number, reason in schemes(*arguments).items()
        }

    patch.setattr(layout, "schemes", registers)


def without_wave_limit(patch: pytest.MonkeyPatch) -> None:
    kernel = planner._kernel
    patch.setattr(planner, "_kernel", lambda *arguments: replace(kernel(*arguments), wave=10**9))


def without_lifetimes(patch: pytest.MonkeyPatch) -> None:
    def buffered(stages, requests, last_reader):
        return Buffers((max(requests.values()),) if requests else (), dict.fromkeys(requests, 0))

    patch.setattr(layout, "buffered", buffered)


def without_barriers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(layout, "grid_barriers", lambda *_: (frozenset(), False))


#: Random graphs.
SEEDS = range(50)


@cache
def with_all_checks(device: str) -> Counter[str]:
    return runs(SEEDS[:30], device)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "device", "said"),
    [
        (without_cycles, "v100", "nothing can run"),
        (without_locality, "small", "it lies in"),
        (without_threads, "v100", "it lies in"),
        (without_wave_limit, "crowded", "its blocks wait"),
        (without_lifetimes, "v100", "in shared memory,"),
        (without_barriers, "small", "no grid barrier"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_without_a_check_plans_are_faults(check, device, said, monkeypatch):
    assert set(with_all_checks(device)) == {"right"}
    check(monkeypatch)
    # of graphs that would wait for each other there are few
    outcomes = runs(SEEDS if check is without_cycles else SEEDS[:30], device)
    assert outcomes[said] >= 2, outcomes
    # none of them goes unseen
    assert not outcomes["wrong"], outcomes
