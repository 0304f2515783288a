"""Rates of several chips under the same bounds."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.studies.serve.chips import ChipRate, ChipRates, _limit
from lstmsim.studies.serve.saturation import Saturation, Tried

MODEL = {"name": "m", "layers": [{"cell": "lstm", "hidden": 64, "input": 64}]}
JOB = {"model": MODEL, "steps": 4, "arrival": {"kind": "poisson", "rate_per_second": 1e4}}
SCENARIO = {"chip": "column-npu-16k", "jobs": [{**JOB, "threads": {"epyc-7742": 8}}]}
QUICK: dict[str, Any] = {"tolerance": 0.5, "most_requests": 2000}


@pytest.fixture(scope="module")
def found() -> ChipRates:
    return lstmsim.saturate_chips(SCENARIO, 0.1, ["edge", "intel-npu-rtl"], also_ms=[0.5], **QUICK)


@pytest.mark.slow
def test_each_answer_is_that_of_a_search_on_the_chip_alone(found: ChipRates) -> None:
    for each in (*found.at(0.1), found.at(0.5)[0]):
        alone = lstmsim.saturate({**SCENARIO, "chip": each.chip}, each.bound_ms, **QUICK)
        assert (each.rate, each.fails_from) == (alone.rate, alone.fails_from)
        assert each.bound_per_second == alone.bound_per_second
    assert [each.chip for each in found.at(0.1)] == ["column-npu-16k", "edge", "intel-npu-rtl"]
    assert found.bounds_ms == (0.1, 0.5)


@pytest.mark.slow
def test_what_limits_a_chip_is_said(found: ChipRates) -> None:
    npu, device, _ = found.at(0.5)
    assert npu.limit in ("no faster from a backlog", "threads used up") or npu.limit.startswith("waiting, at ")
    assert npu.energy_nj is not None
    assert device.energy_nj is None
    short = lstmsim.saturate_chips(SCENARIO, 0.001, ["edge"], **QUICK)
    assert short.at(0.001)[1].limit.startswith("a request alone takes 0.0")
    assert short.at(0.001)[1].rate is None


def test_what_limits_a_chip_is_not_known_before_its_search_is_done() -> None:
    runs = Tried(5.0, 0.4, True, verdict="below"), Tried(9.0, None, False, verdict="unstable")
    whole = Saturation(5.0, 9.0, 0.5, runs, bound_per_second=9.0, limits_per_second={"threads": 9.0})
    assert _limit(whole, 0.5, 0.1) == "threads used up"
    assert _limit(replace(whole, ended="effort"), 0.5, 0.1) == "cannot tell: the CPU seconds are used up"


def _rates(*brackets: tuple[float | None, float | None]) -> ChipRates:
    return ChipRates("s", 99.0, tuple(ChipRate(f"c{n}", 1.0, *each) for n, each in enumerate(brackets)))


@pytest.mark.parametrize(
    ("brackets", "best", "said"),
    [
        (((10.0, 11.0), (8.0, 10.0)), "c0", "c0 certainly bears the most"),
        (((10.0, 11.0), (8.0, 10.5)), None, "cannot be told which of c0, c1"),
        (((10.0, 11.0), (8.0, None)), None, "cannot be told which of c0, c1"),
        (((10.0, 11.0), (10.0, 11.0), (3.0, 4.0)), None, "cannot be told which of c0, c1 bears"),
        (((None, 1.0), (None, 2.0)), None, "no chip is known to keep"),
    ],
)
def test_the_most_is_told_only_where_brackets_are_apart(
    brackets: tuple[tuple[float | None, float | None], ...], best: str | None, said: str
) -> None:
    rates = _rates(*brackets)
    one = rates.best(1.0)
    assert (None if one is None else one.chip) == best
    assert said in " ".join(rates.to_text().split())


def test_batches_of_one_chip_are_told_apart_where_no_other_chip_runs_the_jobs() -> None:
    single, four = ChipRate("c", 1.0, 10.0, 11.0, batch=1), ChipRate("c", 1.0, 12.0, 13.0, batch=4)
    other, refused = ChipRate("c", 1.0, 12.0, 12.5, batch=8), ChipRate("d", 1.0, reason="no batches", batch=1)
    found = ChipRates("s", 99.0, (single, four, refused))
    assert found.best(1.0) == four
    assert "c certainly bears the most under a p99 of 1 ms: 12 requests/s in batches of up to 4." in found.to_text()
    text = " ".join(replace(found, rates=(single, four, other)).to_text().split())
    assert "it cannot be told which of c, batch 4, c, batch 8 bears the most" in text
    text = " ".join(replace(found, rates=(four, refused)).to_text().split())
    assert "only c, batch 4 runs the jobs; under a p99 of 1 ms it bears 12 requests/s" in text


@pytest.mark.slow
def test_chips_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """The second one is the same with twice the clock: it certainly bears more."""
    core = {"npe": 64, "ep": 4, "vp": 16}
    chip = {"kind": "column-npu", "name": "c", "frequency_mhz": 100, "cores": [core]}
    fast = tmp_path / "fast.yaml"
    fast.write_text(json.dumps(chip | {"frequency_mhz": 200}))
    layer = {"cell": "rnn", "hidden": 8, "input": 8}
    job = {"model": {"layers": [layer]}, "steps": 1, "arrival": {"kind": "poisson", "rate_per_second": 1e5}}
    found = lstmsim.saturate_chips(
        {"chip": chip, "jobs": [job]}, 0.01, [str(fast)], jobs=1, tolerance=0.4, most_requests=10_000
    )
    best = found.best(0.01)
    assert best is not None
    assert (
        [each.chip for each in found.rates]
        == ["c", best.chip]
        == [each.chip for each in found.stamps]
        == ["c", "c (2)"]
    )


def test_what_a_chip_cannot_possibly_do_it_does_not_bear() -> None:
    first, other = ChipRate("a", 1.0, 10.0, 11.0), ChipRate("b", 1.0, 8.0, None, bound_per_second=9.0)
    found = ChipRates("s", 99.0, (first, other))
    assert found.best(1.0) == first
    rejecting = replace(found, rates=(first, replace(other, rejects=True)))
    assert rejecting.best(1.0) is None


@pytest.mark.slow
def test_answers_are_kept_and_no_number_depends_on_processes(tmp_path: Path, found: ChipRates) -> None:
    chips = ["edge", "intel-npu-rtl"]
    again = lstmsim.saturate_chips(SCENARIO, 0.1, chips, also_ms=[0.5], folder=tmp_path, jobs=2, **QUICK)
    assert again == found
    files = sorted((tmp_path / "chips").iterdir())
    assert len(files) == 6
    # an answer that is not what was written is searched again
    files[0].write_text(files[0].read_text().replace('"device": ""', '"device": "kept"'))
    files[1].write_text("no answer")
    more = lstmsim.saturate_chips(SCENARIO, 0.1, chips, also_ms=[0.5], folder=tmp_path, **QUICK)
    assert more == found


@pytest.mark.slow
def test_a_chip_that_cannot_run_the_jobs_has_its_reason_and_a_chip_that_is_not_there_is_a_mistake() -> None:
    job = {**JOB, "model": {"name": "p", "layers": [{"cell": "lstm-peephole", "hidden": 8, "input": 8}]}}
    found = lstmsim.saturate_chips({"chip": "column-npu-16k", "jobs": [job]}, 0.1, ["edge"], **QUICK)
    assert "lstm-peephole" in found.rates[1].reason
    assert found.best(0.1) is None
    with pytest.raises(InputError, match="no chip called 'v10'"):
        lstmsim.saturate_chips(SCENARIO, 0.1, ["v10"], **QUICK)


def test_a_chip_is_named_once() -> None:
    with pytest.raises(InputError, match="chip v100: is named twice"):
        lstmsim.saturate_chips(SCENARIO, 0.1, ["v100", "edge", "v100"], **QUICK)


@pytest.mark.slow
def test_each_chip_is_searched_with_each_batch(tmp_path: Path) -> None:
    chips, batches = ["edge"], [1, 4]
    found = lstmsim.saturate_chips(SCENARIO, 0.5, chips, batches=batches, folder=tmp_path, **QUICK)
    assert [(each.chip, each.batch) for each in found.rates] == [
        (chip, batch) for chip in ("column-npu-16k", *chips) for batch in batches
    ]
    for each in found.rates:
        job = {**JOB, **({"batching": {"max_batch_size": 4}} if each.batch == 4 else {})}
        alone = lstmsim.saturate({"chip": each.chip, "jobs": [job]}, 0.5, **QUICK)
        assert (each.rate, each.fails_from) == (alone.rate, alone.fails_from)
        at = next(run for run in alone.runs if run.rate == alone.rate)
        assert (each.requests, each.percentile_ms) == (at.requests, at.percentile_ms)
        assert each.simulated == sum(run.requests for run in alone.runs)
    small, large = (next(one.rate for one in found.rates if one.called == f"edge, batch {size}") for size in batches)
    assert large > 2 * small
    best = found.best(0.5)
    assert best is not None
    assert best.chip == "column-npu-16k"
    assert "in batches of up to 4" in " ".join(found.to_text().split())
    assert lstmsim.plot_saturation(found) is not None
    # what is kept is not searched again
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "chips").iterdir()}
    assert lstmsim.saturate_chips(SCENARIO, 0.5, chips, batches=batches, folder=tmp_path, **QUICK) == found
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "chips").iterdir()} == kept


@pytest.mark.slow
def test_a_batch_that_a_chip_does_not_take_has_its_reason_and_waits_as_the_file_says() -> None:
    arrival, batching = JOB["arrival"], {"max_batch_size": 2, "max_wait_cycles": 100}
    split = {"model": MODEL, "steps": 4, "arrival": arrival, "split": "rows"}
    found = lstmsim.saturate_chips({"chip": "column-npu-4x16k", "jobs": [split]}, 0.5, batches=[1, 4], **QUICK)
    alone, refused = found.rates
    assert alone.rate is not None
    assert "a batch runs in one place" in refused.reason
    assert "column-npu-4x16k, batch 4: " in " ".join(found.to_text().split())
    scenario = {"chip": "edge", "jobs": [{**JOB, "batching": batching}]}
    waiting = lstmsim.saturate_chips(scenario, 9.0, batches=[3], **QUICK)
    own = {**JOB, "batching": {**batching, "max_batch_size": 3}}
    assert waiting.rates[0].rate == lstmsim.saturate({"chip": "edge", "jobs": [own]}, 9.0, **QUICK).rate
    with pytest.raises(InputError, match="batch 2: is named twice"):
        lstmsim.saturate_chips(SCENARIO, 0.1, batches=[2, 2], **QUICK)
    with pytest.raises(InputError, match="max_batch_size"):
        lstmsim.saturate_chips(SCENARIO, 0.1, batches=[1000], **QUICK)
