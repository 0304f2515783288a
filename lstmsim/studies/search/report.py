"""The result of a search in the forms that people and scripts read: tables for the terminal, and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.search.result import CatChoice, Exhaustive, Found, Mix, ModelChoice, Point, SearchResult
from lstmsim.studies.search.strategies import TOLERANCE

__all__ = ["FORMS", "SCHEMA", "search_json", "search_text"]

SCHEMA = "lstmsim/search/1"

_WIDTH = 100


def search_text(result: SearchResult) -> str:
    """Write the path with the chosen pair marked, why it ended, and optimum and mix where they were asked for.

    There is no final newline.
    """
    return "\n\n".join([_title(result), _found_text(result.common), *([_mix_text(result)] if result.mix else [])])


def _title(result: SearchResult) -> str:
    several = len(result.cores) > 1
    cores = f"cores {result.cores[0]} to {result.cores[-1]}, each" if several else f"core {result.cores[0]}"
    ep = "any EP" if result.any_ep else "EP a power of two"
    job = "1 job" if result.jobs == 1 else f"{result.jobs} jobs"
    models = ", ".join(result.models[:8]) + (f" and {len(result.models) - 8} more" if len(result.models) > 8 else "")
    return "\n".join(
        [
            f"SEARCH for {result.scenario}: {job} of {models} on {result.chip}",
            f"{cores} with NPE {result.npe}; {ep}, adder trees built for it; VP = min(Hw, NPE // EP); Hw {result.rows}",
        ]
    )


def _found_text(answer: Found) -> str:
    walk = answer.walk
    rows = [["", "EP", "VP", "VP bound by", "cycles", "utilization", "hazard"]]
    for point in sorted([*walk.path, *walk.refined], key=lambda each: (each.ep, each.vp)):
        rows.append(["*" if point == walk.chosen else "", *_point_cells(point)])
    lines = table(rows, left=(0, 3))
    for each in walk.refused:
        lines += textwrap.wrap(f"EP {each.ep}, VP {each.vp} cannot be simulated: {each.reason}", _WIDTH)
    chosen = walk.chosen
    rule = (
        f"An EP that ties or takes up to {100 * TOLERANCE:.0f} % more cycles than the best does not end the walk, "
        "because row blocks that divide badly at one EP often divide well at the next."
    )
    lines += ["", f"chosen: EP {chosen.ep}, VP {chosen.vp}: {chosen.cycles:,} cycles"]
    lines += textwrap.wrap(f"stopped: {walk.stopped}. {rule}", _WIDTH)
    if walk.refined:
        low, high = walk.refined[0].ep, walk.refined[-1].ep
        lines.append(f"then {len(walk.refined)} EPs from {low} to {high} that are no powers of two")
    if answer.exhaustive is not None:
        lines += textwrap.wrap(_optimum_text(answer, answer.exhaustive), _WIDTH)
    return "\n".join(lines)


def _point_cells(point: Point) -> list[str]:
    numbers = [f"{point.cycles:,}", f"{100 * point.utilization:.1f} %", f"{100 * point.hazard:.1f} %"]
    return [str(point.ep), str(point.vp), point.bound, *numbers]


def _optimum_text(answer: Found, brute: Exhaustive) -> str:
    best, regret = brute.optimum, f"{answer.regret_percent:.2f} %"
    pair = f"EP {best.ep}, VP {best.vp}: {best.cycles:,} cycles"
    cannot = f"; {brute.refused:,} cannot be simulated" if brute.refused else ""
    tiles = f"the tiles alone of {brute.excluded:,} take no fewer cycles"
    if not brute.proven:
        tried = f"best of {brute.simulated:,} pairs tried, not proven: {pair}"
        return f"{tried}; regret of the greedy choice: at least {regret}; {brute.pairs:,} pairs differ, {tiles}{cannot}"
    proof = f"proven: {brute.simulated:,} were simulated, {tiles}{cannot}"
    return f"optimum of all {brute.pairs:,} pairs that differ: {pair}; regret of the greedy choice: {regret}; {proof}"


def _mix_text(result: SearchResult) -> str:
    mix, common = result.mix, result.common.walk.chosen
    assert mix is not None
    exhaustive = result.common.exhaustive is not None
    rows = [["model", "jobs", "EP", "VP", "cycles", f"at EP {common.ep}", *(["regret"] if exhaustive else [])]]
    for each in mix.models:
        own = each.found.walk.chosen
        regret = [f"{each.found.regret_percent:.2f} %"] if exhaustive else []
        numbers = [str(each.jobs), str(own.ep), str(own.vp), f"{own.cycles:,}", f"{each.cycles_at_common_ep:,}"]
        rows.append([each.model, *numbers, *regret])
    own_sum = mix.own_cycles
    common_sum = sum(each.cycles_at_common_ep for each in mix.models)
    rows.append(["sum", "", "", "", f"{own_sum:,}", f"{common_sum:,}", *([""] if exhaustive else [])])
    lines = ["MIX: one array, VP = NPE // EP; each model searched alone, at an EP of its own", *table(rows, left=[0])]
    note = (
        f"All jobs at the common EP {common.ep} take {common.cycles:,} cycles: that is a simulated run of the whole "
        "scenario. The cycles in this table are runs of one model's jobs alone, from the arrival of the first; "
        "their sums leave out what jobs of different models gain from sharing the array."
    )
    lines += textwrap.wrap(note, _WIDTH)
    lines += [_unproven(each) for each in mix.models if each.found.exhaustive and not each.found.exhaustive.proven]
    return "\n".join([*lines, "", *_cat_lines(mix, result.any_ep)])


def _unproven(choice: ModelChoice) -> str:
    brute = choice.found.exhaustive
    assert brute is not None
    return f"regret of {choice.model}: at least; best of {brute.simulated:,} pairs tried, not proven"


def _cat_lines(mix: Mix, any_ep: bool) -> list[str]:
    lines = textwrap.wrap(_sufficient(mix), _WIDTH)
    if any_ep:
        lines += [f"best of {len(mix.trees)} trees tried: the powers of two, and the EPs above times powers of two"]
    if len(mix.cats) > 1:
        rows = [["CAT", "tree inputs", "sum of cycles", "EP of each model"]]
        rows += [_cat_cells(each) for each in mix.cats]
        lines += table(rows, left=[3])
    return lines


def _sufficient(mix: Mix) -> str:
    enough, chosen = mix.sufficient, tuple(each.found.walk.chosen.ep for each in mix.models)
    if enough is None:
        eps = ", ".join(str(ep) for ep in sorted(set(chosen)))
        return f"CAT: no adder tree has all of EP {eps}: its EPs are halves of its inputs"
    sums = f"{enough.cycles:,} cycles in sum, at their own EPs {mix.own_cycles:,}"
    if enough.cat == 1:
        same = set(chosen) == {enough.tree_inputs}
        at = f", every model takes EP {enough.tree_inputs}"
        return f"CAT: none is needed{at}" if same else f"CAT: none is needed{at} at no cost: {sums}"
    eps = ", ".join(str(enough.tree_inputs >> shift) for shift in range(enough.cat.bit_length()))
    text = f"CAT-{enough.cat} suffices: trees of {enough.tree_inputs} inputs give EP {eps}"
    return text if enough.eps == chosen else f"{text}; the models take {sums}"


def _cat_cells(choice: CatChoice) -> list[str]:
    shown = ", ".join(map(str, choice.eps[:12])) + (" ..." if len(choice.eps) > 12 else "")
    return [f"CAT-{choice.cat}", str(choice.tree_inputs), f"{choice.cycles:,}", shown]


def search_json(result: SearchResult) -> dict[str, Any]:
    """Give the result as plain data of schema `lstmsim/search/1`, ready for `json.dumps`; shares are 0 to 1."""
    return {
        "schema": SCHEMA,
        "scenario": result.scenario,
        "chip": result.chip,
        "cores": list(result.cores),
        "npe": result.npe,
        "any_ep": result.any_ep,
        "jobs": result.jobs,
        "models": list(result.models),
        "hw": result.rows,
        "tolerance": TOLERANCE,
        **_found_json(result.common),
        "mix": None if result.mix is None else _mix_json(result.mix),
    }


def _found_json(answer: Found) -> dict[str, Any]:
    walk = answer.walk
    brute = answer.exhaustive
    return {
        "chosen": asdict(walk.chosen),
        "path": [asdict(each) for each in walk.path],
        "refined": [asdict(each) for each in walk.refined],
        "refused": [asdict(each) for each in walk.refused],
        "stopped": walk.stopped,
        "exhaustive": None if brute is None else asdict(brute) | {"regret_percent": answer.regret_percent},
    }


def _mix_json(mix: Mix) -> dict[str, Any]:
    models = [
        {
            "model": each.model,
            "jobs": each.jobs,
            "cycles_at_common_ep": each.cycles_at_common_ep,
            **_found_json(each.found),
        }
        for each in mix.models
    ]
    return {
        "models": models,
        "cat": None if mix.sufficient is None else mix.sufficient.cat,
        "tree_inputs": None if mix.sufficient is None else mix.sufficient.tree_inputs,
        "cats": _cats_json(mix.cats),
        "trees": list(mix.trees),
    }


def _cats_json(cats: Sequence[CatChoice]) -> list[dict[str, Any]]:
    return [asdict(each) | {"eps": list(each.eps)} for each in cats]


def _records(result: SearchResult) -> list[dict[str, Any]]:
    """Every pair that the search simulated, in order."""
    walk = result.common.walk
    return [asdict(each) for each in (*walk.path, *walk.refined)]


FORMS = Forms(search_json, search_text, _records)
