"""Tenants on a page: rows and bars of each, names that are no markup, nothing outside the frame."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from lstmsim import Run, run, serving
from lstmsim.studies.serve.result import Entry
from lstmsim.studies.simulate.page.page import report_page
from lstmsim.studies.simulate.page.sections import serving_section, tenants_section
from tests.studies.serve.collecting import Collector

MODEL = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}
JOBS: list[dict[str, Any]] = [
    {"model": MODEL, "name": "a <b>", "steps": 1, "count": 40, "arrival": list(range(0, 400, 10)), "deadline": 100},
    {"model": MODEL, "name": "same", "steps": 2, "count": 5},
    {"model": MODEL, "name": "same", "steps": 2, "count": 5, "arrival": 100_000, "queue_limit": 2},
]


@cache
def result() -> Run:
    core = {"npe": 64, "ep": 4, "vp": 16, "threads": 1}
    return run({"chip": {"kind": "column-npu", "frequency_mhz": 100, "cores": [core]}, "jobs": JOBS})


def test_every_tenant_has_its_rows() -> None:
    served = serving(result())
    content = tenants_section(served).content
    for name, tenant in served.tenants.items():
        shown = name.replace("<", "&lt;").replace(">", "&gt;")
        assert content.count(f">{shown}</th>") == 1
        assert tenant.slowdown is not None
        assert f">{tenant.slowdown:.4g}<" in content
    attainment = served.tenants["a <b>"].attainment
    assert attainment is not None
    assert f">{100 * attainment:.4g} %" in content
    assert f"{served.antt:.4g} on average over 3 tenants (ANTT)" in serving_section(served).content
    assert f">{served.tenants['a <b>'].throughput_per_second:,.0f}" in content, "no rate is a power of ten"


def test_the_page_has_them_once() -> None:
    page = report_page(result(), serving=serving(result()))
    assert 'id="tenants"' in page
    assert "TENANTS" not in page
    assert "a <b>" not in page


def test_latencies_by_tenant_are_there_without_serving() -> None:
    page = report_page(result())
    latency = page[page.index('id="latency"') : page.index('id="jobs"')]
    for name in ("same #1", "same #2", "a &lt;b&gt;"):
        assert f">{name}</th>" in latency
    served = [job for job in result().report.jobs if result().scenario.jobs[job.number].tenant == "same #1"]
    mean = sum(job.latency for job in served) / len(served) / 100_000
    assert f">{mean:.4g}</td>" in latency


def test_bars_stay_in_their_frame() -> None:
    content = tenants_section(serving(result())).content
    ((width, height),) = re.findall(r'viewBox="0 0 (\d+) (\d+)"', content)
    for key, limit in (("x", width), ("x1", width), ("x2", width), ("y", height), ("y1", height), ("y2", height)):
        values = [float(each) for each in re.findall(rf' {key}="([-\d.]+)"', content)]
        assert values
        assert all(0 <= value <= float(limit) for value in values)


@pytest.mark.slow
def test_of_very_many_tenants_the_page_says_how_many_are_left_out() -> None:
    entries = [Entry(f"t{number}", "m") for number in range(300)]
    collector = Collector(100, entries=entries)
    names = [each.name for each in entries]
    collector.add_many(range(300), [0] * 300, range(300), range(1, 301), tenants=names)
    content = tenants_section(collector.figures()).content
    assert "Drawn: 24 of 300 tenants." in content
    assert "and 100 more tenants, in the JSON of the run" in content
    assert content.count("<tr>") == 201
