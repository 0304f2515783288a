"""The pairs that a search tries: the patent's constraints hold, and pairs that are left out are no better."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.studies.search.array import Limits, between, doublings, every_ep, limits_of, useful_vps, widest_vp
from tests.studies.search.useful import all_pairs

LIMITS = st.builds(
    Limits,
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 300)), min_size=1, max_size=3).map(tuple),
    st.lists(st.integers(1, 300), min_size=1, max_size=3).map(tuple),
    st.sampled_from([1, 7, 64]),
)


def blocks(units: int, gates: int, vp: int) -> int:
    return -(-units // (vp // gates))


def test_limits_of_a_stack() -> None:
    projected = Layer(cell("lstm-projection"), hidden=40, input=7, projection=9)
    model = Model("m", (projected, Layer(cell("gru-lbr0"), 30, 9, bidirectional=True)))
    limits = limits_of([model])
    assert set(limits.stages) == {(4, 40), (1, 9), (2, 30), (1, 30)}
    assert set(limits.widths) == {7, 9, 30, 40}
    assert (limits.rows, limits.gates, limits.width) == (160, 4, 40)


def test_limits_of_several_models_take_the_largest_of_each() -> None:
    wide = Model("a", (Layer(cell("rnn"), 10, 500),))
    tall = Model("b", (Layer(cell("lstm"), 100, 20),))
    limits = limits_of([wide, tall], tail_width=8)
    assert (limits.rows, limits.gates, limits.width, limits.tail_width) == (400, 4, 500, 8)


@given(LIMITS, st.integers(1, 5000), st.booleans())
def test_every_pair_keeps_the_constraints(limits: Limits, npe: int, any_ep: bool) -> None:
    assume(npe >= limits.gates)
    pairs = all_pairs(limits, npe, any_ep)
    assert len(set(pairs)) == len(pairs)
    for ep, vp in pairs:
        assert limits.gates <= vp <= limits.rows
        assert ep * vp <= npe
        assert any_ep or ep & (ep - 1) == 0
    if not any_ep:
        assert {(ep, widest_vp(limits, npe, ep)[0]) for ep in doublings(limits, npe)} <= set(pairs)
    assert npe // (2 * doublings(limits, npe)[-1]) < limits.gates


@given(LIMITS, st.integers(1, 5000))
def test_narrower_vps_make_as_many_blocks_of_a_stage(limits: Limits, npe: int) -> None:
    assume(npe >= limits.gates)
    for ep in doublings(limits, npe):
        widest, *others = useful_vps(limits, npe, ep)
        for vp in others:
            assert any(
                blocks(units, gates, vp) == blocks(units, gates, widest)
                for gates, units in limits.stages
                if vp >= gates
            )


def test_equal_blocks_and_whole_turns() -> None:
    # 341 units fit: 2 blocks of 192; 320 and 256 are whole turns of 64, 192 too
    assert useful_vps(Limits(((3, 384),), (384,), 64), 131072, 128) == (3 * 341 + 1, 3 * 320, 3 * 192)


@given(LIMITS, st.integers(1, 5000), st.integers(0, 7))
def test_refinement_keeps_one_ep_of_equal_column_groups(limits: Limits, npe: int, power: int) -> None:
    assume(npe // (1 << power) >= limits.gates)
    low, high = (1 << power) // 2, 2 << power

    def groups(ep: int) -> tuple[int, ...]:
        return tuple(-(-width // ep) for width in limits.widths)

    eps = between(limits, npe, low, high)
    assert all(low < ep < high and ep & (ep - 1) and npe // ep >= limits.gates for ep in eps)
    tried = {groups(ep) for ep in (*eps, low or 1, 1 << power)}
    for ep in range(low + 1, min(high, npe // limits.gates + 1)):
        assert groups(ep) in tried


def test_any_ep_ends_at_the_longest_vector() -> None:
    limits = Limits(((4, 5),), (3, 5))
    assert every_ep(limits, 4096)[:7] == (1, 2, 3, 4, 5, 9, 17)
    assert every_ep(limits, 12) == (1, 2, 3)


@given(st.integers(1, 60), st.integers(1, 400))
def test_every_other_ep_is_one_with_fewer_rows(width: int, npe: int) -> None:
    limits = Limits(((1, 5),), (width,))

    def shape(ep: int) -> tuple[int, int]:
        return min(ep, width), (ep - 1).bit_length()

    kept = every_ep(limits, npe)
    assert len({shape(ep) for ep in kept}) == len(kept)
    for ep in range(1, npe + 1):
        assert any(shape(each) == shape(ep) and each <= ep for each in kept)
