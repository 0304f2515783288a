"""Products that were planned, as text and as plain data."""

from __future__ import annotations

from dataclasses import replace

from lstmsim.analysis.report_text import planned_grid, planned_section
from lstmsim.model.figures import PlannedProduct, PlannedProducts
from lstmsim.report.document import Document
from lstmsim.report.renderings import text
from lstmsim.report.results import picked

WHY = (("kb < kc/4", "p_k > 16"), ("kb < kc/4",))
ROW = PlannedProduct(
    "m", (0, 1, 2), "i,f x [x|h]", 4, 2048, 1024, 64, "NK 1x16x4", "4 x 128 x 256", "buffers", 2, 9, WHY
)


def _shown(product: PlannedProduct) -> dict[str, str]:
    grid = planned_grid(PlannedProducts((product,), ""), "", 9)
    return dict(zip((each.head for each in grid.columns), grid.shown[0], strict=True))


def test_a_row_says_what_was_rejected_before_the_plan() -> None:
    reported = _shown(ROW)
    assert reported["layers"] == "0..2"
    assert reported["m x n x k"] == "4 x 2,048 x 1,024"
    assert (reported["rank"], reported["rejected before"]) == ("2 of 9", "2: kb < kc/4, p_k > 16")
    assert (reported["cut"], reported["relief"]) == ("NK 1x16x4", "buffers")
    plain = replace(ROW, layers=(0, 2), rank=0, rejected=(), relief="")
    reported = _shown(plain)
    assert (reported["layers"], reported["rejected before"], reported["relief"]) == ("0,2", "none", "-")
    assert picked(PlannedProducts((ROW,), "why"), "rows")["rows"][0]["rejected"] == [list(each) for each in WHY]


def test_many_products_stay_short() -> None:
    rows = tuple(replace(ROW, model=f"m{number}") for number in range(40))
    lines = text(Document.of("", planned_section(PlannedProducts(rows, "why")))).splitlines()
    assert len(lines) == 1 + 1 + 12 + 1 + 1
    assert lines[-2:] == ["... and 28 more products; --json FILE has every one", "why"]
