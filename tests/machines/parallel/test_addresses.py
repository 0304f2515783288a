"""Sectors, lines and wavefronts of single accesses, against the contract written out in loops."""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.machines.parallel.writing import addresses
from lstmsim.machines.parallel.writing.addresses import OFF, atomic_touches, touched, wavefronts
from tests.oracle import parallel_traffic as oracle

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "34"))


def random_rows(random: Random, lanes: int, vector: int) -> list[list[int]]:
    """First elements of lanes: in order, strided, the same, or anywhere; some lanes off."""
    rows = []
    for _ in range(random.randint(1, 6)):
        kind = random.choice(["order", "stride", "same", "any", "near"])
        start, step = random.randrange(200), random.choice([1, 2, 8, 16, 31, 32, 33])
        each = {
            "order": lambda lane, start=start: start + lane,
            "stride": lambda lane, start=start, step=step: start + step * lane,
            "same": lambda lane, start=start: start,
            "any": lambda lane: random.randrange(4000),
            "near": lambda lane: random.randrange(40),
        }[kind]
        off = random.choice([0.0, 0.2, 0.9, 1.0])
        rows.append([OFF if random.random() < off else vector * each(lane) for lane in range(lanes)])
    return rows


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([4, 32, 64]), st.sampled_from([1, 2, 4]), st.sampled_from([4, 2]))
def test_sectors_and_lines_are_those_of_the_active_lanes_bytes(seed: int, lanes: int, vector: int, size: int) -> None:
    rows = random_rows(Random(seed), lanes, vector)
    each, atoms = touched(np.array(rows, np.int32), size), atomic_touches(np.array(rows, np.int32), size)
    ends, atom_ends = np.cumsum(each.counts), np.cumsum(atoms.counts)
    for row, elements in enumerate(rows):
        bytes_touched = [size * first + byte for first in elements if first >= 0 for byte in range(size * vector)]
        lines, sectors = oracle.lines_and_sectors(bytes_touched)
        assert each.lines[row] == atoms.lines[row] == lines
        assert each.sectors[ends[row] - each.counts[row] : ends[row]].tolist() == sectors
        own = atoms.sectors[atom_ends[row] - atoms.counts[row] : atom_ends[row]].tolist()
        assert own == sorted(size * first // 32 for first in elements if first >= 0)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.integers(0, 2**32), st.sampled_from([4, 32, 64]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 16, 32, 24])
)
def test_a_group_needs_as_many_wavefronts_as_its_worst_bank_has_words(
    seed: int, lanes: int, vector: int, banks: int
) -> None:
    rows = [[OFF if each < 0 else 4 * each for each in row] for row in random_rows(Random(seed), lanes, vector)]
    table = np.array(rows, np.int32)
    expected = [oracle.wavefronts([None if each < 0 else each for each in row], vector, banks) for row in rows]
    assert wavefronts(table, vector, banks).tolist() == expected
    repeated = np.tile(table, (3, 1)) + np.where(np.tile(table, (3, 1)) < 0, 0, 16)
    assert wavefronts(repeated, vector, banks).tolist() == expected * 3


def test_two_patterns_with_one_key_are_still_told_apart() -> None:
    class Zero:
        def integers(self, *_: object, **__: object) -> np.ndarray:
            return np.zeros(4, np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(addresses.np.random, "default_rng", lambda _: Zero())
        # Multipliers are odd: 0 | 1 = 1 for all lanes, so that rows with the same sum have the same key.
        table = np.array([[0, 128, 256, 384], [0, 384, 256, 128], [0, 4, 380, 384]], np.int32)
        assert wavefronts(table, 1, 32).tolist() == [4, 4, 2]
