"""The stamp: what a number was compared with, inside which sizes, and which keys are assumptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.registry import capability
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.report.pictures.figures import Picture
from lstmsim.report.results import plain
from lstmsim.report.tables import folded
from lstmsim.studies.shared.loading import load_scenario
from lstmsim.studies.shared.stamp import key_values, stamp_of, stamp_of_scenario

CONTRACT = "the timing contract only, no hardware"
JOB = {"model": "lstm-512", "steps": 4}
CORE = {"npe": 4096, "ep": 16, "vp": 256}


def stamp(chip: Any, job: dict[str, Any] | None = None, *overrides: str, **keys: Any) -> Any:
    """The stamp of one job on a chip."""
    return stamp_of_scenario(load_scenario({"chip": chip, "jobs": [job or JOB], **keys}, overrides))


def own(**keys: Any) -> dict[str, Any]:
    """A column-wise chip in a scenario."""
    return {"kind": "column-npu", "frequency_mhz": 250, "cores": [CORE | keys.pop("core", {})], **keys}


def test_a_column_npu_is_equal_to_generated_rtl_and_with_a_precision_bit_by_bit() -> None:
    assert stamp("column-npu-64k").against == "every cycle equal to generated RTL"
    bits = stamp("column-npu-64k", precision={"weight_bits": 8})
    assert bits.against == "every cycle and bit equal to generated RTL"
    # any size, any latency: what is generated has them
    assert stamp(own(core={"latency": {"activation": 31}})).against == "every cycle equal to generated RTL"
    split = JOB | {"split": "rows"}
    assert stamp(own(cores=[CORE, CORE]), split).against == "every cycle equal to generated RTL"


@pytest.mark.parametrize(
    ("chip", "job", "named"),
    [
        (own(core={"weight_kib": 64}, memory={"gb_per_s": 2000}), JOB, "memory"),
        (own(), JOB | {"queue_limit": 3, "arrival": 5}, "queue_limit"),
        (own(core={"tree_inputs": 32, "cat": 2, "latency": {"add": 2}}), JOB, "latency.add"),
    ],
)
def test_outside_the_subset_of_rtl_the_contract_stands_alone_and_the_key_is_named(
    chip: dict[str, Any], job: dict[str, Any], named: str
) -> None:
    found = stamp(chip, job)
    assert found.against == CONTRACT
    assert found.inside.startswith("outside generated RTL: ")
    assert named in found.inside
    scenario = load_scenario({"chip": chip, "jobs": [job]})
    refused = capability("column-npu", "generated").refusals(scenario, None)
    assert str(refused[0]) in found.inside


def test_intels_rtl_stands_behind_its_preset_and_no_other_latency() -> None:
    job = {"model": "lstm-512", "steps": 8, "batch": 6}
    assert stamp("intel-npu-rtl", job).against == "Intel's RTL, 19 published workloads to the cycle"
    assert stamp("intel-npu-cpp", job).against.startswith("Intel's own simulator")
    assert stamp("intel-npu-rtl", job).inside.startswith("the range of their sizes")
    outer = stamp("intel-npu-rtl", job | {"steps": 9})
    assert (outer.against, outer.inside.partition(" (")[0]) == (
        CONTRACT,
        "outside what Intel's RTL, 19 published workloads to the cycle equal",
    )
    # weights that the memory does not hold, two layers, paced frames
    for more in (
        {"model": {"layers": [{"cell": "lstm", "hidden": 1792, "input": 1792}]}},
        {"model": "lstm-2x512"},
        {"frame_interval": 1000},
        {"count": 2},
    ):
        assert stamp("intel-npu-rtl", job | more).against == CONTRACT, more
    faster = stamp("intel-npu-rtl", job, "chip.frequency_mhz=250")
    assert (faster.against, faster.changed) == (stamp("intel-npu-rtl", job).against, ("frequency_mhz",))
    changed = stamp("intel-npu-rtl", job, "chip.cores.0.latency.product=61")
    assert (changed.against, changed.changed) == (CONTRACT, ("cores.latency.product",))
    assert "cores.latency.product" in changed.assumed
    assert "cores.latency.product" not in stamp("intel-npu-rtl", job).assumed


def test_brainwave_is_fitted_and_says_beyond_what() -> None:
    inside = stamp("brainwave-s10", {"model": "lstm-512", "steps": 4})
    assert inside.against == "no hardware: fitted to published latencies"
    assert inside.fitted == ("cores.by_cell",)
    assert "hidden 128" in stamp("brainwave-s10", {"model": "silero-vad-16k", "steps": 4}).inside
    assert stamp("brainwave-s10", None, "chip.cores.0.decode_cycles=2").against == CONTRACT


@pytest.mark.parametrize("name", ["v100", "edge", "epyc-7742", "xeon-gold-5122"])
def test_other_machines_have_their_contract_and_no_hardware(name: str) -> None:
    assert stamp(name).against == CONTRACT


def assumed(chip: Chip) -> set[str]:
    return {each.path for each in key_values(chip) if each.assumed}


def test_a_key_without_a_source_is_an_assumption_and_the_most_exact_source_counts() -> None:
    plain = load_scenario({"chip": own(), "jobs": [JOB]}).chip
    assert {"cores.npe", "cores.latency.add", "frequency_mhz"} <= assumed(plain)
    sources = {"npe": "data sheet", "latency": "measured", "latency.add": "assumption, because nobody knows"}
    known = load_scenario({"chip": own(sources=sources), "jobs": [JOB]}).chip
    left = assumed(known)
    assert "cores.latency.add" in left
    assert not {"cores.npe", "cores.latency.read"} & left
    # a default has the source of its class, another value has none
    assert "cores.thread_policy" not in left
    fine = load_scenario({"chip": own(core={"thread_policy": "fine"}), "jobs": [JOB]}).chip
    assert "cores.thread_policy" in assumed(fine)


def test_the_sources_of_presets_are_read_by_part() -> None:
    chip = load_chip("v100")
    assert {each for each in assumed(chip) if "latency" in each} == {"cores.latency.shuffle", "cores.latency.barrier"}


def test_equal_chips_of_other_sources_have_other_stamps() -> None:
    chip: Any = load_chip("column-npu-16k")
    other = replace(chip, name="mine", sources={"latency": "measured"})
    unsaid = replace(other, sources={})
    assert other == unsaid
    assert "cores.latency.read" in stamp_of(unsaid).assumed
    assert "cores.latency.read" not in stamp_of(other).assumed


def results(folder: Path) -> dict[str, Callable[[], Any]]:
    """A result of each study that simulates a chip."""
    keys = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}
    poisson = {"kind": "poisson", "rate_per_second": 1e5}
    served = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1, "count": 20, "arrival": poisson}]}
    axes = {"ep": {"path": "chip.cores.0.ep", "values": [8, 16]}}
    return {
        "simulate": lambda: lstmsim.simulate(keys),
        "serve": lambda: lstmsim.serve(served, requests=100),
        "saturate": lambda: lstmsim.saturate(served, bound_ms=5, tolerance=0.5, most_requests=500),
        "load-latency": lambda: lstmsim.load_latency(served, loads=[0.2, 0.4], requests=100, jobs=1),
        "compare": lambda: lstmsim.compare(keys, ["intel-npu-rtl"], jobs=1),
        "search": lambda: lstmsim.search(keys, npe=64, jobs=1),
        "sweep": lambda: lstmsim.sweep({"scenario": keys, "axes": axes}, folder, jobs=1),
        "gemm": lambda: lstmsim.run_gemm(4, 16, 16, threads=1, baselines=False),
        "fuse": lambda: lstmsim.run_fusion("softmax", sizes={"rows": 8}),
    }


@pytest.mark.parametrize("study", results(Path()))
def test_every_result_of_a_chip_carries_its_stamp(study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Picture, "_repr_png_", lambda _: b"\x89PNG")
    result = results(tmp_path)[study]()
    data = result.to_dict()["stamp"]
    own = plain(result.stamps[0])
    assert data == {key: own[key] for key in data}
    assert set(own) - set(data) == {"compared", "silicon", "outside"}
    assert data["against"]
    assert data["machine"] in ("column-npu", "parallel-device", "multicore")
    (line,) = result.compared_with()
    assert result.to_text().endswith("\n" + "\n".join(folded(line, 2)))
    assert "More: --stamp." in line
    assert "STAMP of" not in result.to_text()
    assert line in result.to_markdown()
    assert line in result._repr_html_()


@pytest.mark.parametrize(
    ("chip", "line"),
    [
        ("column-npu-64k", "Compared with: generated RTL, from the same contract; not compared with silicon."),
        ("intel-npu-rtl", "Compared with: Intel's RTL, on 19 published workloads; not compared with silicon."),
        ("brainwave-s10", "Compared with: published latencies, to which it was fitted."),
        ("epyc-7742", "Compared with: own contract, nothing else; not compared with silicon."),
    ],
)
def test_the_line_names_what_the_cycles_were_compared_with_and_silicon(chip: str, line: str) -> None:
    job = {"model": "lstm-512", "steps": 4, "batch": 6 if chip == "intel-npu-rtl" else 1}
    assert stamp(chip, job).line == line
    assert ("silicon" in stamp(chip, job).text) == ("silicon" in line)


def test_published_latencies_of_a_v100_are_those_of_its_preset_in_fp16() -> None:
    job = {"model": "lstm-512", "steps": 4}
    half = stamp("v100", job, "chip.element_bytes=2")
    assert (half.silicon, half.outside, half.against) == (True, False, CONTRACT)
    assert half.line == "Compared with: published latencies, within a factor of 3."
    models = ("lstm-2x512", "rnn-256", "bilstm-256")
    others = [stamp("v100", {**job, "model": each}, "chip.element_bytes=2") for each in models]
    others += [stamp("v100", {**job, "batch": 2}, "chip.element_bytes=2"), stamp("v100", job)]
    for other in (*others, stamp("v100", job, "chip.element_bytes=2", "chip.launch=1")):
        assert (other.silicon, other.outside) == (False, True)


def test_all_assumed_keys_are_in_the_text_of_a_stamp() -> None:
    found = stamp("column-npu-64k")
    assert len(found.assumed) > 12
    assert f"Assumed keys: {', '.join(found.assumed)}." in found.text


def test_a_comparison_has_a_row_for_its_evidence_and_its_first_sentence_names_who_is_outside() -> None:
    chips = ["intel-npu-rtl", "brainwave-s10"]
    found = lstmsim.compare({"chip": "column-npu-64k", "jobs": [JOB]}, chips, jobs=1)
    first, *lines = found.to_text().split("\n\n")
    assert " ".join(first.split()).endswith("; outside what was validated: intel-npu-rtl.")
    (row,) = (each for each in found.to_text().splitlines() if each.startswith("compared with"))
    assert row.split("  ")[-1].strip() == "published latencies"
    assert "generated RTL" in row
    assert "own contract" in row
    assert lines[-1] == "Not compared with silicon: column-npu-64k, intel-npu-rtl. More: --stamp."
    within = lstmsim.compare({"chip": "column-npu-64k", "jobs": [JOB]}, ["column-npu-16k"], jobs=1)
    assert "validated" not in within.to_text()


def test_models_that_are_compared_one_by_one_have_the_evidence_of_each_alone() -> None:
    jobs = [{"model": f"lstm-{size}", "steps": 4, "batch": 6} for size in (256, 512)]
    found = lstmsim.compare({"chip": "column-npu-64k", "jobs": jobs}, ["intel-npu-rtl"], each=True, jobs=1)
    assert found.stamps[1].against == "Intel's RTL, 19 published workloads to the cycle"
    assert "validated" not in found.to_text()
    assert found.to_text().count("\ncompared with ") == 1
    jobs[1]["steps"] = 9
    outside = lstmsim.compare({"chip": "column-npu-64k", "jobs": jobs}, ["intel-npu-rtl"], each=True, jobs=1)
    assert outside.stamps[1].against == CONTRACT
    assert "outside what was validated: intel-npu-rtl" in " ".join(outside.to_text().split())


def test_a_comparison_has_a_stamp_for_each_chip_and_a_sweep_says_what_it_varies(tmp_path: Path) -> None:
    made = results(tmp_path)
    several = made["compare"]().to_dict()["stamps"]
    assert [each["chip"] for each in several] == ["column-npu-16k", "intel-npu-rtl"]
    swept = made["sweep"]().stamp
    assert swept.varied == ("chip.cores.0.ep",)
    assert "cores.ep" not in swept.assumed
    assert "Of one point; varied: chip.cores.0.ep." in swept.text


def test_a_job_that_no_object_describes_is_judged_too() -> None:
    chip: Any = load_chip("column-npu-16k")
    job = Job("a", lstmsim.load_model("lstm-256"), 2)
    assert stamp_of_scenario(Scenario(chip, (job,))).against == "every cycle equal to generated RTL"
