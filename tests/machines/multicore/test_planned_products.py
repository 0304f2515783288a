"""Reports of jobs on a multi-core CPU say how their products are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.machines.multicore.jobs import planned_products, plans_of
from lstmsim.model.figures import PlannedProducts

#: Two layers whose products are equal, and a cell of several products.
SCENARIO: dict[str, Any] = {
    "chip": "epyc-7742",
    "jobs": [
        {"model": "lstm-2x512", "steps": 1, "threads": 8, "count": 2},
        {"model": "deepbench-gru-512-1", "steps": 1, "threads": 4, "batch": 2},
    ],
}


def planned() -> PlannedProducts:
    return lstmsim.run(SCENARIO).report.planned or PlannedProducts((), "")


@pytest.mark.slow
def test_each_product_is_told_once_with_its_plan() -> None:
    scenario = lstmsim.load_scenario(SCENARIO)
    rows = planned().rows
    assert [(each.model, each.layers, each.threads) for each in rows] == [
        ("lstm-2x512", (0, 1), 8),
        *[("deepbench-gru-512-1", (0,), 4)] * 3,
    ]
    machine = scenario.chip  # type: ignore[attr-defined]
    gru = scenario.jobs[2].model.layers[0]
    for row, plan in zip(rows[1:], plans_of(machine, gru, 2, 4), strict=True):
        cut = plan.division.cut
        assert row.cut == f"{cut.kind} {cut.p_m}x{cut.p_n}x{cut.p_k}"
        assert (row.m, row.n, row.k) == (plan.product.m, plan.product.n, plan.product.k)
        assert (row.rank, row.candidates, len(row.rejected)) == (plan.chosen, len(plan.ranked), plan.chosen)


def test_the_parameters_that_the_note_names_give_the_same_plan() -> None:
    options: dict[str, Any] = {"threads": 8, "settings": {"cycles": 0, "mn": "blis"}}
    report = lstmsim.run_gemm(model="lstm-2x512", baselines=False, numbers=False, **options)
    row = planned().rows[0]
    cut = report.plan.division.cut
    assert row.cut == f"{cut.kind} {cut.p_m}x{cut.p_n}x{cut.p_k}"
    assert (row.rank, row.candidates) == (report.plan.chosen, len(report.plan.ranked))
    assert "--set cycles=0 and --set mn=blis" in planned().note


def test_cuts_that_were_rejected_and_reliefs_are_told() -> None:
    machine = lstmsim.load_chip("epyc-7742")  # type: ignore[attr-defined]
    wide = lstmsim.Model("wide", [lstmsim.Layer(cell="rnn", hidden=32, input=992)])
    (row,) = planned_products(machine, [lstmsim.Job(model=wide, steps=1, batch=32, threads=32)]).rows
    assert (row.m, row.n, row.k, row.rank) == (32, 32, 1024, 1)
    assert row.rejected == (("kb < kc/4", "p_k > 16"),)
    assert row.cut.startswith(("MK", "NK"))
    gates = lstmsim.load_model("gru-512")
    rows = planned_products(machine, [lstmsim.Job(model=gates, steps=1, batch=8, threads=64)]).rows
    assert (rows[0].cut, rows[0].relief) == ("NK 1x16x4", "1 x 4 sub-blocks of 12 x 16 and buffers")


def test_text_json_and_page_tell_it(tmp_path: Path) -> None:
    run = lstmsim.run(SCENARIO)
    text, answer = run.to_text(), run.to_dict()["plans"]
    assert text.count("\nPLANS: ") == 1
    (line,) = [each for each in text.splitlines() if each.startswith("lstm-2x512 ") and " x [x|h]" in each]
    assert line.split()[1] == "0..1"
    assert answer["note"].split() == text[text.index("planned with") :].split("\n\n")[0].split()
    assert [each["layers"] for each in answer["products"]] == [[0, 1], [0], [0], [0]]
    lstmsim.save_report(run, str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<caption>How the products of a time step are cut") == 1
    # a machine that plans no threads says nothing of them
    other = lstmsim.run({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]})
    assert "plans" not in other.to_dict()
    assert "PLANS" not in other.to_text()
