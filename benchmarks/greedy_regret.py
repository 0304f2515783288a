"""How often does the greedy search find the optimum? Regret on random pairs of array and model.

Run as `python benchmarks/greedy_regret.py [--pairs 500] [--seed 1]`. Each pair: NPE 1024 to 131072 (half of them a
power of two), an LSTM or GRU of 64 to 2048 units over 32 to 2048 inputs (sizes drawn on a logarithmic scale), 5 to 25
steps, a job on each of 1 or 2 threads, all else at its default. The optimum is the best of all powers of two for EP
with all useful VP. Prints the share within 1 %, every other pair with its regret, and what other rules would give.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log
from random import Random

from lstmsim import ColumnCore, ColumnNpu, Job, Layer, Model, cell
from lstmsim.studies.search.array import Scores, Searched
from lstmsim.studies.search.result import Point
from lstmsim.studies.search.strategies import TOLERANCE, walk
from tests.studies.search.useful import best_of_all

#: Within so many percent of the optimum counts as found.
FOUND_PERCENT = 1.0
TOLERANCES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
AHEAD = (1, 2, 3, 4)


@dataclass(frozen=True)
class Regret:
    """The result of one pair.

    pair: the array and the jobs, in words.
    optimum: the best (EP, VP).
    rules: for each rule, by how many percent it misses the optimum, and how many EPs it simulated.
    """

    pair: str
    optimum: Point
    rules: dict[str, tuple[float, int]]

    @property
    def percent(self) -> float:
        """The regret of the rule in use."""
        return self.rules[tolerance_name(TOLERANCE)][0]


def log_integer(random: Random, low: int, high: int) -> int:
    """A whole number from `low` to `high`, evenly on a logarithmic scale."""
    return min(high, int(exp(random.uniform(log(low), log(high + 1)))))


def random_pair(random: Random) -> Searched:
    """An array and jobs for it."""
    npe = 2 ** random.randint(10, 17) if random.random() < 0.5 else log_integer(random, 1024, 131072)
    layer = Layer(cell(random.choice(("lstm", "gru"))), log_integer(random, 64, 2048), log_integer(random, 32, 2048))
    model = Model(f"{layer.cell.name}-{layer.hidden} over {layer.input}", (layer,))
    steps, threads = random.randint(5, 25), random.randint(1, 2)
    jobs = tuple(Job(f"job-{number}", model, steps) for number in range(threads))
    chip = ColumnNpu("array", 260, (ColumnCore(npe=npe, ep=1, vp=4, threads=threads),))
    return Searched(chip, jobs, (0,), npe)


def tolerance_name(tolerance: float) -> str:
    """How a rule is called in the table."""
    return f"go on up to {100 * tolerance:.0f} % above the best"


def look_ahead(points: list[Point], doublings: int) -> tuple[int, int]:
    """Give cycles and EPs simulated of the other kind of rule: give up after so many doublings without a better EP."""
    best, at = points[0], 0
    for number, point in enumerate(points):
        if point.cycles < best.cycles:
            best, at = point, number
        if number - at == doublings:
            return best.cycles, number + 1
    return best.cycles, len(points)


def regret_of(searched: Searched) -> Regret:
    """All rules on one pair; every (EP, VP) is simulated once."""
    limits, npe = searched.limits, searched.npe
    score = Scores(searched, lambda: None)
    optimum = best_of_all(limits, npe, score)

    def percent(cycles: int) -> float:
        return 100 * (cycles / optimum.cycles - 1)

    rules = {}
    for tolerance in sorted({*TOLERANCES, TOLERANCE}):
        reached = walk(limits, npe, score, tolerance=tolerance)
        rules[tolerance_name(tolerance)] = (percent(reached.chosen.cycles), len(reached.path))
    every = list(walk(limits, npe, score, tolerance=inf).path)
    for doublings in AHEAD:
        cycles, simulated = look_ahead(every, doublings)
        rules[f"give up after {doublings} doublings without a better one"] = (percent(cycles), simulated)
    job = searched.jobs[0]
    pair = f"NPE {npe}, {job.model.name}, {job.steps} steps, {len(searched.jobs)} threads"
    return Regret(pair, optimum, rules)


def regrets(pairs: int, seed: int, show: Callable[[int], None] = lambda done: None) -> list[Regret]:
    """The regrets of so many random pairs."""
    random, regrets_of_pairs = Random(seed), []
    for number in range(pairs):
        regrets_of_pairs.append(regret_of(random_pair(random)))
        show(number + 1)
    return regrets_of_pairs


def share_found(pairs: list[Regret]) -> float:
    """Give the share of the pairs, 0 to 1, whose greedy choice is within 1 % of the optimum."""
    return sum(each.percent <= FOUND_PERCENT for each in pairs) / len(pairs)


def summary(pairs: list[Regret]) -> str:
    """The share, the rest, and the table of rules, as Markdown."""
    exact = 100 * sum(each.percent == 0 for each in pairs) / len(pairs)
    largest = max(each.percent for each in pairs)
    lines = [
        f"Greedy search on {len(pairs)} pairs: {100 * share_found(pairs):.1f} % within {FOUND_PERCENT:.0f} % of the "
        f"optimum, {exact:.1f} % exactly; largest regret {largest:.2f} %.",
        "",
    ]
    for each in sorted(pairs, key=lambda each: -each.percent):
        if each.percent > FOUND_PERCENT:
            best = f"EP {each.optimum.ep}, VP {each.optimum.vp}, {each.optimum.cycles:,} cycles"
            lines.append(f"* {each.pair}: regret {each.percent:.2f} % (optimum: {best})")
    lines += ["| rule | within 1 %, % | exact, % | largest regret, % | EPs simulated |", "| --- " + "| ---: " * 4 + "|"]
    for rule in pairs[0].rules:
        own = [each.rules[rule] for each in pairs]
        within = sum(percent <= FOUND_PERCENT for percent, _ in own) / len(own)
        exactly = sum(percent == 0 for percent, _ in own) / len(own)
        largest, simulated = max(percent for percent, _ in own), sum(number for _, number in own) / len(own)
        lines.append(f"| {rule} | {100 * within:.1f} | {100 * exactly:.1f} | {largest:.2f} | {simulated:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    watched = sys.stderr.isatty()

    def show(done: int) -> None:
        if watched:
            sys.stderr.write(f"\r{done} of {arguments.pairs}" + ("\n" if done == arguments.pairs else ""))

    print(summary(regrets(arguments.pairs, arguments.seed, show)))


if __name__ == "__main__":
    from measures import measured_package

    measured_package()
    main()
