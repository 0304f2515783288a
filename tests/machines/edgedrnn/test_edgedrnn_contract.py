"""EdgeDRNN: recorded runs of its public RTL, in cycles and bits, and random runs against a clock of the text alone."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lstmsim.engines import ENGINES, run
from lstmsim.machines.edgedrnn.numbers import ONE, Sizes, entries_of
from tools.contract import differences, read_cases
from tools.contract_edgedrnn import finals_of, program_of, run_numbers

CASES = read_cases(str(Path(__file__).parents[2] / "data" / "contract_cases_edgedrnn.json"))
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "7"))


def size(case: dict[str, Any]) -> int:
    """About how many columns are sent at most."""
    own = case["edgedrnn"]
    return int(own["T"] * sum(own["sizes"]))


RECORDED = [
    pytest.param(case, engine, id=f"{case['name']}-{engine}", marks=usual if size(case) <= most else pytest.mark.long)
    for case in CASES
    for engine, most, usual in (("fast", 900, ()), ("reference", 150, pytest.mark.halved))
]


def test_there_are_as_many_cases_as_the_contract_has() -> None:
    assert len(CASES) == 89
    assert sum("ostall" in case["edgedrnn"] for case in CASES) == 2


@pytest.mark.parametrize(("case", "engine"), RECORDED)
def test_recorded_runs_of_the_rtl(case: dict[str, Any], engine: str) -> None:
    assert not differences(case, engine)


def random_case(number: int) -> dict[str, Any]:
    drawn = random.Random(number)
    lanes = drawn.choice([2, 4, 8, 16])
    inputs = lanes * drawn.randint(1, 4) + drawn.choice([0, lanes // 2])
    hidden = [lanes * drawn.randint(1, 5) for _ in range(drawn.randint(1, 3))]
    return {
        "pe": lanes,
        "sizes": [inputs, *hidden],
        "T": drawn.randint(1, 5),
        "seed": number,
        "thx": drawn.choice([0, 8, 64, 300]),
        "thh": drawn.choice([0, 8, 32]),
        "fifo": drawn.choice([4, 32]),
        "lat": drawn.choice([0, 1, 2, 5, 40]),
        "gap": drawn.choice([0, 0, 3, 30]),
        "period": drawn.choice([1, 1, 2, 30]),
        "maxout": drawn.choice([0, 1, 2]),
        "xint": drawn.choice([0, 0, 200, 2000]),
        "wthr": drawn.choice([0, 0, 40]),
        "wseed": number,
    }


@pytest.mark.parametrize("number", range(EXAMPLES))
def test_random_runs_take_the_cycles_of_the_text_on_both_engines(number: int) -> None:
    case = random_case(number)
    expected, steps, clock = run_numbers(case)
    program = program_of(case, steps, clock.lateness)
    # the reference engine takes one issue at a time: in the usual run it has every fourth
    for engine in ENGINES if number % 4 == 0 or "LSTMSIM_EXAMPLES" in os.environ else ("fast",):
        found = finals_of(run(program, engine), [sizes.groups for _, sizes in steps])
        assert found == [each[1:] for each in expected["layer_steps"]]


@pytest.mark.long
@pytest.mark.parametrize(("change", "seen"), [(1, 9), (-1, 11)])
def test_a_fifo_of_another_depth_is_seen_in_as_many_cases_as_the_text_says(change: int, seen: int) -> None:
    wrong = 0
    for case in CASES:
        own = case["edgedrnn"]
        if own["sizes"][-1] < 768:
            wrong += bool(differences({**case, "edgedrnn": {**own, "fifo": own.get("fifo", 32) + change}}, "fast"))
    assert wrong == seen


def test_worked_example_of_the_text() -> None:
    case = {"pe": 4, "sizes": [4, 8], "T": 1, "seed": 4, "thx": 0, "thh": 24, "lat": 3}
    made, steps, clock = run_numbers(case)
    assert [tuple(each) for each in steps[0][0]] == [(0, 256, 2), (2, 149, 4), (3, 115, 5), (4, 0, 6), (12, 0, 16)]
    assert clock.arrived == [16, 25, 31, 37, 38]
    assert clock.accepted == [16, 18, 19]
    assert clock.done == [24, 30, 36, 37, 38]
    assert made["layer_steps"] == [[12, 42, 57]]
    assert made["outputs"] == [[-7, -72, -80, 0, 12, 0, 40, 0]]


def test_nothing_sent_still_costs_the_scan() -> None:
    """Two layers of 768 with 40 inputs take 3,336 cycles in a step with nothing to send (section 8)."""
    layers = (Sizes(40, 768, 8), Sizes(768, 768, 8))
    quiet = [(np.zeros(each.walked, np.int64), np.zeros(each.hidden, np.int64)) for each in layers]
    pairs = [(entries_of(0 if step else ONE, *quiet[at]), layers[at]) for step in range(3) for at in (0, 1)]
    case = {"pe": 8, "sizes": [40, 768, 768]}
    finals = finals_of(run(program_of(case, pairs, [])), [96] * 6)
    assert finals[5][1] - finals[3][1] == finals[3][1] - finals[1][1] == 3336
