"""`--report` of the commands that have one: one mechanism, a page of the result's document and rows."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import lstmsim
from lstmsim.report.document import Document
from lstmsim.report.page.frame import result_page
from lstmsim.report.results import Table
from tests.cli.runner import call
from tests.studies.simulate.reading import Reader

SCENARIO = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2}]}
POISSON = {"kind": "poisson", "rate_per_second": 1e4, "seed": 1}
SERVING = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1, "count": 40, "arrival": POISSON}]}
AXES = {"threads": {"path": "chip.cores.0.threads", "values": [1, 2, 3]}}
CASES: dict[str, tuple[list[str], Callable[[], Table]]] = {
    "compare": (["compare", "s.json", "--chip", "column-npu-64k"], lambda: lstmsim.compare("s.json", "column-npu-64k")),
    "gemm": (["gemm", "8", "64", "64", "--threads", "4"], lambda: lstmsim.run_gemm(8, 64, 64, threads=4)),
    "gemm, several": (
        ["gemm", "8", "64", "64", "--threads", "1,2"],
        lambda: lstmsim.run_gemm_threads(8, 64, 64, threads=[1, 2]),
    ),
    "sparse": (
        ["sparse", "m.mtx", "--kernel", "spmv", "--chip", "v100"],
        lambda: lstmsim.run_sparse("m.mtx", "spmv", chip="v100"),
    ),
    "fuse": (["fuse", "row-sum", "--chip", "v100"], lambda: lstmsim.run_fusion("row-sum", chip="v100")),
    "load-latency": (
        ["load-latency", "serving.json", "--loads", "0.3,0.6", "--requests", "200"],
        lambda: lstmsim.load_latency("serving.json", loads=[0.3, 0.6], requests=200),
    ),
    "sweep": (
        ["sweep", "sweep.json", "--out", "results", "--jobs", "1"],
        lambda: lstmsim.sweep("sweep.json", "results", jobs=1),
    ),
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"s": SCENARIO, "serving": SERVING, "sweep": {"scenario": SCENARIO, "axes": AXES}}
    for name, content in files.items():
        Path(f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    text = "%%MatrixMarket matrix coordinate real general\n4 4 3\n1 1 1.5\n2 3 2.5\n4 4 -1\n"
    Path("m.mtx").write_text(text, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_page_says_what_the_result_says(name: str) -> None:
    arguments, function = CASES[name]
    done = call(*arguments, "--report", "page.html")
    assert done.exit_code == 0, done.output
    assert "wrote page.html" in done.stderr
    text = Path("page.html").read_text(encoding="utf-8")
    reader, result = Reader(text), function()
    assert reader.all("html") == [{"lang": "en"}]
    assert "//" not in "".join(values.get("href", "") for values in reader.all("a"))
    # every word that the terminal shows stands on the page
    shown = " ".join(text for tag, text in reader.texts.items() if tag not in ("script", "style"))
    for word in {each.strip("().,:;") for each in result.to_text().split() if not set(each) <= set("#-+=|.")}:
        assert word in shown, word
    records = result.to_records()
    rows = json.loads(reader.texts["script"].split('"use strict"')[0])
    assert [len(column) for column in rows["values"]] == [len(records)] * len(rows["columns"])
    assert all(axis is None or axis in rows["columns"] for axis in rows["axes"])


def test_a_chart_has_the_axes_of_its_study() -> None:
    rows = {}
    for name in ("load-latency", "sweep", "compare"):
        page = CASES[name][1]().to_page("title", "command")
        rows[name] = json.loads(Reader(page).texts["script"].split('"use strict"')[0])
    assert (rows["load-latency"]["axes"], rows["load-latency"]["line"]) == (["load", "p99_ms", "machine"], True)
    # all points have one number of multipliers: the axis of the sweep stands in its place
    assert (rows["sweep"]["axes"], rows["sweep"]["line"]) == (["threads", "latency_ms_mean", "pareto"], False)
    assert rows["compare"]["axes"] == ["utilization", "speedup", "machine"]
    assert rows["sweep"]["values"][rows["sweep"]["columns"].index("threads")] == [1, 2, 3]


def test_the_numbers_of_a_headline_lead_to_rows() -> None:
    page = CASES["compare"][1]().to_page("title", "command")
    begin = page.index('class="answer"')
    headline = page[begin : page.index("</p>", begin)]
    assert len(re.findall(r'<a href="#rows">[\d,.]+</a>', headline)) >= 1
    # a number in a name is no number
    assert ">64<" not in headline
    assert 'id="rows"' in page
    # a comma after a number is not of it
    made = result_page(Document.of("12, 2,309 or 1,234,567, and 4.5."), "title", records=[{"a": 1}])
    assert re.findall(r'<a href="#rows">([^<]+)</a>', made) == ["12", "2,309", "1,234,567", "4.5", "Every row"]


def test_the_page_of_latencies_has_the_intervals_of_the_picture() -> None:
    """They are in the picture, and so are hollow points; the chart of any two columns has neither."""
    page = CASES["load-latency"][1]().to_page("title", "command")
    (svg,) = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert "95 % intervals" in base64.b64decode(svg).decode()
    # axes of the chart are called by words
    labels = json.loads(Reader(page).texts["script"].split('"use strict"')[0])["labels"]
    assert (labels["p99_ms"], labels["load"]) == ("p99 latency (ms)", "offered load (1: all that the machine can do)")


def test_a_page_of_another_name_is_refused() -> None:
    done = call("compare", "s.json", "--chip", "column-npu-64k", "--report", "page.txt")
    assert done.exit_code == 2
    assert "expected a file name that ends in .html" in done.stderr
