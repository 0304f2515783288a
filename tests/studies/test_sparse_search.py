"""The search for the fastest setting of a sparse product simulates what it names, and its best is the best of that."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.files.matrices import weight_matrix
from lstmsim.model.sparse.made import pruned
from lstmsim.studies.sparse.result import Search, SparseReport
from tools.drawn_matrices import drawn_matrix

pytestmark = pytest.mark.needs_core

MATRIX = drawn_matrix(32, 40, 48, 3, skew=True)
HELD = {"m": 32, "fixed_percent": 0, "merge": "atomic", "warps": 4, "blocks_per_sm": 2}


def ran(method: str, options: dict[str, Any], *, best: bool = True, kernel: str = "spmv") -> SparseReport:
    return lstmsim.run_sparse(
        MATRIX, kernel, method=method, columns=8, chip="edge", options=options, baselines=False, best=best
    )


def found(report: SparseReport) -> Search:
    assert report.search is not None
    return report.search


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "method", "options"),
    [
        ("spmv", "hbp", {"fixed_percent": 0, "hash": "sort", "blocks_per_sm": 2}),
        ("spmv", "csr", {"warps": 4}),
        pytest.param("spmm", "csr", {"order": "sorted", "align": "reverse"}, marks=pytest.mark.long),
        ("sddmm", "csr", {"dispatch": "demand"}),
    ],
)
def test_all_that_is_named_is_simulated_and_nothing_of_it_is_faster(
    kernel: str, method: str, options: dict[str, Any]
) -> None:
    report = ran(method, options, kernel=kernel)
    search = found(report)
    named = {**search.settings.together, **search.settings.alone}
    assert not set(named) & set(options)
    tried = [each.options for each in search.tried]
    wanted: list[dict[str, Any]] = [
        search.first.options | dict(zip(search.settings.together, each, strict=True))
        for each in product(*search.settings.together.values())
    ]
    wanted += [search.best.options | {name: value} for name, values in named.items() for value in values]
    assert all(each in tried for each in wanted)
    assert all(each.items() >= options.items() for each in tried)
    # whoever simulates these settings one by one finds the same cycles
    for each in (search.first, search.best, search.tried[3], search.tried[-1]):
        if each.cycles is not None:
            assert ran(method, dict(each.options), best=False, kernel=kernel).figures.span == each.cycles
    assert report.figures.span == search.best.cycles == min(each.cycles for each in search.tried if each.cycles)


@pytest.mark.slow
def test_the_first_setting_is_what_no_search_gives_and_the_rule_answers_for_its_parameters_alone() -> None:
    search = found(ran("hbp", {}))
    plain = ran("hbp", {}, best=False).figures
    assert plain.options.items() >= dict(search.first.options).items()
    assert (search.first.cycles, search.by_rule) == (plain.span, ("m", "n"))
    sizes = product(search.settings.together["m"], search.settings.together["n"])
    alone = min(ran("hbp", {"m": m, "n": n}, best=False).figures.span for m, n in sizes)
    assert search.rule_best.cycles == min(alone, plain.span)


@pytest.mark.long
def test_the_setting_that_a_study_once_missed_is_left_behind() -> None:
    """52,383 cycles were the least that anybody had found on this matrix; batches of 10 blocks were never varied."""
    matrix = pruned(weight_matrix("resemblyzer:l1")[0], 0.8)
    held = HELD | {"n": 64, "hash": "linear"}
    report = lstmsim.run_sparse(matrix, "spmv", method="hbp", chip="edge", options=held, baselines=False, best=True)
    assert found(report).first.cycles == 52_383
    assert (report.figures.span, report.figures.options["batch"]) == (24_926, 4)


@pytest.mark.parametrize(("method", "options"), [("dense", {}), ("hbp", HELD | {"n": 64, "hash": "sort", "batch": 10})])
def test_a_search_without_a_choice_is_refused(method: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="has no parameter left whose values could be searched"):
        ran(method, options)


@pytest.mark.slow
def test_what_stands_beside_a_search_has_its_setting() -> None:
    report = lstmsim.run_sparse(MATRIX, "spmm", columns=4, chip="edge", best=True, ablate=True, baselines=False)
    chosen = found(report).chosen
    assert chosen
    assert report.ablations[0].figures is not None
    # the first row has the mechanisms on, and what was chosen
    assert report.ablations[0].figures.options.items() >= chosen.items()
    assert report.figures.options.items() >= dict(found(report).best.options).items()
