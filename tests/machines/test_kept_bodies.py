"""Bodies are kept by what they depend on: whoever has the same gets the very same, whoever has not gets its own."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.machines.assembly import Phases
from lstmsim.machines.column import phases as bodies
from lstmsim.machines.column.npu import ColumnCore, Delta, Latency
from lstmsim.machines.column.phases import Kept, _once, layer_phases, model_phases, repeated, split_phases, step_phases
from lstmsim.machines.column.shape import Spread
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model
from tests.splits import splits
from tests.strategies import cores_of_a_chip, models

CORE = ColumnCore(npe=64, ep=4, vp=16)
#: What the bodies of a core do not depend on, with another value for it.
BESIDE: dict[str, Any] = {
    "npe": 80,
    "threads": 3,
    "accumulator_banks": 7,
    "thread_policy": "fine",
    "switch_cycles": 5,
    "weight_kib": 100,
    "weight_bits": 4,
    "delta": Delta(),
}
WITHIN: dict[str, Any] = {"ep": 2, "vp": 8, "tail_width": 1, "block_order": "column"}


def fresh(model: Model, core: ColumnCore, steps: int) -> Phases:
    """Lowered with nothing kept."""
    order = layer_phases if model.layer_order == "layer" else step_phases
    return repeated(order(model, core, 1), steps)


@given(st.lists(models(tuple(CELLS)), min_size=1, max_size=2), st.lists(cores_of_a_chip(), min_size=1, max_size=3))
def test_random_chips(drawn: list[Model], cores: list[ColumnCore]) -> None:
    for steps in (1, 3):
        for model in drawn:
            for core in cores:
                for each in (core, replace(core, **{**BESIDE, "npe": core.npe + 16})):
                    if each.refusal(model) is None:
                        assert model_phases(model, each, steps) == fresh(model, each, steps)


@pytest.mark.slow
@given(splits(), st.integers(1, 3))
def test_random_splits(case: Any, steps: int) -> None:
    core, exchange, job, place = case
    numbers = list(dict.fromkeys(place))
    cores = tuple(numbers.index(each) for each in place)
    for each in (core, replace(core, **{**BESIDE, "npe": core.npe + 16})):
        phases = split_phases(job.model, each, steps, job.split, place, exchange)
        assert phases == repeated(_once(job.model, each, job.split, Spread((), cores, (), exchange)), steps)


def test_every_field_of_a_core_is_known_here() -> None:
    known = {*BESIDE, *WITHIN, "latency", "tree_inputs", "cat"}
    assert {each.name for each in fields(ColumnCore)} == known


@pytest.mark.parametrize("name", [*BESIDE, "cat"])
def test_what_the_bodies_do_not_depend_on_shares_them(name: str) -> None:
    change = {"tree_inputs": 8, "cat": 2} if name == "cat" else {name: BESIDE[name]}
    model = Model("m", (Layer(cell("lstm"), 24, 8),))
    other = Model("of another name", (Layer(cell("lstm"), 24, 8),), weights="w.safetensors")
    assert model_phases(model, CORE, 3) is model_phases(other, replace(CORE, **change), 3)
    (one,), (more,) = model_phases(model, CORE, 3), model_phases(other, replace(CORE, **change), 4)
    assert one.body is more.body
    assert (one.repeat, more.repeat) == (3, 4)


#: `latency.delta` is read on cores with delta columns alone, whose bodies are kept by what is sent.
LATENCIES = [each.name for each in fields(Latency) if each.name != "delta"]


@pytest.mark.parametrize("name", [*WITHIN, *(f"latency.{each}" for each in LATENCIES)])
def test_what_the_bodies_depend_on_is_needed_to_find_them(name: str) -> None:
    if name in WITHIN:
        other = replace(CORE, accumulator_banks=9, **{name: WITHIN[name]})
    else:
        key = name.partition(".")[2]
        other = replace(CORE, latency=replace(CORE.latency, **{key: getattr(CORE.latency, key) + 3}))
    every = [Model("m", (Layer(cell(each), 24, 8, projection=5 if "projection" in each else None),)) for each in CELLS]
    runs = [model for model in every if CORE.refusal(model) is None and other.refusal(model) is None]
    assert any(fresh(model, CORE, 2) != fresh(model, other, 2) for model in runs)
    for model in runs:
        assert model_phases(model, CORE, 2) == fresh(model, CORE, 2)
        assert model_phases(model, other, 2) == fresh(model, other, 2)


def test_the_order_of_layers_is_needed_to_find_them() -> None:
    layers = (Layer(cell("lstm"), 8, 8), Layer(cell("lstm"), 8, 8))
    one, other = (model_phases(Model("m", layers, order), CORE, 2) for order in ("layer", "step"))
    assert (len(one), len(other)) == (2, 1)


def test_too_many_lengths_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_LENGTHS", 2)
    monkeypatch.setattr(bodies, "_KEPT", Kept(100, lambda made: made.operations))
    model = Model("m", (Layer(cell("lstm"), 8, 8),))
    first = [model_phases(model, CORE, steps) for steps in (1, 2, 3, 1)]
    assert [each[0].repeat for each in first] == [1, 2, 3, 1]
    assert first[0] is not first[3]
    assert first[0] == first[3]


def test_the_least_recently_asked_for_goes_first() -> None:
    kept: Kept[str] = Kept(most=6, size=len)
    made: list[str] = []

    def make(word: str) -> str:
        made.append(word)
        return word

    for word in ("ab", "cd", "ef", "ab", "gh", "ab", "cd"):
        assert kept.of(word, lambda word=word: make(word)) == word  # type: ignore[misc]
    assert made == ["ab", "cd", "ef", "gh", "cd"]
    assert (kept.total, list(kept.results)) == (6, ["gh", "ab", "cd"])
    assert kept.of("too long to fit", lambda: make("too long to fit")) == "too long to fit"
    assert list(kept.results) == ["too long to fit"]
    assert kept.total == 15
    kept.clear()
    assert (kept.total, kept.results) == (0, {})


def test_as_many_lengths_are_kept_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_LENGTHS", 2)
    model = Model("m", (Layer(cell("lstm"), 20, 12),))
    first, second = (model_phases(model, CORE, steps) for steps in (2, 3))
    assert model_phases(model, CORE, 2) is first
    assert model_phases(model, CORE, 3) is second
    # a third one has no room beside them
    model_phases(model, CORE, 4)
    again = model_phases(model, CORE, 2)
    assert again is not first
    assert again == first
