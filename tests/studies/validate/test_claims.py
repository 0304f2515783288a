"""Every published claim has its row, and a changed claim is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim.files.published import Claim, claims, deepbench
from lstmsim.studies.validate.column_claims import Arrays, Speeds
from lstmsim.studies.validate.groups import DESIGN, Bench
from lstmsim.studies.validate.rows import ClaimRow
from lstmsim.studies.validate.run import KEYS, NOT_SIMULATED, TOPICS, claim_rows
from tests.studies.validate.whole import whole

BENCH = Bench()
ARRAYS = Arrays(BENCH)
SPEEDS = Speeds(BENCH, deepbench())
CLAIMS = {claim.key: claim for claim in claims()}


def row(key: str) -> ClaimRow:
    return next(each for each in whole().claims if each.key == key)


def edited(key: str, value: str) -> Claim:
    return replace(CLAIMS[key], value=value)


@pytest.mark.slow
def test_every_claim_appears_exactly_once_and_is_complete() -> None:
    assert sorted(each.key for each in whole().claims) == sorted(CLAIMS)
    assert set(CLAIMS) == KEYS
    for each in whole().claims:
        assert each.source == CLAIMS[each.key].source
        assert CLAIMS[each.key].value in each.claim
        assert each.condition
        assert bool(each.simulated) is (each.verdict != "not simulated")
        assert (each.verdict == "not simulated") is (each.key in NOT_SIMULATED)
    topics = [TOPICS.index(each.topic) for each in whole().claims]
    assert topics == sorted(topics)


@pytest.mark.slow
def test_what_holds_and_what_is_not_judged() -> None:
    verdicts = {each.key: each.verdict for each in whole().claims}
    patent = {key for key in CLAIMS if key.startswith("patent-")}
    assert len(patent) == 5
    assert {key for key, verdict in verdicts.items() if verdict == "holds"} == patent | {
        "renown-throughput",
        "zhao-brainwave",
        "astitch-figure-7",
    }
    assert {key for key, verdict in verdicts.items() if verdict == "not judged"} == {
        "que-fpt2020-two-threads",
        "remarn-quad-core",
        "que-fccm2020-performance",
        "que-fccm2020-utilization",
        "renown-performance",
        "que-fpt2020-v100",
        "remarn-v100",
        "gale-peak-share",
        "gale-row-swizzle",
        "astitch-kernels",
        "astitch-mechanisms",
        "astitch-writes",
        "astitch-xla",
    }


@pytest.mark.needs_core
def test_optima_and_orderings_are_those_of_the_simulation() -> None:
    assert (
        "16 at 256, 8 at 512, 32 at 1024 (the best in the range takes 0.01 % more)" in row("patent-ep-16384").simulated
    )
    assert row("patent-ep-65536").simulated == "best EP: 64 at 256, 32 at 512, 16 at 1024"
    assert row("patent-order-512").simulated == "(32, 2048): 1,773 cycles; (16, 4096): 2,164 cycles"
    assert row("patent-order-1024").simulated == "(16, 4096): 3,268 cycles; (32, 2048): 3,405 cycles"
    assert row("patent-cat").simulated.endswith("the least that has them all is CAT-4")


@pytest.mark.parametrize("value", ["4-8", "64-128", "3-3"])
def test_another_range_of_the_best_ep_fails(value: str) -> None:
    finding = ARRAYS.best_ep(edited("patent-ep-65536", value), 65536)
    assert finding.verdict == "fails"
    assert "% more" in finding.simulated


@pytest.mark.parametrize(("hidden", "value"), [(512, "(16, 4096)"), (1024, "(32, 2048)"), (512, "(8, 2048)")])
def test_another_order_fails(hidden: int, value: str) -> None:
    assert ARRAYS.ordering(edited(f"patent-order-{hidden}", value), hidden).verdict == "fails"


@pytest.mark.parametrize("value", ["16, 32", "8, 16, 32", "32, 64, 128", "16, 48, 64"])
def test_other_eps_of_the_tree_fail(value: str) -> None:
    assert ARRAYS.cat_suffices(edited("patent-cat", value)).verdict == "fails"


@pytest.mark.needs_core
def test_more_tops_and_another_mean_fail() -> None:
    assert SPEEDS.throughput(edited("renown-throughput", "34.0")).verdict == "fails"
    assert SPEEDS.plasticine_over_brainwave(edited("zhao-brainwave", "2.2")).verdict == "fails"


@pytest.mark.needs_core
def test_an_edited_latency_of_brainwave_does_not_move_its_simulation() -> None:
    faster = [replace(each, latency_ms=0.001) if each.design == DESIGN else each for each in deepbench()]
    finding = Speeds(BENCH, faster).plasticine_over_brainwave(CLAIMS["zhao-brainwave"])
    assert finding == SPEEDS.plasticine_over_brainwave(CLAIMS["zhao-brainwave"])


def test_unknown_and_lost_claims_fail() -> None:
    own = [claim for claim in claims() if claim.key != "ese-cpu" and claim.key in NOT_SIMULATED]
    strange = replace(own[0], key="mine")
    answers = {each.key: each for each in claim_rows([*own, strange], deepbench(), BENCH)}
    assert set(answers) == KEYS | {"mine"}
    assert answers["mine"].verdict == answers["ese-cpu"].verdict == answers["patent-cat"].verdict == "fails"
    assert "nothing here says how" in answers["mine"].condition
    assert "is missing" in answers["ese-cpu"].condition
    assert answers[own[0].key].verdict == "not simulated"


def test_reference_gives_the_same_order_of_pairs() -> None:
    claim = CLAIMS["patent-order-512"]
    assert Arrays(Bench("reference")).ordering(claim, 512) == ARRAYS.ordering(claim, 512)


def test_ratios_not_judged_say_where_the_published_figure_lies() -> None:
    for each in whole().claims:
        if each.verdict == "not judged" and each.topic != "kernels of a GPU":
            assert "; the published figure lies " in each.simulated
            assert "not public" in each.condition or "not in its abstract" in each.condition
    assert row("que-fpt2020-two-threads").simulated.endswith("inside")
    assert row("que-fpt2020-v100").simulated.endswith("outside")
    assert row("renown-performance").simulated.endswith("partly inside")
