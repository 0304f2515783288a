"""Random programs of the device on the engines and on an independent model of its timing contract."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.oracle.parallel_device import simulate
from tests.oracle.parallel_programs import draw_device, draw_kernels
from tools.contract_sparse import device_of, result

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "10"))
SEED = int(os.environ.get("LSTMSIM_SEED", "1"))
#: Of so many programs one also runs on the reference engine.
REFERENCE = 12
CASES = Path(__file__).parents[2] / "data" / "contract_cases_sparse.json"


def drawn(number: int) -> dict[str, Any]:
    draw = Random(f"{SEED} {number}")
    device = draw_device(draw)
    return {"kind": "device", "device": device, "kernels": draw_kernels(draw, device)}


@pytest.mark.parametrize("part", range(6))
def test_random_programs(part: int) -> None:
    for number in range(part * EXAMPLES // 6, (part + 1) * EXAMPLES // 6):
        case = drawn(number)
        case["expect"] = simulate(device_of(case["device"]), case["kernels"])
        assert result(case, "fast") == case["expect"], number
        if number % REFERENCE == 0:
            assert result(case, "reference") == case["expect"], number


@pytest.mark.parametrize("seed", [0, 3, *(pytest.param(each, marks=pytest.mark.long) for each in (1, 2))])
def test_an_instruction_that_waits_for_very_many_results(seed: int) -> None:
    """More results than an operation of a packed body can name: those that later ones imply are left out."""
    draw = Random(seed)
    device = {"preset": "toy", "partitions": 3, "dram": 4, "atomic": 3}
    stream: list[dict[str, Any]] = []
    for _ in range(400):
        kind = draw.choice(("alu", "fma", "sfu", "shfl", "lds", "sts", "ldg", "stg", "atom"))
        each: dict[str, Any] = {"kind": kind, "lsu": draw.randint(1, 3)}
        if kind in ("ldg", "stg", "atom"):
            missing = {str(place): draw.randint(1, 30) for place in draw.sample(range(3), draw.randint(1, 3))}
            each |= {"misses": missing, "sectors": 8, "in_l1": kind == "ldg", "in_l2": kind != "atom"}
        stream.append(each)
    for number in range(40):
        waits = sorted(draw.sample(range(len(stream)), draw.choice((1, 90, 97, 150, len(stream)))))
        stream.append({"kind": draw.choice(("alu", "stg")), "lsu": 1, "sectors": number % 3 + 1, "waits": waits})
    kernels = [{"warps": 2, "registers": 0, "shared": 0, "blocks": [{"streams": [stream, stream[: 200 * seed]]}]}]
    case: dict[str, Any] = {"kind": "device", "device": device, "kernels": kernels}
    case["expect"] = simulate(device_of(device), kernels)
    assert result(case, "fast") == case["expect"]


def golden() -> list[dict[str, Any]]:
    return [each for each in json.loads(CASES.read_text()) if each["kind"] == "device" and "kernels" in each["expect"]]


@pytest.mark.parametrize("case", golden(), ids=[each["name"] for each in golden()])
def test_the_model_itself_is_right_in_the_golden_cases(case: dict[str, Any]) -> None:
    assert simulate(device_of(case["device"]), case["kernels"]) == case["expect"]


@pytest.mark.slow
def test_random_programs_use_everything() -> None:
    cases = [drawn(number) for number in range(60)]
    kernels = [kernel for case in cases for kernel in case["kernels"]]
    blocks = [block for kernel in kernels for block in kernel["blocks"]]
    streams = [stream for block in blocks for stream in block["streams"]]
    kinds = {each["kind"] for stream in streams for each in stream}
    assert len(kinds) == 11
    assert any(not kernel["blocks"] for kernel in kernels)
    assert any(not stream for stream in streams)
    assert {"sm" in block for block in blocks} == {False, True}
    for key in ("warp_policy", "schedulers", "sms", "partitions", "launch", "start", "retire", "dispatch"):
        assert len({case["device"][key] for case in cases}) > 1, key
