"""Random words against the published generator, exponentials against exact logarithms, on every machine alike."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal, getcontext
from hashlib import sha256
from itertools import islice
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.traffic.streams import UNIT, _negative_logs, _upper_half, below, exponentials, stream_words, words

MASK = 2**64 - 1


def philox(counter: list[int], key: tuple[int, int]) -> list[int]:
    """Philox4x64-10 as published by Salmon et al. (2011), figure 1 and section 3.4."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        one, two = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (two >> 64) ^ c1 ^ k0, two & MASK, (one >> 64) ^ c3 ^ k1, one & MASK
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
    return [c0, c1, c2, c3]


def test_the_generator_is_the_published_one() -> None:
    # Known answers of the Random123 library (kat_vectors: philox4x64 10).
    assert philox([0] * 4, (0, 0))[:2] == [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC]
    assert philox([MASK] * 4, (MASK, MASK))[:2] == [0x87B092C3013FE90B, 0x438C3C67BE8D0224]


@pytest.mark.parametrize("key", [(0,), (7, "job", 3), ("", "x" * 1000, 2**70, -1)])
def test_words_are_those_of_the_generator(key: tuple[int | str, ...]) -> None:
    expected = [word for block in range(1, 26) for word in philox([block, 0, 0, 0], stream_words(key))]
    assert next(words(key, 100)).tolist() == expected


def test_the_key_is_a_hash_of_types_lengths_and_values() -> None:
    digest = sha256(b"i1:7s3:job").digest()
    assert stream_words((7, "job")) == tuple(int.from_bytes(digest[i : i + 8], "little") for i in (0, 8))
    keys = [(1, 2), (12,), ("1", 2), (1, "2"), ("12",), ("1", "2"), ("i1:1",), (-12,), (), ("",)]
    assert len({stream_words(key) for key in keys}) == len(keys)


@pytest.mark.parametrize("key", [(True,), (1.5,), (None,)])
def test_other_keys_are_refused(key: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="whole numbers and words"):
        stream_words(key)


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_no_number_depends_on_how_many_are_drawn_at_a_time(chunk: int) -> None:
    assert list(islice(exponentials((1,), chunk), 200)) == list(islice(exponentials((1,)), 200))
    assert list(islice(below((1,), 10, chunk), 200)) == list(islice(below((1,), 10), 200))


EDGES = [0, 2**12 - 1, 2**12, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2**12, 2**62, 3 * 2**62, 0xB504F333F9DE6484]


@given(st.lists(st.integers(0, MASK), min_size=1, max_size=50))
def test_exponentials_are_minus_the_logarithm(drawn: list[int]) -> None:
    getcontext().prec = 40
    logarithms = _negative_logs(np.array(EDGES + drawn, dtype=np.uint64)).tolist()
    for word, number in zip(EDGES + drawn, logarithms, strict=True):
        truth = -((Decimal(2 * (word >> 12) + 1) / 2**53).ln())
        # rounded down to 1 / UNIT, after some roundings of doubles
        assert abs(Decimal(number) / UNIT - truth) < Decimal(2) ** -51 + truth * Decimal(2) ** -51
        assert number >= 0


def test_logarithms_use_nothing_but_exact_operations() -> None:
    """The same steps in Python's own doubles, one at a time, give the same bits."""
    block = next(words((5, "bits"), 5000))
    for word, logarithm in zip(block.tolist(), _negative_logs(block).tolist(), strict=True):
        odd = 2 * (word >> 12) + 1
        exponent = odd.bit_length()
        mantissa = odd / 2**exponent
        low = mantissa < sqrt(0.5)
        mantissa = 2 * mantissa if low else mantissa
        s = (mantissa - 1) / (mantissa + 1)
        series = 1 / 21
        for odd_number in range(19, 0, -2):
            series = series * (s * s) + 1 / odd_number
        assert logarithm == int(((53 - exponent + low) * 0.6931471805599453 - 2 * s * series) * 2**52)


def test_numbers_never_change() -> None:
    """A change here changes every seeded result that anyone has published."""
    text = ",".join(map(str, islice(exponentials((2024, "pinned", 0)), 10_000)))
    assert sha256(text.encode()).hexdigest() == "0f0ea9fc22bedc613024b21068b9852ed84aa55bb1915091be500a18d0509bb6"
    assert list(islice(below((2024, "pinned"), 1000), 8)) == [882, 348, 707, 289, 68, 598, 625, 51]


@pytest.mark.slow
def test_another_process_draws_the_same() -> None:
    """Nothing depends on Python's own hashes, which differ from process to process."""
    code = "from itertools import islice; from lstmsim.traffic.streams import *; "
    code += "print(sum(islice(exponentials((3, 'a', 1)), 5000)))"
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = os.environ | {"PYTHONHASHSEED": seed}
    output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout
    assert int(output) == sum(islice(exponentials((3, "a", 1)), 5000))


def test_streams_of_neighbouring_keys_are_not_alike() -> None:
    one, two = (next(words((1, number), 20_000)).astype(np.float64) / 2**64 for number in (0, 1))
    assert abs(float(np.corrcoef(one, two)[0, 1])) < 4 / sqrt(20_000)


@given(st.integers(1, 2**63), st.lists(st.one_of(st.integers(0, 9), st.integers(0, MASK)), min_size=1, max_size=9))
def test_words_are_scaled_as_whole_numbers_are(bound: int, drawn: list[int]) -> None:
    scaled = _upper_half(np.array(drawn, dtype=np.uint64), bound)
    assert scaled.tolist() == [word * bound >> 64 for word in drawn]
