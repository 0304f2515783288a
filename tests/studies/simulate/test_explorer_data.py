"""What scripts read of a run is what the timeline has: unpacked here as the scripts do it, without a browser."""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lstmsim as api
from lstmsim.analysis.spans import use_over_time
from lstmsim.analysis.timeline import STATES
from lstmsim.report.html.markup import Markup
from lstmsim.report.page.frame import CHART, embedded, page
from lstmsim.studies.simulate.page import explorer as data
from lstmsim.studies.simulate.page.explorer import explorer, path_of
from lstmsim.studies.simulate.page.page import _SCRIPTS
from tests.studies.simulate.runs import run
from tests.timelines import busy_machine


def unpacked(given: dict[str, Any]) -> list[NDArray[np.int64]]:
    """The columns: spans in row, gap, length, kind, turn; of kinds state, job, layer, held, core, look."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(given["columns"])), dtype=np.uint8)
    columns, at = [], 0
    for length, planes in given["sizes"]:
        parts = raw[at : at + length * planes].reshape(planes, length).astype(np.int64)
        columns.append((parts << (8 * np.arange(planes)[:, None])).sum(axis=0))
        at += length * planes
    assert at == len(raw)
    return columns


def spans(given: dict[str, Any]) -> NDArray[np.int64]:
    """Row, start, end, state, job, layer, step of each span, shape (7, spans)."""
    counts, gap, length, kind, turn, state, job, layer, *_ = unpacked(given)
    row = np.repeat(np.arange(len(counts)), counts)
    end = np.concatenate([np.cumsum(part) for part in np.split(gap + length, np.cumsum(counts)[:-1])]) + given["first"]
    step = np.cumsum(np.where(turn % 2, -(turn + 1) // 2, turn // 2))
    return np.stack([row, end - length, end, state[kind], job[kind] - 1, layer[kind] - 1, step])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one job", "four cores", "row", "thousand jobs", "million cycles"])
def test_every_span_is_there(name: str) -> None:
    timeline = run(name).timeline
    given = explorer(timeline, use_over_time(timeline), {})
    assert given["bin"] == 1
    columns = (timeline.row, timeline.start, timeline.end, timeline.state, timeline.job, timeline.layer, timeline.step)
    np.testing.assert_array_equal(spans(given), np.stack(columns))
    assert [row[0] for row in given["rows"]] == [row.name for row in timeline.rows]
    # steps are alike, so that a span takes much less than a byte for each of its seven numbers
    assert len(given["columns"]) < max(3000, 4 * len(timeline))


def test_large_numbers_are_not_cut() -> None:
    timeline = busy_machine(cores=1, threads=1, spans=4)
    far = 2**40
    last = timeline.makespan_cycles + far
    late = replace(timeline, start=timeline.start + far, end=timeline.end + far, makespan_cycles=last)
    np.testing.assert_array_equal(spans(explorer(late, use_over_time(late), {}))[1:3], np.stack([late.start, late.end]))


@pytest.mark.slow
def test_the_whole_critical_path_is_a_row() -> None:
    result = run("four cores")
    given = explorer(result.timeline, use_over_time(result.timeline), {}, *path_of(result, {}))
    assert given["rows"][0] == ["critical path", 3, -1]
    row, start, end, state, *_ = spans(given)
    mine = row == 0
    assert start[mine][0] == 0
    np.testing.assert_array_equal(start[mine][1:], end[mine][:-1])
    assert end[mine][-1] == result.report.makespan_cycles
    names = np.array([name for name, _ in given["states"]])[state[mine]]
    cycles = {name: int((end - start)[mine][names == name].sum()) for name in set(names)}
    assert cycles == {share.name: share.cycles for share in api.explain(result).shares if share.cycles}


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["MOST_SPANS", "MOST_BYTES"])
def test_bins_hold_the_cycles_of_every_kind(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = run("four cores").timeline
    monkeypatch.setattr(data, limit, 100)
    given = explorer(timeline, use_over_time(timeline), {})
    width, last = given["bin"], timeline.makespan_cycles
    assert width > 1
    row, start, end, state, job, layer, _ = spans(given)
    assert (start // width == (end - 1) // width).all()
    for low in range(0, last, 7 * width):
        high = min(last, low + 7 * width)
        inside = (start >= low) & (end <= high)
        exact = np.clip(np.minimum(timeline.end, high) - np.maximum(timeline.start, low), 0, None)
        own = (timeline.row, timeline.state, timeline.job + 1, timeline.layer + 1)
        for one, other in zip((row, state, job + 1, layer + 1), own, strict=True):
            np.testing.assert_array_equal(
                np.bincount(one[inside], (end - start)[inside], minlength=64), np.bincount(other, exact, minlength=64)
            )
    assert "too many for a page" in data.left_out_text(given)
    assert STATES.index("busy") in state


def test_scripts_make_no_markup_and_load_nothing() -> None:
    text = page("t", Markup(""), [], scripts=[*_SCRIPTS, CHART])
    script = text.partition('<script type="module">')[2]
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    for word in ("innerHTML", "outerHTML", "AdjacentHTML", "document.write", "eval(", "Function(", "fetch(", "import("):
        assert word not in script, word
    # the name of SVG, which looks like an address, is all that may
    script = script.replace('"http://www.w3.org/2000/svg"', "")
    assert "//" not in re.sub(r"^\s*//.*$|/\*\*?.*?\*/", "", script, flags=re.MULTILINE | re.DOTALL)


def test_data_cannot_end_their_element() -> None:
    text = embedded("x", {"</script>": ["<!--", "\u202e", 1.5, None, True]})
    inside = text.removeprefix('<script type="application/json" id="data-x">').removesuffix("</script>")
    assert "<" not in inside
    assert inside.isascii()
    with pytest.raises(ValueError, match="Out of range"):
        embedded("x", float("nan"))
