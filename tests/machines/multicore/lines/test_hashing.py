"""Sets of a hashed last-level cache: as the model has them, each block of lines a permutation, strides spread."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from lstmsim.machines.gemm import Product
from lstmsim.machines.multicore.chip import HASHES
from lstmsim.machines.multicore.lines.caches import polynomial_for, sets_of
from lstmsim.studies.shared.loading import load_chip
from tests.oracle.multicore_caches import set_of

#: Powers of two, multiples of them, odd ones; those of the presets.
SETS = (1, 2, 3, 4, 10, 64, 100, 16384, 24576)


@pytest.mark.halved
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("kind", HASHES)
def test_sets_are_those_of_the_model(kind: str, sets: int) -> None:
    lines = np.array([0, 1, sets, 5 * sets - 1, 37 * sets + sets // 2, *range(0, 1 << 21, 70001)])
    machine = SimpleNamespace(llc_sets=sets, llc_hash=kind)
    assert sets_of(kind, sets, int(lines.max()) + 1)(lines).tolist() == [set_of(machine, int(line)) for line in lines]


@pytest.mark.parametrize("sets", SETS)
def test_each_block_of_lines_has_one_line_in_each_set(sets: int) -> None:
    found = sets_of("xor", sets, 8 * sets)(np.arange(8 * sets)).reshape(8, sets)
    assert (np.sort(found) == np.arange(sets)).all()


def test_what_is_not_hashed() -> None:
    assert polynomial_for("bits", 64) == polynomial_for("xor", 63) == 1


@pytest.mark.parametrize("stride", [2**power for power in range(15)])
def test_lines_a_power_of_two_apart_lie_in_sets_of_their_own(stride: int) -> None:
    lines = np.arange(16384) * stride
    assert len(np.unique(sets_of("xor", 16384, int(lines.max()) + 1)(lines))) == 16384
    assert len(np.unique(sets_of("bits", 16384, int(lines.max()) + 1)(lines))) == 16384 // min(stride, 16384)


@pytest.mark.parametrize(("chip", "sets"), [("epyc-7742", 16384), ("xeon-gold-5122", 24576)])
def test_presets_hash(chip: str, sets: int) -> None:
    view = load_chip(chip)
    assert (view.llc_hash, view.llc_sets) == ("xor", sets)


@pytest.mark.slow
def test_weights_of_a_wide_layer_stay_in_last_level_caches_that_have_room_for_them() -> None:
    """One step of an LSTM with 1,024 units on 64 threads: 16 caches of 262,144 lines, weights of 524,288 lines."""
    from lstmsim.studies.gemm.run import run_gemm

    product = Product(1, 4096, 2048)
    runs = {
        kind: run_gemm(
            product.m, product.n, product.k, cut="MN:1x64x1", chip_overrides=[f"llc_hash={kind}"], baselines=False,
            numbers=False, packed="each",
        )
        for kind in HASHES
    }  # fmt: skip
    weights = product.k * product.n * 4 // 64
    assert runs["xor"].figures.counts.memory_read == 0
    assert runs["bits"].figures.counts.memory_read >= weights
    assert 5 * runs["xor"].figures.makespan < runs["bits"].figures.makespan
