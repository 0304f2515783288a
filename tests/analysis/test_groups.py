"""What requests have their colours from, in pictures and in every trace that is read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lstmsim.analysis.files import READABLE, load_trace, save_trace
from lstmsim.analysis.files.perfetto import slice_names
from lstmsim.analysis.timeline import job_groups
from lstmsim.base.errors import InputError
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from tests.timelines import assert_equal, small

ONE, TWO = (Model(name, (Layer(cell("gru"), 8, 4),)) for name in ("one", "two"))


def jobs(count: int, tenants: int, model: Model = ONE, word: str = "") -> list[Job]:
    return [Job(f"{model.name} {number}", model, 1, tenant=f"{number % tenants}{word}") for number in range(count)]


def test_as_many_jobs_as_colours_have_their_own() -> None:
    assert job_groups(jobs(8, 2)) == ()
    assert set(job_groups(jobs(9, 2))) == {"0", "1"}


def test_too_many_tenants_have_the_colours_of_entries_or_models() -> None:
    by_user = [replace(job, tenant=f"asr/{number}") for number, job in enumerate(jobs(20, 20))]
    assert set(job_groups(by_user)) == {"asr"}
    assert set(job_groups([*jobs(20, 20), *jobs(20, 20, TWO)])) == {"one", "two"}
    assert job_groups([replace(job, model=replace(ONE, name=job.name)) for job in jobs(20, 20)]) == (), "all differ"


@pytest.mark.parametrize("suffix", READABLE)
def test_a_trace_keeps_them(tmp_path: Path, suffix: str) -> None:
    timeline = replace(small(), groups=("lstm-512", "lstm-512"))
    save_trace(timeline, tmp_path / f"a{suffix}")
    assert_equal(load_trace(tmp_path / f"a{suffix}"), timeline)


@pytest.mark.parametrize("wrong", [{"group_of": [0]}, {"group_of": [0, 2]}, {"group_of": "x"}, {"groups": [1, 2]}])
def test_groups_that_are_none_are_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    save_trace(replace(small(), groups=("a", "b")), tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text())
    data["otherData"] |= wrong
    (tmp_path / "a.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="group"):
        load_trace(tmp_path / "a.json")


def test_viewers_that_ignore_digits_colour_by_entry() -> None:
    names = tuple(f"voice #{number}" for number in range(9))
    assert len({name.rstrip("0123456789") for name in slice_names(names, ("voice",) * 9)}) == 1
    assert slice_names(names)[3] == "voice #3 d"
