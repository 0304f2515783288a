"""The plans of all golden cases: every number to the last bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lstmsim.targets.gemm import Candidate, Cut, GemmPlan, Product, SubCandidate
from lstmsim.targets.multicore.machine import Machine
from lstmsim.targets.multicore.planning.planner import plan
from lstmsim.targets.multicore.planning.settings import Settings

PATH = Path(__file__).parents[3] / "data" / "contract_cases_gemm.json"
CASES = [case for case in json.loads(PATH.read_text(encoding="utf-8")) if "plan" in case["expect"]]
#: The golden cases have the parameters of the document.
DOCUMENTED = Settings()


def machine_of(data: dict[str, Any]) -> Machine:
    rest: dict[str, Any] = {name: value for name, value in data.items() if name not in ("name", "frequency_mhz")}
    return Machine(**rest | {"fill": tuple(data["fill"]), "buffer_fill": tuple(data["buffer_fill"])})


def as_cut(cut: Cut) -> dict[str, Any]:
    sizes = {"mb": cut.mb, "nb": cut.nb, "kb": cut.kb}
    return {"kind": cut.kind, "pm": cut.p_m, "pn": cut.p_n, "pk": cut.p_k, **sizes}


def as_candidate(each: Candidate) -> dict[str, Any]:
    conditions = {"raw": dict(each.raw), "normalised": dict(each.normalised)}
    return {**as_cut(each.cut), **conditions, "fitness": each.fitness, "why_not": list(each.why_not)}


def as_sub(each: SubCandidate) -> dict[str, Any]:
    own = each.sub_blocks
    sizes = {"sm": own.sm, "sn": own.sn, "Sm": own.s_m, "Sn": own.s_n}
    return {**sizes, "raw": dict(each.raw), "fitness": each.fitness}


def as_data(of: GemmPlan) -> dict[str, Any]:
    own = of.sub_blocks
    return {
        "blocks": dict(of.blocks),
        "ranked": [as_candidate(each) for each in of.ranked],
        "chosen": of.chosen,
        "idle": [as_cut(each) for each in of.idle],
        "sub_blocks": own and [own.sm, own.sn, own.s_m, own.s_n],
        "buffer": of.buffer,
        "sub_ranked": [as_sub(each) for each in of.sub_ranked[:5]],
    }


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden_plans(case: dict[str, Any]) -> None:
    product = Product(case["M"], case["N"], case["K"])
    of = plan(machine_of(case["machine"]), product, case["threads"], DOCUMENTED)
    # a text keeps the last bit, and tells 1 from 1.0
    assert json.dumps(as_data(of)) == json.dumps(case["expect"]["plan"])
