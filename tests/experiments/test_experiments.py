"""The experiments in a small setting: their claims hold, and what they print is what stands beside them."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.experiments.ranges import assert_no_range_of_one_value

FOLDER = Path(__file__).parents[2] / "experiments"
pytestmark = [
    pytest.mark.needs_core,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the experiments are not part of the installed package"),
]


def load(name: str) -> tuple[Any, str]:
    """The script of an experiment as a module, and its expected summary."""
    from experiments import run

    return run.load(name), (FOLDER / name / "expected.md").read_text(encoding="utf-8")


def numbers(text: str) -> set[str]:
    """Table rows of a summary that hold figures."""
    return {line for line in text.splitlines() if line.startswith("| ") and any(each.isdigit() for each in line)}


def test_ep_vp_sweep() -> None:
    script, expected = load("ep_vp_sweep")
    small = script.results(small=True)
    assert numbers(script.summary(small)) <= numbers(expected)
    for (npe, _), points in small.items():
        low, high = script.STATED[npe]
        assert low <= script.best(points).ep <= high
        # below the optimum VP is capped and halving EP costs up to twice the cycles; beyond it they rise slowly
        cycles = [each.cycles for each in points]
        top = cycles.index(min(cycles))
        assert cycles[0] > 5 * cycles[top]
        assert cycles[top] < cycles[top + 1] < 1.1 * cycles[top]
    ordered = script.orderings()
    assert ordered[512][0].cycles < ordered[512][1].cycles
    assert ordered[1024][1].cycles < ordered[1024][0].cycles


@pytest.mark.slow
def test_every_best_ep_is_in_the_stated_range_or_within_a_thousandth_of_it() -> None:
    script, expected = load("ep_vp_sweep")
    for (npe, hidden), points in script.results().items():
        low, high = script.STATED[npe]
        inside = min(each.cycles for each in points if low <= each.ep <= high)
        assert inside <= 1.001 * script.best(points).cycles, (npe, hidden)
    assert expected.startswith(script.summary(script.results()))


def with_latency(**latencies: int) -> Callable[[Any], Any]:
    """What changes latencies of every core of a chip."""

    def vary(chip: Any) -> Any:
        cores = (replace(each, latency=replace(each.latency, **latencies)) for each in chip.cores)
        return replace(chip, cores=tuple(cores))

    return vary


def test_a_headline_flips_at_the_value_that_stands_below_it() -> None:
    script, expected = load("ep_vp_sweep")
    text = " ".join(expected.split())
    assert "ahead at hidden 1024 ((16, 4096)) is (32, 2048) where column-npu latency.activation is 5 cycles" in text
    flips = [script.ahead(script.orderings(with_latency(activation=cycles))[1024]) for cycles in (5, 6)]
    assert flips == ["(32, 2048)", "(16, 4096)"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["ep_vp_sweep", "threads_and_cores", "concurrent_lstms", "deepbench"])
def test_the_stability_of_headlines_is_what_stands_below_them(name: str) -> None:
    script, expected = load(name)
    assert script.text() == expected


@pytest.mark.long
@pytest.mark.parametrize("name", ["design_space", "preemption", "serving", "sparse_lstm", "splitting"])
def test_the_stability_of_longer_experiments_stands_below_them(name: str) -> None:
    script, expected = load(name)
    assert expected.endswith(script.holds())


def test_every_experiment_says_whether_its_headline_holds() -> None:
    for path in FOLDER.glob("*/expected.md"):
        text = path.read_text(encoding="utf-8")
        assert ("STABILITY: " in text) != ("no assumed latency" in text or "an assumed latency" in text), path


@pytest.mark.slow
def test_concurrent_lstms() -> None:
    script, expected = load("concurrent_lstms")
    measured = script.results()
    assert script.summary(measured) + script.holds() == expected
    alone, together = (measured[setting] for setting in script.SETTINGS[:2])
    for job, steps in enumerate(script.STEPS):
        assert len(script.gaps(alone.timeline, job)) == steps - 1
        assert script.filled(alone.timeline, job) == [set()] * (steps - 1)
        assert all(script.filled(together.timeline, job))
    assert together.report.makespan_cycles < alone.report.makespan_cycles
    assert together.report.utilization > 2 * alone.report.utilization


def test_threads_and_cores() -> None:
    script, expected = load("threads_and_cores")
    small = script.results(small=True)
    assert numbers(script.summary(small)) <= numbers(expected)
    for row in small.values():
        assert script.speedup(row, "1 core, 2 threads") > 1.5
        assert script.speedup(row, "4 cores, 2 threads") > script.speedup(row, "1 core, 2 threads")


@pytest.mark.slow
def test_mixes_lie_on_both_sides_of_each_published_figure() -> None:
    script, expected = load("threads_and_cores")
    measured = script.results()
    assert expected.startswith(script.summary(measured))
    for machine in script.PUBLISHED:
        below, above = script.bracket(measured, machine)
        assert below
        assert above


@pytest.mark.slow
def test_precision() -> None:
    script, expected = load("precision")
    coarse, fine = (script.heard(script.with_bits(script.Precision(), bits)) for bits in (4, 8))
    for bits, heard in ((4, coarse), (8, fine)):
        (printed,) = (line for line in numbers(expected) if line.startswith(f"| {bits} bits, per row "))
        assert f"| {heard.sqnr_db:.1f} | {heard.changed} | {heard.largest:.3f} |" in printed
    assert fine.sqnr_db > coarse.sqnr_db + 20
    assert coarse.changed > fine.changed == 0
    beside = script.heard(script.Precision(formats="shared", shift="common"), together=True)
    (printed,) = (line for line in numbers(expected) if line.startswith("| the last, with Resemblyzer on the chip |"))
    assert f"| {beside.sqnr_db:.1f} | {beside.changed} | {beside.largest:.3f} |" in printed


@pytest.mark.slow
def test_delta_columns() -> None:
    script, expected = load("delta_columns")
    few = script.results((1,), (0.0, 0.02))
    rows = numbers(script.summary(few).partition("## The front")[0])
    assert len(rows) == 2
    assert rows <= numbers(expected)
    assert "\n".join(script.ANSWER) in expected
    by_ep = expected.partition("## The front")[0].split("## EP ")[1:]
    of_dense = {part.split(",")[0]: part.split("| 0.02 | ")[1].split(" | ")[1:4] for part in by_ep}
    assert [of_dense[ep][0] for ep in ("1", "2", "4")] == ["0.478", "0.598", "0.789"]
    assert all(0.99 < float(of_dense[ep][0]) < 1.01 for ep in ("16", "32"))
    assert all(" 0 |" in part.split("| 0.02 | ")[1].splitlines()[0] for part in by_ep)
    last = expected.partition("## Larger")[2].partition("## ")[0].splitlines()
    larger = {cells[1]: cells[2:] for line in last if len(cells := line.strip("| ").split(" | ")) == 6}
    assert float(larger["4"][2]) > 0.99
    assert all(float(larger[ep][2]) > 1 for ep in ("8", "16"))
    assert larger["2"][0] == "22,323"


def test_edgedrnn() -> None:
    script, expected = load("edgedrnn")
    assert numbers(script.text(small=True)) <= numbers(expected)
    assert "\n".join(script.ANSWER) in expected
    assert "at a density of 9.9 % (ideal memory), 8.7 % (latency 40, one command)" in expected
    last = [line.strip("| ").split(" | ") for line in expected.partition("on 32 multipliers each")[2].splitlines()]
    rows = {cells[0]: [float(each.replace(",", "")) for each in cells[1:3]] for cells in last[6:12]}
    assert list(rows) == ["1", "0.5", "0.2", "0.1", "0.05", "0"]
    ratios = [own / edge for edge, own in rows.values()]
    assert all(1 < each < 1.08 for each in ratios[:4])
    assert all(each < 1 for each in ratios[4:])


@pytest.mark.long
def test_words_and_voices_at_a_precision() -> None:
    """`tests/studies/accuracy/test_g2p.py` holds in the usual run how words are counted."""
    script, expected = load("precision")
    small = script.results(small=True)
    assert numbers(script.summary(small)) <= numbers(expected)
    ((fine,),) = small.values()
    assert fine.unchanged > 0.99 * len(script.spelled().phonemes)
    assert fine.voices.kept < 0.6, "the vectors of 8 bits are other ones, whatever their cosines among themselves"


def test_the_answer_on_precision_is_what_its_tables_say() -> None:
    script, expected = load("precision")
    assert "\n".join(script.ANSWER) in expected
    rows = {cells[0]: cells[1:] for line in numbers(expected) for cells in [line.strip("| ").split(" | ")]}

    def words(setting: str) -> int:
        return int(rows[setting][3].split()[0])

    for bits in (7, 8, 9, 10):
        # One frame is nearer to the border than any error.
        assert rows[f"{bits} bits, per row"][1] in ("0", "1")
        assert words(f"{bits} bits, per row") >= 0.985 * 365
        assert words(f"{bits} bits, per tensor") <= words(f"{bits} bits, per row")
        assert float(rows[f"{bits} bits, per tensor"][0]) < float(rows[f"{bits - 1} bits, per row"][0]) + 1
    assert float(rows["linear, 64 entries"][0]) >= float(rows["table, 1024 entries"][0]) - 0.5
    assert float(rows["12-bit state"][0]) < float(rows["7 bits, per row"][0]) < float(rows["16-bit state"][0])
    shared = ["formats of each pass, a shift per sum"]
    shared += ["shared formats, a shift per row", "shared formats and shifts", "the last, with Resemblyzer on the chip"]
    for setting in shared:
        assert float(rows[setting][0]) >= float(rows["formats of each pass, a shift per row"][0]) - 0.2
        assert rows[setting][1] == "0"
        assert words(setting) >= words("formats of each pass, a shift per row") - 1
    wide = [cells for setting, cells in rows.items() if setting.startswith(("16 and 16", "the last, with Silero"))]
    assert len(wide) == 4
    assert min(float(cells[2]) for cells in wide) > 0.95
    assert float(rows["16-bit weights, 16-bit vectors"][2]) > 0.95 > float(rows["16-bit weights, 12-bit vectors"][2])


def test_design_space() -> None:
    script, expected = load("design_space")
    small = script.results(small=True)
    assert len(small) == 2 * 2 * 9 * 4
    assert numbers(script.summary(small)) <= numbers(expected)
    chosen = script.best(small)
    for (npe, hidden, threads), point in chosen.items():
        # more threads never lower the best utilization, and no EP beats the chosen one
        assert threads == 1 or point.utilization >= chosen[npe, hidden, threads - 1].utilization
        rivals = [each for each in small if (each.npe, each.hidden, each.threads) == (npe, hidden, threads)]
        assert point.cycles == min(each.cycles for each in rivals)


@pytest.mark.slow
def test_splitting() -> None:
    script, expected = load("splitting")
    small = script.results(small=True)
    own = {line for line in numbers(script.summary(small)) if "geometric mean" not in line and "request" not in line}
    assert len(own) == 4
    assert own <= numbers(expected)
    # the published figure lies between what the tasks gain
    gains = [float(line.split("|")[4]) for line in expected.splitlines() if line.startswith("| lstm-") and "." in line]
    assert len(gains) == 5
    assert min(gains) < script.PUBLISHED < max(gains)


def test_a_core_that_splits_and_joins_again_is_better_for_all_than_one_that_does_not() -> None:
    script, expected = load("splitting")
    measured = script.Results({}, {}, {}, {}, script.mixed())
    assert "\n".join(script.mix_table(measured)) in expected
    times = {
        name: [sum(job.latency for job in report.jobs if job.name.startswith(kind)) for kind in ("large", "small")]
        for name, report in measured.mix.items()
    }
    both = times["joined for the large, split for the small"]
    # as good as one large core or as always joined for the large requests, and twice as good for the small ones
    for name in ("one big core", "always joined"):
        assert both[0] <= 1.01 * times[name][0]
        assert both[1] < 0.6 * times[name][1]
    # against cores that stay apart the large requests win, and the small ones wait until the cores are free
    assert both[0] < times["four cores"][0] / 3
    assert both[1] > times["four cores"][1]
    # no policy is still busy with a round when the next one comes
    for report in measured.mix.values():
        assert max(job.start - job.arrival for job in report.jobs if job.name.startswith("large")) == 0


@pytest.mark.slow
def test_deciding_late_over_how_many_cores_to_run_wins_at_medium_loads() -> None:
    from experiments.splitting import loads

    script, expected = load("splitting")
    late = tuple(loads.POLICIES)[-1:]
    (mean,) = loads.at_load(script.joined_chip(), 0.2, late).values()
    row = next(line for line in expected.splitlines() if line.startswith("| 0.2 |"))
    assert mean.half_width > 0
    assert row.split("|")[-2].strip() == loads.shown(mean)
    means = [float(cell.split("+-")[0].replace(",", "")) for cell in row.strip("|").split("|")[1:]]
    assert means[-1] < 0.9 * min(means[:-1])


@pytest.mark.long
def test_the_table_of_loads_stands_beside_the_script_with_its_half_widths() -> None:
    from experiments.splitting import loads

    script, expected = load("splitting")
    table = loads.load_table({each: loads.at_load(script.joined_chip(), each) for each in loads.LOADS})
    assert "\n".join(table) in expected


def test_stacks_run_best_as_a_pipeline_where_layers_are_small() -> None:
    script, expected = load("splitting")
    small, large = (script.stacked(script.stack(hidden)) for hidden in script.STACKS.values())
    assert (
        "\n".join(script.grid("one request, cycles", dict(zip(script.STACKS, (small, large), strict=True)))) in expected
    )
    assert min(small, key=lambda name: small[name]) == "4 cores, a layer on each"
    assert min(large, key=lambda name: large[name]) == "4 cores, a quarter of the rows on each"


def test_preemption() -> None:
    script, expected = load("preemption")
    small = script.results(small=True)
    assert_no_range_of_one_value(script.summary(small))
    sets = script.sets_table(small)
    assert len(sets) == 2 + script.SHOWN
    assert "\n".join(sets) in expected
    for (mix, pace, _), outcomes in small.items():
        first, stopping = (small[mix, pace, policy] for policy in (script.FIRST, script.STOPPING))
        assert all(each.stops == 0 for each in first)
        assert sum(each.stops for each in stopping) > 0
        # one task at a time: none is faster than alone, and the core is never idle while a task waits
        for one, two in zip(first, outcomes, strict=True):
            assert min(two.ntt) >= 1
            assert one.makespan <= two.makespan <= 1.01 * one.makespan
            assert len(two.ntt) == script.TASKS == len(two.priorities)


def test_gains_of_sets_are_those_of_their_definitions() -> None:
    script, _ = load("preemption")
    outcome = script.Outcome((1.0, 2.0, 4.0), (3, 1, 3), 4.0, 100, 1)
    assert (outcome.antt, outcome.stp, outcome.misses(2), outcome.urgent) == (7 / 3, 1.75, 1 / 3, 2.5)
    assert script.Outcome((1.0,), (2,), 1.0, 9, 0).urgent is None
    ratio = script.times([2.0, 8.0], [1.0, 2.0])
    assert ratio.value == pytest.approx(8**0.5)
    assert ratio.low * ratio.high == pytest.approx(8)
    fewer = script.fewer([0.5, 0.3, 0.4], [0.2, 0.1, 0.1])
    assert fewer.value == pytest.approx(3)
    assert fewer.value - fewer.low == pytest.approx(fewer.high - fewer.value)
    # a paired ratio that is the same in every set is certain
    certain = script.fewer([0.2, 0.4], [0.1, 0.2])
    assert certain.low == pytest.approx(certain.high)
    assert script.fewer([0.5, 0.3], [0.0, 0.0]) is None
    # Student's t with one degree of freedom is 12.706
    assert script.mean([1.0, 3.0]).high == pytest.approx(2 + 12.706, abs=1e-3)


def test_the_answer_on_preemption_is_what_its_tables_say() -> None:
    script, expected = load("preemption")
    rows = [line.strip("| ").split(" | ") for line in numbers(expected)]
    gains = {(cells[0], cells[1]): [each.split()[0] for each in cells[3::2]] for cells in rows if len(cells) == 8}
    assert len(gains) == 2 * len(script.LOADS) * len(script.POLICIES)
    head = " ".join(expected.split("## ")[0].split())
    stopping = [[float(each) for each in values] for (_, policy), values in gains.items() if policy == script.STOPPING]
    for values, text in zip(zip(*stopping, strict=True), ("better, STP", "times, ", "times fewer"), strict=True):
        assert f"{min(values):.2f} to {max(values):.2f} times" in head, text
    assert "All three are better at every setting" in head
    assert all(min(values) > 1 for values in stopping)
    # what the long ones pay
    longest = {
        (cells[0], cells[1]): float(cells[2].split()[0]) for cells in rows if len(cells) == 7 and "," in cells[0]
    }
    for mix in {mix for mix, _ in gains}:
        assert longest[mix, script.STOPPING] > longest[mix, script.FIRST]


@pytest.mark.parametrize("name", sorted(each.parent.name for each in FOLDER.glob("*/run.py")))
def test_the_file_of_an_experiment_runs_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python experiments/NAME/run.py` does from any folder; what runs is a stand-in, for some take minutes."""
    from experiments import run

    asked: list[tuple[str, bool]] = []

    def stand_in(chosen: str) -> Any:
        return SimpleNamespace(text=lambda small: asked.append((chosen, small)) or "the summary")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "load", stand_in)
    monkeypatch.setattr(sys, "argv", [str(FOLDER / name / "run.py"), "--small"])
    runpy.run_path(str(FOLDER / name / "run.py"), run_name="__main__")
    assert asked == [(name, True)]


@pytest.mark.slow
def test_a_file_that_is_started_prints_its_summary(tmp_path: Path) -> None:
    script = FOLDER / "concurrent_lstms" / "run.py"
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == (script.parent / "expected.md").read_text(encoding="utf-8") + "\n"


def test_stac_ml() -> None:
    """What is said of the column-wise NPUs and null models is what they come to, and stands in the summary."""
    script, expected = load("stac_ml")
    found = script.errors(script.MACHINES[:2])
    for (stack, title), factor in found.items():
        assert f"| {stack} | {title} | {factor:.2f} |" in expected
    # 2 threads make 32 instances wait for 16 others
    wait = script.p99_us(script.MACHINES[0], "C", 32) / script.p99_us(script.MACHINES[0], "C", 2)
    assert wait == pytest.approx(16, rel=0.05)
    assert script.off("Vollo", "ABC", lambda _, number: float(number)) > script.off("Vollo", "ABC", lambda *_: 1.0)
    assert set(script.published()["Vollo", "A"]) == {1, 2, 4, 8, 24}
