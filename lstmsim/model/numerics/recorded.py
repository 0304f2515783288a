"""A golden run with everything that was computed on the way: each sum and node of each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from lstmsim.model.numerics.arithmetic import Arithmetic, Array
from lstmsim.model.numerics.golden import NetworkRun, run_network
from lstmsim.model.numerics.jobs import JobNumbers

#: `values[layer][direction][name]`: a sum's or node's held values, a row for each step in the order of computing.
Values = tuple[tuple[Mapping[str, Array], ...], ...]


def run_recorded(job: JobNumbers) -> tuple[NetworkRun, Values]:
    """Run the golden model of a job that follows no other, and keep all values.

    >>> from lstmsim.model.numerics.golden import float_arithmetic
    >>> from lstmsim.model.numerics.weights import random_network, random_stimulus
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> network = random_network(Model("m", (Layer(cell("lstm"), 4, 3),)), seed=1)
    >>> job = JobNumbers(float_arithmetic(network), random_stimulus(network.model, steps=5, seed=1))
    >>> run, values = run_recorded(job)
    >>> values[0][0]["i"].shape, bool((values[0][0]["h'"] == run.passes[0][0].h).all())
    ((5, 4), True)
    """
    assert job.follows is None
    computed: list[tuple[str, Array]] = []
    run = run_network(job.arithmetic, job.stimulus, lambda name, values: computed.append((name, values)))
    rest, steps = iter(computed), len(job.stimulus.x)
    return run, tuple(tuple(_of_pass(own, rest, steps) for own in both) for both in job.arithmetic)


def _of_pass(own: Arithmetic, computed: Iterator[tuple[str, Array]], steps: int) -> Mapping[str, Array]:
    """The values of the next pass, in whose steps each sum and node is computed once."""
    cell = own.layer.cell
    count = len(cell.sums) + len(cell.nodes)
    every: dict[str, list[Array]] = {}
    for _ in range(steps * count):
        name, values = next(computed)
        every.setdefault(name, []).append(values)
    return {name: np.stack(values) for name, values in every.items()}
