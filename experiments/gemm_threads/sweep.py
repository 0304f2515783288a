"""Products of RNNs on 1 to 64 threads: the plan against pairs of M/N threads, and how it was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import lstmsim
from experiments.gemm_threads.study import SECTION_2, Case, Ran, all_ran, cut_text, figures, plan_of
from experiments.holds import held_paragraph
from lstmsim.machines.gemm import Cut
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary

__all__ = ["ABOUT", "SHAPES", "THREADS", "cycles", "grid", "holds", "ranks", "swept", "wins"]

CHIP = "epyc-7742"
THREADS = (1, 2, 4, 8, 16, 32, 64)
#: Products of LSTM layers, as M, N, K. A step is batch x 4H x (X + H), a projection (steps * batch) x 4H x X, a
#: gradient 4H x (X + H) x (steps * batch).
SHAPES: Mapping[str, tuple[int, int, int]] = {
    "step, H 128, X 384, batch 8": (8, 512, 512),
    "step, H 128, X 896": (1, 512, 1024),
    "step, H 512, X 512": (1, 2048, 1024),
    "step, H 128, X 3968, batch 8": (8, 512, 4096),
    "projection of 25, H 64, X 2048": (25, 256, 2048),
    "projection of 256, H 64, X 256": (256, 256, 256),
    "gradient of 4096, H 16, X 48": (64, 64, 4096),
    "gradient of 8192, H 16, X 16": (64, 32, 8192),
}
ABOUT = {
    "warm": (
        "The cut of the plan, then how many times as fast it is as M/N threads by BLIS's rule and as the best M/N "
        "pair. Much of what K threading wins against BLIS's pair a better pair wins too: the rule does not see that 8 "
        "columns take as long as nr = 16. Up to 16 threads there are columns enough, and K threading wins little or "
        "nothing, unless N is so small that M/N threads must cut below nr."
    ),
    "cold": (
        "The same with empty caches, planned for them. All cuts wait for the same lines of the memories. Cutting K "
        "wins where M/N cuts would make threads of several groups fetch the same lines: K long, M and N small. At "
        "8 x 512 x 512 and 64 threads nothing is faster than BLIS's pair, and the plan, which cuts K, loses a little."
    ),
    "cycles": (
        "Makespans at 64 threads. Section 2: the plan with the parameters of section 2 of docs/multicore.md; in "
        "brackets its rank, which is the number of candidates rejected before it."
    ),
    "ranks": (
        "64 x 64 x 4096 on 64 threads, warm, with the parameters of section 2: first in rank, first that is accepted. "
        "Here the limits keep the plan from cuts that are slower than the one that is taken, the fastest of these. "
        "With cold caches the limits cost something: the best cut of K above has p_k 32."
    ),
}
_SHOWN = 7


def swept(names: list[str]) -> dict[str, dict[int, Ran]]:
    """Every cut of some shapes on every number of threads."""
    cases = [(name, threads) for name in names for threads in THREADS]
    rows = all_ran([Case(CHIP, threads, *SHAPES[name]) for name, threads in cases])
    by_name: dict[str, dict[int, Ran]] = {name: {} for name in names}
    for (name, threads), row in zip(cases, rows, strict=True):
        by_name[name][threads] = row
    return by_name


def gains(row: Ran, caches: str) -> tuple[str, float, float]:
    """The cut of the plan, and how many times as fast it is as BLIS's pair and as the best pair."""
    plan = plan_of(row.case, caches)
    cut = plan.ranked[plan.chosen].cut
    own = row.cycles(cut, caches)
    return cut_text(cut), row.blis(caches) / own, row.best_pair(caches) / own


def grid(by_name: dict[str, dict[int, Ran]], caches: str) -> list[str]:
    """A row for each shape, a column for each number of threads."""
    lines = _head(f"{CHIP}, {caches}: M x N x K", *(f"{each} thread{'s' * (each > 1)}" for each in THREADS))
    for name, rows in by_name.items():
        cells = (
            f"{cut}: {usual:.2f}, {strong:.2f}"
            for cut, usual, strong in (gains(each, caches) for each in rows.values())
        )
        lines.append(_row(f"{_size(name)} ({name})", *cells))
    return lines


def cycles(by_name: dict[str, dict[int, Ran]]) -> list[str]:
    """Makespans of the usual and of the strong baseline, of plans, and of the best cut of K."""
    lines = _head(
        "M x N x K", "BLIS's pair", "best pair", "section 2", "plan", "best cut of K", "best pair : best of K"
    )
    for name, rows in by_name.items():
        for caches in ("warm", "cold"):
            row = rows[THREADS[-1]]
            pairs = sorted(row.pairs, key=lambda cut: row.cycles(cut, caches))
            part = row.best_part(caches)
            plans = [_planned(row, caches, settings) for settings in (SECTION_2, {})]
            best = (
                []
                if part is None
                else [_cell(row, part, caches), f"{row.best_pair(caches) / row.cycles(part, caches):.2f}"]
            )
            first = _cell(row, next(iter(row.pairs)), caches)
            lines.append(
                _row(f"{_size(name)}, {caches}", first, _cell(row, pairs[0], caches), *plans, *(best or ["-", "-"]))
            )
    return lines


def ranks(by_name: dict[str, dict[int, Ran]]) -> list[str]:
    """Candidates in their order, with what speaks against them."""
    name = list(SHAPES)[6]
    if name not in by_name:
        return []
    row = by_name[name][THREADS[-1]]
    plan = plan_of(row.case, "warm", **SECTION_2)
    lines = _head("rank", "cut", "fitness", "cycles", "verdict")
    for rank, each in enumerate(plan.ranked[:_SHOWN]):
        verdict = (
            "rejected: " + ", ".join(each.why_not) if each.why_not else "taken" if rank == plan.chosen else "accepted"
        )
        lines.append(
            _row(str(rank), cut_text(each.cut), f"{each.fitness:.6f}", f"{row.cycles(each.cut, 'warm'):,}", verdict)
        )
    return lines


def wins(by_name: dict[str, dict[int, Ran]]) -> str:
    """Where plans that cut K win and by how much, in sentences."""
    said = []
    for caches in ("warm", "cold"):
        rows = list(_cutting(by_name, caches))
        if rows:
            usual, strong = (max(rows, key=lambda each: each[place]) for place in (2, 3))
            lost = sum(each[3] < 1 for each in rows)
            slower = {0: "none of them is", 1: "one of them is"}.get(lost, f"{lost} of them are")
            said.append(
                f"With {caches} caches {len(rows)} of {sum(map(len, by_name.values()))} plans cut K. The best of them "
                f"is {usual[2]:.2f} times as fast as BLIS's pair ({usual[0]}, {usual[1]} threads), but against the "
                f"best pair no plan is more than {strong[3]:.2f} times as fast ({strong[0]}, {strong[1]} threads), and "
                f"{slower} slower than it."
            )
    return " ".join(said)


def holds(by_name: dict[str, dict[int, Ran]]) -> str:
    """Whether plans for the most threads that cut K are faster than the best pair, as a paragraph."""
    kept = {}
    for name, rows in by_name.items():
        row = rows[max(THREADS)]
        plan = plan_of(row.case, "warm")
        if (cut := plan.ranked[plan.chosen].cut) in row.parts:
            kept[name] = row.case, cut, min(row.pairs, key=lambda each: row.pairs[each]["warm"])

    def conclusions(vary: Vary) -> Conclusions:
        answers = {}
        for name, (case, *cuts) in kept.items():
            own, pair = (figures(case, each, "warm", vary=vary).makespan for each in cuts)
            answers[f"{cut_text(cuts[0])} of {_size(name)} beside the best pair"] = (
                "faster" if own < pair else "not faster"
            )
        return answers

    said = f"Asked of the plans for {max(THREADS)} threads and warm caches, with the cuts as they are."
    return held_paragraph([lstmsim.load_chip(CHIP)], conclusions, said=said)


def _cutting(by_name: dict[str, dict[int, Ran]], caches: str) -> Iterator[tuple[str, int, float, float]]:
    for name, rows in by_name.items():
        for threads, row in rows.items():
            cut, usual, strong = gains(row, caches)
            if not cut.startswith("MN"):
                yield _size(name), threads, usual, strong


def _planned(row: Ran, caches: str, settings: Mapping[str, object]) -> str:
    plan = plan_of(row.case, caches, **settings)
    rank = f", rank {plan.chosen}" if plan.chosen else ""
    cut = plan.ranked[plan.chosen].cut
    return f"{row.cycles(cut, caches):,} ({cut_text(cut)}{rank})"


def _cell(row: Ran, cut: Cut, caches: str) -> str:
    return f"{row.cycles(cut, caches):,} ({cut_text(cut)})"


def _size(name: str) -> str:
    return " x ".join(map(str, SHAPES[name]))


def _head(*cells: str) -> list[str]:
    return [_row(*cells), "| --- |" + " ---: |" * (len(cells) - 1)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
