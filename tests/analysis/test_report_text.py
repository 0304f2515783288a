"""The forms of a report: every figure is there, and nothing breaks the layout."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lstmsim.analysis.report import ACCOUNTS, LOSSES, CoreReport, JobReport, LatencyMs, Rejected, Report
from lstmsim.analysis.report_text import answer, report_json, report_text
from lstmsim.machines.arrays import ARRAY
from lstmsim.model.figures import CoreFigures

CORE = CoreReport(
    index=0,
    figures=CoreFigures(100, 80, {"npe": 100, "ep": 4, "vp": 20}, {"threads": 2}, unit=ARRAY),
    macs=600,
    cycles=dict(zip(ACCOUNTS, (10, 1, 2, 3, 4, 5, 6), strict=True)),
    pe_cycles=dict(zip(LOSSES, (600, 200, 200, 100, 200, 300, 400, 500, 600), strict=True)),
)
JOB = JobReport("speech <a>", 0, 1, arrival=3, start=5, finish=31, macs=600)
REPORT = Report("chip & co", "fast", 260.0, 31, (JOB,), (CORE,), 600 / 3100, 0.01, LatencyMs(1.0, 2.0, 3.0, 4.0, 5.0))


def test_json_has_exactly_the_promised_keys_and_the_numbers() -> None:
    data = json.loads(json.dumps(report_json(REPORT), allow_nan=False))
    assert list(data) == [
        *("schema", "chip", "engine", "frequency_mhz", "makespan_cycles", "jobs", "cores"),
        *("utilization", "tops", "latency_ms"),
    ]
    assert data["jobs"][0] | {"latency": 28} == data["jobs"][0]
    assert data["cores"][0]["cycles"] == CORE.cycles
    assert data["cores"][0]["pe_cycles"] == CORE.pe_cycles
    assert data["cores"][0]["utilization"] == pytest.approx(600 / 3100)
    assert data["latency_ms"] == {"mean": 1, "p50": 2, "p95": 3, "p99": 4, "max": 5}


def test_json_does_not_depend_on_how_the_frequency_was_written() -> None:
    assert json.dumps(report_json(REPORT)) == json.dumps(report_json(replace(REPORT, frequency_mhz=260)))


def test_text_begins_with_the_answer_and_names_the_biggest_loss() -> None:
    for name in LOSSES[1:]:
        core = replace(CORE, pe_cycles={**CORE.pe_cycles, name: 10**6})
        first = " ".join(report_text(replace(REPORT, cores=(core,))).split("\n\n")[0].split())
        assert first.startswith("Utilization 19.4 %, makespan 31 cycles = 0.0001192 ms. ")
        assert f"Not 100 % mainly because of {name} (" in first


def test_text_of_a_full_chip_names_no_loss() -> None:
    core = replace(CORE, pe_cycles=dict.fromkeys(LOSSES, 0) | {"useful": 10})
    assert "Every multiplier did useful work" in report_text(replace(REPORT, cores=(core,)))


def test_text_lines_are_aligned_and_short() -> None:
    cores = tuple(replace(CORE, index=index) for index in range(12))
    jobs = tuple(replace(JOB, name=f"job-{index}", finish=31 + 10**index) for index in range(7))
    text = report_text(replace(REPORT, jobs=jobs, cores=cores))
    assert max(map(len, text.splitlines())) <= 100
    job_lines = [line for line in text.splitlines() if line.startswith("job-")]
    assert len(job_lines) == len(jobs)
    assert len({line.index(" 0 ") for line in job_lines}) == 1


def test_long_job_lists_are_cut_but_keep_the_slowest() -> None:
    jobs = [replace(JOB, name=f"job-{index:03}") for index in range(500)]
    jobs[321] = replace(jobs[321], finish=10**6)
    report = replace(REPORT, jobs=tuple(jobs))
    text, page = report_text(report, jobs=True), report._repr_html_()
    shown = sum(line.startswith("job-") for line in text.splitlines())
    assert shown <= 40
    assert "job-321" in text
    assert "job-321" in page
    assert f"{500 - shown} more" in text
    assert "--json" in text
    assert len(report_json(report)["jobs"]) == 500


def test_rows_of_many_jobs_and_of_requests_stand_last_and_are_asked_for() -> None:
    many, requests = replace(REPORT, jobs=(JOB,) * 41), replace(REPORT, requests=True)
    for report, count in ((many, 41), (requests, 1)):
        plain, full = report_text(report).split("\n\n"), report_text(report, jobs=True).split("\n\n")
        assert plain[-1] == f"JOBS: {count} were served; --jobs shows them"
        assert plain[:-1] == full[:-1]
        assert full[1].startswith("chip & co at 260 MHz, engine fast, ")
        assert full[-1].startswith("JOBS: times in cycles\n")
    assert report_text(REPORT, jobs=True) == report_text(REPORT)


def test_names_cannot_break_text_or_html() -> None:
    job = replace(JOB, name="<script>\n\x1b[31m" + "x" * 200)
    text, page = (form(replace(REPORT, jobs=(job,))) for form in (report_text, Report._repr_html_))
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 120
    assert "<script>" not in page
    assert "chip &amp; co" in page


@pytest.mark.parametrize(
    ("name", "shown"), [("x" * 36, "x" * 36), ("x" * 37, "x" * 33 + "..."), ("tab\tand \x1b[31m", "tab?and ?[31m")]
)
def test_a_name_takes_at_most_36_letters_of_the_text(name: str, shown: str) -> None:
    text = report_text(replace(REPORT, jobs=(replace(JOB, name=name),)))
    (line,) = (line for line in text.splitlines() if line.startswith(shown[:3]))
    assert line.startswith(f"{shown}  ")


def test_json_names_the_cores_of_a_job_only_where_it_has_several() -> None:
    alone, together = report_json(REPORT)["jobs"][0], replace(JOB, cores=(0, 2))
    assert "cores" not in alone
    assert report_json(replace(REPORT, jobs=(together,)))["jobs"][0]["cores"] == [0, 2]


def test_losses_say_whose_they_are() -> None:
    assert "MULTIPLIERS: where the PE-cycles of the core went" in report_text(REPORT)
    both = replace(REPORT, cores=(CORE, replace(CORE, index=1)))
    assert "MULTIPLIERS: where the PE-cycles of all cores went" in report_text(both)


@pytest.mark.parametrize(("jobs", "more"), [(40, 0), (41, 1), (500, 460)])
def test_text_and_page_say_how_many_jobs_they_leave_out(jobs: int, more: int) -> None:
    several = [replace(JOB, name=f"job-{index:03}") for index in range(jobs)]
    several[-1] = replace(several[-1], finish=10**6)
    report = replace(REPORT, jobs=tuple(several))
    for form in (report_text(report, jobs=True), report._repr_html_()):
        assert (f"{more} more (the slowest of all is shown)" in form) == bool(more)
        assert f"job-{jobs - 1:03}" in form
        assert form.count("job-") == jobs - more


@pytest.mark.parametrize(
    ("cores", "shown"),
    [((), "0"), ((0, 1), "0,1"), ((1, 2, 5, 7), "1,2,5,7"), ((0, 1, 2, 3, 4), "0..4"), (tuple(range(3, 19)), "3..18")],
)
def test_the_cores_of_a_job_are_listed_up_to_four(cores: tuple[int, ...], shown: str) -> None:
    assert replace(JOB, cores=cores).places == shown


@pytest.mark.parametrize(("deadline", "missed"), [(27, True), (28, False), (29, False), (None, False)])
def test_a_job_may_take_as_long_as_its_deadline(deadline: int | None, missed: bool) -> None:
    """It arrives at 3 and ends at 31."""
    job = replace(JOB, deadline=deadline)
    assert (job.latency, job.missed) == (28, missed)
    text = report_text(replace(REPORT, jobs=(job,)))
    assert text.startswith("1 of 1 job with a deadline misses it, utilization ") == missed
    assert ("deadlines: 1 of 1 kept" in text) == (deadline is not None and not missed)
    assert report_json(replace(REPORT, jobs=(job,)))["jobs"][0].get("missed", False) == missed


def test_missed_deadlines_are_in_the_first_sentence() -> None:
    late, early = replace(JOB, deadline=27), replace(JOB, deadline=28)
    report = replace(REPORT, jobs=(late, early, late, JOB))
    assert answer(report).startswith("2 of 3 jobs with a deadline miss it, utilization ")
    # nothing is said of the deadlines of those that were not served
    report = replace(report, rejected=(Rejected("out", 0, 0, 5),))
    assert answer(report).startswith(
        "1 of 5 jobs is rejected, 2 of 3 served jobs with a deadline miss it, utilization "
    )


@pytest.mark.parametrize(("number", "shown"), [(3, "out-0, out-1, out-2"), (4, "out-0, out-1, out-2 and 1 more")])
def test_at_most_three_of_those_rejected_are_named(number: int, shown: str) -> None:
    away = tuple(Rejected(f"out-{each}", each, 0, 5) for each in range(number))
    text = report_text(replace(REPORT, rejected=away))
    assert shown in text
    assert f"{shown} and" not in text


def test_many_cores_are_the_busiest_the_least_busy_and_their_sum() -> None:
    cores = tuple(
        replace(CORE, index=index, cycles=CORE.cycles | {"busy": 10 + (index * 7) % 80}) for index in range(80)
    )
    lines = report_text(replace(REPORT, cores=cores)).split("\n\n")[2].splitlines()
    assert len(lines) == 2 + 3 * 2 + 1
    assert next(line for line in lines if "busiest, 57 " in line)
    assert next(line for line in lines if "least busy, 0 " in line)
    whole = next(line for line in lines if "sum of all" in line)
    assert f"{sum(core.cycles['busy'] for core in cores):,}" in whole
    assert f"{80 * CORE.cycles['idle']:,}" in whole
    assert lines[-1] == "80 cores; --json FILE has each of them"


def test_names_that_no_cycle_bears_have_no_column_where_a_machine_has_many() -> None:
    own = {"memory": 7, "barrier": 0, "dependence": 3, "start": 1}
    core = replace(CORE, cycles=dict.fromkeys(CORE.cycles, 0) | {"busy": 5} | own)
    head = report_text(replace(REPORT, cores=(core,))).split("\n\n")[2].splitlines()[1].split()
    assert head[-6:] == ["busy", "memory", "dependence", "start", "drain", "idle"]
