"""The result of a search as a document and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lstmsim.report.document import Column, Document, Section, grid
from lstmsim.report.figures_text import percent
from lstmsim.report.results import Forms, picked, plain
from lstmsim.studies.search.result import Exhaustive, Found, Mix, SearchResult
from lstmsim.studies.search.strategies import TOLERANCE


def _document(result: SearchResult) -> Document:
    """The walk with the chosen pair marked, why it ended, and optimum and mix where they were asked for."""
    several = len(result.cores) > 1
    cores = f"cores {result.cores[0]} to {result.cores[-1]}, each" if several else f"core {result.cores[0]}"
    ep = "any EP" if result.any_ep else "EP a power of two"
    job = "1 job" if result.jobs == 1 else f"{result.jobs} jobs"
    models = ", ".join(result.models[:8]) + (f" and {len(result.models) - 8} more" if len(result.models) > 8 else "")
    headline = (
        f"SEARCH for {result.scenario}: {job} of {models} on {result.chip}\n"
        f"{cores} with NPE {result.npe}; {ep}, adder trees built for it; VP = min(Hw, NPE // EP); Hw {result.rows}"
    )
    mix = [] if result.mix is None else [_mixed(result.mix, result.common), _trees(result.mix, result.any_ep)]
    return Document.of(headline, *_found(result.common), *mix)


def _found(answer: Found) -> tuple[Section, Section]:
    walk = answer.walk
    chosen, points = walk.chosen, sorted([*walk.path, *walk.refined], key=lambda each: (each.ep, each.vp))
    rows = [
        [
            *("*" if each == chosen else "", str(each.ep), str(each.vp), each.bound, each.cycles),
            *(f"{100 * share:.1f} %" for share in (each.utilization, each.hazard)),
        ]
        for each in points
    ]
    refused = [f"EP {each.ep}, VP {each.vp} cannot be simulated: {each.reason}" for each in walk.refused]
    rule = (
        f"An EP that ties or takes up to {100 * TOLERANCE:.0f} % more cycles than the best does not end the walk, "
        "because row blocks that divide badly at one EP often divide well at the next."
    )
    refined = None
    if walk.refined:
        low, high = walk.refined[0].ep, walk.refined[-1].ep
        refined = f"then {len(walk.refined)} EPs from {low} to {high} that are no powers of two"
    return (
        Section.of(grid(["<", "EP", "VP", "<VP bound by", "cycles", "utilization", "hazard"], rows), *refused),
        Section.of(
            f"chosen: EP {chosen.ep}, VP {chosen.vp}: {chosen.cycles:,} cycles",
            f"stopped: {walk.stopped}. {rule}",
            refined,
            None if answer.exhaustive is None else _optimum(answer, answer.exhaustive),
        ),
    )


def _optimum(answer: Found, brute: Exhaustive) -> str:
    best, regret = brute.optimum, f"{answer.regret_percent:.2f} %"
    pair = f"EP {best.ep}, VP {best.vp}: {best.cycles:,} cycles"
    cannot = f"; {brute.refused:,} cannot be simulated" if brute.refused else ""
    tiles = f"the tiles alone of {brute.excluded:,} take no fewer cycles"
    if not brute.proven:
        tried = f"best of {brute.simulated:,} pairs tried, not proven: {pair}"
        return f"{tried}; regret of the greedy choice: at least {regret}; {brute.pairs:,} pairs differ, {tiles}{cannot}"
    proof = f"proven: {brute.simulated:,} were simulated, {tiles}{cannot}"
    return f"optimum of all {brute.pairs:,} pairs that differ: {pair}; regret of the greedy choice: {regret}; {proof}"


def _mixed(mix: Mix, found: Found) -> Section:
    """Each model at its best EP, searched alone, and at the common one."""
    common, exhaustive = found.walk.chosen, found.exhaustive is not None
    rows: list[list[str | int]] = []
    for each in mix.models:
        own = each.found.walk.chosen
        regret = [f"{each.found.regret_percent:.2f} %"] if exhaustive else []
        rows.append(
            [each.model, str(each.jobs), str(own.ep), str(own.vp), own.cycles, each.cycles_at_common_ep, *regret]
        )
    common_sum = sum(each.cycles_at_common_ep for each in mix.models)
    rows.append(["sum", "", "", "", mix.own_cycles, common_sum, *([""] if exhaustive else [])])
    note = (
        f"All jobs at the common EP {common.ep} take {common.cycles:,} cycles: that is a simulated run of the whole "
        "scenario. The cycles in this table are runs of one model's jobs alone, from the arrival of the first; "
        "their sums leave out what jobs of different models gain from sharing the array."
    )
    regrets = [
        f"regret of {each.model}: at least; best of {each.found.exhaustive.simulated:,} pairs tried, not proven"
        for each in mix.models
        if each.found.exhaustive and not each.found.exhaustive.proven
    ]
    columns = ["<model", "jobs", "EP", "VP", "cycles", f"at EP {common.ep}", *(["regret"] if exhaustive else [])]
    title = "MIX: one array, VP = NPE // EP; each model searched alone, at an EP of its own"
    return Section.of(grid(columns, rows), note, *regrets, title=title)


def _trees(mix: Mix, any_ep: bool) -> Section:
    """Which CAT-n suffices, and the best trees of smaller ones."""
    tried = f"best of {len(mix.trees)} trees tried: the powers of two, and the EPs above times powers of two"
    shown = [", ".join(map(str, each.eps[:12])) + " ..." * (len(each.eps) > 12) for each in mix.cats]
    rows = [[f"CAT-{each.cat}", each.tree_inputs, each.cycles, eps] for each, eps in zip(mix.cats, shown, strict=True)]
    columns: list[str | Column] = ["CAT", Column("tree inputs", form=str), "sum of cycles", "<EP of each model"]
    return Section.of(_sufficient(mix), tried if any_ep else None, grid(columns, rows) if len(rows) > 1 else None)


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


def table_of(results: Sequence[SearchResult]) -> Document:
    """Make a table of the best pair of each search of a scenario."""
    best = [(each.npe, each.common.walk.chosen) for each in results]
    rows = [[size, at.ep, at.vp, at.cycles, percent(at.utilization, 1)] for size, at in best]
    headline = f"SEARCH for {results[0].scenario}: the EP and VP with the fewest cycles, by NPE"
    return Document.of(headline, grid(["NPE", "EP", "VP", "cycles", "utilization"], rows))


def _data(result: SearchResult) -> dict[str, Any]:
    """The result as plain data of schema `lstmsim/search/1`; shares are 0 to 1."""
    return {
        "schema": "lstmsim/search/1",
        **picked(result, "scenario chip cores npe any_ep jobs models hw=rows"),
        "tolerance": TOLERANCE,
        **_found_data(result.common),
        "mix": None if result.mix is None else _mix_data(result.mix),
    }


def _found_data(answer: Found) -> dict[str, Any]:
    names = "chosen=walk.chosen path=walk.path refined=walk.refined refused=walk.refused stopped=walk.stopped"
    brute = None if answer.exhaustive is None else plain(answer.exhaustive) | {"regret_percent": answer.regret_percent}
    return {**picked(answer, names), "exhaustive": brute}


def _mix_data(mix: Mix) -> dict[str, Any]:
    models = [{**picked(each, "model jobs cycles_at_common_ep"), **_found_data(each.found)} for each in mix.models]
    enough = (None, None) if mix.sufficient is None else (mix.sufficient.cat, mix.sufficient.tree_inputs)
    return {"models": models, "cat": enough[0], "tree_inputs": enough[1], **picked(mix, "cats trees")}


def _records(result: SearchResult) -> list[dict[str, Any]]:
    """Every pair that the search simulated, in order."""
    return [plain(each) for each in (*result.common.walk.path, *result.common.walk.refined)]


FORMS = Forms(_data, _document, _records)
