"""Makes the clock model from the builds: least squares on the first designs of the draw, judged on those held out.

Run `python experiments/clock/model.py`; it writes lstmsim/machines/column/clock.json. Features are chosen on the
designs of the fit alone: of all sets of at most `MOST` features the one with the least error where each design is left
out in turn, or the smallest set that is within one standard error of it. The null model is one time of a cycle for all.
The model is used where, on the held-out designs, it tells more of them within 15 % than the null model, or as many and
is nearer in so many more of them that chance alone gives that less than once in twenty (sign test). Else the null model
is used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
#: Most features beside the constant, and the error within which a time counts as told.
MOST, CLOSE = 4, 0.15
#: Share of the pairs of held-out designs whose ratio of times is told within `ClockModel.pairs`.
PAIRS = 0.95
FILE = Path(__file__).resolve().parents[2] / "lstmsim" / "machines" / "column" / "clock.json"
_NUMBERS = ("ep", "vp", "multipliers", "threads", "convert", "hidden", "input", "layers", "jobs", "steps")
_WORDS = ("cell", "formats", "shift")


def solved(table: Numbers, times: Numbers) -> Numbers:
    """Coefficients of least squares."""
    found: Any = np.linalg.lstsq(table, times, rcond=None)[0]
    return np.asarray(found, np.float64)


@dataclass(frozen=True)
class Part:
    """Some designs that were built: what is known of them before, and the time of a cycle after placement.

    facts: numbers and words of each design.
    ns: time of a cycle of each.
    """

    facts: Sequence[Mapping[str, Any]]
    ns: Numbers

    @cached_property
    def columns(self) -> Mapping[str, Numbers]:
        """Every feature of each design."""
        from lstmsim.machines.column.clock import FEATURES

        return {name: np.array([float(own(each)) for each in self.facts]) for name, own in FEATURES.items()}

    def table(self, names: Sequence[str]) -> Numbers:
        """A column for each of these features."""
        return np.stack([self.columns[name] for name in names], axis=1)

    def left_out(self, names: Sequence[str]) -> Numbers:
        """The errors of times that are told without the design itself, as shares of them.

        In closed form: a residual of the fit to all, over 1 less the weight that the design has for itself.
        """
        table = self.table(names)
        weight = np.einsum("ij,ji->i", table, np.linalg.pinv(table))
        residual = table @ solved(table, self.ns) - self.ns
        # what no other design has cannot be told without it
        alone = 1 - weight < 1e-9
        shares: Numbers = np.where(alone, np.inf, residual / np.where(alone, 1, 1 - weight)) / self.ns
        return shares

    def errors(self, ns: Mapping[str, float]) -> Numbers:
        """The errors of the times that a model tells, as shares of those after placement."""
        shares: Numbers = self.table(list(ns)) @ np.array(list(ns.values())) / self.ns - 1
        return shares

    @staticmethod
    def pairs(errors: Numbers) -> float:
        """The factor within which the ratio of two designs' times is told, for `PAIRS` of all pairs."""
        return _apart(list(combinations(np.log1p(errors), 2)))

    def pairs_by_threads(self, errors: Numbers) -> dict[tuple[int, int], float]:
        """The same for pairs with two different numbers of threads, where one clock for all errs to one side."""
        logs, threads = np.log1p(errors), [int(each["threads"]) for each in self.facts]
        found: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for one, two in combinations(range(len(logs)), 2):
            key = min(threads[one], threads[two]), max(threads[one], threads[two])
            if key[0] != key[1]:
                found.setdefault(key, []).append((logs[one], logs[two]))
        return {key: _apart(own) for key, own in sorted(found.items())}


def _apart(pairs: Sequence[tuple[float, float]]) -> float:
    """The factor within which `PAIRS` of these pairs of logarithms are."""
    return float(np.exp(np.quantile([abs(one - two) for one, two in pairs], PAIRS, method="higher")))


class Builds:
    """The rows of the table, in the parts of the draw; table: another one than built.csv."""

    def __init__(self, table: Path | None = None) -> None:
        from experiments.clock.build import TABLE, rows
        from experiments.clock.draw import FIT, HELD_OUT

        self.rows = rows(table or TABLE)
        self.first = [row for row in self.rows if row["seed"] == "1"]
        self.fit = self._part(range(FIT))
        self.held_out = self._part(range(FIT, FIT + HELD_OUT))

    @property
    def enough(self) -> bool:
        """Whether all designs of the fit are there, half of those held out, and one with several seeds."""
        from experiments.clock.draw import FIT, HELD_OUT

        return len(self.fit.ns) == FIT and 2 * len(self.held_out.ns) >= HELD_OUT and len(self.rows) > len(self.first)

    def _part(self, numbers: range) -> Part:
        from experiments.clock.draw import drawn, scenario_of
        from lstmsim.machines.column.clock import facts_of
        from lstmsim.studies.shared.loading import load_scenario

        own, designs = [row for row in self.first if int(row["design"]) in numbers], drawn()
        facts = []
        for row in own:
            data = scenario_of(designs[int(row["design"])])
            facts.append(facts_of(load_scenario(data), data["chip"]["cores"][0]))
        return Part(facts, np.array([1000 / float(row["mhz"]) for row in own]))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The features that are chosen on the designs of the fit."""
        from lstmsim.machines.column.clock import FEATURES

        rest = [each for each in FEATURES if each != "constant"]
        sets = [("constant", *each) for size in range(MOST + 1) for each in combinations(rest, size)]
        squares = {each: self.fit.left_out(each) ** 2 for each in sets}
        best = min(sets, key=lambda each: float(squares[each].mean()))
        limit = squares[best].mean() + squares[best].std(ddof=1) / len(squares[best]) ** 0.5
        near = [each for each in sets if squares[each].mean() <= limit]
        least = min(map(len, near))
        return min((each for each in near if len(each) == least), key=lambda each: float(squares[each].mean()))

    def model(self, names: Sequence[str]) -> dict[str, float]:
        """Nanoseconds of each feature, by least squares on the designs of the fit."""
        found = solved(self.fit.table(names), self.fit.ns)
        return {name: round(float(each), 4) for name, each in zip(names, found, strict=True)}

    def nearer(self, model: Mapping[str, float]) -> int:
        """In how many of the held-out designs a model is nearer than the null model."""
        own, other = (np.abs(self.held_out.errors(each)) for each in (model, self.model(["constant"])))
        return int((own < other).sum())

    def by_chance(self, model: Mapping[str, float]) -> float:
        """How likely a model as good as the null model is nearer in so many of the held-out designs, or in so few."""
        count, tried = self.nearer(model), len(self.held_out.ns)
        most = max(count, tried - count)
        return min(1.0, 2 * sum(comb(tried, each) for each in range(most, tried + 1)) / 2**tried)

    @cached_property
    def data(self) -> dict[str, Any]:
        """The file of the model."""
        from experiments.clock.draw import SEED

        model, null = self.model(self.features), self.model(["constant"])
        own, other = judged(self.held_out.errors(model)), judged(self.held_out.errors(null))
        better = own["within"] > other["within"] or (own["within"] == other["within"] and self.by_chance(model) < 0.05)
        used = model if better else null
        errors, left_out = self.held_out.errors(used), self.fit.left_out(list(used))
        of_fit, by_threads = judged(left_out), self.fit.pairs_by_threads(left_out)
        first, facts = self.first[0], self.fit.facts
        return {
            "family": "ECP5, speed grade 6",
            "multiplier": "MULT18X18D",
            "tools": first["tools"],
            "verilog": first["verilog"],
            "source": f"experiments/clock/built.csv, designs drawn with seed {SEED}",
            "null": not better,
            "ns": used,
            "numbers": {
                name: [min(int(each[name]) for each in facts), max(int(each[name]) for each in facts)]
                for name in (*_NUMBERS, "accumulator_bits")
            },
            "words": {name: sorted({each[name] for each in facts}) for name in _WORDS},
            "lanes": {
                cell: max(each["tail_width"] for each in facts if each["cell"] == cell)
                for cell in sorted({each["cell"] for each in facts})
            },
            "fitted": len(facts),
            "held_out": len(self.held_out.ns),
            **judged(errors),
            **{f"null_{name}": each for name, each in other.items()},
            "fit_within": of_fit["within"],
            "fit_worst": of_fit["worst"],
            # the largest one, because few designs that are held out have few pairs
            "pairs": round(max(Part.pairs(errors), Part.pairs(left_out), *by_threads.values()), 4),
        }


def judged(errors: Numbers) -> dict[str, float]:
    """Share of designs whose time is told within `CLOSE`, the largest error, the median."""
    far = np.abs(errors)
    found = {"within": (far <= CLOSE).mean(), "worst": far.max(), "median": np.median(far)}
    return {name: round(float(each), 4) for name, each in found.items()}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    builds = Builds()
    if not builds.enough:
        raise SystemExit(f"{len(builds.first)} designs are built: too few for a model")
    FILE.write_text(json.dumps(builds.data, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {FILE.name}")
