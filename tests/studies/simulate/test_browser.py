"""The page with its scripts, in a real browser: zoom, pan, select, click, search, switch; names of users stay texts."""

from __future__ import annotations

import base64
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import lstmsim as api
from lstmsim.analysis.timeline import COLUMNS, MAIN, STATES, Row, Timeline, window
from lstmsim.program.unit_names import is_unit
from lstmsim.report.document import Document, grid
from lstmsim.report.page.frame import result_page
from lstmsim.studies.simulate.page import explorer as data
from lstmsim.studies.simulate.page.page import report_page
from tests.files.perfetto_page import Page, browser, chromium
from tests.studies.simulate.exploring import Explored
from tests.studies.simulate.runs import run

FIELDS = ".choices input[type=number]"

pytestmark = pytest.mark.skipif(chromium() is None, reason="no browser on PATH")


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(str(chromium()), tmp_path_factory.mktemp("profile")) as page:
        yield page


@cache
def explained() -> str:
    result = run("four cores")
    return report_page(result, explanation=api.explain(result))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(explained(), encoding="utf-8")
    return path


def sums(timeline: Timeline, low: int, high: int) -> dict[str, Counter[str]]:
    """Cycles by state, of rows of main units, threads and others."""
    part = window(timeline, low, high)
    counts: dict[str, Counter[str]] = {"main": Counter(), "thread": Counter(), "unit": Counter()}
    for row, state, start, end in zip(part.row, part.state, part.start, part.end, strict=True):
        kind = timeline.rows[row].kind
        group = "main" if kind == MAIN else "unit" if is_unit(kind) else "thread"
        counts[group][STATES[state]] += int(end - start)
    return counts


def selected(page: Explored) -> tuple[int, int]:
    """The window in the fields, once its sums are shown."""
    first, last = (int(page.run(f"document.querySelectorAll('{FIELDS}')[{at}].value")) for at in (0, 1))
    page.wait(f"document.querySelector('#selection h3')?.textContent.startsWith('Cycles {first:,} to {last:,}:')")
    return first, last


def select(page: Explored, first: int, last: int) -> None:
    """Write a window into the fields."""
    page.run(f"""document.querySelectorAll('{FIELDS}').forEach((each, at) => {{
        each.value = [{first}, {last}][at]; each.dispatchEvent(new Event("change")); }})""")
    assert selected(page) == (first, last)


def press(page: Explored, elements: str, text: str) -> None:
    """Click the element with a text."""
    page.run(f"[...document.querySelectorAll('{elements}')].find(e => e.textContent.includes('{text}')).click()")


def whole(text: str) -> int:
    return 0 if text == "–" else int(text.replace(",", ""))


@pytest.mark.slow
def test_zoom_select_and_click_lead_from_the_run_to_a_stall(chrome: Page, file: Path) -> None:
    result = run("four cores")
    makespan = result.report.makespan_cycles
    page = Explored(chrome, file)
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    assert page.view() == (0, makespan)
    # keys zoom and pan as long as they are held, and not further than the run
    page.key("w", 0.15)
    low, high = page.view()
    assert 0 < low < high < makespan
    page.key("d", 0.1)
    assert page.view()[0] > low
    assert page.view()[1] - page.view()[0] == pytest.approx(high - low)
    for _ in range(3):
        page.key("s", 0.15)
    assert page.view() == (0, makespan)
    # the wheel zooms to single cycles about the pointer
    x, y = page.place(0.25, "core 0 array")
    for _ in range(24):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, modifiers=2)
    low, high = page.view()
    assert high - low == 8
    # a pixel of the whole run has four cycles
    assert low - 4 < makespan / 4 < high + 4
    page.key("0")
    low, high = page.view()
    assert (low, high) == (0, makespan)
    # a press on the strip goes there; it begins where rows do
    while high - low > makespan / 2:
        page.key("w", 0.3)
        low, high = page.view()
    x, y = page.place(0.7, "core 0 array")
    top = page.run("document.querySelector('.strip').getBoundingClientRect().y")
    page.drag((x, top + 8), (x, top + 8))
    low, high = page.view()
    assert (low + high) / 2 == pytest.approx(0.7 * makespan, abs=0.01 * makespan)
    page.key("0")
    # a drag selects whole cycles; the tables are exact
    page.drag(page.place(0.2, "core 1 array"), page.place(0.6, "core 1 array"))
    first, last = (
        int(page.run(f"document.querySelectorAll('.choices input[type=number]')[{at}].value")) for at in (0, 1)
    )
    # sums of an earlier part of the drag may stand there until the window has been still for a while
    page.wait(f"document.querySelector('#selection h3')?.textContent.startsWith('Cycles {first:,} to {last:,}:')")
    assert 0.15 * makespan < first < last < 0.65 * makespan
    exact = sums(result.timeline, first, last)
    shown = page.table("#selection table")
    for group, column in (("main", 1), ("thread", 3), ("unit", 4)):
        assert {row[0]: whole(row[column]) for row in shown if whole(row[column])} == dict(exact[group])
    assert sum(whole(row[5]) for row in shown) == last - first
    # the key f shows what is selected
    page.key("f")
    assert page.view() == (first, last)
    # a number leads to its spans, and a span to words
    hazard = next(number for number, row in enumerate(shown, 1) if row[0] == "hazard")
    page.click(f"#selection tbody tr:nth-child({hazard}) td:nth-child(4) button")
    page.wait("document.querySelector('#behind table') !== null")
    rows = page.table("#behind table")
    assert {row[4] for row in rows} == {"hazard"}
    assert [whole(row[3]) for row in rows] == sorted((whole(row[3]) for row in rows), reverse=True)
    page.click("#behind tbody tr button")
    words = page.wait("document.querySelector('#span').textContent")
    assert words.startswith("hazard: threads wait for their own results")
    assert f"cycles {rows[0][1]} to {rows[0][2]}" in words
    for said in ("layer 0", "step ", "meanwhile", "tail: busy", "critical path"):
        assert said in words
    assert not page.complaints()


@pytest.mark.slow
def test_the_pointer_shows_what_a_span_is_and_keys_reach_a_first_one(chrome: Page, file: Path) -> None:
    page = Explored(chrome, file, width=1900)
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    # the picture is as wide as the window, texts are not
    assert page.run("document.querySelector('.view').clientWidth") > 1800
    assert page.run("document.querySelector('#jobs').clientWidth") <= 1080
    tip = "document.querySelector('[role=tooltip]')"
    assert page.run(f"{tip}.hidden")
    x, y = page.place(0.3, "core 1 array")
    page.mouse("mouseMoved", x, y, button="none")
    said = page.wait(f"{tip}.hidden ? '' : {tip}.textContent")
    assert re.match(r"core 1 array: \w+\n(.+\n)?cycles [\d,]+ to [\d,]+: [\d,]+ cycles, [\d.,]+ µs$", said)
    box = page.run(f"(() => {{ const at = {tip}.getBoundingClientRect(); return [at.left, at.right, at.top]; }})()")
    assert x < box[0] < box[1] < 1900
    assert y < box[2] < y + 40
    page.mouse("mouseMoved", x, 2, button="none")
    page.wait(f"{tip}.hidden")
    # without a chosen span an arrow takes the first one in view
    page.key("ArrowRight")
    assert "cycles 0 to" in page.wait("document.querySelector('#span').textContent")
    page.key("ArrowRight")
    page.wait("!document.querySelector('#span').textContent.includes('cycles 0 to')")
    assert page.run("document.querySelectorAll('.choices input[type=number]')[1].ariaLabel") == "End cycle (exclusive)"
    assert not page.complaints()


@pytest.mark.slow
def test_a_key_that_is_tapped_zooms_and_one_let_go_with_shift_is_not_held(chrome: Page, file: Path) -> None:
    makespan = run("four cores").report.makespan_cycles
    page = Explored(chrome, file)
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    page.key("w")
    low, high = page.view()
    assert 0.7 * makespan < high - low < 0.8 * makespan
    chrome.call("Input.dispatchKeyEvent", type="keyDown", key="w")
    chrome.call("Input.dispatchKeyEvent", type="keyUp", key="W")
    assert page.view() == page.view()


@pytest.mark.slow
def test_the_address_has_the_view_and_a_selection_keeps_the_colours(chrome: Page, file: Path) -> None:
    page = Explored(chrome, file)
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    page.place(0.5, "core 0 array")
    page.view()
    # a column of pixels below the axis
    pixels = """(() => { const canvas = document.querySelector(".view canvas"), pen = canvas.getContext("2d");
        return pen.getImageData(Math.round(canvas.width / 2), 30, 1, canvas.height - 30).data.join(); })()"""
    before = page.run(pixels)
    select(page, 100, 5000)
    page.view()
    assert page.run(pixels) == before
    page.key("f")
    page.key("ArrowRight")
    view, words = page.view(), page.wait("document.querySelector('#span').textContent")
    assert view == (100, 5000)
    address = page.wait("location.hash.includes('span=') ? location.hash : ''")
    assert address.startswith("#view=100-5000&selected=100-5000&span=")
    chrome.call("Page.reload")
    page.wait("document.querySelector('.view canvas')?.dataset.low === '100'")
    assert page.view() == view
    assert selected(page) == (100, 5000)
    assert page.text("#span") == words
    page.run("location.hash = '#view=1000-2000'")
    page.wait("document.querySelector('.view canvas')?.dataset.low === '1000'")
    # what cannot be there is nothing
    page.run("location.hash = '#view=900-100&selected=x&span=99999-0'")
    chrome.call("Page.reload")
    page.wait("document.querySelector('.view canvas')?.dataset.low === '0'")
    assert page.view() == (0, run("four cores").report.makespan_cycles)
    assert page.text("#span") == ""
    # the browser remarks on what this test reads off the canvas
    assert not [each for each in page.complaints() if "getImageData" not in str(each)]


@pytest.mark.slow
def test_search_switches_tables_and_theme(chrome: Page, file: Path) -> None:
    # so narrow that the span which is found is too short to be seen
    page = Explored(chrome, file, width=1000)
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    timeline = run("four cores").timeline
    # `/` goes to the field, and Enter to the longest span that fits
    page.key("/")
    page.write("hazard layer 0 step 3")
    page.key("Enter")
    words = page.wait("document.querySelector('#span').textContent")
    fits = (timeline.step == 3) & (timeline.layer == 0) & (timeline.state == STATES.index("hazard"))
    assert f"1 of {fits.sum():,} spans" in page.text(".choices .note")
    assert f"{(timeline.end - timeline.start)[fits].max()} cycles" in words
    assert "step 3" in words
    low, high = page.view()
    assert high - low < timeline.makespan_cycles
    # letters in the field are no keys of the picture; outside they are, and `?` lists them
    page.key("w", 0.2)
    assert page.view() == (low, high)
    page.run("document.activeElement.blur()")
    page.key("?")
    assert "zoom in" in page.wait("document.querySelector('dialog[open]')?.textContent")
    page.click("dialog button")
    # a window in the fields, to the cycle
    select(page, 100, 777)
    # switches show what was simulated
    tried = api.explain(run("four cores")).what_if
    first, second = tried.pairs[0].pair or ("", "")
    for name in (first, second):
        press(page, ".switches label", f" {name} ")
        alone = next(each for each in tried.alternatives if each.name == first)
        wanted = alone if name == first else tried.pairs[0]
        assert f": {wanted.cycles:,} cycles instead of {tried.base_cycles:,}" in page.text("#what-if .answer")
    # a head sorts, a text filters
    latencies = [whole(row[8]) for row in page.table("#jobs table")]
    page.click("#jobs th:nth-child(9) button")
    assert [whole(row[8]) for row in page.table("#jobs table")] == sorted(latencies, reverse=True)
    page.run("document.querySelector('#jobs input').focus()")
    page.write("gru #7")
    rows = "[...document.querySelectorAll('#jobs tbody tr')].filter(e => e.offsetHeight)"
    fitting = [job.name for job in run("four cores").report.jobs if "gru" in job.name and "#7" in job.name]
    assert page.run(f"{rows}.map(e => e.cells[0].textContent)") == fitting
    # the switch of the theme
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.run(ground) == "rgb(255, 255, 255)"
    page.click("#theme")
    assert page.run(ground) == "rgb(21, 25, 30)"
    assert not page.complaints()


@pytest.mark.slow
def test_a_phone_at_night_has_no_page_that_is_too_wide(chrome: Page, file: Path) -> None:
    page = Explored(chrome, file, width=390, height=844, scheme="dark")
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(21, 25, 30)"
    press(page, ".choices button", "Sum the view")
    selected(page)
    assert page.run("document.documentElement.scrollWidth") == 390
    assert not page.complaints()


#: Would be markup, script, an end of an element, or no text at all; all of them at once.
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\u202e\u2028"


@pytest.mark.slow
def test_names_of_users_stay_texts(chrome: Page, tmp_path: Path) -> None:
    result = run("one job")
    job = replace(result.scenario.jobs[0], name=HOSTILE)
    hostile = replace(result, scenario=replace(result.scenario, jobs=(job,), name=HOSTILE))
    file = tmp_path / "page.html"
    file.write_text(report_page(hostile, explanation=api.explain(hostile)), encoding="utf-8")
    page = Explored(chrome, file)
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    page.click("#jobs tbody th button")
    page.wait("document.querySelector('#span').textContent")
    press(page, ".choices button", "Sum the view")
    selected(page)
    shown = HOSTILE.replace("\u202e", "\N{REPLACEMENT CHARACTER}").replace("\u2028", " ")
    assert shown in page.text("#selection")
    assert shown in page.text("#span")
    assert page.run("document.title").startswith("</script>")
    assert page.run("document.querySelectorAll('img').length") == 0
    assert not page.complaints()


@pytest.mark.slow
def test_what_was_not_written_by_the_frame_does_not_run(chrome: Page, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    text = report_page(run("one step"))
    file.write_text(text.replace("</main>", "<script>document.title='owned'</script></main>"), encoding="utf-8")
    page = Explored(chrome, file)
    assert page.run("document.title") != "owned"
    assert "Content Security Policy" in str(page.complaints())
    with pytest.raises(AssertionError, match="TrustedHTML"):
        page.run("document.body.innerHTML = '<b>x</b>'")


def long_run(spans: int, rows: int = 12) -> Timeline:
    """A run of ten million cycles without a period, of main units that work and wait in turn."""
    each = spans // rows
    random = np.random.default_rng(0)
    lengths = random.integers(1, 2 * (10_000_000 // each), (rows, each))
    end = np.cumsum(lengths, axis=1)
    last = int(end[:, -1].min())
    start = end - lengths
    kept = start < last
    columns = {
        "row": np.repeat(np.arange(rows), each).reshape(rows, each),
        "start": start,
        "end": np.minimum(end, last),
        "state": np.where(np.arange(each) % 2, STATES.index("hazard"), STATES.index("busy")) + 0 * start,
        "job": np.where(np.arange(each) % 2, -1, 0) + 0 * start,
        "layer": np.where(np.arange(each) % 2, -1, np.arange(each) // 2 % 3) + 0 * start,
        "step": np.arange(each) + 0 * start,
    }
    typed = {name: column[kept].astype(COLUMNS[name]) for name, column in columns.items()}
    names = tuple(Row(core, MAIN, unit="array") for core in range(rows))
    return Timeline("chip", 100.0, last, names, ("a",), **typed)


#: Notes every frame from now on; `frames` are the times between them, `scripts` those of what draws them, in ms.
PROBE = """(() => { let last = performance.now(); globalThis.frames = []; globalThis.scripts = [];
  const plain = requestAnimationFrame.bind(globalThis);
  const next = (now) => { frames.push(now - last); last = now; scripts.push(0); plain(next); };
  plain(next);
  globalThis.requestAnimationFrame = (call) => plain((now) => {
    const start = performance.now(); call(now); scripts[scripts.length - 1] += performance.now() - start; }); })()"""


@pytest.mark.slow
def test_ten_million_cycles_are_explored_without_a_stutter(chrome: Page, tmp_path: Path) -> None:
    timeline = long_run(100_000)
    assert timeline.makespan_cycles > 9_000_000
    file = tmp_path / "page.html"
    result = run("one job")
    run_like = SimpleNamespace(scenario=result.scenario, report=result.report, timeline=timeline)
    file.write_text(report_page(run_like), encoding="utf-8")
    assert file.stat().st_size < 1_500_000
    page = Explored(chrome, file)
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    page.place(0.5, "core 0")
    page.run(PROBE)
    for key in "wdsa":
        page.key(key, 0.25)
    frames = sorted(page.run("frames"))
    middle, late, worst = frames[len(frames) // 2], frames[len(frames) * 99 // 100], frames[-1]
    busy = sorted(page.run("scripts"))
    print(f"{len(frames)} frames of 100,000 spans: median {middle:.1f} ms, 99 % {late:.1f} ms, worst {worst:.1f} ms")
    print(f"scripts of a frame: median {busy[len(busy) // 2]:.1f} ms, worst {busy[-1]:.1f} ms")
    # the worst one is the machine's, which others use as well; half of all are the page's
    assert middle < 50
    select(page, 1_234_567, 7_654_321)
    shown = {row[0]: whole(row[1]) for row in page.table("#selection table")}
    assert shown == dict(sums(timeline, 1_234_567, 7_654_321)["main"])
    part = window(timeline, 1_234_567, 7_654_321)
    layers = {row[0]: whole(row[1]) for row in page.table("#selection .trio > div:nth-child(2) table")}
    assert layers == {f"layer {layer}": int((part.end - part.start)[part.layer == layer].sum()) for layer in range(3)}


@pytest.mark.slow
def test_spans_that_are_too_many_are_in_bins_whose_sums_are_exact(
    chrome: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "MOST_SPANS", 1000)
    result = run("four cores")
    file = tmp_path / "page.html"
    text = report_page(result)
    file.write_text(text, encoding="utf-8")
    assert "spans are too many for a page: they are in bins of" in text
    page = Explored(chrome, file)
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    page.drag(page.place(0.2, "core 1 array"), page.place(0.7, "core 1 array"))
    first, last = selected(page)
    exact = sums(result.timeline, first, last)
    shown = page.table("#selection table")
    for group, column in (("main", 1), ("thread", 3), ("unit", 4)):
        assert {row[0]: whole(row[column]) for row in shown if whole(row[column])} == dict(exact[group])
    assert "The window ends where bins of" in page.text("#selection")
    page.mouse("mousePressed", *page.place(0.5, "core 1 array"))
    page.mouse("mouseReleased", *page.place(0.5, "core 1 array"))
    assert "within a bin the order is not kept" in page.wait("document.querySelector('#span').textContent")
    assert not page.complaints()


def test_rows_of_a_result_are_brushed(chrome: Page, tmp_path: Path) -> None:
    rows = [{"npe": at, "ms": 100 - at, "name": HOSTILE, "pareto": at % 2} for at in range(50)]
    file = tmp_path / "rows.html"
    document = Document.of(HOSTILE, grid(["<name", "x"], [[HOSTILE, 1]]))
    file.write_text(result_page(document, HOSTILE, records=rows, axes=("npe", "ms", "pareto")), encoding="utf-8")
    page = Explored(chrome, file)
    page.wait("document.querySelector('#rows table') !== null")
    assert len(page.table("#rows table")) == 50
    page.run("document.querySelector('.chart').scrollIntoView()")
    box = "document.querySelector('.chart').getBoundingClientRect()"
    left, top, width = (page.run(f"{box}.{each}") for each in ("x", "y", "width"))
    page.drag((left + 58, top + 2), (left + width / 2, top + 330))
    labels = page.run("[...document.querySelectorAll('.chart text.tick')].map(e => e.textContent)")
    assert labels[-2:] == ["multipliers (NPE)", "makespan (ms)"]
    kept = [whole(row[0]) for row in page.table("#rows table")]
    assert kept == list(range(len(kept)))
    assert 20 < len(kept) < 30
    assert f"{len(kept)} of 50 rows" in page.text("#rows [role=status]")
    page.key("Escape")
    assert len(page.table("#rows table")) == 50
    assert page.run("document.querySelectorAll('img').length") == 0
    assert not page.complaints()


def test_a_chart_has_the_intervals_of_what_goes_up(chrome: Page, tmp_path: Path) -> None:
    rows = [{"load": at, "p99_ms": 10 + at, "p99_half_width_ms": None if at == 3 else 2, "rate": at} for at in range(4)]
    file = tmp_path / "rows.html"
    file.write_text(result_page(Document.of("x"), "x", records=rows, axes=("load", "p99_ms")), encoding="utf-8")
    page = Explored(chrome, file)
    page.wait("document.querySelector('#rows table') !== null")
    drawn = "[...document.querySelectorAll('.chart {}')].map((e) => e.getBoundingClientRect().height)"
    bars = page.run(drawn.format(".interval"))
    assert len(bars) == 3
    assert bars == pytest.approx([bars[0]] * 3, abs=0.5)
    assert bars[0] > 50
    assert len(page.run(drawn.format(".hollow"))) == 1
    assert "hollow: too few requests" in page.text(".legend")
    page.run("""(() => { const select = document.querySelectorAll(".choices select")[1];
        select.value = "rate"; select.dispatchEvent(new Event("change")); })()""")
    assert page.run(drawn.format(".interval")) == page.run(drawn.format(".hollow")) == []
    assert not page.complaints()


#: What is drawn of the baseline: its ring, and the lines to both axes.
BASE = "[...document.querySelectorAll('.chart .base')].map((each) => each.tagName)"


def test_a_baseline_stays_in_every_chart(chrome: Page, tmp_path: Path) -> None:
    rows = [{"npe": at, "ms": 100 - at, "watts": at % 7, "kind": "ab"[at % 2]} for at in range(50)]
    drawn = ["circle", "polyline", "polyline"]
    file, document = tmp_path / "rows.html", Document.of("x")
    for baseline in (None, {"words": HOSTILE, "rows": [20]}):
        text = result_page(document, "x", records=rows, axes=("npe", "ms", "kind"), baseline=baseline)
        file.write_text(text, encoding="utf-8")
        page = Explored(chrome, file)
        page.wait("document.querySelector('#rows table') !== null")
        assert page.run(BASE) == (drawn if baseline else [])
        assert ("baseline" in page.text(".legend")) == (baseline is not None)
    # the lines stay on other axes, and on the dark page
    for place, name in ((0, "watts"), (1, "npe")):
        page.run(f"""(() => {{ const select = document.querySelectorAll(".choices select")[{place}];
            select.value = "{name}"; select.dispatchEvent(new Event("change")); }})()""")
        assert page.run(BASE) == drawn
    page.key("t")
    ink = "getComputedStyle(document.querySelector('.chart .base')).stroke"
    assert page.run(ink) == page.run("getComputedStyle(document.body).color")
    assert page.run("document.querySelectorAll('img').length") == 0


def share(pixels: NDArray[np.uint8], colour: str) -> float:
    """Part of a picture that has exactly that colour."""
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return float((pixels == wanted).all(axis=-1).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "ground", "ink", "hazard"),
    [("light", "#FFFFFF", "#1B1F23", "#FFB9BF"), ("dark", "#15191E", "#E6EAEE", "#734248")],
)
def test_the_page_renders_light_and_dark(
    chrome: Page, file: Path, scheme: str, ground: str, ink: str, hazard: str
) -> None:
    page = Explored(chrome, file, width=1200, height=1500, scheme=scheme)
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    page.view()
    with Image.open(io.BytesIO(chrome.picture())) as image:
        pixels = np.asarray(image.convert("RGB"))
    assert pixels.shape == (1500, 1200, 3)
    assert 0.4 < share(pixels, ground) < 0.95
    assert share(pixels, ink) > 0.001
    # Useful work in bars and the first job's spans; lines across the page, top to bottom: nothing has collapsed.
    assert share(pixels, "#0072B2") > 0.003
    # A wait shows its ground between the lines of its hatch.
    assert run("four cores").report.losses["hazard"] > 0
    assert share(pixels, hazard) > 0.001
    rows = (pixels != pixels[0, 0]).any(axis=(1, 2))
    assert rows[:750].mean() > 0.4
    assert rows[750:].mean() > 0.4
    assert not page.complaints()


@pytest.mark.slow
def test_the_page_prints_on_a4(chrome: Page, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(report_page(run("thousand jobs")), encoding="utf-8")
    page = Explored(chrome, file, scheme="dark")
    page.wait("document.querySelector('.view canvas')?.dataset.high")
    content = base64.b64decode(chrome.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
    assert not page.complaints()
    assert content.startswith(b"%PDF")
    sizes = re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", content)
    assert sizes
    for width, height in sizes:
        assert float(width) == pytest.approx(210 / 25.4 * 72, abs=1.5)
        assert float(height) == pytest.approx(297 / 25.4 * 72, abs=1.5)
    # A thousand rows would take more than twenty pages; the first forty of them are printed.
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 12
