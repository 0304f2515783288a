"""A threaded matrix product as people and programs read it: a document, plain data, records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lstmsim.base.units import cycles_to_us
from lstmsim.base.wording import counted, listed
from lstmsim.machines.gemm import CACHES, CONDITIONS, Counts, Cut, Division, GemmFigures, SubBlocks
from lstmsim.report.document import Column, Document, Facts, Grid, Piece, Section, facts, grid, remark
from lstmsim.report.figures_text import percent, three_digits
from lstmsim.report.results import Forms, Keys, picked, plain
from lstmsim.studies.gemm.result import BY_SHAPES, Computed, GemmReport, GemmRow

_SCHEMA = "lstmsim/gemm/2"
_RECONSTRUCTION = (
    "the planner is a reconstruction: the patent on threads along K says which quantities are weighed and ranked, and "
    "gives no formula, weight or limit"
)
#: Sub-blocks that people are shown; the others are counted.
_MOST_SUB_BLOCKS = 3
_BLIS = "M/N by BLIS's rule"
_BEST = "the best M/N pair"
#: Causes of waits in words.
_WAITS = {"contention": "for a piece of C that another thread adds into (contention)", "memory": "for memory"}


def headline(report: GemmReport) -> str:
    """Say in a sentence which cut is fastest of those that were simulated, and what cutting K gains or costs."""
    baselines, caches = report.baselines, report.caches
    best = baselines.fastest(caches)
    text = f"{cut_words(best.cut)}: {best.cycles(caches):,} cycles with {caches} caches"
    alone = len(baselines.simulated) == 1
    left = counted(baselines.left_out, "candidate" if alone else "other candidate")
    if baselines.left_out and alone:
        return f"the planner's rule takes {text}; no other cut was simulated; {left} may be faster, ask for --baselines"
    text = f"use {text}"
    others = [each for each in baselines.simulated if (each.cut.p_k > 1) != (best.cut.p_k > 1)]
    kind = "M/N cut" if best.cut.p_k > 1 else "cut of K"
    if others:
        other = min(others, key=lambda each: each.cycles(caches))
        text += f", {faster(best.cycles(caches), other.cycles(caches))} the fastest {kind}, {other.cut.short}"
    elif report.threads > 1:
        text += f"; no {kind} was simulated"
    return f"of what was simulated, {text}; {left} may be faster, ask for --baselines" if baselines.left_out else text


def cut_words(cut: Cut) -> str:
    """What is cut into how many parts.

    >>> cut_words(Cut("NK", 1, 4, 16, 8, 8, 8)), cut_words(Cut("MN", 1, 1, 1, 8, 8, 8))
    ('N in 4 and K in 16', 'one thread')
    """
    parts = {"M": cut.p_m, "N": cut.p_n, "K": cut.p_k}
    return listed([f"{name} in {count}" for name, count in parts.items() if count > 1] or ["one thread"], "and")


def faster(fast: int, slow: int) -> str:
    """Say that something of `fast` cycles is faster than something of `slow` ones, in words that end before its name.

    >>> faster(10, 15), faster(20_000, 20_001), faster(7, 7)
    ('1.500 times as fast as', '1 cycle less than', 'as fast as')
    """
    if fast == slow:
        return "as fast as"
    return f"{counted(slow - fast, 'cycle')} less than" if _close(slow, fast) else f"{slow / fast:.3f} times as fast as"


def _close(slow: int, fast: int) -> bool:
    """Whether a ratio would read as 1, though they differ."""
    return f"{slow / fast:.3f}" == "1.000"


def _longer(slow: int, fast: int) -> str:
    """How much longer `slow` cycles are than `fast` ones, in words."""
    return f"{counted(slow - fast, 'cycle')} longer" if _close(slow, fast) else f"{slow / fast:.3f} times as long"


def _faster(fast: int, slow: int) -> str:
    """Say that something of `fast` cycles is faster than something of `slow` ones, with its verb."""
    return f"{'takes' if _close(slow, fast) else 'is'} {faster(fast, slow)}"


def document(report: GemmReport) -> Document:
    """Everything that people read of a threaded matrix product."""
    idle = ", ".join(each.short for each in report.plan.idle)
    sections: list[Piece] = [_verdict(report), product_facts(report), _plan(report), _candidates(report)]
    sections += [_conditions(report)]
    sections += [facts(("idle cuts", f"{idle}: threads would have nothing to do" if idle else "none")), _time(report)]
    sections += [_accesses(report), _moved(report), _baselines(report), _ablation(report), _result(report)]
    left_out = facts(("not modelled", "; ".join(report.machine.LEFT_OUT)))
    return Document.of(headline(report), *sections, left_out, *map(remark, report.remarks))


def _verdict(report: GemmReport) -> Facts:
    """The name of the cut to use, and what the planner's rule would have taken."""
    baselines, caches = report.baselines, report.caches
    best, plan, blis = baselines.fastest(caches), baselines.plans[caches], baselines.blis
    count = len(baselines.simulated)
    reliefs = [each.name for each in baselines.ablations if each.division == best.division]
    tried = {each.division for each in (*baselines.candidates, *baselines.pairs) if each is not None}
    relief = f" with relief {reliefs[0]}" if reliefs and best.division not in tried else ""
    text = f"{_cut_text(best.cut)}{relief}: "
    text += f"the fastest of {count} that were simulated" if count > 1 else "no other cut was simulated"
    if best.division == plan.division:
        text += "; the planner's rule takes the same"
    else:
        other = plan.cut.short if plan.cut != best.cut else f"the same with {_relief_text(plan.division)}"
        text += f"; the planner's rule would have taken {other}, which takes "
        text += _longer(plan.cycles(caches), best.cycles(caches))
    if blis is not None and blis.division not in (best.division, plan.division):
        text += f"; {_against('it', best, blis, _BLIS, caches)}"
    return facts(("cut", text))


def product_facts(report: GemmReport, cores: bool = True) -> Facts:
    """The product, and where it runs."""
    m, n, k = report.product.m, report.product.n, report.product.k
    size = f"C ({m:,} x {n:,}) = A ({m:,} x {k:,}) B ({k:,} x {n:,}), "
    size += counted(report.product.macs, "multiply-accumulate")
    where = counted(len(report.chip.cores), "core")
    where = f"{counted(report.threads, 'thread')} on {report.threads:,} of {where}" if cores else where
    chip = f"{report.chip.name}, {where} at {report.chip.frequency_mhz:g} MHz; caches {report.caches}, engine "
    packing = report.machine.packing(report.chip, report.task)
    return facts(("product", size), ("", report.source), ("packing", packing), ("chip", chip + report.engine))


def _plan(report: GemmReport) -> Facts:
    plan = report.plan
    cut, chosen = plan.division.cut, plan.ranked[plan.chosen]
    text = f"{_cut_text(cut)}, blocks of {_size(cut)}; rank {plan.chosen} of {counted(len(plan.ranked), 'candidate')}, "
    text += f"fitness {chosen.fitness:.6f}"
    if plan.chosen:
        text += f"; {counted(plan.chosen, 'candidate')} before it could not be accepted"
    pairs = [("plan", text)]
    if cut.p_k > 1:
        pairs.append(("", f"{cut.p_k} threads add into each block of C: {_relief_text(plan.division)}"))
        rest = plan.sub_ranked[1 : 1 + _MOST_SUB_BLOCKS]
        more = len(plan.sub_ranked) - 1 - len(rest)
        if rest:
            next_best = ", ".join(f"{_sub_blocks(each.sub_blocks)} {each.fitness:.4f}" for each in rest)
            pairs.append(("", f"next best sub-blocks: {next_best}" + (f" and {more} more" if more > 0 else "")))
    if report.division != report.baselines.planned.division or report.otherwise:
        why = report.otherwise or f"cut {report.division.cut.short}, the fastest that was simulated"
        pairs.append(("", f"what runs, by {why}: {_what_runs(report)}"))
    blocks = ", ".join(f"{name} {size:,}" for name, size in plan.blocks.items())
    changed = ", ".join(f"{name} {report.settings[name]}" for name in report.task.settings)
    given = " ".join(f"--set {name}={value}" for name, value in report.machine.BY_SHAPES.items())
    return facts(
        *pairs,
        ("", f"blocks that fit the caches: {blocks}"),
        ("planner", _RECONSTRUCTION + (f"; changed: {changed}" if changed else "")),
        ("", f"{BY_SHAPES}: {given}; {report.machine.MEANINGS['by_shapes']}"),
    )


def _what_runs(report: GemmReport) -> str:
    """What runs instead of the plan: another cut, or the plan's cut with another relief."""
    relief, cut = _relief_text(report.division), report.division.cut
    if cut == report.plan.division.cut:
        return relief
    ranked = [each.cut for each in report.plan.ranked]
    rank = f"rank {ranked.index(cut)} of the candidates" if cut in ranked else "none of the candidates"
    return f"{_parts(cut)} cut, blocks of {_size(cut)}, {rank}; {relief}"


def _cut_text(cut: Cut) -> str:
    """A cut, and what it cuts.

    >>> _cut_text(Cut("MN", 1, 8, 1, 8, 8, 8))
    'MN 1x8x1 (p_m x p_n x p_k: columns of C are cut)'
    """
    return f"{cut.short} (p_m x p_n x p_k: {_parts(cut)} cut)"


def _parts(cut: Cut) -> str:
    """What is cut into more than one part, with its verb."""
    sides = [name for name, parts in {"rows": cut.p_m, "columns": cut.p_n}.items() if parts > 1]
    named = [*([f"{listed(sides, 'and')} of C"] if sides else []), *(["K"] if cut.p_k > 1 else [])]
    return f"{listed(named, 'and')} {'are' if sides else 'is'}"


def _size(cut: Cut) -> str:
    return f"{cut.mb:,} x {cut.nb:,} x {cut.kb:,} (m x n x k)"


def _sub_blocks(of: SubBlocks) -> str:
    return f"{of.s_m} x {of.s_n} of {of.sm} x {of.sn}"


def _relief_text(division: Division) -> str:
    """How threads that add into the same block keep out of each other's way, in words."""
    if division.cut.p_k == 1:
        return "no two threads add into the same block"
    buffer = "each in a buffer of its own, added into C at the end" if division.buffer else "no buffers"
    if division.sub_blocks is None:
        return f"no sub-blocks; {buffer}"
    return f"sub-blocks {_sub_blocks(division.sub_blocks)}, visited in rotated order; {buffer}"


def _candidates(report: GemmReport) -> Grid:
    plan, rows = report.plan, []
    # of one alone nobody can say that it is the fastest
    best = report.baselines.fastest(report.caches).cut if len(report.baselines.simulated) > 1 else None
    for rank, (of, ran) in enumerate(zip(plan.ranked, report.baselines.candidates, strict=True)):
        cycles = None if ran is None else ran.cycles(report.caches)
        verdict = f"rejected: {', '.join(of.why_not)}" if of.why_not else "accepted" if rank > plan.chosen else "chosen"
        verdict += ", fastest" if of.cut == best else ""
        size = f"{of.cut.mb} x {of.cut.nb} x {of.cut.kb}"
        ratio = None if cycles is None else cycles / report.planned_cycles
        rows.append((rank, of.cut.short, size, of.fitness, cycles, ratio, verdict))
    fitness, ratio_of = Column("fitness", digits=6), Column("/ plan", digits=3)
    return grid(["rank", "<cut", "<mb x nb x kb", fitness, "cycles", ratio_of, "<"], rows)


def _conditions(report: GemmReport) -> Section:
    rows = [
        [of.cut.short, *(f"{_short(of.raw[name])} ({of.normalised[name]:.2f})" for name in CONDITIONS)]
        for of in report.plan.ranked
    ]
    rows.append(["weight", *(f"{report.settings[name]:g}" for name in CONDITIONS)])
    meanings = [(name, report.machine.MEANINGS.get(name, "")) for name in CONDITIONS]
    about = "normalised: 1 is the best of the candidates, the others have their ratio to it"
    return Section.of(grid(["<raw (norm.)", *CONDITIONS], rows), Facts((*meanings, ("norm.", about))))


def _short(value: float) -> str:
    """A number of few letters.

    >>> _short(0.0442), _short(16.0), _short(4260000.0)
    ('0.044', '16', '4.26M')
    """
    for letter, size in {"G": 1e9, "M": 1e6, "k": 1e3}.items():
        if value >= 10 * size or (value >= size and letter != "k"):
            return f"{value / size:.3g}{letter}"
    return f"{value:.4g}" if value >= 1 else f"{value:.2g}"


def _time(report: GemmReport) -> Facts:
    figures, cores = report.figures, counted(report.threads, "core")
    us = three_digits(cycles_to_us(figures.makespan, report.chip.frequency_mhz))
    barrier = figures.makespan - max(figures.finish)
    text = f"{figures.makespan:,} cycles, {us} us, {barrier:,} of them the barrier at the end; "
    text += f"{percent(report.utilization, 1)} of the peak of {cores}, {report.peak:,} multiply-accumulates in a cycle"
    if report.otherwise:
        text += f" ({report.otherwise}, as asked for; the plan takes {report.planned_cycles:,} cycles)"
    elif report.division != report.baselines.planned.division:
        text += f" ({report.division.cut.short}; the plan takes {report.planned_cycles:,} cycles)"
    ends = [each for each in figures.finish if each]
    mean, empty = sum(ends) / len(ends), report.threads - len(ends)
    threads = f"they end from cycle {min(ends):,} to {max(ends):,}, on average at {mean:,.0f}; imbalance "
    threads += f"{max(ends) / mean:.3f} (the last end over the average)"
    threads += f"; {counted(empty, 'thread')} without any work" if empty else ""
    waits = ", ".join(f"{_WAITS.get(name, name)} {cycles:,}" for name, cycles in figures.waits.items())
    waits = f"cycles of all threads: {waits}; in all steps {figures.compute:,} cycles of arithmetic, packing and adding"
    waits += f", and {figures.of_memory:,} that cores have only because of lines from and to memory"
    return facts(("time", text), ("threads", threads), ("waits", waits))


def _accesses(report: GemmReport) -> Grid:
    counts = report.figures.counts
    levels = {"L1": (counts.l1, counts.l1_hit), "L2": (counts.l2, counts.l2_hit)}
    levels["last level"] = counts.llc, counts.llc_hit
    rows = [(name, level, hits, percent(hits, level, "-")) for name, (level, hits) in levels.items()]
    return grid(["<lines", "accesses", "hits", "hit rate"], rows)


def _moved(report: GemmReport) -> Section:
    counts, line = report.figures.counts, report.machine.line_bytes(report.chip)
    moved = {
        "L1 - L2": (counts.l1_l2, "both ways"),
        "L2 - last level": (counts.l2_llc, "both ways"),
        "memory, read": (counts.memory_read, ""),
        "memory, written": (counts.memory_write, ""),
        "remote": (counts.remote, "of the lines of memory, those of another domain than the core's"),
        "transfers": (counts.transfers, "from core to core, because another core had written them"),
    }
    rows = [(name, count, line * count, what) for name, (count, what) in moved.items()]
    by_memory = ", ".join(f"{lines:,}" for lines in counts.memory)
    memories = f"lines of each, read and written: {by_memory}" if len(counts.memory) > 1 else ""
    size = report.figures.buffer_bytes
    buffers = f"{size:,} bytes, of all threads together" if size else "none"
    return Section.of(
        grid(["<lines moved", "lines", "bytes", "<"], rows), facts(("memories", memories), ("buffers", buffers))
    )


def _states(report: GemmReport) -> tuple[str, str]:
    """States of the caches: the one that was asked for first."""
    return report.caches, report.other_caches


def _baselines(report: GemmReport) -> Section | None:
    """The plan against M/N threads and the fastest, with warm and with cold caches; None: nothing was compared."""
    if report.baselines.blis is None:
        return None
    states, planned = _states(report), report.baselines.planned
    columns: list[str | Column] = ["<beside the plan", "<cut"]
    for state in states:
        columns += [f"{state}: cycles", Column("/ plan", digits=3)]
    rows = []
    for name, row in _named(report, states):
        pairs = [(row.cycles(state), row.cycles(state) / planned.cycles(state)) for state in states]
        rows.append((name, row.cut.short, *pairs[0], *pairs[1]))
    return Section.of(
        grid(columns, rows), facts(*((f"{state} caches", "; ".join(_sentences(report, state))) for state in states))
    )


def _named(report: GemmReport, states: tuple[str, ...]) -> list[tuple[str, GemmRow]]:
    """Rows by their names; the best ones of both states, if they are not the same."""
    baselines = report.baselines
    named = [("the plan", baselines.planned)]
    other = baselines.plans[report.other_caches]
    if other.division != baselines.planned.division:
        named.append((other.name, other))
    if report.otherwise:
        named.append((f"this run{f', relief {report.relief}' if report.relief != 'plan' else ''}", baselines.ran))
    if baselines.by_shapes is not None:
        named.append((baselines.by_shapes.name, baselines.by_shapes))
    if baselines.blis is not None:
        named.append((_BLIS, baselines.blis))
    for name, best in ((_BEST, baselines.best_pair), ("the fastest simulated", baselines.fastest)):
        rows = {state: row for state in states if (row := best(state)) is not None}
        one = len({row.division for row in rows.values()}) == 1
        named += [(name if one else f"{name}, {state}", row) for state, row in [*rows.items()][: 1 if one else None]]
    return named


def _sentences(report: GemmReport, caches: str) -> list[str]:
    baselines, plan = report.baselines, report.baselines.plans[caches]
    blis, pair, best = baselines.blis, baselines.best_pair(caches), baselines.fastest(caches)
    name = "the plan" if plan.division == baselines.planned.division else f"the plan for them, {plan.cut.short},"
    said = [] if blis is None else [_against(name, plan, blis, _BLIS, caches)]
    if report.cut is not None:
        said.append(_against("this run", baselines.ran, plan, "the plan", caches))
        if best.division != plan.division:
            said.append(_against("this run", baselines.ran, best, "the fastest simulated", caches))
    if pair is not None:
        count = baselines.pairs_known
        said.append(_against(name, plan, pair, _BEST if count == 1 else f"{_BEST} (of {count})", caches))
        if blis is not None and plan.cut.p_k > 1 and pair.cycles(caches) < blis.cycles(caches):
            said[-1] += f" (which itself {_faster(pair.cycles(caches), blis.cycles(caches))} that of BLIS's rule)"
    # what speaks against the plan comes first
    said.sort(key=lambda text: "loses" not in text)
    if not baselines.left_out:
        regret, known = plan.cycles(caches) - best.cycles(caches), f"{len(baselines.simulated)} simulated"
        longer = f"it takes that much longer than the fastest of {known}, {best.cut.short}"
        share = percent(regret, best.cycles(caches))
        said.append(f"regret {share}: {longer if regret else f'it is the fastest of {known}'}")
    return said


def _against(who: str, plan: GemmRow, row: GemmRow, name: str, caches: str) -> str:
    """How fast a plan, in words `who`, is against another division."""
    if row.division == plan.division:
        return f"{who} is {name}, {row.cut.short}"
    mine, other = plan.cycles(caches), row.cycles(caches)
    if mine > other:
        return f"{who} loses to {name}, {row.cut.short}: it takes {_longer(mine, other)}"
    verb = "takes as long as" if mine == other else _faster(mine, other)
    return f"{who} {verb} {name}, {row.cut.short}"


def _ablation(report: GemmReport) -> Section | None:
    """The plan's cut under each relief; None: it was not asked for, or there is nothing to compare."""
    given = report.baselines.ablations
    if not given:
        return None
    first, second = _states(report)
    ratio = Column("/ none", digits=3)
    rows = []
    for row in given:
        figures = row.figures[first]
        cycles = [(row.cycles(state), row.cycles(state) / given[0].cycles(state)) for state in (first, second)]
        rows.append((row.name, *cycles[0], figures.waits.get("contention", 0), figures.buffer_bytes, *cycles[1]))
    same = [row.name for row in given if row.division == report.baselines.planned.division]
    text = "none: a lock round the whole block while it is computed, so it is no fair baseline"
    if same:
        text += f"; the plan is {same[0]}"
    elif report.cut is None:
        text += f"; none of these is the plan, which has {_relief_text(report.baselines.planned.division)}"
    columns: list[str | Column] = [
        f"<relief, {given[0].cut.short}",
        f"{first}: cycles",
        ratio,
        "waits for C",
        "buffers",
    ]
    return Section.of(grid([*columns, f"{second}: cycles", ratio], rows), text)


def _result(report: GemmReport) -> Facts:
    done = report.computed
    if done is None:
        return facts(("result", report.no_result))
    shape = " x ".join(map(str, done.result.shape))
    equal = "equal to numpy's in every number" if done.integers_equal else "NOT equal to numpy's: please report it"
    text = f"{shape}, summed up in the order of the simulated steps; of integers {equal}; of {done.kind} the largest "
    text += f"difference from 64-bit products is {done.error:.2g}, relative to the sum of their sizes (operands drawn "
    return facts(("result", f"{text}with seed {report.seed})"))


def _counts_data(counts: Counts) -> Mapping[str, Any]:
    levels = {"l1": (counts.l1, counts.l1_hit), "l2": (counts.l2, counts.l2_hit), "llc": (counts.llc, counts.llc_hit)}
    rates = {
        name: {"accesses": accesses, "hits": hits, "hit_rate": hits / accesses if accesses else None}
        for name, (accesses, hits) in levels.items()
    }
    lines = "l1_l2 l2_llc memory_read memory_write remote transfers by_memory=memory"
    return {**rates, "lines": picked(counts, lines)}


#: Of parts of the result, what their plain data are.
KEYS: Keys = {
    Cut: "kind p_m p_n p_k mb nb kb",
    SubBlocks: "sm sn s_m s_n",
    Division: lambda of: {**plain(of.cut, KEYS), "sub_blocks": of.sub_blocks, "buffer": of.buffer},
    Counts: _counts_data,
    Computed: "type=kind shape=result.shape integers_equal largest_error=error sha256",
}


def _data(report: GemmReport) -> dict[str, Any]:
    """The product as plain data of schema `lstmsim/gemm/2`."""
    chip, done = report.chip, report.computed
    run = {name: _figures_data(report.baselines.ran.figures[name], chip.frequency_mhz) for name in CACHES}
    result = None if done is None else {"type": done.kind, "seed": report.seed, **plain(done, KEYS)}
    return {
        "schema": _SCHEMA,
        "headline": headline(report),
        "product": {**picked(report.product, "m n k macs"), "source": report.source},
        **picked(report, "threads chip=chip.name"),
        "cores": len(chip.cores),
        **picked(report, "frequency_mhz=chip.frequency_mhz peak_macs_per_cycle=peak"),
        "line_bytes": report.machine.line_bytes(chip),
        **picked(report, "engine caches packed=task.packed"),
        "packing": report.machine.packing(chip, report.task),
        **picked(report, "relief cut_given=cut", KEYS),
        "plan": _plan_data(report),
        "run": {**plain(report.division, KEYS), "utilization": report.utilization, **run},
        "baselines": _baselines_data(report),
        "ablations": [{"relief": row.name, **_short_data(row, report)} for row in report.baselines.ablations],
        "result": result,
        **picked(report, "left_out=machine.LEFT_OUT meanings=machine.MEANINGS remarks"),
    }


def _plan_data(report: GemmReport) -> dict[str, Any]:
    plan = report.plan
    candidates = [
        {
            "rank": rank,
            **plain(of.cut, KEYS),
            **picked(of, "fitness raw normalised"),
            "accepted": not of.why_not,
            "why_not": list(of.why_not),
            **({"left_out": True} if row is None else _short_data(row, report)),
        }
        for rank, (of, row) in enumerate(zip(plan.ranked, report.baselines.candidates, strict=True))
    ]
    subs = [{**plain(of.sub_blocks, KEYS), **picked(of, "fitness raw normalised")} for of in plan.sub_ranked]
    return {
        **plain(report.baselines.planned.division, KEYS),
        **picked(plan, "rank=chosen blocks buffer_recommended=buffer"),
        "settings": dict(report.settings),
        "settings_given": list(report.task.settings),
        "candidates": candidates,
        "idle": plain(plan.idle, KEYS),
        "sub_candidates": subs,
        "note": _RECONSTRUCTION,
    }


def _figures_data(figures: GemmFigures, frequency_mhz: float) -> dict[str, Any]:
    ends = [each for each in figures.finish if each]
    return {
        "makespan_cycles": figures.makespan,
        "us": cycles_to_us(figures.makespan, frequency_mhz),
        "finish_cycles": list(figures.finish),
        "imbalance": max(ends) * len(ends) / sum(ends),
        **picked(figures, "waits compute_cycles=compute memory_cycles_of_cores=of_memory buffer_bytes counts", KEYS),
    }


def _short_data(row: GemmRow, report: GemmReport) -> dict[str, Any]:
    """A division in short: what it is, and its makespan in both states, with the ratio to the plan's."""
    data = plain(row.division, KEYS)
    for state in CACHES:
        cycles = row.cycles(state)
        ratio = {"makespan_cycles": cycles, "ratio_to_plan": cycles / report.baselines.planned.cycles(state)}
        data[state] = {**ratio, **picked(row.figures[state], "waits buffer_bytes")}
    return dict(data)


def _baselines_data(report: GemmReport) -> dict[str, Any]:
    baselines = report.baselines
    best = {}
    for state in CACHES:
        plan, pair, fastest = baselines.plans[state], baselines.best_pair(state), baselines.fastest(state)
        best[state] = {
            "plan": plain(plan.cut, KEYS),
            "plan_makespan_cycles": plan.cycles(state),
            "best_pair": None if pair is None else plain(pair.cut, KEYS),
            "fastest": plain(fastest.division, KEYS),
            "fastest_makespan_cycles": fastest.cycles(state),
            "regret": baselines.regret(state),
            "loses_to_best_pair": None if pair is None else plan.cycles(state) > pair.cycles(state),
        }
    return {
        "blis": None if baselines.blis is None else _short_data(baselines.blis, report),
        "by_shapes": None if baselines.by_shapes is None else _short_data(baselines.by_shapes, report),
        "pairs": [_short_data(row, report) for row in baselines.pairs],
        "pairs_known": baselines.pairs_known,
        "simulated": len(baselines.simulated),
        "not_simulated": baselines.left_out,
        **best,
    }


def _row_data(row: GemmRow, report: GemmReport) -> dict[str, Any]:
    """A division as a row of a table."""
    data, of = _short_data(row, report), row.division.sub_blocks
    del data["sub_blocks"]
    return {**data, "sub_blocks": None if of is None else of.count}


def _records(report: GemmReport) -> Iterator[dict[str, Any]]:
    """A row for each division that was simulated: the run, the candidates, the pairs, the reliefs."""
    baselines = report.baselines
    yield {"what": "run", **_row_data(baselines.ran, report)}
    for rank, (of, row) in enumerate(zip(report.plan.ranked, baselines.candidates, strict=True)):
        about = {"what": "candidate", "rank": rank, "fitness": of.fitness, "why_not": "; ".join(of.why_not)}
        if row is not None:
            yield {**about, **_row_data(row, report)}
    for kind, rows in {"pair": baselines.pairs, "relief": baselines.ablations}.items():
        yield from ({"what": kind, **_row_data(row, report)} for row in rows)


FORMS = Forms(_data, document, _records, picture="lstmsim.studies.gemm.picture:plot_threads")
