"""The forms of every result: plain data, text, a table, what a notebook shows."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Callable
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.analysis.report_text import report_json
from lstmsim.base.errors import InputError
from lstmsim.report.pictures.figures import Picture
from lstmsim.report.results import Result, Table, in_page, plain
from lstmsim.studies.simulate.run import about
from tests.core_needed import names_with_core
from tests.studies.board.scenarios import board_report

NAME = 'a<b>&"c'
POISSON = {"kind": "poisson", "rate_per_second": 1e5}
RANDOM: dict[str, Any] = {
    "name": NAME,
    "chip": "column-npu-16k",
    "jobs": [{"name": NAME, "model": "lstm-256", "steps": 1, "count": 40, "arrival": POISSON}],
}
PLAIN: dict[str, Any] = {
    "name": NAME,
    "chip": "column-npu-16k",
    "jobs": [{"name": NAME, "model": "lstm-256", "steps": 3, "count": 2}],
}
SWEEP = {"scenario": PLAIN, "axes": {"ep": {"path": "chip.cores.0.ep", "values": [16, 32]}}}


def kept() -> str:
    lstmsim.save_program(lstmsim.run(PLAIN), "kept.npz")
    return "kept.npz"


#: A result of each class, and how many rows its table has (None: it is no table).
RESULTS: dict[str, tuple[Callable[[], Any], int | None]] = {
    "Report": (lambda: lstmsim.simulate(PLAIN), 2),
    "Timeline": (lambda: lstmsim.trace(PLAIN), -1),
    "Serving": (lambda: lstmsim.serving(lstmsim.run(RANDOM)), 1),
    "Explanation": (lambda: lstmsim.explain(lstmsim.run(PLAIN)), -1),
    "ProgramRun": (lambda: lstmsim.run_program(kept()), 2),
    "Comparison": (lambda: lstmsim.compare(PLAIN, ["column-npu-64k"]), 2),
    "Diff": (lambda: lstmsim.diff(PLAIN, overrides=["jobs.0.steps=4"]), -1),
    "Fits": (lambda: lstmsim.fit(PLAIN, ["alveo-u250", "stratix-10-gx-2800"], with_energy=True), 6),
    "Fit": (lambda: lstmsim.fit(PLAIN, "alveo-u250")[0], 3),
    "Energy": (lambda: lstmsim.energy(PLAIN)[0], None),
    "Outputs": (lambda: lstmsim.outputs(lstmsim.run(PLAIN), random_weights=0), None),
    "SparseReport": (
        lambda: lstmsim.run_sparse("silero-vad-16k:l0", "spmv", prune=0.95, chip="edge", baselines=False),
        1,
    ),
    "GemmReport": (lambda: lstmsim.run_gemm(8, 64, 64, threads=4), -1),
    "GemmScaling": (lambda: lstmsim.run_gemm_threads(8, 64, 64, threads=[1, 4], baselines=False), 2),
    "FusionReport": (lambda: lstmsim.run_fusion("softmax", sizes={"rows": 8}), 4),
    "RtlReport": (lambda: lstmsim.run_rtl(PLAIN, "design", timing_only=True), 7),
    "BoardReport": (board_report, None),
    "SearchResult": (lambda: lstmsim.search(PLAIN, 4096), -1),
    "Design": (lambda: lstmsim.design(PLAIN, "none", axes={"chip.cores.0.ep": [4, 8, 16]}, jobs=1), 1),
    "SweepResult": (lambda: lstmsim.sweep(SWEEP, "sweep", jobs=1), 2),
    "Merged": (lambda: lstmsim.merge("all.sqlite", lstmsim.sweep(SWEEP, "shards", jobs=1, shard=(1, 2)).path), 1),
    "Validation": (lambda: lstmsim.validate("brainwave-fitted"), 6),
    "AccuracyReport": (lambda: lstmsim.accuracy(PLAIN, random_weights=0, bits=[4, 6]), -1),
    "Served": (lambda: lstmsim.serve(RANDOM), 1),
    "Saturation": (lambda: lstmsim.saturate(RANDOM, 0.002, tolerance=0.3, most_requests=2500), -1),
    "ChipRates": (lambda: lstmsim.saturate_chips(RANDOM, 0.002, tolerance=0.5, most_requests=1000), 1),
    "LoadLatency": (lambda: lstmsim.load_latency(RANDOM, loads=[0.2, 0.4], requests=300), 2),
}


@cache
def _without_files(name: str) -> Any:
    return RESULTS[name][0]()


def result_of(name: str) -> Any:
    """A result of the class; one that has files lies in the folder of its test."""
    return RESULTS[name][0]() if name in ("SweepResult", "Merged") else _without_files(name)


class Tags(HTMLParser):
    """The tags of a fragment, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def words(text: str) -> set[str]:
    """Words and numbers of a text."""
    return set(re.findall(r"[\w.,]*\w", text))


def classes() -> set[str]:
    """The classes of results, after all rooms have been imported."""
    for each in pkgutil.walk_packages(lstmsim.__path__, "lstmsim."):
        # a native library is no module
        if each.name != "lstmsim.__main__" and not each.name.endswith("._core"):
            importlib.import_module(each.name)
    return {each.__name__ for each in (*Result.__subclasses__(), *Table.__subclasses__())} - {"Table"}


@pytest.mark.parametrize("name", names_with_core(RESULTS, {"Validation", "Saturation"}))
def test_forms_of(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # what is drawn another test looks at
    monkeypatch.setattr(Picture, "_repr_png_", lambda _: b"\x89PNG")
    result, rows = result_of(name), RESULTS[name][1]
    assert type(result).__name__ == name
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))
    text = result.to_text()
    assert text
    assert not text.endswith("\n")
    html = result._repr_html_()
    page = Tags(html)
    assert page.tags - {"pre"}
    assert str(result) == text
    assert repr(result).startswith(f"<{name}: ")
    assert "\n" not in repr(result)
    assert len(repr(result)) < 500
    if name != "Report":
        # every word of the text is in the page, and in Markdown, but for bars
        assert words(text) <= words(unescape(re.sub("<[^>]*>", " ", html)))
        assert words(text) <= words(re.sub(r"\\([\W_])", r"\1", result.to_markdown()))
    if rows is None:
        assert not hasattr(result, "to_pandas")
        return
    records = result.to_records()
    assert len(records) == rows if rows >= 0 else len(records) > 2
    assert not any(isinstance(value, dict) for record in records for value in record.values())
    check_pandas(result, records)


def check_pandas(result: Any, records: list[dict[str, Any]]) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: tables as frames are not tested")
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(records)
    assert set(frame.columns) == {column for record in records for column in record}


def check_polars(result: Any, records: list[dict[str, Any]]) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed: tables as frames are not tested")
    frame = result.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame.height == len(records)
    assert set(frame.columns) == {column for record in records for column in record}


@pytest.mark.needs_core
def test_tables_as_frames_of_polars() -> None:
    result = result_of("Report")
    check_polars(result, result.to_records())


@pytest.mark.needs_core
def test_frames_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(InputError, match=rf"to_{name}\(\) needs the extra: pip install 'lstmsim\[{name}\]'"):
            getattr(result_of("Report"), f"to_{name}")()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SparseReport", "FusionReport"])
def test_a_notebook_and_a_page_show_the_ways_as_bars(name: str) -> None:
    result = result_of(name)
    assert "data:image/png;base64," in result._repr_html_()
    assert "data:image/svg+xml;base64," in result.to_page()


def test_a_picture_that_cannot_be_drawn_is_a_sentence() -> None:
    def refuse() -> Any:
        raise InputError("nothing <to> draw")

    assert in_page(refuse) == "<p>no picture: nothing &lt;to&gt; draw</p>"


def test_every_class_of_results_is_tested() -> None:
    assert classes() == set(RESULTS)


def test_the_html_of_a_report_escapes_names() -> None:
    shown = lstmsim.simulate(PLAIN)._repr_html_()
    assert NAME not in shown
    assert "a&lt;b&gt;&amp;&quot;c" in shown


@pytest.mark.slow
def test_a_run_shows_its_report() -> None:
    result = lstmsim.run(PLAIN)
    assert str(result) == str(result.report) == result.to_text()
    assert repr(result) == f"<Run of {NAME} on column-npu-16k>"
    own = {
        key: value for key, value in plain(result.report.stamp).items() if key not in ("compared", "silicon", "outside")
    }
    stamp = {"stamp": own}
    assert result.to_dict() == report_json(result.report) | stamp | about(result.scenario)
    shown = result._repr_html_()
    assert shown.startswith(result.report._repr_html_())
    assert shown.count('src="data:image/png;base64,') == 1


def test_without_pandas_the_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(lstmsim.InputError, match=re.escape("pip install 'lstmsim[pandas]'")):
        lstmsim.simulate(PLAIN).to_pandas()


@pytest.mark.slow
@pytest.mark.parametrize("which", ["plot", "plot_comparison", "plot_accuracy", "plot_load_latency", "plot_sweep"])
def test_a_notebook_shows_pictures(which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = {
        "plot": "Timeline",
        "plot_comparison": "Comparison",
        "plot_accuracy": "AccuracyReport",
        "plot_load_latency": "LoadLatency",
        "plot_sweep": "SweepResult",
    }
    picture = getattr(lstmsim, which)(result_of(made[which]))
    assert picture._repr_png_().startswith(b"\x89PNG\r\n")
