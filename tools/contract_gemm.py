"""The cases of the multi-core CPU and its threads for matrix products (docs/multicore.md), run on an engine.

A case has a `machine` (every parameter of section 1 of that document), a `kind`, what the kind needs, and `expect`. The
result has the layout of `expect`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple
from typing import Any

import numpy as np

from lstmsim import engines
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.wording import listed
from lstmsim.machines.gemm import Cut, Division, GemmFigures, GemmPlan, Product, SubBlocks
from lstmsim.machines.multicore.chip import CpuCore, MulticoreCpu
from lstmsim.machines.multicore.cuts import division_of
from lstmsim.machines.multicore.planner import DOCUMENTED, plan
from lstmsim.machines.multicore.product import figures_of, lowered
from lstmsim.machines.multicore.steps import computed
from tools.contract_gemm_jobs import job_result
from tools.contract_gemm_keys import NUMBERS, OF_CORES, USUAL

__all__ = ["KINDS", "cut_of", "machine_of", "plan_shown", "result"]

Case = Mapping[str, Any]
#: The conditions that section 2 of docs/multicore.md has.
_WEIGHED = tuple(name for name, weight in DOCUMENTED.weights.items() if weight)
_RELIEFS = ("none", "sub", "buffer", "both")
#: How many sub-blocks a case lists.
_SUB_RANKED = 5


def machine_of(keys: Case) -> MulticoreCpu:
    """The machine of a case.

    keys: by the names in `NUMBERS` of `tools.contract_gemm_keys`, and some more; those of `USUAL` may be left out.
    `InputError` with the names that are missing.
    """
    keys = {**USUAL, **keys}
    missing = [name for name in NUMBERS if name not in keys]
    if missing:
        raise InputError(Mistake("machine", f"has no {listed(missing)}"))
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value := keys[name], list) else value for name in NUMBERS
    }
    core = CpuCore(**{name: values.pop(name) for name in OF_CORES})
    return MulticoreCpu("", 1000, (core,) * values.pop("cores"), **values)


def cut_of(keys: Case) -> Cut:
    """The cut that a case gives."""
    return Cut(keys["kind"], *(keys[key] for key in ("pm", "pn", "pk", "mb", "nb", "kb")))


def _cut_shown(cut: Cut) -> dict[str, Any]:
    return {key.replace("_", ""): value for key, value in asdict(cut).items()}


def plan_shown(made: GemmPlan) -> dict[str, Any]:
    """A plan as cases show it."""
    sub = made.sub_blocks
    return {
        "blocks": dict(made.blocks),
        "ranked": [
            {
                **_cut_shown(each.cut),
                "raw": {name: each.raw[name] for name in _WEIGHED},
                "normalised": {name: each.normalised[name] for name in _WEIGHED},
                "fitness": each.fitness,
                "why_not": list(each.why_not),
            }
            for each in made.ranked
        ],
        "chosen": made.chosen,
        "idle": [_cut_shown(each) for each in made.idle],
        "sub_blocks": None if sub is None else list(astuple(sub)),
        "buffer": made.buffer,
        "sub_ranked": [
            {
                **dict(zip(("sm", "sn", "Sm", "Sn"), astuple(each.sub_blocks), strict=True)),
                "raw": dict(each.raw),
                "fitness": each.fitness,
            }
            for each in made.sub_ranked[:_SUB_RANKED]
        ],
    }


def _sub_blocks(case: Case) -> SubBlocks | None:
    return None if case["sub_blocks"] is None else SubBlocks(*case["sub_blocks"])


def _product(case: Case) -> Product:
    return Product(case["M"], case["N"], case["K"])


def _reliefs(case: Case) -> dict[str, Division]:
    """The cut of a case under each of the four reliefs."""
    cut, sub = cut_of(case["cut"]), _sub_blocks(case)
    return {
        relief: Division(_product(case), cut, sub if relief in ("sub", "both") else None, relief in ("buffer", "both"))
        for relief in _RELIEFS
    }


def _simulated(machine: MulticoreCpu, division: Division, caches: str, engine: str) -> dict[str, Any]:
    """What the run of a division came to, as cases show it."""
    work = lowered(machine, division, caches)
    return _figures_shown(figures_of(machine, work, engines.run(work.program, engine)))


def _figures_shown(figures: GemmFigures) -> dict[str, Any]:
    counts = asdict(figures.counts)
    # a memory from which no line comes is not named
    counts["memory"] = {str(place): lines for place, lines in enumerate(counts["memory"]) if lines}
    return {
        "makespan": figures.makespan,
        "finish": list(figures.finish),
        "waits": dict(figures.waits),
        "counts": counts,
        "compute": figures.compute,
        "buffer_bytes": figures.buffer_bytes,
    }


def _plan(case: Case, engine: str) -> dict[str, Any]:
    return {"plan": plan_shown(plan(machine_of(case["machine"]), _product(case), case["threads"], DOCUMENTED))}


def _run(case: Case, engine: str) -> dict[str, Any]:
    machine, product = machine_of(case["machine"]), _product(case)
    made = plan(machine, product, case["threads"], DOCUMENTED)
    accepted = [each.cut for each in made.ranked if not each.why_not]
    runs = [_simulated(machine, division_of(machine, product, cut, "plan"), case["caches"], engine) for cut in accepted]
    makespans = [each["makespan"] for each in runs]
    chosen = makespans[accepted.index(made.division.cut)]
    return {
        "plan": plan_shown(made),
        "accepted": [{"cut": _cut_shown(cut), **each} for cut, each in zip(accepted, runs, strict=True)],
        "regret_among_accepted": chosen / min(makespans) - 1,
    }


def _relief(case: Case, engine: str) -> dict[str, Any]:
    machine = machine_of(case["machine"])
    return {name: _simulated(machine, each, "cold", engine) for name, each in _reliefs(case).items()}


def _numbers(case: Case, engine: str) -> dict[str, Any]:
    machine, product = machine_of(case["machine"]), _product(case)
    i, k, j = (np.arange(size, dtype=np.int64) for size in (product.m, product.k, product.n))
    a = ((i[:, None] * 7919 + k * 104729) % 1009).astype(np.float32) / np.float32(1009)
    b = ((k[:, None] * 15485863 + j * 32452843) % 1013).astype(np.float32) / np.float32(1013)
    return {
        name: hashlib.sha256(computed(machine, each, a, b).tobytes()).hexdigest()
        for name, each in _reliefs(case).items()
    }


def _job(case: Case, engine: str) -> dict[str, Any]:
    return job_result(machine_of(case["machine"]), case, engine)


#: Kind of a case -> what runs it.
KINDS: Mapping[str, Callable[[Case, str], dict[str, Any]]] = {
    "plan": _plan,
    "run": _run,
    "relief": _relief,
    "numbers": _numbers,
    "job": _job,
}


def result(case: Case, engine: str) -> dict[str, Any]:
    """What the engine makes of a case, laid out as its `expect`; `error` alone if it is refused and expects an error.

    case: with a `kind` of `KINDS`.
    engine: a key of `lstmsim.engines.ENGINES`.
    Raises `LstmsimError` where it is refused and expects none.
    """
    try:
        return KINDS[case["kind"]](case, engine)
    except LstmsimError as error:
        if "error" not in case["expect"]:
            raise
        return {"error": type(error).__name__}
