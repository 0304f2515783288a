"""Serving on a page: queue and threads over time, jobs turned away, the memory."""

from __future__ import annotations

import re
from typing import Any

from lstmsim import run, serving
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.simulate.page.page import report_page
from lstmsim.studies.simulate.page.sections import serving_section
from tests.studies.serve.collecting import Collector

MODEL = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}
CORE = {"npe": 64, "ep": 4, "vp": 16, "count": 2}


def scenario(core: dict[str, Any] | None = None, **chip: Any) -> dict[str, Any]:
    jobs = [{"model": MODEL, "steps": 1, "count": 40, "arrival": list(range(0, 400, 10)), "queue_limit": 3}]
    jobs.append({"model": {**MODEL, "name": "other"}, "steps": 2, "split": "rows", "name": "wide"})
    return {
        "chip": {"kind": "column-npu", "frequency_mhz": 100, "cores": [{**CORE, **(core or {})}], **chip},
        "jobs": jobs,
    }


def test_the_queue_and_the_threads_over_time() -> None:
    result = run(scenario())
    served = serving(result)
    page = report_page(result, serving=served)
    assert "requests that wait" in page
    assert "threads taken, of 2" in page
    assert f"{served.rejected} more rejected" in page
    assert re.search(rf"rejected</dt><dd>{served.rejected}", page)
    assert "0,1</td>" in page, "the cores of the job that is split"
    over_time = Serving.to_dict(served)["over_time"]
    assert sum(each["finished"] for each in over_time) == served.requests
    waited = sum(each["waiting"] * each["width_cycles"] for each in over_time)
    assert round(waited) == served.little_waiting.area


def test_a_memory_has_its_figure_and_a_row_of_its_own() -> None:
    whole = scenario({"weight_kib": 1, "weight_bits": 16}, memory={"gb_per_s": 1})
    page = report_page(run(whole))
    assert re.search(r"memory</dt><dd>\d+\.\d %", page)
    assert ">memory<" in page
    assert "reload" in page


def test_one_request_is_enough() -> None:
    collector = Collector(250)
    collector.add(0, arrival=5, start=5, finish=6)
    assert "1 request on 1 thread" in serving_section(collector.figures()).html
