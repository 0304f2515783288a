"""Whether the best point of a sweep is the best whatever the assumed latencies and bandwidths of its chips are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lstmsim.base.errors import InputError, LstmsimError
from lstmsim.model.scenario import Chip, Scenario
from lstmsim.report.stability import Conclusions, Stability
from lstmsim.studies.shared.stability import Vary, assumptions, stability
from lstmsim.studies.shared.stamp import keys_at
from lstmsim.studies.sweep.best import best_of, set_to
from lstmsim.studies.sweep.columns import NUMBERS, numbers_of
from lstmsim.studies.sweep.evaluate import simulated
from lstmsim.studies.sweep.resolve import Resolver, Setup
from lstmsim.studies.sweep.spec import Objective
from lstmsim.studies.sweep.store import Store
from lstmsim.studies.sweep.table import Row, grouped, objectives_of, records, varied, work_of

#: Most simulations of the ends; of more points the best of each kind of work are asked again.
MOST_SIMULATIONS = 20_000


def stable(setup: Setup, store: Store, share: float) -> Stability | None:
    """Ask for the best point of each kind of work again; None where nothing was simulated."""
    objectives, work = objectives_of(store), work_of(store)
    rows = [row for row in records(store) if row["status"] == "done"]
    groups = list(grouped(rows, work).values())
    if not rows:
        return None
    resolver, free = Resolver(setup), [axis.name for axis in varied(store) if axis.name not in work]
    scenarios = {row["point"]: resolver.scenario(setup.sweep.values(row["point"])) for row in rows}
    chips = list(dict.fromkeys(each.chip for each in scenarios.values()))
    left_out = keys_at(path for paths in setup.sweep.paths.values() for path in paths)
    asks = 2 * len(assumptions(chips, left_out)) + 2
    most = max(2, MOST_SIMULATIONS // (asks * len(groups)))
    kept = [_first(members, objectives, most) for members in groups]

    def ask(vary: Vary) -> Conclusions:
        answers = {}
        for members in kept:
            again = [_again(row, scenarios[row["point"]], vary) for row in members]
            best = best_of(again, objectives)
            of = f" for {set_to(members[0], work)}" if work else ""
            point = best or members[0]
            answers[f"the best point{of}"] = f"{set_to(point, free)} (point {point['point']})"
        return answers

    found = stability(chips, ask, share, left_out)
    asked = sum(map(len, kept))
    if asked == len(rows):
        return found
    text = f"only the {asked:,} best of {len(rows):,} points were asked again; another one could come before them"
    return replace(found, left_out=text)


def _first(rows: Sequence[Row], objectives: Sequence[Objective], most: int) -> list[Row]:
    """The best of some points by the first objective, in their order."""
    if len(rows) <= most:
        return list(rows)
    known = {row["point"] for row in sorted(rows, key=lambda row: objectives[0].cost(row[objectives[0].column]))[:most]}
    return [row for row in rows if row["point"] in known]


def _again(row: Row, scenario: Scenario, vary: Vary) -> dict[str, Any]:
    """The row of a point with its chip changed; one that the chip then refuses has no numbers."""
    chip: Chip = vary(scenario.chip)
    if chip == scenario.chip:
        return dict(row)
    try:
        numbers = numbers_of(replace(scenario, chip=chip), simulated(chip, scenario.jobs))
    except InputError:
        return {**row, **dict.fromkeys(NUMBERS)}
    except LstmsimError as error:
        raise InputError(f"point {row['point']}: {error}") from None
    return {**row, **dict(zip(NUMBERS, numbers, strict=True))}
