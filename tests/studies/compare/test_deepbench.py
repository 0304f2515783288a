"""The experiment deepbench in a small setting: its claims hold, and the stored report is what it prints."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest

from lstmsim.files.published import deepbench
from lstmsim.model.model import Precision
from lstmsim.studies.fit.device import device
from lstmsim.studies.fit.fit import fit
from tests.experiments.ranges import assert_no_range_of_one_value

FOLDER = Path(__file__).parents[3] / "experiments"
#: The beginnings of titles of columns that hold words; these columns follow those of the rivals.
WORDS = "room on "
pytestmark = [
    pytest.mark.needs_core,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the experiments are not part of the installed package"),
]


@cache
def script() -> Any:
    from experiments import run

    return run.load("deepbench")


@cache
def settings() -> Any:
    """The module of what is simulated; it can be imported once the script has been loaded."""
    script()
    return importlib.import_module("experiments.deepbench.settings")


@cache
def small() -> Any:
    return settings().results(small=True)


@cache
def summary() -> str:
    return str(script().summary(small()))


@cache
def expected() -> str:
    return (FOLDER / "deepbench" / "expected.md").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """Cells of the table rows that hold figures."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and any(each.isdigit() for each in line)]
    return [line.strip("| ").split(" | ") for line in lines]


def advantages(text: str) -> list[tuple[list[str], dict[str, list[float]]]]:
    """The tables of how many times as fast the column-wise NPU is: rivals, and the row of each task."""
    factors = []
    parts = text.split("is so many times as fast:\n\n")
    for part in parts[1:]:
        table = [line.removeprefix("| ").split(" | ") for line in part.split("\n\n")[0].splitlines()]
        titles = [each for each in (title.strip("| ") for title in table[0][1:]) if not each.startswith(WORDS)]
        end = 1 + len(titles)
        numbers = {row[0]: [float(each.strip("| ").replace(",", "")) for each in row[1:end]] for row in table[2:]}
        factors.append((titles, numbers))
    return factors


@pytest.mark.slow
def test_three_tasks_give_the_rows_of_all_eleven() -> None:
    given = {tuple(row) for row in rows(expected())}
    assert_no_range_of_one_value(summary())
    own = {tuple(row) for row in rows(summary()) if row[0] != "geometric mean"}
    assert own <= given
    tasks = [row.task for row in deepbench() if row.design == "Brainwave BW_S10"]
    assert {row[0] for row in given if row[0].startswith(("lstm-", "gru-"))} == set(tasks)


@pytest.mark.slow
def test_published_columns_are_the_published_rows() -> None:
    compared = small().single
    for column, machine in enumerate(compared.machines):
        printed = {row.task: row for row in deepbench() if row.design == machine.name and row.batch == 1}
        assert machine.published == bool(printed)
        for workload, entries in zip(compared.workloads, compared.entries, strict=True):
            if machine.published:
                row = printed[workload.name]
                assert (entries[column].ms, entries[column].tops) == (row.latency_ms, row.tops)
            else:
                assert entries[column].cycles > 0


def test_equal_peak_is_equal_and_each_task_has_its_best_ep() -> None:
    for scaled in small().scaled:
        own, rival = scaled.comparison.machines[:2]
        assert (own.pes, own.frequency_mhz, own.peak_tops) == (rival.pes, rival.frequency_mhz, rival.peak_tops)
        assert all(ep * vp <= own.pes for ep, vp in scaled.shapes)
        assert min(scaled.at_common_ep) >= 1
        assert scaled.with_double_latency < 1 / scaled.comparison.mean_speedup(1)


def test_a_batch_is_as_many_jobs() -> None:
    compared = small().batched
    batch = settings().intel_npu().cores[0].batch
    single = small().single
    for row, workload in enumerate(compared.workloads):
        assert workload.jobs == batch
        assert workload.macs == batch * single.workloads[row].macs
        # the whole batch takes the Intel NPU as long as one inference
        assert compared.entries[row][1].cycles == single.entries[row][2].cycles


def test_memory_words_are_those_of_the_compiler() -> None:
    tasks = settings().tasks()
    refused = script().too_large(tasks)
    for task in tasks:
        cell, hidden = task.split("-")[0], int(task.split("-")[1])
        groups = ceil(hidden / 40) if hidden >= 480 else 12
        words = {"lstm": 8, "gru": 6}[cell] * groups * ceil(hidden / 280)
        assert refused.get(task) == (words if words > 1024 else None)


def test_every_defeat_in_the_tables_is_told_and_no_other() -> None:
    tables = advantages(expected())
    section = expected().split("## Where the column-wise design loses")[1]
    blocks = section.split("Ahead or not")[0].split("\n\n")[2::2]
    # the chip that has room stands first among the tables and last among the defeats
    tables = [*tables[1:], tables[0]]
    assert len(tables) == len(blocks) == 5
    for (rivals, numbers), block in zip(tables, blocks, strict=True):
        lines = block.splitlines()
        starts = [at for at, line in enumerate(lines) if line.startswith("* against ")]
        assert len(starts) == len(rivals)
        for column, (start, end) in enumerate(pairwise([*starts, len(lines)])):
            reported = {line.split(":")[0].removeprefix("  * ") for line in lines[start + 1 : end]}
            assert rivals[column].split(" (")[0] in lines[start]
            assert reported == {task for task, row in numbers.items() if row[column] < 1} - {"geometric mean"}


def test_geometric_means_follow_from_the_rows() -> None:
    for rivals, numbers in advantages(expected()):
        means = numbers.pop("geometric mean")
        for column in range(len(rivals)):
            values = [row[column] for row in numbers.values()]
            assert means[column] == pytest.approx(prod(values) ** (1 / len(values)), rel=0.005)


def test_every_row_says_whether_the_chip_and_its_weights_have_room() -> None:
    """Only the chip that was made for the rival's FPGA has room there."""
    verdicts = []
    for part in expected().split("is so many times as fast:\n\n")[1:]:
        head, _, *lines = part.split("\n\n")[0].splitlines()
        room = [at for at, title in enumerate(head.split(" | ")) if "room on " in title]
        assert room, head
        cells = [line.removeprefix("| ").split(" | ") for line in lines if "geometric mean" not in line]
        verdicts.append([row[at].strip("| ") for row in cells for at in room])
        assert len(cells) == 11
    assert all("; weights" in each for own in verdicts for each in own)
    assert all(each.startswith("yes: ") for each in verdicts[0])
    assert all(each.startswith("no: ") for own in verdicts[1:] for each in own)
    assert any("weights do not fit" in each for each in verdicts[1])


def test_the_headline_is_that_of_the_chip_that_has_room() -> None:
    rivals, numbers = advantages(expected())[0]
    numbers.pop("geometric mean")
    at = rivals.index("Brainwave BW_S10 (published)")
    text = expected().split("## ")[0]
    every = [row[at] for row in numbers.values()]
    streamed = [
        line.split(" | ")[0].removeprefix("| ") for line in expected().splitlines() if "% come from the memory" in line
    ]
    kept = [row[at] for task, row in numbers.items() if task not in streamed]
    head = " ".join(text.split())
    assert len(streamed) == 4
    for values in (every, kept):
        mean = prod(values) ** (1 / len(values))
        printed = [float(each) for each in re.findall(r"([0-9.]+) times", head)]
        assert any(each == pytest.approx(mean, rel=0.005) for each in printed)
    assert f"faster on {sum(each > 1 for each in kept)}, slower on {sum(each < 1 for each in kept)})" in head
    assert "**does not fit** that FPGA: DSP 2.94 times over" in head


def with_npe(npe: int, tail_width: int, ep: int = 16) -> Any:
    """The column-wise chip of the experiment with other multipliers and another tail, on Brainwave's FPGA."""
    rival = small().single.machines[1]
    chip = settings().column_chip(replace(rival, pes=npe), ep, npe // ep, threads=1, tail_width=tail_width)
    models = [settings().scenario((each,)).jobs[0].model for each in settings().tasks()]
    return fit(chip, models, Precision(), device("stratix-10-gx-2800")).multipliers


def test_no_larger_chip_has_room() -> None:
    """For every width of the tail the number of multipliers is the last that the device's blocks allow."""
    tried = small().tried
    assert [each.tail_width for each in tried] == [4, 8, 16, 32, 64]
    for each in tried:
        assert with_npe(each.npe, each.tail_width).fits is True
        assert with_npe(each.npe + 1, each.tail_width).fits is False
        assert f"* {each.tail_width} lanes: {each.npe:,} multipliers; " in expected()
    # a narrower tail leaves more blocks to the array
    assert all(one.npe > other.npe for one, other in pairwise(tried))


def test_the_chip_of_the_headline_is_the_fastest_of_those_that_fit() -> None:
    """The chip that is chosen is the fastest over the tasks whose weights all chips hold, not the largest."""
    tried, (first, *_) = small().tried, small().places
    tasks = set.intersection(*(set(each.held) for each in tried))
    assert len(tasks) == 7
    products = {prod(each.held[task] for task in tasks): each for each in tried}
    chosen, core = products[min(products)], first.chip.cores[0]
    assert (core.npe, core.tail_width, core.threads) == (chosen.npe, chosen.tail_width, 1)
    head = " ".join(expected().split("## ")[0].split())
    assert f"has {core.npe:,} multipliers of int8 and a tail of {core.tail_width} lanes" in head
    assert f"one with {max(each.npe for each in tried):,} multipliers fits, and is slower" in head
    assert "the largest column-wise chip" not in head


def test_the_list_of_tried_chips_says_how_fast_they_are() -> None:
    published = {row.task: row.latency_ms for row in deepbench() if (row.design, row.batch) == ("Brainwave BW_S10", 1)}
    tasks = set.intersection(*(set(each.held) for each in small().tried))
    for each in small().tried:
        mean = prod(published[task] / each.held[task] for task in tasks) ** (1 / len(tasks))
        assert f"* {each.tail_width} lanes: {each.npe:,} multipliers; {mean:#.3g} times, " in expected()
