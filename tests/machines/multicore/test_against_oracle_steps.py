"""Random divisions against the model of `tests/oracle`: steps, their lines, what the caches count, and numbers."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.machines.gemm import Division
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.lines.caches import PlainCaches, open_caches
from lstmsim.machines.multicore.lines.space import COLUMNS, Space, operands, runs_of
from lstmsim.machines.multicore.product import core_cycles
from lstmsim.machines.multicore.steps import compute_cycles, computed, steps_of
from tests.machines.multicore.chips import flat
from tests.machines.multicore.random_work import divisions, machines, modelled
from tests.oracle import multicore_caches, multicore_lines
from tests.oracle import multicore_steps as model

#: 2,000 and more by LSTMSIM_EXAMPLES=2000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))


@st.composite
def divided(draw: st.DrawFn) -> tuple[MulticoreCpu, Division]:
    machine = draw(machines())
    return machine, draw(divisions(machine))


@settings(max_examples=EXAMPLES, deadline=None)
@given(divided())
def test_steps_and_their_arithmetic(case: tuple[MulticoreCpu, Division]) -> None:
    machine, division = case
    numbers = flat(machine)
    said = steps_of(machine, division)
    expected = model.steps_of(numbers, modelled(division))
    assert len(said) == len(expected)
    for ours, theirs in zip(said, expected, strict=True):
        assert [reported(step) for step in ours] == [expected_of(step) for step in theirs]
        assert [compute_cycles(machine, step) for step in ours] == [model.compute(numbers, step) for step in theirs]


def reported(step: Any) -> tuple[Any, ...]:
    ks = None if step.update else step.ks
    return step.thread, step.number, step.rows, step.columns, ks, step.update, step.packs_b, step.after


def expected_of(step: model.Step) -> tuple[Any, ...]:
    update = step.kind == "update"
    after = None if step.after is None else (step.after.thread, step.after.number)
    ks = None if update else step.ks
    return step.thread, step.number, step.ms, step.ns, ks, update, step.packs_b, after


@settings(max_examples=EXAMPLES, deadline=None)
@given(divided(), st.booleans())
def test_lines_and_what_the_caches_count(case: tuple[MulticoreCpu, Division], job: bool) -> None:
    """The same product twice: cold, and warm. In a job the weights are packed before, and C is shared always."""
    machine, division = case
    numbers = flat(machine)
    division = replace(division, packed=job)
    space, their_space = Space(machine), multicore_caches.Space(numbers)
    places = operands(space, machine, division, job=job)
    product = modelled(division)
    their_places = multicore_lines.place_product(numbers, their_space, product, 0, job)
    steps = model.in_rounds(model.steps_of(numbers, product))
    ours = steps_of(machine, division)
    runs = [runs_of(machine, division, places, ours[step.thread][step.number]) for step in steps]
    for run, step in zip(runs, steps, strict=True):
        expected = list(multicore_lines.runs(numbers, product, their_places, step))
        assert list(zip(run.address.tolist(), run.size.tolist(), run.write.tolist(), strict=True)) == expected
    native, plain = open_caches(machine, space.arrays), PlainCaches(machine, space.arrays)
    their_caches = multicore_caches.Caches(numbers, their_space)
    for _ in range(2):
        expected_rows = multicore_lines.trace(numbers, their_caches, product, their_places)
        for caches in (native, plain):
            rows = caches.drive([step.thread for step in steps], runs)
            assert rows.tolist() == [row_of(machine, each) for each in expected_rows]
        compute = [each.compute for each in expected_rows]
        assert core_cycles(machine, compute, rows)[0].tolist() == [each.x for each in expected_rows]


def row_of(machine: MulticoreCpu, counted: multicore_lines.Counted) -> list[int]:
    return [*(counted.counts[name] for name in COLUMNS), *(counted.memory[each] for each in range(machine.domains))]


@settings(max_examples=EXAMPLES, deadline=None)
@given(divided(), st.sampled_from([np.float32, np.float64, np.int32, np.int64]), st.integers(0, 2**32 - 1))
def test_numbers_to_the_bit(case: tuple[MulticoreCpu, Division], kind: Any, seed: int) -> None:
    machine, division = case
    numbers = flat(machine)
    random = np.random.default_rng(seed)
    product = division.product
    a = (random.standard_normal((product.m, product.k)) * 1000).astype(kind)
    b = (random.standard_normal((product.k, product.n)) * 1000).astype(kind)
    c = computed(machine, division, a, b)
    assert c.dtype == kind
    assert c.tobytes() == model.computed(numbers, modelled(division), a, b).tobytes()
