"""`lstmsim fit` against what Yosys counted of the same designs."""

from __future__ import annotations

import pytest

import lstmsim
from lstmsim.studies.rtl.synthesis import FAMILIES, RESOURCES, REST, PartCells, Synthesis, estimated, fitted
from lstmsim.studies.shared.loading import load_scenario
from tests.studies.rtl.counted import DESIGNS, Counted

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
    errors = {each.resource: each.error for each in estimated(load_scenario(scenario(counted), ()), synthesis)}
    assert errors["multipliers"] == 0
    for name in RESOURCES[1:]:
        assert errors[name] is not None
        assert abs(errors[name] or 0) <= 0.25, (name, errors)


def test_at_least_twelve_designs_had_no_part_in_the_formulas() -> None:
    assert sum(not each.learnt for each in DESIGNS) >= 12


#: LUT4 of issue, tail control and dispatch as Yosys 0.23 counted them, of 16 multipliers and two threads: how many
#: jobs, whether they are unlike (a model in one direction and one in both, 2 to 8 steps), LUT4.
CONTROL = ((4, False, 766), (32, False, 839), (4, True, 1082), (32, True, 1655))


@pytest.mark.parametrize(("jobs", "unlike", "counted"), CONTROL)
def test_control_is_counted_with_its_jobs(jobs: int, unlike: bool, counted: int) -> None:
    """Alike jobs cost next to nothing, unlike ones a table that each thread chooses from."""
    layer = {"cell": "lstm", "hidden": 6, "input": 5}
    models = [{"name": "a", "layers": [layer]}, {"name": "b", "layers": [{**layer, "bidirectional": True}]}]
    steps = [2 + place % 7 if unlike and place > 1 else 8 if unlike else 4 for place in range(jobs)]
    chip = {
        "kind": "column-npu",
        "name": "small",
        "frequency_mhz": 100,
        "cores": [{"npe": 16, "ep": 2, "vp": 8, "threads": 2, "tail_width": 1}],
    }
    mapping = {
        "chip": chip,
        "jobs": [
            {"name": f"j{place}", "model": models[place % 2 if unlike else 0], "steps": own, "arrival": 10 * place}
            for place, own in enumerate(steps)
        ],
        "precision": {"formats": "shared"} if unlike else {},
    }
    parts = {each.name: each.logic for each in fitted(load_scenario(mapping), FAMILIES["ecp5"]).parts}
    assert abs(sum(parts[name] for name in ("issue", "tail control", "dispatch")) / counted - 1) <= 0.25
