"""What a change costs, and which change is worth most for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.analysis.explanations.answer import advice
from lstmsim.analysis.explanations.what_if import WORTH_FROM, Alternative, Price, WhatIf
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.files.yaml.document import yaml_text
from lstmsim.machines.change import Change
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Scenario
from lstmsim.studies.fit.price import pricing
from tests.cli import runner

SCENARIO = lstmsim.load_scenario({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3, "count": 3}]})
DEVICE = "stratix-10-gx-2800"


def changes(scenario: Scenario = SCENARIO) -> dict[str, Change]:
    target = target_of(scenario.chip.kind)
    some = (*target.order_changes(scenario.chip, scenario.jobs), *target.changes(scenario.chip, scenario.jobs))
    return {each.name: each for each in some if each.chip is not None}


def test_an_order_is_no_hardware_with_and_without_a_device() -> None:
    for name in (None, DEVICE):
        price = pricing(SCENARIO, name)(changes()["fine-grained threads"])
        assert (price.text, price.more) == ("no hardware", 0.0)


def test_without_a_device_multipliers_are_counted_those_behind_the_array_too() -> None:
    price = pricing(SCENARIO)(changes()["one more core"])
    chip: Any = SCENARIO.chip
    counted = lstmsim.fit(SCENARIO, DEVICE)[0].tail
    tail = chip.cores[0].tail_width * sum(each.lane for each in counted)
    assert price.text == f"{chip.cores[0].npe + tail:,} multipliers more, +100.0 %; no device is given"
    assert price.more == 1.0
    bank = pricing(SCENARIO)(changes()["one more bank"])
    assert bank.text == "no multiplier more, what else it takes is not counted: no device is given"
    assert bank.more == 0.0


def test_on_a_device_the_price_is_what_fit_says() -> None:
    price = pricing(SCENARIO, DEVICE)
    now = lstmsim.fit(SCENARIO, DEVICE)[0]
    for name in ("one more core", "npe and vp doubled", "one more bank"):
        change = changes()[name]
        then = lstmsim.fit(replace(SCENARIO, chip=change.chip), DEVICE)[0]
        rises = [b.share - a.share for a, b in zip(now.resources, then.resources, strict=True) if a.share and b.share]
        assert price(change).more == pytest.approx(max(0.0, *rises))
        assert price(change).fits is then.fits
    one_more = price(changes()["one more core"])
    assert one_more.text == f"DSP of {DEVICE} {now.multipliers.percent} -> 161 %; does not fit"


def test_what_no_source_prices_says_so() -> None:
    price = pricing(SCENARIO, DEVICE)(changes()["latencies halved"])
    assert price.more is None
    assert price.text.startswith("not known: no source says what less latency.read, latency.multiply and ")
    device = lstmsim.load_scenario({"chip": "v100", "jobs": [{"model": "lstm-256", "steps": 2}]})
    own = changes(device)
    assert pricing(device)(own["L2 warm"]).text == "none can be named: what ran before is no part of the chip"
    assert pricing(device)(own["SMs doubled"]).more == 1.0
    assert pricing(device)(own["memory twice as fast"]).more is None


def test_the_device_on_which_a_chip_was_built_is_known() -> None:
    brainwave = lstmsim.load_scenario({"chip": "brainwave-s10", "jobs": [{"model": "lstm-512", "steps": 2}]})
    assert pricing(brainwave).on is not None
    assert pricing(SCENARIO).on is None


def tried(
    name: str, saved: int, more: float | None, *, fits: bool | None = None, work: float = 1.0, multipliers: int = 0
) -> Alternative:
    return Alternative(name, "", 1000 - saved, saved, 0.5, work, price=Price("", more, fits, multipliers))


def test_what_takes_no_more_multipliers_is_advised_first() -> None:
    # on a device memory may rise more than multipliers do
    double, bank = tried("double", 400, 0.1, multipliers=64), tried("bank", 20, 0.4)
    assert WhatIf(1000, (double, bank)).worth_most is bank
    assert WhatIf(1000, (double, tried("bank", 5, 0.4))).worth_most is double
    for device in (None, DEVICE):
        more = {name: pricing(SCENARIO, device)(each).multipliers for name, each in changes().items()}
        assert (more["one more bank"], more["fine-grained threads"], more["latencies halved"]) == (0, 0, 0)
        assert more["one more core"] > more["npe and vp doubled"] == 16384


def test_a_chip_that_does_not_fit_is_said_first(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(yaml_text({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}))
    text = runner.call("simulate", str(file), "--explain", "--device", "arria-10-gx-1150").stdout
    verdict = lstmsim.fit(str(file), "arria-10-gx-1150")[0].verdict
    assert verdict.startswith("does not fit: DSP 3.06 times over")
    first = f"column-npu-16k on arria-10-gx-1150 {verdict}; no such chip can be built there. Utilization "
    assert " ".join(text.split()).startswith(first)
    found = lstmsim.explain(str(file), device="arria-10-gx-1150")
    assert found.to_text().startswith("column-npu-16k on arria-10-gx-1150 does not fit: DSP ")
    assert repr(found).startswith("<Explanation: column-npu-16k on arria-10-gx-1150 does not fit: DSP ")
    assert lstmsim.explain(str(file), device=DEVICE).misfit == ""


def test_advice_that_takes_multipliers_says_that_nothing_else_saves() -> None:
    found = lstmsim.explain({"chip": "column-npu-16k", "jobs": [{"model": "lstm-1024", "steps": 2}]})
    worth = found.what_if.worth_most
    assert worth is not None
    assert worth.price is not None
    assert worth.price.multipliers > 0
    assert advice(found)[0] == "Without more multipliers no change of a known price saves 1 % or more."
    assert not advice(lstmsim.explain(SCENARIO))[0].startswith("Without")


def test_the_advice_begins_with_what_saves_most_for_its_price() -> None:
    double = tried("double", 400, 1.0)
    order, thread = tried("order", 20, 0.0), tried("thread", 200, 0.1)
    some = (double, thread, order)
    what_if = WhatIf(1000, some)
    assert [each.name for each in what_if.by_worth] == ["order", "thread", "double"]
    assert what_if.worth_most is order
    assert what_if.best is double


@pytest.mark.parametrize(
    "poor",
    [
        tried("too little", int(1000 * WORTH_FROM) - 1, 0.0),
        tried("unknown", 500, None),
        tried("too large", 500, 0.1, fits=False),
        tried("other work", 500, 0.0, work=6.0),
        tried("harm", -5, 0.0),
    ],
)
def test_what_cannot_be_advised_for_its_price_stands_behind(poor: Alternative) -> None:
    double = tried("double", 400, 1.0)
    assert WhatIf(1000, (poor, double)).worth_most is double
    assert WhatIf(1000, (poor,)).worth_most is None


def test_of_free_changes_the_one_that_saves_more_comes_first() -> None:
    assert WhatIf(1000, (tried("b", 30, 0.0), tried("a", 20, 0.0))).by_worth[0].name == "b"


def test_explanations_advise_what_was_simulated_and_name_its_price() -> None:
    for more in ((), ("--device", DEVICE)):
        text, data = runner.both("simulate", "experiments/scenarios/demo.yaml", "--explain", *more)
        what_if = data["explanation"]["what_if"]
        names = {each["name"] for each in (*what_if["alternatives"], *what_if["pairs"])}
        flat = " ".join(text.split())
        first = flat.partition("each simulated ")[2]
        assert first.startswith("Worth most for its price: fine-grained threads (")
        for sentence in ("Worth most for its price: ", "this shortens it most: ", "Utilization gains most by: "):
            advised = flat.partition(sentence)[2]
            assert any(advised.startswith(name) for name in names), sentence
            assert "; price: " in advised.partition(". ")[0] + advised[:400]
        priced = [each for each in what_if["alternatives"] if each["cycles"] is not None]
        assert all(each["price"]["text"] for each in priced)
        assert ("no device is given" in flat) == (not more)


def test_a_device_that_is_not_known_is_refused() -> None:
    outcome = runner.call("simulate", "experiments/scenarios/demo.yaml", "--explain", "--device", "stratix")
    assert outcome.exit_code == 2
    assert "no device called 'stratix'" in outcome.stderr
    alone = runner.call("simulate", "experiments/scenarios/demo.yaml", "--device", DEVICE)
    assert alone.exit_code == 2
    assert "only with --report or --explain" in alone.stderr
    assert load_chip("column-npu-16k") == SCENARIO.chip


def test_less_start_time_of_a_cell_has_no_price() -> None:
    scenario = lstmsim.load_scenario({"chip": "brainwave-s10", "jobs": [{"model": "gru-512", "steps": 3}]})
    # the numbers of a cell stand in a list of parts
    for name in ("no start time", "faster dispatch"):
        assert pricing(scenario)(changes(scenario)[name]).more is None


@pytest.mark.needs_core
@pytest.mark.parametrize(
    "chip",
    [
        "column-npu-16k",
        "column-npu-4x16k",
        "intel-npu-rtl",
        "brainwave-s10",
        "xeon-gold-5122",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("epyc-7742", "edge")),
    ],
)
@pytest.mark.parametrize("device", [None, DEVICE])
def test_on_each_machine_what_is_advised_was_simulated_and_has_a_price(chip: str, device: str | None) -> None:
    scenario = {"chip": chip, "jobs": [{"model": "lstm-256", "steps": 2}]}
    found = lstmsim.explain(lstmsim.run(scenario), device=device)
    tried = [*found.what_if.alternatives, *found.what_if.pairs]
    assert all(each.price is not None and each.price.text for each in tried if each.cycles is not None)
    said = [each for each in advice(found) if " cycles (" in each]
    assert said
    known = {each.name: each for each in tried}
    for sentence in said:
        assert "; price: " in sentence
        assert any(f": {name}" in sentence and f"{each.cycles:,} cycles" in sentence for name, each in known.items())
