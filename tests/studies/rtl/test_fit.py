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


#: Designs with a table of jobs of 16 or 12 multipliers: layers of each model, threads, most jobs and steps; elements of
#: logic and registers of the whole design by family, and registers of the table alone, as Yosys 0.70 counted them.
_LSTM = {"cell": "lstm", "hidden": 6, "input": 5}
_GRUS = [{"cell": "gru", "hidden": 4, "input": 3}, {"cell": "gru", "hidden": 4, "input": 4}]
_RNN = {"cell": "rnn", "hidden": 6, "input": 4}
_TWO = [[_LSTM], [{**_LSTM, "bidirectional": True}]]
TABLES = (
    ([[_LSTM]], 16, 2, (4, 8), {"ecp5": (5577, 6649), "xilinx": (3764, 2713)}, 724),
    ([[_LSTM]], 16, 2, (16, 8), {"ecp5": (9902, 9159), "xilinx": (6569, 5349), "intel-alm": (3938, 9271)}, 3088),
    ([[_LSTM]], 16, 2, (32, 8), {"ecp5": (16126, 12512)}, None),
    (_TWO, 16, 2, (4, 8), {"ecp5": (6325, 6919)}, 848),
    (_TWO, 16, 2, (16, 8), {"ecp5": (11370, 9833), "xilinx": (7377, 5696)}, None),
    ([_GRUS, [_RNN]], 12, 2, (8, 12), {"ecp5": (9162, 9209)}, 2144),
    ([_GRUS], 12, 2, (32, 6), {"ecp5": (19759, 15024)}, None),
    ([[_LSTM]], 16, 1, (16, 8), {"ecp5": (6175, 9187)}, None),
    ([[_LSTM]], 16, 4, (16, 8), {"ecp5": (16966, 9961)}, None),
)


@pytest.mark.parametrize(("models", "npe", "threads", "table", "counted", "registers"), TABLES)
def test_a_table_of_jobs_is_counted(
    models: list[list[dict[str, object]]],
    npe: int,
    threads: int,
    table: tuple[int, int],
    counted: dict[str, tuple[int, int]],
    registers: int | None,
) -> None:
    core = {"npe": npe, "ep": 2, "vp": npe // 2, "threads": threads, "tail_width": 1}
    mapping = {
        "chip": {"kind": "column-npu", "name": "small", "frequency_mhz": 100, "cores": [core]},
        "jobs": [
            {"name": f"j{place}", "model": {"name": f"m{place}", "layers": layers}, "steps": table[1]}
            for place, layers in enumerate(models)
        ],
        "precision": {"formats": "shared"} if len(models) > 1 else {},
    }
    loaded = load_scenario(mapping, ())
    for family, both in counted.items():
        own = fitted(loaded, FAMILIES[family], table)
        for key, yosys in zip(("logic", "registers"), both, strict=True):
            assert abs(sum(getattr(each, key) for each in own.parts) / yosys - 1) <= 0.25, (family, key)
        if registers is not None:
            (part,) = (each for each in own.parts if each.name == "table of jobs")
            # a bit or two of a job that only one of both takes for read
            assert abs(part.registers / registers - 1) <= 0.03
