"""What the model of the multi-core CPU answers to a golden case, in the words of the cases."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.oracle.multicore import run, total_counts
from tests.oracle.multicore_jobs import Job, simulate
from tests.oracle.multicore_plan import Cut, Plan, plan, second_stage
from tests.oracle.multicore_steps import Product, computed

Case = dict[str, Any]


def cut_of(cut: Cut) -> Case:
    return dict(zip(("kind", "pm", "pn", "pk", "mb", "nb", "kb"), cut, strict=True))


def plan_of(planned: Plan) -> Case:
    subs = planned.sub_ranked[:5]
    return {
        "blocks": dict(zip(("mc", "nc", "kc"), planned.blocks, strict=True)),
        "ranked": [
            {**cut_of(cut), "raw": raw, "normalised": good, "fitness": fitness, "why_not": why_not}
            for cut, raw, good, fitness, why_not in planned.ranked
        ],
        "chosen": planned.chosen,
        "idle": [cut_of(cut) for cut in planned.idle],
        "sub_blocks": None if planned.sub is None else list(planned.sub),
        "buffer": planned.buffer,
        "sub_ranked": [
            {**dict(zip(("sm", "sn", "Sm", "Sn"), sub, strict=True)), "raw": raw, "fitness": fitness}
            for sub, raw, _, fitness in subs
        ],
    }


def answer(case: Case) -> Case:
    """What the model says in place of the case's `expect`."""
    return {"plan": plans, "run": plans, "relief": reliefs, "numbers": reliefs, "job": job}[case["kind"]](case)


def plans(case: Case) -> Case:
    m, mnk = SimpleNamespace(**case["machine"]), (case["M"], case["N"], case["K"])
    planned = plan(m, mnk, case["threads"])
    if case["kind"] == "plan":
        return {"plan": plan_of(planned)}
    accepted = []
    for cut in (each[0] for each in planned.ranked if not each[4]):
        sub, _, buffer = second_stage(m, cut)
        accepted.append({"cut": cut_of(cut), **run(m, Product(mnk, cut, sub, buffer), case["caches"])})
    makespans = {tuple(each["cut"].values()): each["makespan"] for each in accepted}
    regret = makespans[planned.cut] / min(makespans.values()) - 1
    return {"plan": plan_of(planned), "accepted": accepted, "regret_among_accepted": regret}


def reliefs(case: Case) -> Case:
    m, mnk = SimpleNamespace(**case["machine"]), (case["M"], case["N"], case["K"])
    cut: Any = tuple(case["cut"].values())
    sub: Any = None if case["sub_blocks"] is None else tuple(case["sub_blocks"])
    said = {}
    for relief in ("none", "sub", "buffer", "both"):
        product = Product(mnk, cut, sub if relief in ("sub", "both") else None, relief in ("buffer", "both"))
        if case["kind"] == "relief":
            said[relief] = run(m, product, "cold")
        else:
            said[relief] = hashlib.sha256(computed(m, product, *operands(*mnk)).tobytes()).hexdigest()
    return said


def operands(m: int, n: int, k: int) -> tuple[Any, Any]:
    """A and B of the cases of kind `numbers`."""
    i, j, ks = np.arange(m)[:, None], np.arange(n)[None, :], np.arange(k)
    a = (i * 7919 + ks[None, :] * 104729) % 1009 / 1009
    b = (ks[:, None] * 15485863 + j * 32452843) % 1013 / 1013
    return a.astype(np.float32), b.astype(np.float32)


def job(case: Case) -> Case:
    keys = ("cell", "layers", "steps", "batch", "threads", "arrival", "frame_interval")
    (done,) = simulate(SimpleNamespace(**case["machine"]), [Job(**{key: case[key] for key in keys})])
    totals = [[total_counts(work) for work in step] for one in done.traced for step in one]
    return {
        "finish": done.finish,
        "waits": done.waits,
        "plans": [[[cut_of(each.cut), each.chosen] for each in layer] for layer in done.plans],
        "memory_lines_by_traced_step": [[each["memory"] for each in step] for step in totals],
        "l2_accesses_by_traced_step": [[each["l2"] for each in step] for step in totals],
    }
