"""Claims on kernels of a GPU are measured by runs, and what does not come out is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim.files.published import claims
from lstmsim.studies.validate.run import Kernels
from tests.studies.validate.whole import SMALL, whole

CLAIMS = {claim.key: claim for claim in claims()}
KERNELS = Kernels(sparse=SMALL)

pytestmark = pytest.mark.needs_core


def said(key: str) -> str:
    return next(each.simulated for each in whole().claims if each.key == key)


def test_mechanisms_that_cost_cycles_are_named() -> None:
    text = said("astitch-mechanisms")
    assert text.startswith("xla 52,345, mapped 63,917, stored 45,841, stitch 48,429; it does not fall at every step")
    assert "mapped takes 11,572 more than xla; stitch takes 2,588 more than stored" in text
    assert said("astitch-writes") == "65,920 to 65,920 bytes: no fall to speak of"
    assert said("astitch-xla") == "1.08 x"
    assert said("astitch-kernels") == "8 to 1, 88 % fewer"


@pytest.mark.slow
def test_kernels_of_the_drawn_graph_are_judged() -> None:
    assert KERNELS.drawn_graph(CLAIMS["astitch-figure-7"]).verdict == "holds"
    assert KERNELS.drawn_graph(replace(CLAIMS["astitch-figure-7"], value="4, 2, 1")).verdict == "fails"


def test_sorted_rows_are_nearer_to_equally_long_ones() -> None:
    cycles = {order: KERNELS.product(even=False, order=order)[0] for order in ("sorted", "plain")}
    even, share = KERNELS.product(even=True, order="plain")
    assert 0 < share < 1
    finding = KERNELS.row_swizzle(CLAIMS["gale-row-swizzle"])
    assert finding.simulated == ", ".join(f"{order} {100 * even / each:.1f} %" for order, each in cycles.items())
    assert f"{100 * share:.1f} %" in KERNELS.peak_share(CLAIMS["gale-peak-share"]).simulated
    assert "the paper's matrices are not here" in finding.condition
