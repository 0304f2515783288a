"""The published figures agree with each other as far as their printed digits go, and each says where it is from."""

from __future__ import annotations

import re
from math import prod

import pytest

from lstmsim.files.catalog import model_files
from lstmsim.files.published import (
    Measurement,
    accelerators,
    claims,
    deepbench,
    hardware,
    intel_npu,
    published_folder,
    table_names,
)
from tests.files.published_rows import fields_of

ZHAO = ("Brainwave BW_S10", "Plasticine", "Tesla V100", "Xeon Skylake")
TASKS = {name.removeprefix("deepbench-") for name in model_files() if name.startswith("deepbench-")}
HEADER, *ROWS = fields_of(published_folder(), "deepbench")
PRINTED = {
    (row.design, row.task, row.batch): dict(zip(HEADER, raw, strict=True))
    for row, raw in zip(deepbench(), ROWS, strict=True)
}
#: Printed as 15.0 TOPS, although the largest latency that is printed as 1.9733 ms gives less than 14.95.
ODD = ("Plasticine", "gru-2560-375")

Range = tuple[float, float]


def printed(text: str) -> Range:
    """All numbers that are printed like this: half a unit of the last digit to either side."""
    half = 0.5 / 10 ** len(text.partition(".")[2])
    return float(text) - half, float(text) + half


def meet(one: Range, other: Range) -> bool:
    # The two ends of an interval are themselves rounded to 53 bits.
    return one[0] <= other[1] * (1 + 1e-12) and other[0] <= one[1] * (1 + 1e-12)


def tera(row: Measurement) -> Range:
    """The TOPS that the printed latency allows."""
    least, most = printed(PRINTED[row.design, row.task, row.batch]["latency_ms"])
    return row.operations / most / 1e9, row.operations / least / 1e9


def of(design: str) -> dict[str, Measurement]:
    return {row.task: row for row in deepbench() if row.design == design and row.batch == 1}


@pytest.mark.parametrize("table", table_names())
def test_every_row_says_where_it_is_from(table):
    header, *rows = fields_of(published_folder(), table)
    for row in rows:
        source = row[header.index("source")]
        assert re.search(r"arXiv:\d{4}\.\d{4,5}|doi 10\.|\(GitHub, |\b20[12]\d\b|, paragraph \d+", source), row
        assert len(source) > 30, row


def test_the_designs_have_the_eleven_tasks_and_are_described():
    assert len(TASKS) == 11
    for design in ZHAO:
        assert set(of(design)) == TASKS
    assert set(of("Titan Xp")) >= TASKS
    assert {row.design for row in deepbench()} == {*ZHAO, "Titan Xp"} <= {row.design for row in hardware()}
    assert all(row.hidden == row.input for row in deepbench())
    described = {row.design: (row.macs, row.frequency_mhz) for row in hardware()}
    assert {(row.design, (row.macs, row.frequency_mhz)) for row in deepbench()} <= set(described.items())


@pytest.mark.parametrize("design", ZHAO)
def test_latency_times_tops_is_the_work(design):
    """43 of the 44 rows agree within the rounding of the two printed numbers; the other one is 0.005 TOPS away."""
    for task, row in of(design).items():
        least, most = printed(PRINTED[design, task, 1]["tops"])
        assert meet(tera(row), (least, most)) is ((design, task) != ODD), (task, tera(row), row.tops)
        assert meet(tera(row), (least - 0.005, most + 0.005)), task


def test_utilization_is_tops_of_the_peak():
    """Within 0.2 points, not the 0.05 of rounding: the source prints utilizations beside TOPS with one digit fewer
    (22.7, not 22.62, of 48 is 47.3 %). Eight rows agree to the printed digit, lstm-2048-25 is farthest away."""
    (peak,) = (row.peak_tops for row in hardware() if row.design == "Brainwave BW_S10")
    away = [abs(row.utilization_pct - 100 * row.tops / peak) for row in of("Brainwave BW_S10").values()]
    assert len(away) == 11
    assert max(away) < 0.2
    assert sum(each <= 0.05 for each in away) == 8


def test_no_row_is_faster_than_its_machine():
    """Brainwave's cycles (latency times 250 MHz) are at least those of 96,000 busy multipliers."""
    for row in of("Brainwave BW_S10").values():
        assert row.latency_cycles == pytest.approx(row.latency_ms * 250_000)
        assert row.latency_cycles > row.operations / (2 * row.macs)
        share = row.operations / (2 * row.macs) / row.latency_cycles
        assert 100 * share == pytest.approx(row.utilization_pct, abs=0.2)
    for row in of("Plasticine").values():
        assert row.tops < 49


@pytest.mark.parametrize(
    ("key", "design"), [("zhao-xeon", ZHAO[3]), ("zhao-v100", ZHAO[2]), ("zhao-brainwave", ZHAO[0])]
)
def test_geometric_means_are_those_of_the_rows(key, design):
    """The claimed mean is one that the printed latencies allow (0.0004 ms has one digit only: that is the widest), and
    not if the largest GRU were left out."""

    def mean(tasks: set[str]) -> Range:
        pairs = [[printed(PRINTED[name, task, 1]["latency_ms"]) for name in (design, "Plasticine")] for task in tasks]
        ends = [(slow[0] / fast[1], slow[1] / fast[0]) for slow, fast in pairs]
        return prod(end[0] for end in ends) ** (1 / len(ends)), prod(end[1] for end in ends) ** (1 / len(ends))

    short = {"Brainwave BW_S10": "brainwave", "Tesla V100": "v100", "Xeon Skylake": "xeon"}[design]
    (claim,) = (each for each in claims() if each.key == f"zhao-{short}")
    assert meet(mean(TASKS), printed(claim.value))
    assert not meet(mean(TASKS - {"gru-2816-750"}), printed(claim.value))


def test_titan_xp_takes_longer_for_more_steps():
    series: dict[tuple[str, int, int], list[tuple[int, float]]] = {}
    for row in deepbench():
        if row.design == "Titan Xp":
            series.setdefault((row.cell, row.hidden, row.batch), []).append((row.steps, row.latency_ms))
    assert {batch for _, _, batch in series} == {1, 2, 4}
    for steps in series.values():
        # Twice the steps take 1.6 to 2.1 times as long, whatever the size.
        for (few, short), (many, long) in zip(sorted(steps), sorted(steps)[1:], strict=False):
            assert 1.6 < (long / short) / (many / few) * 2 < 2.1


@pytest.mark.parametrize("row", intel_npu(), ids=lambda row: row.workload)
def test_intel_tops_follow_from_the_cycles(row):
    for cycles, tops in ((row.cpp_cycles, row.cpp_tops), (row.rtl_cycles, row.rtl_tops)):
        assert round(row.operations / (cycles / 300e6) / 1e12, 2) == tops
    # 2 cores of 3 vectors on 7 tiles of 40 engines of 40 lanes.
    assert row.operations / 134_400 < row.cpp_cycles < row.rtl_cycles


@pytest.mark.parametrize("row", intel_npu(), ids=lambda row: row.workload)
def test_intel_workloads_are_what_their_names_say(row):
    _, kind, *numbers = re.split(r"[_x]", row.workload.removesuffix("_batched"))
    named = tuple(int(each) for each in numbers)
    if kind.startswith(("gemv", "mlp")):
        assert (row.sizes, row.steps) == (named * 4 if kind == "mlp5" else named, 1)
    else:
        assert (row.sizes, row.steps) == (named[:1] * 2, named[-1])
    assert row.cell == kind.rstrip("35")
    assert row.batch == (18 if row.workload.endswith("batched") else 6)


def test_the_nineteenth_workload_has_two_published_results():
    row = intel_npu()[18]
    # Both are of the C++ simulator.
    assert row.note == ""
    assert "7.26 TOPS (1073 cycles" in row.cpp_note
    assert "1067 cycles, 7.30 TOPS" in row.cpp_note
    # The table has the one that the repository prints.
    assert (row.cpp_cycles, row.cpp_tops) == (1073, 7.26)
    assert round(row.operations / (1067 / 300e6) / 1e12, 2) == 7.3


def test_peaks_are_two_operations_for_each_multiplier_and_cycle():
    checked = 0
    for row, raw in zip(hardware(), fields_of(published_folder(), "hardware")[1:], strict=True):
        if row.macs and row.peak_tops:
            exact = 2 * row.macs * row.frequency_mhz / 1e6
            assert meet((exact, exact), printed(raw[6])), row.design
            checked += 1
    assert checked == 4


def test_the_hls_report_adds_up():
    row = accelerators()[0]
    # As Vivado HLS counts: the last step begins 27 intervals after the first; one cycle less is printed.
    assert row.latency_cycles == row.depth_cycles + (row.steps - 1) * row.interval_cycles - 1
    for each in accelerators()[:2]:
        assert each.latency_ms == pytest.approx(each.latency_cycles / each.frequency_mhz / 1e3)


def test_hardware_utilization_of_the_intel_npu():
    (row,) = (each for each in accelerators() if each.design == "Intel NPU" and each.cell == "rnn")
    peak = 2 * row.macs * row.frequency_mhz / 1e6
    assert meet((100 * 32.35 / peak, 100 * 32.45 / peak), printed("80.3"))
    assert (row.tops, row.utilization_pct) == (32.4, 80.3)


def test_the_readme_names_every_table():
    text = (published_folder() / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+)\.csv`", text)) == set(table_names())
    counts = {name: int(rows) for name, rows in re.findall(r"\| `(\w+)\.csv` \| (\d+) \|", text)}
    assert counts == {name: len(fields_of(published_folder(), name)) - 1 for name in table_names()}
