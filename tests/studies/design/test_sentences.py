"""What is said of a design, to the letter: singular and plural, what is proven, and numbers with their units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lstmsim.studies.design.picture import plot_design
from lstmsim.studies.design.result import Alike, Choice, Design, More, Rival

ONE = Choice(3, {"chip.cores.0.ep": 16, "chip.cores.0.threads": None}, (6135.0,))
TWO = Choice(5, {"chip.cores.0.ep": 8, "chip.cores.0.threads": 2}, (6748.5,))
BASE = Design(
    scenario="kws",
    device="",
    minimise=("cycles",),
    axes={"chip.cores.0.ep": (8, 16), "chip.cores.0.threads": (None, 2)},
    fixed=(),
    space=1200,
    infeasible={"ep: too large": 3},
    does_not_fit={},
    inaccurate={},
    pruned={"cycles": 1190},
    simulated=7,
    left=0,
    late=0,
    extra_runs=0,
    best=(ONE,),
    equal=1,
    gap=0.0,
    proven=True,
)


def lines(**changes: Any) -> list[str]:
    """What is read of the design with some changes."""
    return replace(BASE, **changes).to_text().split("\n")


def words(**changes: Any) -> str:
    """The same without regard of where lines end, and of columns."""
    return " ".join(" ".join(lines(**changes)).split())


def headline(**changes: Any) -> str:
    return " ".join("\n".join(lines(**changes)).split("\n\n")[0].split())


def alike(number: int) -> tuple[Alike, ...]:
    return tuple(Alike(TWO, (-0.5, 2.0), 100) for _ in range(number))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "DESIGN for kws: 6,135 cycles, proven best of 1,200 designs"),
        ({"device": "Arria"}, "DESIGN for kws on Arria: 6,135 cycles, proven best of 1,200 designs"),
        ({"drawn": True}, "DESIGN for kws: 6,135 cycles, proven best of 1,200 designs for the requests that are drawn"),
        (
            {"proven": False, "gap": 0.0125},
            "DESIGN for kws: 6,135 cycles, not proven: of 1,200 designs one may be better by at most 1.2 %",
        ),
        (
            {"proven": False, "gap": None},
            "DESIGN for kws: 6,135 cycles, not proven: of 1,200 designs one may be better by an unknown share",
        ),
        (
            {"alike": alike(1)},
            "DESIGN for kws: 6,135 cycles, proven best of 1,200 designs; it cannot be told at 95 % that it is better "
            "than 1 other",
        ),
        (
            {"alike": alike(2)},
            "DESIGN for kws: 6,135 cycles, proven best of 1,200 designs; it cannot be told at 95 % that it is better "
            "than 2 others",
        ),
        ({"best": ()}, "DESIGN for kws: no design of 1,200 keeps all that is asked"),
        ({"best": (), "proven": False}, "DESIGN for kws: no design of 1,200 is known to keep all that is asked"),
        (
            {"best": (), "proven": False, "left": 9},
            "DESIGN for kws: no design of those looked at keeps all that is asked",
        ),
    ],
)
def test_the_first_sentence(changes: dict[str, Any], said: str) -> None:
    assert headline(**changes) == said


FRONT = {
    "minimise": ("latency_p99_ms", "share"),
    "best": (
        replace(ONE, objective=(0.2, 0.125)),
        replace(TWO, objective=(0.2, 0.125)),
        replace(TWO, point=6, objective=(0.4, 0.1)),
    ),
    "gap": None,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "no other design can be on it"),
        ({"proven": False}, "others may be on it"),
        ({"drawn": True}, "no other design can be on it; for the requests that are drawn: nothing is compared at 95 %"),
    ],
)
def test_the_first_sentence_of_a_front(changes: dict[str, Any], said: str) -> None:
    assert headline(**FRONT, **changes) == f"DESIGN for kws: a front of 3 of 1,200 designs; {said}"


def test_equal_designs_are_one_row_of_a_front() -> None:
    shown = [each.split() for each in lines(**FRONT)]
    assert ["latency_p99_ms", "share", "equal", "ep", "threads"] in shown
    assert ["0.2", "12.5%", "2", "16", "null"] in shown
    assert ["0.4", "10.0%", "1", "8", "2"] in shown


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("cycles", 1234567.0, "1,234,567 cycles"),
        ("energy_j", 0.0012345, "0.00123 J an inference (relative)"),
        ("us", 12.3456, "12.35 us"),
        ("npe", 65536.0, "65,536 multipliers"),
        ("share", 0.1234, "12.3% of the device"),
        ("requests_per_second", 8934.56, "8,934.6 requests/s"),
        ("p99_ms", 0.123456, "p99 0.1235 ms"),
        ("ms", 0.123456, "0.1235 ms"),
    ],
)
def test_a_number_has_the_unit_of_what_is_sought(name: str, value: float, said: str) -> None:
    found = headline(minimise=(name,), best=(replace(ONE, objective=(value,)),))
    assert found.startswith(f"DESIGN for kws: {said}, proven best")


@pytest.mark.parametrize(
    ("equal", "said"),
    [
        (1, ""),
        (2, "1 other is equal to it; it has the lowest number"),
        (3, "2 others are equal to it; it has the lowest number"),
    ],
)
def test_how_many_are_equal_to_the_best(equal: int, said: str) -> None:
    assert [each for each in lines(equal=equal) if "equal" in each] == [said] * bool(said)


def test_runners_up_say_by_how_much_they_are_worse() -> None:
    rivals = (Rival("chip.cores.0.ep", 8, 6748.5, 5), Rival("chip.cores.0.threads", True, 6135.0, 7))
    shown = [each.split() for each in lines(rivals=rivals)]
    assert ["chip.cores.0.ep", "16", "8", "6,748", "+10.0", "%"] in shown
    assert ["chip.cores.0.threads", "null", "true", "6,135", "+0.0", "%"] in shown


def test_differences_say_what_is_known_of_them() -> None:
    infinite = float("inf")
    near = (
        Alike(TWO, (-0.5, 2.0), 100),
        Alike(TWO, (0.25, 0.25), 200, "every request takes as long"),
        Alike(TWO, (-infinite, infinite), 300, "too few"),
        Alike(TWO, (-infinite, 4.0), 400),
    )
    text = words(alike=near)
    design = "5 ep 8, threads 2 6,748"
    assert f"{design} -0.5 to +2 100 {design} +0.25: every request takes as long 200" in text
    assert f"{design} too few 300 {design} not known 400" in text
    assert "it may be no better (below 0: the other is)" in text
    sought = {"minimise": (), "maximise": ("requests_per_second",)}
    assert "it may be no better (above 0: the other is)" in words(alike=near, **sought)


def test_every_design_is_counted_once_and_the_late_are_named() -> None:
    shown = [each.split() for each in lines(left=2)]
    assert ["breaks", "a", "rule", "ep:", "too", "large", "3"] in shown
    assert ["ruled", "out", "by", "a", "bound", "cycles", "1,190"] in shown
    assert ["not", "looked", "at", "2"] in shown
    assert ["all", "1,200"] in shown
    assert not any("looked at" in each or "do not keep" in each or "further" in each for each in lines())
    said = "1 of the simulated designs do not keep the bound on latencies"
    assert f"{said} or not for certain" in lines(late=1)
    sought = {"minimise": (), "maximise": ("requests_per_second",)}
    assert f"{said} at the rate of a better one, or at no rate for certain" in words(late=1, **sought)
    assert "8 further simulations for what is said of the best design" in lines(extra_runs=8)


def test_more_of_a_device_that_buys_nothing_says_so() -> None:
    (said,) = [each for each in lines(more=(More("DSP", "It takes 90 % of the DSPs", None),)) if "DSP" in each]
    assert said == "It takes 90 % of the DSPs. 10 % more DSP would buy nothing in this space"
    cut = words(more=(More("DSP", "It takes 90 %", None, complete=False),))
    assert "10 % more DSP would buy nothing in this space (not all designs that it brings were looked at)" in cut


def test_many_values_of_a_key_end_with_the_last_one() -> None:
    few = lines(axes={"k": tuple(range(12))})
    assert "k        12  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11" in few
    many = lines(axes={"k": tuple(range(14))})
    assert "k        14  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... 13" in many


def test_plain_data_have_numbers_for_one_objective_and_lists_for_several() -> None:
    one = BASE.to_dict()
    assert one["best"] == [{"point": 3, "fit": "", "mhz": None, "values": dict(ONE.values), "objective": 6135.0}]
    assert replace(BASE, **FRONT).to_dict()["best"][2]["objective"] == [0.4, 0.1]  # type: ignore[arg-type]
    far = replace(BASE, alike=(Alike(TWO, (float("-inf"), 1.0), 9), Alike(TWO, (-1.0, 1.0), 9))).to_dict()
    assert [each["difference"] for each in far["indistinguishable"]] == [None, [-1.0, 1.0]]
    assert replace(BASE, drawn=True, alike=alike(1)).to_dict()["indistinguishable"][0]["difference_ms"] == [-0.5, 2.0]


@pytest.mark.parametrize(("proven", "said"), [(True, "front (3)"), (False, "front (3, not proven)")])
def test_a_picture_says_whether_its_front_is_proven(proven: bool, said: str) -> None:
    pytest.importorskip("matplotlib")
    found = replace(BASE, **FRONT, proven=proven, seen=((0.2, 0.125), (0.4, 0.1), (0.5, 0.5)))  # type: ignore[arg-type]
    (axes,) = plot_design(found).axes
    handles, names = axes.get_legend_handles_labels()
    assert dict(zip(names, (len(each.get_offsets()) for each in handles), strict=True)) == {"simulated (3)": 3, said: 3}
    # whichever is across, a point has both of its objectives
    points = handles[names.index(said)].get_offsets().tolist()
    assert sorted(map(sorted, points)) == [[0.1, 0.4], [0.125, 0.2], [0.125, 0.2]]
    assert [each.get_text() for each in axes.texts] == ["3", "5", "6"]
