"""`lstmsim fit` against what Yosys counted of the same designs."""

from __future__ import annotations

import pytest

import lstmsim
from lstmsim.api.loading import load_scenario
from lstmsim.api.rtl_synthesis import beside
from lstmsim.rtl.families import FAMILIES, RESOURCES
from lstmsim.rtl.synthesis import REST, PartCells, Synthesis
from tests.rtl.counted import DESIGNS, Counted

#: Cells of ECP5 that count one of each resource.
_CELLS = ("MULT18X18D", "DP16KD", "LUT4", "TRELLIS_FF")


def scenario(counted: Counted) -> lstmsim.Scenario:
    models = [
        lstmsim.Model(name=f"m{number}", layers=[lstmsim.Layer(**each) for each in layers], layer_order=counted.order)
        for number, layers in enumerate(counted.models)
    ]
    jobs = [
        lstmsim.Job(model=model, steps=steps, name=f"{model.name}-{steps}-{number}")
        for model in models
        for steps, count in counted.jobs
        for number in range(count)
    ]
    chip = {"kind": "column-npu", "name": "small", "frequency_mhz": 100, "cores": [counted.core]}
    return lstmsim.Scenario(chip=chip, jobs=jobs, precision=dict(counted.precision))


@pytest.mark.parametrize("counted", DESIGNS, ids=[each.name for each in DESIGNS])
def test_multipliers_are_exact_and_all_else_is_within_25_percent(counted: Counted) -> None:
    cells = dict(zip(_CELLS, counted.counts, strict=True))
    synthesis = Synthesis(FAMILIES["ecp5"], "Yosys 0.23", (PartCells(REST, cells),))
    errors = {each.resource: each.error for each in beside(load_scenario(scenario(counted), ()), synthesis)}
    assert errors["multipliers"] == 0
    for name in RESOURCES[1:]:
        assert errors[name] is not None
        assert abs(errors[name] or 0) <= 0.25, (name, errors)


def test_at_least_twelve_designs_had_no_part_in_the_formulas() -> None:
    assert sum(not each.learnt for each in DESIGNS) >= 12
