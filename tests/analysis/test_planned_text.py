"""Products that were planned, as text and as plain data."""

from __future__ import annotations

from dataclasses import replace

from lstmsim.analysis.report_text import HEAD, planned_cells, planned_json, planned_text
from lstmsim.model.figures import PlannedProduct, PlannedProducts

WHY = (("kb < kc/4", "p_k > 16"), ("kb < kc/4",))
ROW = PlannedProduct(
    "m", (0, 1, 2), "i,f x [x|h]", 4, 2048, 1024, 64, "NK 1x16x4", "4 x 128 x 256", "buffers", 2, 9, WHY
)


def test_a_row_says_what_was_rejected_before_the_plan() -> None:
    told = dict(zip(HEAD, planned_cells(ROW), strict=True))
    assert told["layers"] == "0..2"
    assert told["m x n x k"] == "4 x 2,048 x 1,024"
    assert (told["rank"], told["rejected before"]) == ("2 of 9", "2: kb < kc/4, p_k > 16")
    assert (told["cut"], told["relief"]) == ("NK 1x16x4", "buffers")
    plain = replace(ROW, layers=(0, 2), rank=0, rejected=(), relief="")
    told = dict(zip(HEAD, planned_cells(plain), strict=True))
    assert (told["layers"], told["rejected before"], told["relief"]) == ("0,2", "none", "-")
    assert planned_json(PlannedProducts((ROW,), "why"))["products"][0]["rejected"] == [list(each) for each in WHY]


def test_many_products_stay_short() -> None:
    rows = tuple(replace(ROW, model=f"m{number}") for number in range(40))
    lines = planned_text(PlannedProducts(rows, "why")).splitlines()
    assert len(lines) == 1 + 1 + 12 + 1 + 1
    assert lines[-2:] == ["... and 28 more; --json FILE has every one", "why"]
