"""The executor in numbers: any division computes the product, with the same bits in every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.machines.gemm import Cut, Division, Product, SubBlocks
from lstmsim.machines.multicore import steps as numbers
from lstmsim.machines.multicore.steps import computed, steps_of
from tests.machines.multicore.chips import TOY
from tests.machines.multicore.drawn import drawn_division, many_cores
from tests.strategies import examples

MACHINE = many_cores(64)


def operands(product: Product, kind: Any, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    draw = np.random.default_rng(seed)
    shapes = (product.m, product.k), (product.k, product.n)
    if np.issubdtype(kind, np.integer):
        return tuple(draw.integers(-50, 50, shape).astype(kind) for shape in shapes)  # type: ignore[return-value]
    return tuple((draw.random(shape) - 0.5).astype(kind) for shape in shapes)  # type: ignore[return-value]


def plain(division: Division, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Element by element, in the type of the operands, one product and one sum at a time."""
    kind = a.dtype.type
    c = np.zeros((division.product.m, division.product.n), kind)
    buffers = [np.zeros_like(c) for _ in range(division.cut.threads)]
    steps = sorted((step for each in steps_of(MACHINE, division) for step in each), key=lambda s: (s.number, s.thread))
    buffered = any(step.update for step in steps)
    for step in steps:
        target = buffers[step.thread] if buffered and not step.update else c
        for i in range(*step.rows):
            for j in range(*step.columns):
                acc = buffers[step.thread][i, j] if step.update else kind(0)
                for k in range(*step.ks):
                    acc = kind(acc + kind(a[i, k] * b[k, j]))
                target[i, j] = kind(target[i, j] + acc)
    return c


def test_integers_equal_numpy() -> None:
    """Any blocks, sub-blocks and buffer: the executor needs no plan."""
    for seed in range(examples(60)):
        division = drawn_division(seed)
        a, b = operands(division.product, np.int64, seed)
        assert np.array_equal(computed(MACHINE, division, a, b), a @ b), seed


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_product_and_sum_is_rounded_in_order(seed: int, kind: Any) -> None:
    division = drawn_division(seed, most=9)
    a, b = operands(division.product, kind, seed)
    result = computed(MACHINE, division, a, b)

    assert result.dtype == kind
    assert result.tobytes() == plain(division, a, b).tobytes()


@pytest.mark.parametrize("many", [1, 1 << 30])
@pytest.mark.parametrize("seed", [1, 5, 7])
def test_ways_to_go_through_k_have_the_same_bits(many: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    division = drawn_division(seed)
    a, b = operands(division.product, np.float32)
    usual = computed(MACHINE, division, a, b)
    monkeypatch.setattr(numbers, "_MANY", many)
    monkeypatch.setattr(numbers, "_HELD", 100)

    assert computed(MACHINE, division, a, b).tobytes() == usual.tobytes()


def test_the_division_decides_the_bits() -> None:
    """Floats of threads along K are added up in parts: other bits, the same value nearly."""
    product = Product(5, 7, 200)
    a, b = operands(product, np.float32)
    parts = Division(product, Cut("MK", 1, 1, 3, 5, 7, 72), SubBlocks(2, 4, 3, 2), buffer=True)
    alone = Division(product, Cut("MN", 1, 1, 1, 5, 7, 200))
    together, one = computed(MACHINE, parts, a, b), computed(MACHINE, alone, a, b)

    assert together.tobytes() != one.tobytes()
    assert np.allclose(together, one, atol=1e-5)
    assert together.tobytes() == computed(MACHINE, parts, a, b).tobytes()


def test_small_integers_wrap_as_numpy_does() -> None:
    division = drawn_division(3)
    a, b = operands(division.product, np.int8)

    assert np.array_equal(computed(MACHINE, division, a, b), a @ b)


def test_a_long_sum_of_one_element() -> None:
    """K is 100,000 and C one element: sums go one by one, never in pairs."""
    product = Product(1, 1, 100_000)
    a, b = operands(product, np.float32)
    c = computed(TOY, Division(product, Cut("MN", 1, 1, 1, 1, 1, product.k)), a, b)
    parts = np.add.accumulate((a.T * b).reshape(-1, 16), axis=1)[:, -1]

    assert c[0, 0] == np.add.accumulate(parts)[-1]


def test_operands_of_other_shapes_are_refused() -> None:
    division = Division(Product(2, 3, 4), Cut("MN", 1, 1, 1, 2, 3, 4))

    with pytest.raises(InputError, match=r"a: must have the shape \(2, 4\), got \(4, 2\)"):
        computed(TOY, division, np.ones((4, 2)), np.ones((4, 3)))
