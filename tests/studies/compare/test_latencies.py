"""Chips compared under jobs that come over time: by their latencies, and only as far as a run can tell."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from lstmsim import run
from lstmsim.base.errors import InputError
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.studies.compare.report import COLUMNS, LATENCY_COLUMNS, comparison_rows
from lstmsim.studies.compare.result import PERCENTILES, Comparison, Entry, Latencies, Machine, Workload
from lstmsim.studies.compare.run import compared as compare
from lstmsim.traffic.intervals import Interval
from lstmsim.traffic.load import VERDICTS

#: One lstm-512 of 20 steps takes 1,423 cycles (docs/timing.md, section 6).
CORE = ColumnCore(npe=65536, ep=32, vp=2048, tail_width=64)
ONE = ColumnNpu("one", 260, (CORE,))
TWO = ColumnNpu("two", 260, (CORE, CORE))
MODEL = Model("lstm-512", (Layer(cell("lstm"), 512, 512),))


def jobs(count: int, interval: int, **more: int) -> tuple[Job, ...]:
    names = (f"job{number}" for number in range(count))
    return tuple(Job(name, MODEL, 20, arrival=interval * number, **more) for number, name in enumerate(names))


def latencies(mean: float, half: float | None = 0.1, verdict: str = "settled", away: int = 0) -> Latencies:
    own = Interval(mean, half, 30)
    percentiles = dict.fromkeys(PERCENTILES, Interval(2 * mean))
    return Latencies(200 - away, frozenset(range(away)), None, own, percentiles, 0.5, 0.4, verdict, 90.0, 17)


def comparison(*columns: Latencies, way: str = "open") -> Comparison:
    machines = tuple(Machine(name, False, 100, 250.0, 0.05) for name, _ in zip("abcdef", columns, strict=False))
    entries = tuple(Entry(10, 100.0, 1.0, 2.0, 0.02, 0.5, {"useful": 1.0}, latencies=each) for each in columns)
    return Comparison("s", "fast", False, machines, (Workload("s", 200, 9),), (entries,), way)


def verdict(*entries: Latencies) -> str:
    """The line about the second machine."""
    lines = comparison(*entries).to_text().split("TAKES LONGER (mean latency)\n")[1]
    return " ".join(lines.split()).removeprefix("than b: ")


def test_two_cores_finish_hardly_sooner_but_answer_in_half_the_time() -> None:
    # A job comes every 1,000 cycles: on one core the n-th job waits n times 423 cycles, on two cores no job waits.
    compared = compare(Scenario(ONE, jobs(7, 1000)), [ONE, TWO])
    one, two = (entry.latencies for entry in compared.entries[0])
    assert one is not None
    assert two is not None
    assert (one.mean.value, two.mean.value) == pytest.approx(((1423 + 3 * 423) / 260e3, 1423 / 260e3))
    assert one.percentiles[50].value == pytest.approx((1423 + 3 * 423) / 260e3)
    assert two.percentiles[99].value == pytest.approx(1423 / 260e3)
    assert compared.latency_ratio(0, 1) == pytest.approx((1423 + 3 * 423) / 1423)
    assert compared.latency_ratio(0, 1, 50) == pytest.approx((1423 + 3 * 423) / 1423)
    assert (one.sooner, two.sooner) == (None, 6)
    assert two.last_arrival_ms == pytest.approx(6000 / 260e3)
    # 6,000 cycles of both makespans are over when the last job comes.
    assert compared.speedup(0, 1) == pytest.approx((6000 + 1423 + 6 * 423) / 7423)
    assert compared.before_last_arrival == pytest.approx([6000 / 9961, 6000 / 7423])
    assert (compared.way, compared.by_latency) == ("open", True)
    text = compared.to_text()
    assert "The ratio of makespans is fixed by the arrivals: 60.2 % to 80.8 % of the makespans" in " ".join(
        text.split()
    )
    assert "speed-up" not in text.lower()
    rows = {line[:22].strip(): line[22:].split() for line in text.splitlines()}
    assert rows["times as fast (mean)"] == ["1.00", "1.89"]
    assert rows["ratio of makespans"] == ["1.00", "1.34"]
    assert rows["requests sooner"] == ["-", "6", "(85.7", "%)"]
    assert max(map(len, text.splitlines())) <= 100


def test_milliseconds_are_those_of_each_clock() -> None:
    fast = replace(ONE, name="fast", frequency_mhz=520)
    compared = compare(Scenario(ONE, jobs(5, 2000)), [ONE, fast])
    assert compared.latency_ratio(0, 1) == pytest.approx(2)
    assert compared.entries[0][1].latencies is not None
    assert compared.entries[0][1].latencies.sooner == 5


def test_jobs_that_are_long_there_when_the_last_one_ends_are_compared_by_makespan_too() -> None:
    compared = compare(Scenario(ONE, jobs(4, 100)), [ONE, TWO])
    assert (compared.way, compared.by_latency) == ("open", False)
    text = compared.to_text()
    assert "TAKES LONGER (makespan)" in text
    assert "speed-up" in text
    assert "times as fast (mean)" in text
    assert "Makespans: 5.27 % to 10.2 % of the makespans are over when the last request comes" in " ".join(text.split())


def test_jobs_that_come_at_once_have_no_latencies_of_that_kind() -> None:
    compared = compare(Scenario(ONE, jobs(3, 0)), [ONE, TWO])
    assert (compared.way, compared.by_latency) == ("at once", False)
    assert [entry.latencies for entry in compared.entries[0]] == [None, None]
    assert "times as fast (mean)" not in compared.to_text()
    each = compare(Scenario(ONE, jobs(3, 1000)), [ONE, TWO], each=True)
    assert each.way == "at once"


def test_clients_are_compared_by_makespan_for_they_wait_for_answers() -> None:
    first, second = jobs(2, 0)
    compared = compare(Scenario(ONE, (first, second, replace(first, after=0, arrival=5000))), [ONE, TWO])
    assert (compared.way, compared.by_latency) == ("closed", False)
    text = compared.to_text()
    assert "speed-up" in text
    assert "when the last request comes" not in text
    assert "so a faster chip is asked sooner" in " ".join(text.split())


def test_queues_that_end_are_compared_by_what_was_served() -> None:
    ending = jobs(12, 400, queue_limit=1)
    compared = compare(Scenario(ONE, ending), [ONE, TWO])
    one, two = (entry.latencies for entry in compared.entries[0])
    assert one is not None
    assert two is not None
    served = [{job.number for job in run(Scenario(chip, ending)).report.rejected} for chip in (ONE, TWO)]
    assert [set(one.rejected), set(two.rejected)] == served
    assert served[0] > served[1]
    assert compared.latency_ratio(0, 1) is None
    assert two.sooner is None
    text = " ".join(compared.to_text().split())
    assert "than two: not comparable; they served different requests" in text
    assert f"rejected {len(served[0])} ({100 * len(served[0]) / 12:.1f} %)" in text
    with pytest.raises(InputError, match="leave queue_limit and patience out"):
        compare(Scenario(ONE, jobs(3, 0, queue_limit=1)), [ONE])
    alone = compare(Scenario(ONE, jobs(3, 0, queue_limit=0, patience=0)), [ONE], each=True)
    assert alone.entries[0][0].cycles == 1423


def test_a_verdict_stands_only_where_intervals_are_apart() -> None:
    apart = verdict(latencies(3.0), latencies(2.0))
    assert apart == "yes, 1.5 times as long; 17 of 200 requests are sooner there"
    assert verdict(latencies(2.0), latencies(4.0)).startswith("no, 0.5 times as long")
    overlap = verdict(latencies(3.0, 0.6), latencies(2.0, 0.6))
    assert overlap.startswith("cannot tell, the intervals of the means overlap; in this run 1.5 times as long")
    few = verdict(latencies(3.0, None), latencies(2.0))
    assert few.startswith("cannot tell, there are too few requests; in this run 1.5 times as long")
    away = verdict(latencies(3.0, away=3), latencies(2.0))
    assert away == "not comparable; they served different requests: a machine that rejects more has shorter queues"
    unstable = verdict(latencies(3.0), latencies(2.0, verdict="unstable"))
    assert unstable == "not comparable; a queue is unstable: its latencies only say how long the run is"


def test_an_unstable_machine_is_named_and_has_no_ratio() -> None:
    compared = comparison(latencies(3.0), latencies(9.0, None, verdict="unstable"))
    text = compared.to_text()
    rows = {line[:22].strip(): line[22:].split() for line in text.splitlines()}
    assert rows["verdict"] == ["settled", "unstable"]
    assert rows["times as fast (mean)"] == ["1.00", "-"]
    assert rows["mean latency ms"] == ["3.00", "+-", "0.1", "9.00", "(too", "few)"]
    assert rows["offered load"] == ["0.500", "0.500"]
    assert f"unstable on b: {VERDICTS['unstable']}" in " ".join(text.split())


def test_a_p99_of_few_requests_is_called_what_it_is() -> None:
    note = "A p99 of fewer than 100 requests is hardly less than the maximum"
    assert note not in comparison(latencies(3.0), latencies(2.0)).to_text()
    assert note in comparison(latencies(3.0), latencies(2.0, away=101)).to_text()


def test_json_and_csv_have_every_figure() -> None:
    compared = comparison(latencies(3.0), latencies(2.0, None))
    data = json.loads(json.dumps(compared.to_dict(), allow_nan=False))
    assert data["arriving"] == "open"
    first, second = (each["latency"] for each in data["workloads"][0]["entries"])
    assert first["mean_ms"] == {"value": 3.0, "half_width": 0.1}
    assert (second["mean_ms"]["half_width"], second["mean_latency_ratio"], second["sooner"]) == (None, 1.5, 17)
    # The older keys keep their meaning.
    assert data["workloads"][0]["entries"][1]["mean_latency_ms"] == 1.0
    assert data["workloads"][0]["entries"][1]["speedup"] == 1.0
    file = io.StringIO()
    csv.writer(file).writerows(comparison_rows(compared))
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert list(rows[0]) == list(COLUMNS)
    assert COLUMNS[-len(LATENCY_COLUMNS) :] == LATENCY_COLUMNS
    assert (rows[0]["latency_mean_half_width_ms"], rows[1]["latency_mean_half_width_ms"]) == ("0.1", "")
    assert (rows[1]["latency_p99_ms"], rows[1]["p99_latency_ratio"], rows[1]["verdict"]) == ("4.0", "1.5", "settled")
    none = replace(compared, entries=((Entry(10, 1.0), Entry(reason="no")),)).to_dict()
    assert [each["latency"] for each in none["workloads"][0]["entries"]] == [None, None]
