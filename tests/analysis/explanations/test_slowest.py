"""What held the slowest requests up, of runs where that is known by hand, and the sentences about it."""

from __future__ import annotations

import json
from dataclasses import replace
from math import ceil

import pytest

from lstmsim import engines, explain, machines, run
from lstmsim.analysis.explanations.answer import answer, slowest_answer
from lstmsim.analysis.explanations.explanation import Explanation
from lstmsim.analysis.explanations.slowest import SHARES, WORK, latency_shares, slowest
from lstmsim.analysis.explanations.text import explain_json
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Memory
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Chip, Job, Scenario

#: The core of the worked examples in docs/timing.md, section 6.
CORE = ColumnCore(npe=65536, ep=32, vp=2048, tail_width=64)
#: One lstm-512 of 20 steps has it for itself: busy 640, hazard 722, drain 61 (docs/timing.md, section 6).
#: The names of shares as a machine with an array shows them.
NAMES = tuple("array" if name == WORK else name for name in SHARES)
ALONE = {"array": 640, "hazard": 722, "drain": 61}


def lstm(hidden: int) -> Model:
    return Model(f"lstm-{hidden}", (Layer(cell("lstm"), hidden, hidden),))


def job(name: str, arrival: int = 0, hidden: int = 512, **more: object) -> Job:
    return Job(name, lstm(hidden), steps=20, arrival=arrival, **more)  # type: ignore[arg-type]


def chip(*cores: ColumnCore, memory: Memory | None = None) -> ColumnNpu:
    return ColumnNpu("chip", 260, cores, memory=memory)


def shares(machine: Chip, *jobs: Job) -> list[dict[str, int]]:
    """Cycles of each job by name; those of 0 cycles are left out."""
    program = machines.lower(machine, jobs)
    trace = engines.run(program)
    rows = latency_shares(program, trace).tolist()
    assert [sum(row) for row in rows] == (trace.task("finish") - trace.task("arrived")).tolist()
    return [{name: count for name, count in zip(NAMES, row, strict=True) if count} for row in rows]


def explained(machine: Chip, *jobs: Job) -> Explanation:
    from lstmsim.analysis.explanations.explanation import explain as explaining

    program = machines.lower(machine, jobs)
    return explaining(Scenario(machine, jobs), program, engines.run(program))


def test_on_one_thread_all_that_is_waited_for_is_the_queue() -> None:
    # one every 1,000 cycles, each takes 1,423: the n-th waits n times 423 cycles
    jobs = [job(f"job{number}", 1000 * number) for number in range(7)]
    requests = shares(chip(CORE), *jobs)
    assert requests[0] == ALONE
    assert requests[1:] == [{"queue": 423 * number, **ALONE} for number in range(1, 7)]


def test_a_thread_that_never_waits_keeps_another_one_out() -> None:
    # ep 16, vp 4096: the tiles of one lstm-1024 follow each other for 2,560 cycles (docs/timing.md, section 6), and a
    # coarse core turns to no other thread as long as they do
    core = replace(CORE, ep=16, vp=4096, threads=2)
    alone = shares(chip(core), job("late"))[0]
    hog, late = shares(chip(core), job("hog", hidden=1024), job("late", 100))
    assert hog == {"array": 2560, "drain": 68}
    assert late == {"other threads": 2460, **alone}
    # the cycles of the switch are not the other thread's
    hog, late = shares(chip(replace(core, switch_cycles=7)), job("hog", hidden=1024), job("late", 100))
    assert late == {"other threads": 2460, "switch": 7, **alone}


def test_weights_that_are_loaded_hold_up_the_request_and_those_behind_it() -> None:
    # room for the 2^21 weights of one lstm-512 and those of a small one; the large one's lie there at the start
    memory = Memory(gb_per_s=76.8, latency_cycles=64)
    core = replace(CORE, threads=2, weight_kib=2048 + 8)
    model = lstm(512)
    other = replace(model, name="other", layers=(Layer(cell("lstm"), 512, 500),))
    weights = 4 * 512 * (512 + 500)
    first, second, third = shares(
        chip(core, memory=memory),
        job("first"),
        Job("second", other, steps=20, arrival=10),
        Job("third", other, steps=20, arrival=20),
    )
    loading = ceil(weights * 8 / (8000 * 76.8 / 260)) + 64
    assert first == ALONE
    # a thread is free all the time, but not the weights of the one that runs
    assert (second["queue, weights"], second["reload"]) == (1423 - 10, loading)
    # its weights are on their way; then it comes to the second thread
    assert third["queue, weights"] == 1423 - 20 + loading
    assert "queue" not in third
    assert "reload" not in third


def test_cores_that_do_nothing_but_load_are_weights_and_not_requests_before() -> None:
    memory = Memory(gb_per_s=76.8, latency_cycles=64)
    core = replace(CORE, weight_kib=2048 + 8)
    other = replace(lstm(512), name="other", layers=(Layer(cell("lstm"), 512, 500),))
    loading = ceil(4 * 512 * 1012 * 8 / (8000 * 76.8 / 260)) + 64
    # one thread: the third finds it taken, first by a request that waits for its weights, then by one that runs
    jobs = [job("first"), Job("second", other, steps=20, arrival=10), Job("third", other, steps=20, arrival=20)]
    _, second, third = shares(chip(core, memory=memory), *jobs)
    ran = sum(second.values()) - second["queue"] - second["reload"]
    assert (second["queue"], second["reload"]) == (1413, loading)
    assert (third["queue"], third["queue, weights"]) == (1403 + ran, loading)


def test_a_request_that_was_stopped_was_paused_for_the_one_that_stopped_it() -> None:
    low = job("low", dispatch="priority", preempts=True)
    high = job("high", 500, dispatch="priority", priority=1, preempts=True)
    stopped, first = shares(chip(CORE), low, high)
    # it is asked at 500 and goes on to the next step; the other one waits for that, and is alone then
    assert {name: count for name, count in first.items() if name != "queue"} == ALONE
    assert stopped["paused"] == 1423
    assert first["queue"] < 1423 // 20 + 61
    assert stopped["array"] == 640
    assert "queue" not in stopped


def test_a_thread_that_is_kept_for_a_split_request() -> None:
    # the split one waits for core 0 and keeps those behind it off core 1, which is free
    machine = chip(CORE, CORE)
    jobs = [job("first", cores=(0,)), job("both", 10, cores=(0, 1), split="rows"), job("last", 20, cores=(1,))]
    first, both, last = shares(machine, *jobs)
    assert first == ALONE
    assert both["queue"] == 1423 - 10
    assert last["queue, kept"] == 1423 - 20
    assert last["queue"] == sum(both.values()) - both["queue"]
    # each core has the one row block half full, so it issues as long as one core would; mostly together
    assert 640 <= both["array"] <= 2 * 640
    assert sum(both.values()) - both["queue"] > both["array"]


def test_requests_that_all_come_at_once_or_one_alone_have_no_slowest() -> None:
    assert explained(chip(CORE), job("a"), job("b")).slowest is None
    program = machines.lower(chip(CORE), (job("a", 5),))
    assert slowest((job("a", 5),), program, engines.run(program)) is None


def test_the_slowest_are_one_in_a_hundred_rounded_up() -> None:
    arrival = {"kind": "fixed", "interval_cycles": 200}
    data = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-256", "steps": 1, "count": 250, "arrival": arrival}]}
    result = run(data, overrides=["chip.cores.0.threads=1", "jobs.0.arrival.interval_cycles=60"])
    slow = slowest(result.scenario.jobs, result.program, result.trace)
    assert slow is not None
    latencies = sorted(each.latency for each in result.report.jobs)
    assert (slow.requests, slow.count, slow.from_cycles) == (250, 3, latencies[-3])
    assert slow.latency.slowest == sum(latencies[-3:]) / 3
    assert [each.latency_cycles for each in slow.listed] == latencies[:-4:-1]
    for column in ("slowest", "all"):
        expected = getattr(slow.latency, "slowest" if column == "slowest" else "mean")
        assert sum(getattr(each, column) for each in slow.shares) == pytest.approx(expected)


def test_the_answer_of_an_overloaded_thread() -> None:
    # one step takes 32 tiles and 61 cycles more; one every 60 cycles: the n-th waits n times 33 cycles
    jobs = [replace(job(f"job{number}", 60 * number), steps=1) for number in range(300)]
    explanation = explained(chip(CORE), *jobs)
    assert explanation.slowest is not None
    sentences = slowest_answer(explanation.slowest, explanation.what_if)
    # 33 * 298 of 33 * 298 + 93 cycles
    start = "The slowest 1 % (3 of 300 requests), with 9,894 cycles or more, spent 99 % of their time in the queue"
    assert sentences[0] == f"{start}, with no thread free."
    # 298 - 149.5 times 33 cycles
    text = "They took 4,900 cycles longer than the mean request (5,026 cycles): queue +4,900."
    assert sentences[1] == text
    best = explanation.what_if.best_for_slowest
    assert best is not None
    assert best.latency is not None
    assert f"this shortens the slowest most: {best.name}" in sentences[2]
    changed = next(each for each in explanation.what_if.alternatives if each.name == "one more thread")
    assert changed.latency is not None
    trace = engines.run(machines.lower(chip(replace(CORE, threads=2)), jobs))
    latencies = sorted((trace.task("finish") - trace.task("arrived")).tolist())
    assert changed.latency.slowest == sum(latencies[-3:]) / 3
    assert changed.latency.mean == sum(latencies) / 300


def test_a_run_that_ends_soon_after_its_last_request_says_so_once() -> None:
    explanation = explained(chip(CORE), job("early"), job("late", 50_000))
    first, *others = answer(explanation)
    assert first.startswith("97 % of the makespan is over before the job arrives on which the last result depends")
    assert "at cycle 50,000: nothing on the chip shortens that. Only the 1,423 cycles after it count" in first
    assert not any("shortens it most" in sentence for sentence in others)
    text = explanation.to_text()
    assert text.index("WHY NOT 100 %") < text.index("WHAT HELD THE SLOWEST UP")
    assert max(map(len, text.splitlines())) <= 100


def test_requests_rejected_are_left_out_and_counted() -> None:
    jobs = [job(f"job{number}", 100 * number, queue_limit=1) for number in range(12)]
    explanation = explained(chip(CORE), *jobs)
    assert explanation.slowest is not None
    assert (explanation.slowest.requests, explanation.slowest.rejected) == (2 + 0, 10)
    sentences = slowest_answer(explanation.slowest, explanation.what_if)
    assert "serve other requests than this run, and are not compared." in sentences[-3]
    assert sentences[-1] == "10 more requests were rejected, and are not counted here."
    # with more threads others are served: their latencies are not those of the same requests
    one = next(each for each in explanation.what_if.alternatives if each.name == "one more thread")
    assert one.cycles is not None
    assert one.latency is None


@pytest.mark.slow
def test_json_and_text_have_the_same_figures() -> None:
    arrival = {"kind": "poisson", "rate_per_second": 150_000}
    jobs = [{"model": "lstm-512", "steps": 3, "count": 60, "arrival": arrival}]
    explanation = explain(run({"chip": "column-npu-64k", "jobs": jobs}))
    assert explanation.slowest is not None
    data = json.loads(json.dumps(explain_json(explanation), allow_nan=False))["slowest"]
    assert (data["requests"], data["slowest"], data["arriving"]) == (60, 1, "open")
    assert sum(each["slowest"]["share"] for each in data["shares"]) == pytest.approx(1)
    assert sum(each["all"]["share"] for each in data["shares"]) == pytest.approx(1)
    (listed,) = data["listed"]
    assert sum(listed["cycles"].values()) == listed["latency_cycles"] == data["from_cycles"]
    text = explanation.to_text()
    assert "WHAT HELD THE SLOWEST UP: the slowest of 60 requests" in text
    for each in data["shares"]:
        assert f"{each['name']}  " in text
    assert "WHAT WOULD HELP THE SLOWEST" in text
    at_once = explain(run({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5, "count": 3}]}))
    assert explain_json(at_once)["slowest"] is None
