"""The page: well-formed, of itself, small, the same for the same run, and safe whatever names it shows."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lstmsim
import lstmsim as api
from lstmsim.analysis.report import LOSSES
from lstmsim.analysis.report_text import answer
from lstmsim.analysis.stall_words import NAMED
from lstmsim.analysis.timeline import STATES
from lstmsim.base.errors import InputError
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.report.document import Document, grid
from lstmsim.report.html.markup import Markup, element, escaped, link_to
from lstmsim.studies.simulate.page.page import report_page
from tests.studies.simulate.reading import Reader
from tests.studies.simulate.runs import SCENARIOS, run

#: Names that would be markup, script, a way out of an attribute, or no text at all.
NASTY = (
    '<script>alert("1")</script>',
    "\"'><img src=x onerror=y>",
    "a&lt;b &amp; c",
    "half\ud800letter",
    "\x00\x1b\u202e",
)


@cache
def page_of(name: str, engine: str = "fast") -> str:
    return report_page(run(name, engine))


@cache
def read(name: str) -> Reader:
    return Reader(page_of(name))


@pytest.mark.parametrize("name", [*SCENARIOS, ""])
def test_pages_are_well_formed_and_load_nothing(name: str) -> None:
    page = page_of(name) if name else report_page(run("one job"), trace_file="a trace.json.gz")
    reader = read(name) if name else Reader(page)
    assert page.startswith("<!DOCTYPE html>\n")
    assert reader.all("html") == [{"lang": "en"}]
    assert [values for values in reader.all("script") if values != {"type": "module"}] == [
        {"type": "application/json", "id": "data-timeline"}
    ]
    assert not {"link", "img", "iframe", "object", "embed", "base", "use", "image"} & {tag for tag, _ in reader.tags}
    for tag, values in reader.tags:
        for attribute, value in values.items():
            assert not attribute.startswith("on"), f"{tag} {attribute}"
            assert attribute != "style"
            assert attribute not in ("src", "srcset", "data", "action", "xlink:href")
            if attribute == "href":
                assert value.startswith(("#", "./")), value
    style = reader.texts["style"]
    assert "@import" not in style
    assert "//" not in style
    for target in re.findall(r"url\(([^)]*)\)", page):
        assert target.removeprefix("#") in reader.by_id, target
    policy = next(values["content"] for values in reader.all("meta") if "http-equiv" in values)
    # nothing but the style sheet and the scripts of the page, and no text that becomes markup
    hashes = []
    for start, end in (("<style>", "</style>"), ('<script type="module">', "</script>")):
        text = page.partition(start)[2].partition(end)[0]
        hashes.append(base64.b64encode(hashlib.sha256(text.encode()).digest()).decode())
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'"
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_pages_can_be_read_aloud_and_their_links_lead_somewhere(name: str) -> None:
    reader = read(name)
    for picture in reader.all("svg"):
        hidden = picture.get("aria-hidden") == "true"
        assert hidden or (picture.get("role") == "img" and picture.get("aria-label"))
    headings = [tag for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == "h1"
    assert set(headings[1:]) == {"h2"}
    for link in reader.all("a"):
        assert link["href"][1:] in reader.by_id
    for tag, values in reader.tags:
        assert values.get("aria-labelledby", "input") in reader.by_id
        if values.get("class") in ("scroll", "wide"):
            assert values["tabindex"] == "0", tag
            assert values["aria-label"]


@pytest.mark.parametrize(
    ("name", "kilobytes"), [("one job", 125), ("thousand jobs", 800), ("many cores", 650), ("million cycles", 160)]
)
def test_pages_stay_small(name: str, kilobytes: int) -> None:
    assert len(page_of(name).encode()) < kilobytes * 1000


@pytest.mark.slow
@pytest.mark.needs_core
@pytest.mark.parametrize("name", ["one job", "four cores", "row"])
def test_engines_differ_by_their_name_only(name: str) -> None:
    fast, reference = page_of(name), page_of(name, "reference")
    assert fast == report_page(api.run(SCENARIOS[name]))
    assert fast != reference
    pattern = r"(engine</th><td[^>]*>){}(</td>)"
    assert len(re.findall(pattern.format("fast"), fast)) == 1
    assert re.sub(pattern.format("fast"), r"\1reference\2", fast) == reference


def test_the_figures_are_those_of_the_report() -> None:
    result = run("four cores")
    report = result.report
    text = " ".join(read("four cores").texts.values())
    figures = [f"{report.makespan_cycles:,} cycles", f"{100 * report.utilization:.1f} %", f"{report.tops:.4g} TOPS"]
    figures += [f"{value:.4g}" for value in (report.latency_ms.mean, report.latency_ms.p95, report.latency_ms.max)]
    for figure in figures:
        assert figure in text
    for name, count in report.losses.items():
        assert not count or f"{count:,}" in text, name
    for job in report.jobs:
        assert job.name in text
    assert text.count("missed") == sum(job.missed for job in report.jobs)
    assert sum(job.missed for job in report.jobs) > 0


def test_every_name_is_explained() -> None:
    for name in {*CYCLE_NAMES, *LOSSES} | set(STATES):
        assert NAMED[name].meaning, name


@pytest.mark.parametrize("name", ["row", "one job"])
def test_the_answer_names_the_loss_and_no_remedy_that_nobody_simulated(name: str) -> None:
    report = run(name).report
    assert max(list(report.losses)[1:], key=lambda loss: report.losses[loss]) == "hazard"
    assert answer(report).endswith("threads wait for their own results.")
    assert "would" not in answer(report)
    assert answer(report).startswith(f"Utilization {100 * report.utilization:.1f} %, makespan ")
    assert "Not 100 % mainly because of hazard (" in answer(report)


def test_the_resolved_input_of_a_page_gives_the_same_run(tmp_path: Path) -> None:
    result = run("four cores")
    text = read("four cores").by_id["resolved-input"]
    file = tmp_path / "resolved.yaml"
    file.write_text(text, encoding="utf-8")
    again = api.run(file)
    assert again.scenario == result.scenario
    assert again.report == result.report
    # The input shown on a page gives the same page again.
    assert report_page(again) == page_of("four cores")


@pytest.mark.slow
def test_an_endless_input_is_cut_and_says_so() -> None:
    layers = tuple(Layer(cell("rnn"), 4, 4) for _ in range(9000))
    scenario = Scenario(run("one job").scenario.chip, (Job("a", Model("m", layers), 1),))
    page = report_page(stub(scenario))
    assert "its end is cut off" in page
    assert len(page) < 600_000


def stub(scenario: Scenario, **changes: Any) -> Any:
    """A run with the report of another run, whatever the scenario's name is."""
    result = run("one job")
    names = [job.name for job in scenario.jobs]
    jobs = tuple(replace(result.report.jobs[0], name=name) for name in names)
    report = replace(result.report, jobs=jobs, chip=scenario.chip.name)
    timeline = replace(result.timeline, jobs=tuple(names), chip=scenario.chip.name)
    return SimpleNamespace(**{"scenario": scenario, "report": report, "timeline": timeline} | changes)


@pytest.mark.parametrize("name", NASTY)
def test_whatever_users_call_things_is_text(name: str) -> None:
    scenario = run("one job").scenario
    model = Model(name, scenario.jobs[0].model.layers, weights=name)
    chip = replace(scenario.chip, name=name, sources={name: name})
    nasty = Scenario(chip, (replace(scenario.jobs[0], name=name, model=model, inputs=name),), name)
    page = report_page(
        stub(nasty),
        trace_file=name,
        fit=Document.of(name, grid([name], [[name]])),
        extra_sections=[(name, name)],
        command=f"lstmsim {name}",
    )
    plain = report_page(
        run("one job"),
        trace_file="x",
        fit=Document.of("x", grid(["x"], [["x"]])),
        extra_sections=[("x", "x")],
        command="x",
    )
    reader = Reader(page)
    assert [tag for tag, _ in reader.tags] == [tag for tag, _ in Reader(plain).tags]
    assert {key for _, values in reader.tags for key in values} == {
        key for _, values in Reader(plain).tags for key in values
    }
    page.encode("utf-8")
    assert all(letter.isprintable() or letter == "\n" for letter in page)
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name)
    assert shown in reader.texts["h1"]


def test_equal_arguments_give_equal_pages_and_no_date_is_invented() -> None:
    result = run("one job")
    assert report_page(result) == report_page(result)
    page = report_page(result, command="lstmsim simulate x.yaml")
    assert "lstmsim simulate x.yaml" in page
    assert not re.search(r">20[0-9][0-9]-[0-9][0-9]-", page)
    assert f">{lstmsim.__version__}<" in page
    assert f">{np.__version__}<" in page


def test_texts_of_others_have_sections_of_their_own() -> None:
    fit = Document.of("of <all>", grid(["<block", "share"], [["DSP", "12 %"]]))
    page = report_page(run("one job"), fit=fit, extra_sections=[("Why", "because\n  so"), ("Why", "so")])
    reader = Reader(page)
    assert reader.by_id["more-0"].startswith("Device fitof <all>")
    assert '<th scope="row" class="l">DSP</th><td>12 %</td>' in page
    assert reader.by_id["more-1"] == "Whybecause\n  so"
    assert reader.by_id["more-2"] == "Whyso"
    assert reader.texts["h2"].count("Why") == 2


@pytest.mark.parametrize(
    ("path", "link", "viewer"),
    [
        ("trace.json", "./trace.json", "Perfetto"),
        ("../a b/x.vcd", "./../a%20b/x.vcd", "GTKWave"),
        ("x.csv", "./x.csv", ""),
        ("half\udcffname.json", "./half%FFname.json", "Perfetto"),
        ("half\ud800name.json", "./half%3Fname.json", "Perfetto"),
        ("//other.host/x.json", "/other.host/x.json", "Perfetto"),
        ("https://other.host/x", "./https%3A//other.host/x", ""),
    ],
)
def test_the_trace_is_linked_from_the_pages_folder(path: str, link: str, viewer: str) -> None:
    assert link_to(path) == link
    page = report_page(run("one job"), trace_file=path)
    assert [values["href"] for values in Reader(page).all("a")][-1] == link
    assert (f"</a> (for {viewer}" in page) == bool(viewer)
    assert "trace</th>" not in report_page(run("one job"))


def test_a_trace_too_long_to_keep_leaves_the_rest_of_the_page() -> None:
    class Long(SimpleNamespace):
        @property
        def timeline(self) -> Any:
            raise InputError("a trace of 20,000,000 operations is too long to keep")

    result = run("one job")
    page = report_page(Long(scenario=result.scenario, report=result.report))
    reader = Reader(page)
    assert "20,000,000 operations is too long" in reader.by_id["timeline"]
    assert "use" not in reader.by_id
    assert "resolved-input" in reader.by_id


@pytest.mark.slow
def test_long_lists_of_jobs_are_cut_with_a_count_and_keep_the_slowest() -> None:
    result = run("thousand jobs")
    count = 1003
    jobs = tuple(replace(result.report.jobs[0], name=f"j{number}", number=number) for number in range(count))
    jobs = (*jobs[:-1], replace(jobs[-1], finish=10**9))
    scenario = Scenario(result.scenario.chip, tuple(replace(result.scenario.jobs[0], name=job.name) for job in jobs))
    run_like: Any = SimpleNamespace(
        scenario=scenario, report=replace(result.report, jobs=jobs), timeline=result.timeline
    )
    text = Reader(report_page(run_like)).by_id["jobs"]
    assert "and 3 more jobs" in text
    assert "j998" in text
    assert "j999" not in text
    assert f"j{count - 1}" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one job", "four cores", "thousand jobs"])
def test_every_number_of_the_head_leads_to_its_rows(name: str) -> None:
    report = run(name).report
    reader = Reader(report_page(run(name)))
    figures = [each["href"][1:] for each in reader.all("a") if each.get("href", "").startswith("#")]
    assert all(each in reader.by_id for each in figures)
    last = max(report.jobs, key=lambda job: job.finish)
    assert f"job-{last.number}" in figures
    assert reader.by_id[f"job-{last.number}"] == last.name
    main = max((name for name in report.losses if name != "useful"), key=lambda each: report.losses[each])
    assert f"loss-{main}" in figures
    assert reader.by_id["loss-useful"] == "useful"


def test_the_explanation_must_be_that_of_the_run(tmp_path: Path) -> None:
    explanation = api.explain(run("one job"))
    api.save_report(run("one job"), tmp_path / "page.html", explanation=explanation)
    reader = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [each["id"] for each in reader.all("script") if "id" in each] == ["data-timeline", "data-what-if"]
    assert "WHY NOT 100 %" in reader.by_id["why"]
    with pytest.raises(InputError, match="explanation: is of another run"):
        api.save_report(run("row"), tmp_path / "other.html", explanation=explanation)
    assert not (tmp_path / "other.html").exists()


def test_only_markup_is_taken_as_markup() -> None:
    assert Markup("<b>") + "<" == "<b>&lt;"
    assert element("p", f"{Markup('<b>')}") == "<p>&lt;b&gt;</p>"
    assert escaped("'") == "&#x27;"
