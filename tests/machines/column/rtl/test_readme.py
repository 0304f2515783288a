"""What a design's README says is enough for a host: read back by it alone, the frames are those of the jobs."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from lstmsim.machines.column.generated import written_files
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.rtl.planning import design
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.jobs import JobData, fixed_numbers
from lstmsim.model.numerics.weights import random_network, random_stimulus
from lstmsim.model.scenario import Job, Scenario

MODEL = Model("m", (Layer(cell("gru"), 7, 5), Layer(cell("lstm"), 6, 7)))
CORE = ColumnCore(npe=32, ep=4, vp=8, tail_width=2, threads=2)
PRECISION = Precision(vector_bits=9)


def _files(precision: Precision) -> tuple[dict[str, str], list[JobData]]:
    network = random_network(MODEL, seed=1)
    jobs = (Job("a", MODEL, 3), Job("b", MODEL, 2))
    data = [JobData(network, random_stimulus(MODEL, job.steps, seed), "", "") for seed, job in enumerate(jobs)]
    numbers = fixed_numbers(dict(enumerate(data)), precision)
    made = design(Scenario(ColumnNpu("c", 100, (CORE,)), jobs), precision, numbers)
    return written_files(made, numbers, "1.2.3"), data


def _tables(text: str) -> dict[str, list[list[str]]]:
    """Tables in Markdown by their first column's name and the last one's: rows of cells."""
    tables: dict[str, list[list[str]]] = {}
    for block in text.split("\n\n"):
        lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in block.splitlines()]
        if block.startswith("|"):
            tables[f"{lines[0][0].strip()} {lines[0][-1].strip()}"] = lines[2:]
    return tables


def test_a_host_finds_and_understands_frames_by_the_readme() -> None:
    files, data = _files(PRECISION)
    tables = _tables(files["README.md"])
    unit = float(tables["row 1 of h stands for"][0][1])
    parts = 2
    words = dict(line.split() for line in files["data/frames.hex"].splitlines())
    for row, job in zip(tables["job first frame word, by core"], data, strict=True):
        for step, frame in enumerate(job.stimulus.x):
            for element, wanted in enumerate(frame):
                word = int(row[-1]) + step * math.ceil(len(frame) / CORE.ep) + element // CORE.ep
                address = 2 << 28 | word * parts
                held = int(words[f"{address:08x}"], 16) | int(words[f"{address + 1:08x}"], 16) << 32
                raw = held >> element % CORE.ep * 9 & 511
                assert raw - (raw >> 8 << 9) == np.rint(wanted / unit)


@pytest.mark.parametrize("shift", ["row", "common"])
def test_a_word_of_constants_has_the_bits_that_its_parts_have(shift: str) -> None:
    files, _ = _files(replace(PRECISION, shift=shift))
    rows = _tables(files["README.md"])["core what a word is, and where it lies"]
    bits, text = next((int(row[4]), row[5]) for row in rows if row[2] == "constants")
    found = re.search(r"each of (\d+) lanes (\d+) sums of (.*?);", text)
    assert found
    assert int(found[1]) * int(found[2]) * sum(map(int, re.findall(r"\((\d+)\)", found[3]))) == bits


def test_names_of_users_are_no_markup() -> None:
    hostile = "a|b <img src=x> `c`"
    model = replace(MODEL, name=hostile)
    scenario = Scenario(ColumnNpu("c", 100, (CORE,)), (Job(hostile, model, 3),), name=hostile)
    data = JobData(random_network(model, seed=1), random_stimulus(model, 3, 0), "", "")
    numbers = fixed_numbers({0: data}, PRECISION)
    text = written_files(design(scenario, PRECISION, numbers), numbers, "1.2.3")["README.md"]
    assert text.count("a\\|b \\<img src=x\\> \\`c\\`") == 4
    assert "<img" not in text.replace("\\<img", "")
