"""Sweep files: what they mean, and a sentence with file, line and column for every mistake."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from lstmsim.base.errors import InputError
from lstmsim.studies.sweep.run import prepare
from lstmsim.studies.sweep.spec_file import load_sweep
from tests.studies.sweep.specs import SCENARIO, spec

HEAD = "scenario: {chip: column-npu-64k, jobs: [{model: lstm-512, steps: 3}]}\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "s.yaml"
    path.write_text(HEAD + dedent(text), encoding="utf-8")
    return path


def values(axes: object, **others: object) -> list[dict[str, object]]:
    sweep = load_sweep({"scenario": SCENARIO, "axes": axes, **others}).sweep
    return [dict(sweep.values(number)) for number in range(len(sweep))]


A = {"path": "chip.cores.0.ep", "values": [1, 2]}
B = {"path": "chip.cores.0.vp", "values": [5, 6]}
C = {"path": "jobs.0.steps", "values": [7, 8, 9]}


def test_a_product_has_the_last_axis_fastest() -> None:
    assert values({"a": A, "b": B}) == [{"a": a, "b": b} for a in (1, 2) for b in (5, 6)]


def test_a_zip_steps_together_and_groups_are_multiplied() -> None:
    groups = [{"combine": "zip", "axes": {"a": A, "b": B}}, {"axes": {"c": C}}]
    assert values(groups) == [{"a": a, "b": b, "c": c} for a, b in ((1, 5), (2, 6)) for c in (7, 8, 9)]
    assert values({"a": A, "b": B}, combine="zip") == [{"a": 1, "b": 5}, {"a": 2, "b": 6}]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"from": 1, "to": 7, "step": 3}, [1, 4, 7]),
        ({"from": 2, "to": 4}, [2, 3, 4]),
        ({"from": 3, "to": 30, "factor": 2}, [3, 6, 12, 24]),
        ({"from": 0, "to": 1, "step": 0.1}, [each * 0.1 for each in range(11)]),
        ({"from": 0.1, "to": 0.3, "step": 0.1}, [0.1, 0.2, 0.3]),
        ({"from": 0.1, "to": 0.7, "step": 0.2}, [0.1, 0.3, 0.5, 0.7]),
        ({"from": 0.1, "to": 0.29999, "step": 0.1}, [0.1, 0.2]),
        ({"from": 1, "to": 1.331, "factor": 1.1}, [1, 1.1, 1.21, 1.331]),
        ({"from": 1, "to": 2**62 - 1, "factor": 2}, [2**each for each in range(62)]),
        ({"values": ["a", None, True, 2.5]}, ["a", None, True, 2.5]),
    ],
)
def test_ranges_and_lists(entry: dict[str, object], expected: list[object]) -> None:
    assert [each["a"] for each in values({"a": {"path": "chip.x", **entry}})] == pytest.approx(expected)


def test_an_expression_adds_a_value_but_no_points() -> None:
    axes = {"a": A, "wide": {"path": "chip.cores.0.vp", "expression": "64 // a"}}
    assert values(axes) == [{"a": 1, "wide": 64}, {"a": 2, "wide": 32}]


MISTAKES = [
    ("axis: {}", "s.yaml:2:1: axis: unknown key; did you mean 'axes'?"),
    ("axes: {}", "s.yaml:2:7: axes: must be a mapping of names to axes, at least 1, got an empty one"),
    ("axes: {ep: {path: chip.cores.0.ep}}", "s.yaml:2:12: axes.ep: needs one of: values"),
    ("axes: {ep: {values: [1]}}", "s.yaml:2:12: axes.ep.path: required key is missing"),
    ("axes: {ep: {path: a, values: [1], from: 2}}", "axes.ep: needs one of: values"),
    (
        "axes: {ep: {path: a, values: []}}",
        "s.yaml:2:30: axes.ep.values: must be a list of at least one value, got an empty one",
    ),
    ("axes: {ep: {path: a, values: [1, [2]]}}", "s.yaml:2:34: axes.ep.values.1: must be a number"),
    ("axes: {ep: {path: a, values: [1, .nan]}}", "s.yaml:2:34: axes.ep.values.1: must be a number"),
    ("axes: {ep: {path: a, values: [1], step: 2}}", "s.yaml:2:35: axes.ep.step: belongs to a range"),
    ("axes: {ep: {path: a, valeus: [1]}}", "s.yaml:2:22: axes.ep.valeus: unknown key; did you mean 'values'?"),
    ("axes: {ep: {path: a..b, values: [1]}}", "s.yaml:2:19: axes.ep.path: must be a path"),
    ("axes: {ep: {path: a, from: 8, to: 1}}", "s.yaml:2:35: axes.ep.to: must not be below from: 1 < 8"),
    ("axes: {ep: {path: a, from: 1}}", "axes.ep.to: required key is missing"),
    ("axes: {ep: {path: a, from: 1, to: x}}", "s.yaml:2:35: axes.ep.to: must be a number, got 'x'"),
    ("axes: {ep: {path: a, from: 1, to: 9, factor: 1}}", "s.yaml:2:46: axes.ep.factor: must be greater than 1"),
    ("axes: {ep: {path: a, from: 0, to: 9, factor: 2}}", "s.yaml:2:28: axes.ep.from: must be greater than 0"),
    ("axes: {ep: {path: a, from: 1, to: 9, step: 0}}", "s.yaml:2:44: axes.ep.step: must be greater than 0"),
    ("axes: {ep: {path: a, from: 1, to: 9e9}}", "s.yaml:2:35: axes.ep.to: makes more than 1,000,000 values"),
    ("axes: {1ep: {path: a, values: [1]}}", "s.yaml:2:8: axes.1ep: a name of letters"),
    ("axes: {busy: {path: a, values: [1]}}", "'busy' is a word of tables or expressions"),
    ("axes: {a: {path: a, values: [1]}, A: {path: b, values: [1]}}", "another axis has that name"),
    ("axes: {a: {path: a, values: [1]}}\ncombine: zipp", "s.yaml:3:10: combine: must be product or zip, got 'zipp'"),
    ("axes: {a: {path: a, values: [1]}, b: {path: b, values: [1, 2]}}\ncombine: zip", "a 1 and b 2 values"),
    ("axes: [{axes: {a: {path: a, values: [1]}}, how: zip}]", "s.yaml:2:44: axes.0.how: unknown key"),
    ("axes: {a: {path: a, values: [1]}}\nconstraints: [aa > 1]", "s.yaml:3:15: constraints.0: no axis called 'aa'"),
    ("axes: {a: {path: a, values: [1]}}\nconstraints: [a >]", "s.yaml:3:15: constraints.0: is no expression"),
    ("axes: {a: {path: a, values: [1]}}\nconstraints: [open(a)]", "s.yaml:3:15: constraints.0: only min"),
    ("axes: {a: {path: a, values: [1]}}\nconstraints: a > 1", "s.yaml:3:14: constraints: must be a list"),
    ("axes: {a: {path: a, expression: b}, b: {path: c, values: [1]}}", None),
    ("axes: {a: {path: a, expression: a}, b: {path: c, values: [1]}}", "axes.a.expression: no axis called 'a'"),
    (
        "axes: {a: {path: a, from: 1, to: 9999}, b: {path: b, from: 1, to: 9999}}",
        "s.yaml:2:7: axes: make 99,980,001 points, at most 10,000,000",
    ),
    (
        "axes: {" + ", ".join(f"{name}: {{path: x.{name}, from: 1, to: 1000000}}" for name in "abcd") + "}",
        "s.yaml:2:7: axes: make 1,000,000,000,000,000,000,000,000 points, at most 10,000,000",
    ),
    (
        "axes: {a: {path: chip.cores.0.ep, values: [1]}, b: {path: [x, chip.cores.00.ep], values: [2]}}",
        "s.yaml:2:59: axes.b.path: chip.cores.00.ep is set by another axis too (s.yaml:2:18: axes.a.path)",
    ),
    (
        "axes: [{axes: {a: {path: x, values: [1]}}}, {axes: {b: {path: x, expression: a}}}]",
        "axes.1.axes.b.path: x is set by another axis too (s.yaml:2:26: axes.0.axes.a.path)",
    ),
    (
        'axes: {a: {path: jobs.0.name, values: [fine, "\\ud800"]}}',
        "s.yaml:2:46: axes.a.values.1: must be a number below 2**63, text (no lone surrogates)",
    ),
    # A mistake that every point would have is told before the first point.
    ("axes: {ep: {path: chip.cores.0.epp, values: [1]}}", "s.yaml:2:19: axes.ep.path: chip.cores.0.epp: unknown key"),
    ("axes: {ep: {path: chip.cores.1.ep, values: [1]}}", "s.yaml:2:19: axes.ep.path: chip.cores.1.ep: 'chip.cores'"),
    ("axes: {ep: {path: [chip.cores.0.ep, jobz.0], values: [8]}}", "jobz"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "sentence"), MISTAKES)
def test_every_mistake_has_its_place(tmp_path: Path, text: str, sentence: str | None) -> None:
    path = written(tmp_path, text)
    if sentence is None:
        load_sweep(path)
        return
    with pytest.raises(InputError) as caught:
        prepare(path)
    assert sentence in str(caught.value).replace(f"{tmp_path}/", "")


def test_a_name_that_is_refused_is_neither_proposed_nor_refused_again(tmp_path: Path) -> None:
    axes = "axes: {a: {path: a, values: [1]}, point: {path: b, values: [1]}}\n"
    path = written(tmp_path, axes + "constraints: [quite > 1, point > 1]\n")
    with pytest.raises(InputError) as caught:
        load_sweep(path)
    refused, unknown = (each.sentence for each in caught.value.mistakes)
    assert "'point' is a word of tables" in refused
    assert unknown == "no axis called 'quite'; there are: a"


def test_several_mistakes_come_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "axes: {a: {path: a, values: [1]}}\nconstraints: [b > 1, a.b]\ncombine: no-way\n")
    with pytest.raises(InputError) as caught:
        load_sweep(path)
    assert len(caught.value.mistakes) == 3


def test_a_scenario_in_place_of_a_sweep_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("chip: column-npu-64k\njobs: [{model: lstm-512, steps: 3}]\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_sweep(path)
    (mistake,) = caught.value.mistakes
    assert (mistake.location, mistake.sentence.split(";")[0]) == (
        str(path),
        "is a scenario, no sweep: `lstmsim simulate` runs it",
    )


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        ("scenario: nowhere.yaml", "s.yaml:1:11: scenario: no file called"),
        ("name: x", "scenario: required key is missing"),
        ("scenario: 3", "s.yaml:1:11: scenario: must be a mapping or a path"),
        ("scenario: {chip: column-npu-64, jobs: []}", "no chip called 'column-npu-64'; did you mean"),
        ("scenario: {chip: column-npu-64k, jobz: []}", "unknown key; did you mean 'jobs'?"),
    ],
)
def test_mistakes_of_the_scenario_are_found_before_the_first_point(
    tmp_path: Path, scenario: str, sentence: str
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(scenario + "\naxes: {ep: {path: chip.cores.0.ep, values: [8]}}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        prepare(path)
    assert sentence in str(caught.value).replace(f"{tmp_path}/", "")


def test_a_scenario_file_is_found_from_the_sweep_file_and_overrides_come_before_axes(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "base.yaml").write_text(HEAD.removeprefix("scenario: "), encoding="utf-8")
    path = tmp_path / "s.yaml"
    path.write_text("scenario: a/base.yaml\n" + "axes:\n" + indent("n: {path: jobs.0.steps, values: [4]}\n", "  "))
    setup = prepare(path, ["jobs.0.arrival=9", "jobs.0.steps=77"])
    from lstmsim.studies.sweep.resolve import Resolver

    job = Resolver(setup).scenario(setup.sweep.values(0)).jobs[0]
    assert (job.steps, job.arrival, setup.sweep.paths) == (4, 9, {"n": ("jobs.0.steps",)})


def test_the_identity_names_what_is_computed_and_nothing_else() -> None:
    same = prepare(spec()).identity
    assert prepare(spec(name="another")).identity == same
    others = [
        prepare(spec(constraints=[])).identity,
        prepare(spec(), ["jobs.0.steps=4"]).identity,
        prepare(spec(scenario={**SCENARIO, "chip": "column-npu-64k"})).identity,
    ]
    assert len({same, *others}) == 4
