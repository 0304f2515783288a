"""A comparison says whether a chip has room on the device of the other machine, or that no device is known."""

from __future__ import annotations

import json

import lstmsim
from lstmsim.files.published import hardware
from lstmsim.files.scenario.scenario_file import load_chip, load_model
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.studies.compare.device_fits import device_fits
from lstmsim.studies.fit.device import device, device_files, device_of
from lstmsim.studies.fit.fit import fit

JOBS = [{"model": f"deepbench-{each}"} for each in ("lstm-512-25", "lstm-2048-25")]


def test_a_comparison_with_published_machines_says_whether_the_chip_fits() -> None:
    compared = lstmsim.compare({"chip": "column-npu-64k", "jobs": JOBS}, [], each=True, published=True)
    text = compared.to_text()
    assert "column-npu-64k on stratix-10-gx-2800 (Brainwave BW_S10):" in text
    assert "DSP 2.94 times over" in text
    assert "Plasticine, Tesla V100, Xeon Skylake, Titan Xp: no device known" in text
    assert max(map(len, text.splitlines())) <= 100
    own = [each for each in json.loads(json.dumps(compared.to_dict()))["rooms"] if each["device"]]
    assert [(each["workload"], each["fits"]) for each in own] == [
        ("deepbench-lstm-512-25", False),
        ("deepbench-lstm-2048-25", False),
    ]
    assert own[0]["weights"] < 1 < own[1]["weights"]


def test_a_chip_that_fits_is_said_to_and_one_at_home_is_not_asked() -> None:
    models = [("lstm-256", [load_model("lstm-256")])]
    chips = [load_chip("column-npu-16k"), load_chip("brainwave-s10")]
    answers = device_fits([each.name for each in chips], chips, [], models, Precision())
    assert [(each.chip, each.device, each.fits) for each in answers] == [("column-npu-16k", "stratix-10-gx-2800", True)]
    assert answers[0].reason == fit(chips[0], models[0][1], Precision(), device("stratix-10-gx-2800")).verdict


def test_weights_so_small_that_no_block_is_needed_fit() -> None:
    models = [("rnn-33", [Model("rnn-33", (Layer(cell("rnn"), 33, 64),))])]
    chips = [load_chip("brainwave-s10"), load_chip("intel-npu-rtl")]
    answers = device_fits([each.name for each in chips], chips, ["Brainwave BW_S10"], models, Precision())
    assert {each.weights for each in answers} == {0.0, None}
    assert any("weights fit (0 %)" in each.short for each in answers)


def test_nothing_is_said_where_nobody_is_compared_with_a_machine_of_others() -> None:
    compared = lstmsim.compare({"chip": "column-npu-64k", "jobs": JOBS[:1]}, ["column-npu-16k"])
    assert compared.device_fits == ()
    assert "DOES IT FIT" not in compared.to_text()


def test_every_device_names_designs_and_presets_that_there_are() -> None:
    for name in device_files():
        on = device(name)
        assert all(load_chip(each).name == each and device_of(each) == name for each in on.chips)
        assert set(on.published) <= {row.design for row in hardware()}
