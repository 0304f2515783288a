"""What a sweep says of its best point, its front, and of what fits its device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lstmsim.report.document import Document
from lstmsim.report.renderings import text
from lstmsim.studies.sweep.report import front_of
from lstmsim.studies.sweep.run import merge
from lstmsim.studies.sweep.run import sweep as run_sweep
from lstmsim.studies.sweep.store import Store
from lstmsim.studies.sweep.table import About, Fitting, about_of
from tests.studies.sweep.specs import HIDDEN, SCENARIO, rows, spec

DEVICE = "stratix-10-gx-2800"
NAMED = {**SCENARIO, "name": "mix"}
VP = {"path": "chip.cores.0.vp", "values": [16, 32]}


def reported(folder: Path, axes: dict[str, Any], **others: Any) -> tuple[list[str], list[str]]:
    run_sweep(spec(axes=axes, scenario=NAMED, constraints=[], **others), folder, jobs=1)
    with Store(folder / "sweep.sqlite", create=False) as store:
        best, front = front_of(store)
    assert front is not None
    return best, text(Document("", (front,))).splitlines()


def sizes(*npe: int) -> dict[str, Any]:
    return {"npe": {"path": "chip.cores.0.npe", "values": list(npe)}, "vp": VP}


def best(table: list[dict[str, str]]) -> dict[str, str]:
    return min(table, key=lambda row: (int(row["makespan_cycles"]), int(row["dsp"])))


def test_where_nothing_fits_that_comes_first(tmp_path: Path) -> None:
    head, front = reported(
        tmp_path, sizes(2**19, 2**20), device=DEVICE, objectives={"minimise": ["makespan_cycles", "dsp"]}
    )
    first = best(rows(tmp_path))
    assert head == [
        f"mix: none of 4 points fits {DEVICE}",
        f"mix: the best point has makespan_cycles {int(first['makespan_cycles']):,}: npe {first['npe']}, "
        f"vp {first['vp']} (point {first['point']})",
    ]
    assert front[0].endswith(f"of which none fits {DEVICE}")
    assert {line.split()[-1] for line in front[2:]} == {"no"}


def test_where_some_fit_the_best_of_them_is_named(tmp_path: Path) -> None:
    """All sizes take equal cycles, so that the largest chip is the best by the second objective alone."""
    objectives = {"minimise": ["makespan_cycles"], "maximise": ["npe"]}
    head, front = reported(tmp_path, sizes(256, 512, 2**20), device=DEVICE, objectives=objectives)
    fitting = [row for row in rows(tmp_path) if row["fits"] == "true"]
    assert {row["npe"] for row in fitting} == {"256", "512"}
    assert len(head) == 2
    assert head[0].endswith(f", which does not fit {DEVICE}")
    least = min(int(row["makespan_cycles"]) for row in fitting)
    assert head[1].startswith(f"mix: the best point that fits has makespan_cycles {least:,}: ")
    marked = [row for row in rows(tmp_path) if row["pareto"] == "1"]
    assert [line.split()[0] for line in front[2:]] == [
        row["point"] for row in sorted(marked, key=lambda row: (int(row["makespan_cycles"]), -int(row["npe"])))
    ]


def test_of_what_nobody_can_tell_nothing_is_said_to_fit_or_not(tmp_path: Path) -> None:
    """No source says how many independent products a tensor block of this device takes."""
    scenario = {**NAMED, "precision": {"weight_bits": 8, "vector_bits": 8}}
    sweep = spec(axes=sizes(256, 512), scenario=scenario, constraints=[], device="stratix-10-nx-2100")
    run_sweep(sweep, tmp_path, jobs=1)
    with Store(tmp_path / "sweep.sqlite", create=False) as store:
        head, front = front_of(store)
    assert head[0] == "mix: it is not known whether any point fits stratix-10-nx-2100"
    assert "fit" not in "".join(head[1:]) + repr(front)


def test_each_work_has_its_best_point(tmp_path: Path) -> None:
    head, front = reported(tmp_path, {"h": {"path": HIDDEN, "values": [8, 16]}, "vp": VP})
    assert [line.split(" has ")[0] for line in head] == ["mix: the best point for h 8", "mix: the best point for h 16"]
    assert "which" not in "".join((*head, *front)), "no device, no word on it"


def test_a_long_front_is_cut_and_counted(tmp_path: Path) -> None:
    axes = {"h": {"path": HIDDEN, "from": 8, "to": 32, "step": 1}}
    head, front = reported(tmp_path, axes)
    assert head[-1] == "mix: the best of 17 further kinds of work: see the table"
    assert len(front) == 2 + 20 + 1
    assert front[-1] == "... and 5 more points, in the table's column `pareto`"


def test_a_merged_file_knows_what_it_is_about(tmp_path: Path) -> None:
    for shard in ((1, 2), (2, 2)):
        run_sweep(spec(axes=sizes(256, 512), scenario=NAMED, constraints=[], device=DEVICE), tmp_path, shard=shard)
    merged = merge(tmp_path / "all.sqlite", [tmp_path / f"sweep-{number}-of-2.sqlite" for number in (1, 2)])
    with Store(merged.path, create=False) as store:
        about = about_of(store)
    assert about == About("mix", DEVICE, about.own, about.frequency_mhz)
    assert len(about.own) == 64
    assert about.frequency_mhz > 0


def test_how_many_points_fit_in_words() -> None:
    numbers = ((1, 0, 0), (0, 1, 0), (0, 54, 0), (4, 49, 1), (0, 0, 9))
    assert [Fitting("arria", *each).text for each in numbers] == [
        "the only point fits arria",
        "the only point does not fit arria",
        "none of 54 points fits arria",
        "4 of 54 points fit arria, 49 do not; of 1 it is not known",
        "it is not known whether any point fits arria",
    ]
