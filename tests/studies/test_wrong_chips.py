"""Descriptions of chips in Python: what is wrong with them is told as a file is told, and is not simulated."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim import ColumnCore, ColumnNpu, InputError, RowCore, RowNpu
from lstmsim.base.checks import checked
from lstmsim.machines.column.npu import Exchange, Latency, Memory
from lstmsim.machines.row.npu import Dispatch, RowLatency

NAN = math.nan
COLUMN: dict[str, Any] = {"npe": 64, "ep": 8, "vp": 8}
ROW: dict[str, Any] = {"tiles": 2, "engines": 4, "lanes": 4}
JOB: dict[str, Any] = {"model": {"layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}, "steps": 2}


def sentences(make: Any) -> list[tuple[str, str]]:
    """The mistakes, as (key, sentence) pairs: a place ends with its key."""
    with pytest.raises(InputError) as caught:
        make()
    places = [each.location.rpartition(": ")[2].removeprefix("chip.") for each in caught.value.mistakes]
    return [(place, each.sentence) for place, each in zip(places, caught.value.mistakes, strict=True)]


def from_file(kind: str, core: dict[str, Any], chip: dict[str, Any]) -> Any:
    data = {"kind": kind, "name": "c", "frequency_mhz": 200, "cores": [core], **chip}
    return lstmsim.load_scenario({"chip": data, "jobs": [JOB]}).chip


#: Wrong keys of a core, of the column-wise machine and of the row-wise one.
WRONG_COLUMN: list[dict[str, Any]] = [
    *({"switch_cycles": NAN}, {"weight_kib": NAN}, {"weight_kib": "x"}, {"threads": True}, {"threads": 2.0}),
    *({"thread": 2}, {"npe": "64"}, {"npe": None}, {"ep": [8]}, {"latency": 5}, {"latency": {"read": 1.5}}),
    *({"latency": {"read": NAN}}, {"latency": {"reed": 1}}, {"thread_policy": 5}, {"block_order": True}),
    *({"vp": "8"}, {"npe": "64", "ep": 2.5}),
]
WRONG_ROW: list[dict[str, Any]] = [
    *({"tile_loads": "yes"}, {"tile_loads": 1}, {"empty_slots": None}, {"lanes": 4.0}, {"by_cell": 5}),
    *({"by_cell": {"lstm": {"fitted_hidden": [8]}}}, {"by_cell": {"lstm": {"fitted_hidden": [8, "9"]}}}),
    *({"by_cell": {"lstm": {"dispatch_cycles": "3"}}}, {"matrix_words": "x"}, {"laens": 4}),
    {"latency": {"evrf": "x"}},
]
WRONG_CHIP: list[dict[str, Any]] = [
    *({"frequency_mhz": NAN}, {"frequency_mhz": math.inf}, {"frequency_mhz": True}, {"frequency_mhz": "200"}),
    *({"name": 5}, {"sources": 5}, {"sources": {"npe": 5}}, {"memory": 5}, {"memory": {"gb_per_s": "x"}}),
    *({"memory": {"gb_per_s": NAN}}, {"exchange": {"width": 1.5}}, {"exchange": {"width": 0}}, {"cores": []}),
    *({"cores": 5}, {"cores": [5]}, {"cores": [{**COLUMN, "npe": "x"}]}, {"exchange": {"wide": 1}}),
]


@pytest.mark.parametrize("keys", WRONG_COLUMN, ids=str)
def test_a_column_core_is_told_what_a_file_is_told(keys: dict[str, Any]) -> None:
    reported = sentences(lambda: ColumnCore(**{**COLUMN, **keys}))
    file = sentences(lambda: from_file("column-npu", {**COLUMN, **keys}, {}))
    assert [(f"cores.0.{key}", text.partition("; known keys")[0]) for key, text in reported] == file


@pytest.mark.parametrize("keys", WRONG_ROW, ids=str)
def test_a_row_core_is_told_what_a_file_is_told(keys: dict[str, Any]) -> None:
    reported = sentences(lambda: RowCore(**{**ROW, **keys}))
    file = sentences(lambda: from_file("row-npu", {**ROW, **keys}, {}))
    assert [(f"cores.0.{key}", text) for key, text in reported] == file


@pytest.mark.parametrize("keys", WRONG_CHIP, ids=str)
def test_a_chip_is_told_what_a_file_is_told(keys: dict[str, Any]) -> None:
    # a file's memory needs a core that can be too small
    core = {**COLUMN, "weight_kib": 8}
    file = sentences(lambda: from_file("column-npu", core, keys))
    reported = sentences(lambda: ColumnNpu(**{"name": "c", "frequency_mhz": 200, "cores": [core], **keys}))
    assert reported == [each for each in file if not each[0].startswith("jobs")]


def test_parts_on_their_own_are_checked() -> None:
    wrong: list[tuple[type, dict[str, Any]]] = [
        *((Latency, {"read": NAN}), (Latency, {"read": 1.5}), (RowLatency, {"evrf": "x"}), (Exchange, {"width": "x"})),
        *((Memory, {"gb_per_s": NAN}), (Memory, {"gb_per_s": True}), (Dispatch, {"cell": 5})),
    ]
    for kind, keys in wrong:
        assert sentences(lambda kind=kind, keys=keys: kind(**keys))[0][0] in keys


def test_a_wrong_value_is_told_after_right_ones_of_its_type() -> None:
    Memory(gb_per_s=5.0)
    with pytest.raises(InputError, match="gb_per_s: must be a finite number, got nan"):
        Memory(gb_per_s=NAN)
    core = ColumnCore(**COLUMN)
    ColumnNpu("c", 200, (core,), sources={"npe": "patent"})
    with pytest.raises(InputError, match=r"chip c: sources.npe: must be text, got 5"):
        ColumnNpu("c", 200, (core,), sources={"npe": 5})  # type: ignore[dict-item]
    with pytest.raises(InputError, match=r"chip c: cores.0: must be a ColumnCore, got RowCore"):
        ColumnNpu("c", 200, (RowCore(**ROW),))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="chip c: cores: must be a list of at least 1 entry, got 0"):
        RowNpu("c", 200, ())


def test_places_name_what_is_wrong() -> None:
    with pytest.raises(InputError, match=r"^core: npe: must be a whole number, got 'x'$"):
        ColumnCore(npe="x", ep=8, vp=8)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^chip c: cores.0.npe: must be a whole number, got 'x'$"):
        ColumnNpu("c", 200, [{**COLUMN, "npe": "x"}])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^core: ep: required key is missing \(elements in parallel\)$"):
        ColumnCore(npe=64)  # type: ignore[call-arg]


def test_vp_follows_as_in_a_file() -> None:
    assert ColumnCore(npe=64, ep=8) == ColumnCore(npe=64, ep=8, vp=None) == ColumnCore(64, 8, 8)  # type: ignore[call-arg,arg-type]
    with pytest.raises(InputError, match="core: ep: must not exceed npe: 8 > 4"):
        ColumnCore(npe=4, ep=8)  # type: ignore[call-arg]


def test_what_means_the_same_is_accepted() -> None:
    core: Any = ColumnCore(npe=np.int64(64), ep=np.int32(8), vp=8, latency={"read": np.int8(3)})  # type: ignore[arg-type]
    assert (type(core.ep), type(core.latency.read), core.latency) == (int, int, Latency(read=3))
    chip: Any = ColumnNpu("c", np.float32(200), [core, COLUMN], exchange={"width": 2})  # type: ignore[arg-type]
    assert chip == ColumnNpu("c", 200, (core, ColumnCore(**COLUMN)), exchange=Exchange(width=2))
    assert type(chip.cores) is tuple
    assert type(ColumnNpu("c", 200, (core,)).frequency_mhz) is int
    by_cell: Any = {"lstm": {"dispatch_cycles": 3, "fitted_hidden": [8, 9]}}
    row = RowCore(**ROW, by_cell=by_cell)
    assert row.by_cell == (Dispatch("lstm", 3, fitted_hidden=(8, 9)),)


def test_a_core_stands_in_the_mapping_of_a_chip() -> None:
    core = ColumnCore(**COLUMN)
    for cores in ([core], (core,)):
        data = {"kind": "column-npu", "name": "c", "frequency_mhz": 200, "cores": cores}
        assert lstmsim.Scenario(data, [JOB]).chip == ColumnNpu("c", 200, (core,))


def test_python_says_what_is_wrong_with_a_call() -> None:
    with pytest.raises(TypeError, match="multiple values"):
        ColumnCore(64, 8, 8, npe=64)  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        Exchange(1, 2, 3)  # type: ignore[call-arg]


def test_the_kept_types_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.base.checks._MOST_KEPT", 2)
    again: Any = checked("chip")(type("Again", (ColumnNpu,), {}))
    core = ColumnCore(**COLUMN)
    for count in range(1, 6):
        assert len(again("c", 200, (core,) * count).cores) == count


@pytest.mark.parametrize("npe", [np.int64(4096), np.int16(4096)])
def test_a_search_takes_whole_numbers_of_any_width(npe: Any) -> None:
    made = lstmsim.Scenario("column-npu-16k", [JOB])
    assert lstmsim.search(made, npe) == lstmsim.search(made, 4096)


@pytest.mark.parametrize("npe", [4096.0, "4096", True, None])
def test_a_search_says_what_its_number_must_be(npe: Any) -> None:
    made = lstmsim.Scenario("column-npu-16k", [JOB])
    with pytest.raises(InputError, match=r"^npe: must be a whole number, got "):
        lstmsim.search(made, npe)
    with pytest.raises(InputError, match=r"^core: must be a whole number, got "):
        lstmsim.search(made, 4096, core="0")  # type: ignore[arg-type]


def test_a_name_in_a_finished_job_or_scenario_is_told() -> None:
    made = lstmsim.Scenario("column-npu-16k", [JOB])
    with pytest.raises(InputError, match="model: must be a Model, got 'lstm-1024'"):
        replace(made.jobs[0], model="lstm-1024")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="chip: must be a chip, got 'column-npu-16k'"):
        replace(made, chip="column-npu-16k")  # type: ignore[arg-type]


def test_the_public_classes_say_that_they_are_not_derived_from() -> None:
    with pytest.raises(TypeError, match=r"derive from that"):
        type("Mine", (lstmsim.Job,), {})
