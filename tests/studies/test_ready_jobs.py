"""Jobs that are objects: the same cycles as the entries of a file, and the same sentences."""

from __future__ import annotations

from typing import Any

import pytest

import lstmsim
from lstmsim import InputError, Job, Scenario

CHIP = "column-npu-64k"
ENTRY: dict[str, Any] = {"model": "lstm-512", "steps": 5}


def errors(make: Any) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        make()
    return [(each.location, each.sentence) for each in caught.value.mistakes]


def both(*entries: dict[str, Any]) -> tuple[Any, Any]:
    """What makes the scenario of these entries: as objects, and as keys."""
    jobs = [{**ENTRY, **each} for each in entries]
    return (
        lambda: Scenario(chip=CHIP, jobs=[Job(**each) for each in jobs]),
        lambda: lstmsim.load_scenario({"chip": CHIP, "jobs": jobs}),
    )


@pytest.mark.parametrize("initial", ["enc", {"job": "enc"}])
def test_a_job_that_begins_with_the_states_of_another_waits_for_it(initial: Any) -> None:
    objects, keys = both({"name": "enc"}, {"initial": initial})
    assert objects() == keys()
    assert objects().jobs[1].states_of == keys().jobs[1].states_of == 0
    assert lstmsim.simulate(objects()).makespan_cycles == lstmsim.simulate(keys()).makespan_cycles == 746


@pytest.mark.parametrize(
    "entries",
    [
        ({"name": "enc"}, {"initial": "encc"}),
        ({"initial": "later"}, {"name": "later"}),
        ({"name": "enc", "patience": 9}, {"initial": "enc"}),
        ({"name": "enc", "model": "lstm-256"}, {"initial": "enc"}),
    ],
)
def test_a_name_that_cannot_be_meant_is_told_as_in_a_file(entries: Any) -> None:
    objects, keys = both(*entries)
    assert errors(objects) == errors(keys)


def test_a_position_is_that_of_an_earlier_job() -> None:
    first = Job(**ENTRY)
    after = [Job(**ENTRY, after=0), Job(**ENTRY, after=-1), Job(**ENTRY, after=7)]
    assert errors(lambda: Scenario(chip=CHIP, jobs=after[:1])) == [
        ("jobs.0.after", "must be left out, because no job stands before this one; got 0")
    ]
    for wrong, got in zip(after[1:], (-1, 7), strict=True):
        reported = errors(lambda wrong=wrong: Scenario(chip=CHIP, jobs=[first, wrong]))
        assert reported == [("jobs.1.after", f"must be 0, that of the only earlier job; got {got}")]
    assert errors(lambda: Scenario(chip=CHIP, jobs=[first, Job(**ENTRY, states_of=0)]))[0][0] == "jobs.1.states_of"
    assert errors(lambda: Scenario(chip=CHIP, jobs=[Job(**ENTRY, name="a"), first, Job(**ENTRY, initial="a", after=1)]))
    assert Scenario(chip=CHIP, jobs=[first, after[0]]).jobs[1].after == 0


def test_a_core_is_named_once() -> None:
    _, keys = both({"cores": [0, 0]})
    assert errors(lambda: Job(**ENTRY, cores=[0, 0]))[0][1] == errors(keys)[0][1]


@pytest.mark.parametrize(
    ("key", "value", "reported"),
    [
        ("offers", {"x": 1}, "must be a mapping of names to offers, got one with other values"),
        ("calibration", 5, "must be a mapping of names of models to files, got 5"),
        ("precision_given", "x", "must be true or false, got 'x'"),
    ],
)
def test_other_parts_have_their_types(key: str, value: Any, reported: str) -> None:
    assert errors(lambda: Scenario(chip=CHIP, jobs=[Job(**ENTRY)], **{key: value})) == [(key, reported)]


@pytest.mark.parametrize("name", ["", "a\nb", "a" * 10_000])
def test_a_name_that_is_none_does_not_break_its_sentence(name: str) -> None:
    ((place, sentence),) = errors(lambda: Job(**ENTRY, name=name))
    assert place == "job: name"
    assert len(sentence) < 200
    assert sentence.isprintable()


@pytest.mark.parametrize("make", [lambda: Job(model=b"x"), lambda: Scenario(chip=CHIP, jobs=Job(**ENTRY))])  # type: ignore[arg-type]
def test_a_value_of_a_strange_type_is_told_once(make: Any) -> None:
    ((_, sentence),) = errors(make)
    assert "got a value of type" in sentence
