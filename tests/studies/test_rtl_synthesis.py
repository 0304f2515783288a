"""Counts of a synthesis beside those of `lstmsim fit`, without a synthesis program."""

from __future__ import annotations

from dataclasses import replace

import lstmsim
from lstmsim.machines.column import generated
from lstmsim.report.document import Document
from lstmsim.report.renderings import text as text_of
from lstmsim.studies.rtl.report import synthesis_data, synthesis_sections
from lstmsim.studies.rtl.synthesis import FAMILIES, REST, PartCells, Synthesis, estimated
from lstmsim.studies.shared.loading import load_scenario

_LATENCY = {"read": 0, "convert": 0, "activation": 1}


def scenario(**core: object) -> dict[str, object]:
    model = lstmsim.Model(name="m", layers=[lstmsim.Layer(cell="lstm", hidden=6, input=5)])
    chip = {
        "kind": "column-npu",
        "name": "small",
        "frequency_mhz": 100,
        "cores": [{"npe": 16, "ep": 2, "vp": 8, "threads": 2, "tail_width": 1, **core}],
    }
    return {"chip": chip, "jobs": [lstmsim.Job(model=model, steps=4, name=name) for name in "ab"]}


def synthesis() -> Synthesis:
    """As Yosys 0.70 counted the array of this very design; the rest is made up."""
    array = {"CCU2C": 200, "LUT4": 276, "MULT18X18D": 16, "TRELLIS_DPR16X4": 128, "TRELLIS_FF": 1342}
    rest = {"MULT18X18D": 17, "DP16KD": 5, "LUT4": 1000, "TRELLIS_FF": 3000}
    return Synthesis(FAMILIES["ecp5"], "Yosys 0.70", (PartCells("array", array), PartCells(REST, rest)))


def test_resources_are_compared_with_fit_and_parts_are_yosys_alone() -> None:
    loaded = load_scenario(scenario(), ())
    rows = {each.resource: each for each in estimated(loaded, synthesis())}
    # 16 of the array and 17 of the lane: four adapters of two blocks, nine operations.
    assert (rows["multipliers"].fit, rows["multipliers"].yosys, rows["multipliers"].error) == (33, 33, 0.0)
    assert (rows["memories"].fit, rows["memories"].yosys) == (5, 5)
    data = synthesis_data(loaded, synthesis())
    (array,) = [each for each in data["parts"] if each["part"] == "array"]
    assert array["logic"] == {"fit": 1424, "yosys": 2 * 200 + 276 + 6 * 128}
    assert array["registers"] == {"fit": 1216, "yosys": 1342}
    # `fit` counts no part of that name.
    assert data["parts"][-1]["logic"] == {"fit": None, "yosys": 1000}
    text = text_of(Document.of("", *synthesis_sections(loaded, synthesis())))
    assert "33     33          +0 %" in text
    # parts are Yosys' alone: it moves cells across their borders
    assert ["array", "16", "0", "1,444", "1,342"] in [line.split() for line in text.splitlines()]
    assert "1,424" not in text
    assert "only the whole can be compared with `lstmsim fit`" in " ".join(text.split())


def test_counts_that_cannot_be_compared_are_told() -> None:
    loaded = load_scenario(scenario(), ())
    for family, words in (("ecp5", ()), ("xilinx", ()), ("intel-alm", ("rounded up",))):
        made = replace(synthesis(), family=FAMILIES[family])
        notes = text_of(Document.of("", *synthesis_sections(loaded, made))).split("\nPARTS")[0].split("\n\n")[1:]
        assert [word in "".join(notes) for word in words] == [True] * len(words)
        assert bool(notes) == bool(words) == bool(synthesis_data(loaded, made)["notes"])


def test_latencies_that_keep_memories_out_of_blocks_are_told() -> None:
    slow, quick = (load_scenario(scenario(**core), ()) for core in ({}, {"latency": _LATENCY}))
    reported = [generated.synthesis_remarks(generated.design(each, each.precision)) for each in (slow, quick)]
    assert reported[0] == ()
    assert [each.split(":")[0] for each in reported[1]] == [
        f"chip.cores.0.latency.{key} {cycles}" for key, cycles in _LATENCY.items()
    ]


def test_multipliers_that_are_not_built_are_told() -> None:
    loaded = load_scenario(scenario(npe=20), ())
    design = generated.design(loaded, loaded.precision)
    assert generated.synthesis_remarks(design) == (
        "chip.cores.0.npe 20: 16 multipliers are built, because no row block takes more; lstmsim fit counts all",
    )
