"""A comparison as text, JSON and CSV: it fits, it has every number, and reasons stand below."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from lstmsim.studies.compare.report import COLUMNS, comparison_rows
from lstmsim.studies.compare.result import Comparison, Entry, Machine, Workload


def entry(cycles: int, utilization: float, tops: float) -> Entry:
    losses = {"useful": utilization, "hazard": 0.9 * (1 - utilization), "drain": 0.1 * (1 - utilization)}
    return Entry(cycles, cycles / 250e3, cycles / 500e3, cycles / 300e3, tops, utilization, losses)


def comparison(each: bool, machines: int = 3) -> Comparison:
    """Simulated machines and a published one; the second workload is refused by the last simulated machine."""
    simulated = [Machine(f"a-chip-with-a-name-{number}", False, 1000, 250.0, 0.5) for number in range(machines)]
    published = Machine("Paper Machine", True, None, None, None, "Somebody, Somewhere, 2019, Table 6, " + "long " * 20)
    workloads = [Workload("model-one", 1, 10), Workload("model-two", 1, 20)][: 2 if each else 1]
    rows = []
    for number in range(len(workloads)):
        row = [entry(1000 * (number + 1) * (column + 1), 0.5, 1.25) for column in range(machines)]
        if number == 1:
            row[-1] = Entry(reason="job b: no core can run it: it is too large by far for any of the cores there are")
        rows.append((*row, Entry(ms=0.001234, tops=0.5) if number == 0 else Entry(reason="not published")))
    return Comparison("s", "fast", each, (*simulated, published), tuple(workloads), tuple(rows))


@pytest.mark.parametrize("machines", [1, 2, 3, 9])
@pytest.mark.parametrize("each", [False, True])
def test_no_line_is_longer_than_100_and_every_machine_is_there(each: bool, machines: int) -> None:
    compared = comparison(each, machines)
    lines = compared.to_text().splitlines()
    assert max(map(len, lines)) <= 100
    heads = [line for line in lines if line.startswith(" ") and "a-chip-with-a-name-0" in line]
    for machine in compared.machines:
        assert any(machine.name in line for line in heads)
    kinds = [lines[lines.index(line) + 1].split() for line in heads]
    for line, kind in zip(heads, kinds, strict=True):
        assert kind == ["simulated"] * line.count("a-chip") + ["published"] * line.count("Paper Machine")


def tables_of(text: str) -> dict[str, list[list[str]]]:
    """Rows of the tables of an `each` text by title."""
    tables: dict[str, list[list[str]]] = {}
    title = ""
    for line in text.splitlines():
        if line.isupper() or line.startswith("WHERE"):
            title = line
        elif line.startswith(("model-", "geometric")):
            tables.setdefault(title, []).append(line.split()[1:])
    return tables


def test_each_has_a_table_a_figure() -> None:
    compared = comparison(each=True, machines=2)
    tables = tables_of(compared.to_text())
    assert tables["CYCLES"] == [["1,000", "2,000"], ["2,000", "[1]"]]
    assert tables["MS"] == [["0.00400", "0.00800", "0.001234"], ["0.00800", "[1]", "-"]]
    assert tables["TOPS"] == [["1.25", "1.25", "0.5"], ["1.25", "[1]", "-"]]
    assert tables["UTILIZATION"] == [["50.0", "%", "50.0", "%"], ["50.0", "%", "[1]"]]
    assert tables["SPEED-UP"] == [["1.00", "0.500", "3.24"], ["1.00", "[1]", "-"], ["mean", "1.00", "0.500", "3.24"]]
    assert tables["MOST LOST TO"][0] == ["hazard", "45.0", "%"] * 2


def test_a_published_design_is_marked_and_its_source_named() -> None:
    text = " ".join(comparison(each=True).to_text().split())
    assert "published, not simulated: Paper Machine: Somebody, Somewhere, 2019, Table 6" in text
    assert "[1] a-chip-with-a-name-2: job b: no core can run it: it is too large by far for any of the cores" in text
    assert "than Paper Machine: 1 of 1 model-one: 3.24 times as long; own loss: hazard 45.0 %" in text
    assert "than a-chip-with-a-name-1: nowhere" in text


def test_the_whole_scenario_is_one_table() -> None:
    lines = comparison(each=False, machines=2).to_text().splitlines()
    rows = {line[:22].strip(): line[22:].split() for line in lines}
    assert rows["PEs"] == ["1,000", "1,000", "-"]
    assert rows["cycles"] == ["1,000", "2,000", "-"]
    assert rows["mean latency ms"] == ["0.00200", "0.00400", "-"]
    assert rows["p99 latency ms"] == ["0.00333", "0.00667", "-"]
    assert rows["speed-up at equal PEs"] == ["1.00", "0.500", "-"]
    assert rows["TOPS per 1000 PEs"] == ["1.25", "1.25", "-"]


def test_json_has_every_number() -> None:
    compared = comparison(each=True)
    data: dict[str, Any] = json.loads(json.dumps(compared.to_dict(), allow_nan=False))
    assert (data["schema"], data["base"], data["each"]) == ("lstmsim/comparison/2", "a-chip-with-a-name-0", True)
    assert [each["published"] for each in data["machines"]] == [False, False, False, True]
    assert data["machines"][1]["mean_speedup"] == 0.5
    assert data["workloads"][0]["macs"] == 10
    first, second = (each["entries"] for each in data["workloads"])
    assert [each["cycles"] for each in first] == [1000, 2000, 3000, None]
    assert first[1]["losses"] == dict(compared.entries[0][1].losses)
    assert first[2]["speedup"] == pytest.approx(1 / 3)
    assert second[2]["ms"] is None
    assert second[2]["reason"].startswith("job b: no core")


def test_csv_has_a_row_for_each_workload_and_machine() -> None:
    compared = comparison(each=True)
    file = io.StringIO()
    csv.writer(file).writerows(comparison_rows(compared))
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert list(rows[0]) == list(COLUMNS)
    names = [each.name for each in compared.machines]
    assert [(row["workload"], row["machine"]) for row in rows] == [
        (workload.name, name) for workload in compared.workloads for name in names
    ]
    assert [row["published"] for row in rows] == ["0", "0", "0", "1"] * 2
    assert (rows[1]["cycles"], rows[1]["speedup"], rows[1]["main_loss"]) == ("2000", "0.5", "hazard")
    assert float(rows[1]["main_loss_share"]) == pytest.approx(0.45)
    assert (rows[6]["ms"], rows[6]["reason"][:5]) == ("", "job b")
