"""`lstmsim fit` against what Yosys counted of the same designs."""

from __future__ import annotations

import pytest

import lstmsim
from lstmsim.studies.rtl.synthesis import FAMILIES, REST, PartCells, Synthesis, estimated, fitted
from lstmsim.studies.shared.loading import load_scenario
from tests.studies.rtl.counted import DESIGNS, Counted

#: Cells that count one of each resource, by family.
_CELLS = {
    "ecp5": ("MULT18X18D", "DP16KD", "LUT4", "TRELLIS_FF"),
    "xilinx": ("DSP48E1", "RAMB18E1", "LUT6", "FDRE"),
    "intel-alm": ("MISTRAL_MUL27X27", "MISTRAL_M10K", "MISTRAL_ALUT6", "MISTRAL_FF"),
}


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


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("counted", DESIGNS, ids=[each.name for each in DESIGNS])
def test_all_is_within_25_percent_and_multipliers_are_exact_where_none_share_a_block(
    counted: Counted, family: str
) -> None:
    cells = dict(zip(_CELLS[family], getattr(counted, family.replace("-", "_")), strict=True))
    synthesis = Synthesis(FAMILIES[family], "Yosys 0.70", (PartCells(REST, cells),))
    for each in estimated(load_scenario(scenario(counted), ()), synthesis):
        if each.resource == "multipliers" and family != "intel-alm":
            assert each.error == 0
        else:
            assert each.fit is not None
            assert abs(each.fit - each.yosys) <= 0.25 * each.yosys, each


def test_designs_that_had_no_part_in_the_formulas_are_the_most() -> None:
    assert sum(not each.learnt for each in DESIGNS) >= 12


#: Logic of issue, tail control and dispatch as Yosys 0.70 counted it, of 16 multipliers and two threads: how many jobs,
#: whether they are unlike (a model in one direction and one in both, 2 to 8 steps), elements of each family.
CONTROL = (
    (4, False, {"ecp5": 572, "xilinx": 363, "intel-alm": 310}),
    (32, False, {"ecp5": 688, "xilinx": 466, "intel-alm": 358}),
    (4, True, {"ecp5": 938, "xilinx": 543, "intel-alm": 449}),
    (32, True, {"ecp5": 1170, "xilinx": 731, "intel-alm": 550}),
)


@pytest.mark.parametrize(("jobs", "unlike", "counted"), CONTROL)
def test_control_is_counted_with_its_jobs(jobs: int, unlike: bool, counted: dict[str, int]) -> None:
    """Alike jobs cost little, unlike ones a table that each thread chooses from."""
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
    loaded = load_scenario(mapping, ())
    for family, logic in counted.items():
        parts = {each.name: each.logic for each in fitted(loaded, FAMILIES[family]).parts}
        assert abs(sum(parts[name] for name in ("issue", "tail control", "dispatch")) / logic - 1) <= 0.25, family
