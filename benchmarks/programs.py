"""The programs that the engines are measured with."""

from __future__ import annotations

from collections.abc import Callable

from lstmsim import load_scenario, machines
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit

__all__ = ["PROGRAMS", "deepbench", "issues_of", "multiprocessor", "one_layer"]

#: Cycles to the result of an operation on an issue unit, of an access to memory, and between units on the way there.
#: Assumptions: sizes that are usual for GPUs. They decide how much threads wait, not how many issues there are.
_ALU_CYCLES, _MEMORY_CYCLES, _HOP_CYCLES = 4, 200, 2
#: 64 threads of 17 issues in each iteration; 1,002 iterations have 1,090,176 issues.
_THREADS, _ISSUE_UNITS = 64, 4


def deepbench(model: str, *, jobs: int = 1, **core: object) -> Program:
    """Some jobs of a model on the preset `column-npu-64k`; `core` has keys of its core with other values."""
    overrides = [f"chip.cores.0.{key}={value}" for key, value in core.items()]
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": model, "count": jobs}]}, overrides)
    return machines.lower(scenario.chip, scenario.jobs)


def one_layer(model: str, steps: int) -> Program:
    """A job of so many steps on the preset `column-npu-64k`."""
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": model, "steps": steps}]})
    return machines.lower(scenario.chip, scenario.jobs)


def multiprocessor(iterations: int = 1_002) -> Program:
    """A machine like a multiprocessor of a GPU: 64 threads on 4 issue units, and 3 units that all of them share.

    Thread t issues on unit t modulo 4, which stays with a thread until that has to wait. An iteration has 11 operations
    there, each of which needs the one before, and two accesses to memory: by way of the load unit and the port.
    """
    units = [Unit(f"issue{number}", "coarse") for number in range(_ISSUE_UNITS)]
    units += [Unit(name, "fifo") for name in ("load", "port", "memory")]
    load, port, memory = range(_ISSUE_UNITS, _ISSUE_UNITS + 3)

    def body(issue: int) -> Body:
        operations: list[Operation] = []
        ready = 0  # cycles from the start of the last operation until the next one may start
        for number in range(11):
            needs = (Dependence(len(operations) - 1, ready),) if operations else ()
            operations.append(Operation(issue, needs=needs, result_cycles=_ALU_CYCLES))
            ready = _ALU_CYCLES
            if number in (3, 7):
                for unit, cycles in ((load, 1), (port, 2), (memory, 2)):
                    needs = (Dependence(len(operations) - 1, _HOP_CYCLES),)
                    operations.append(Operation(unit, cycles=cycles, needs=needs, result_cycles=_MEMORY_CYCLES))
                ready = _MEMORY_CYCLES
        return Body(tuple(operations))

    variants = [((0, (Phase(body(issue), iterations),)),) for issue in range(_ISSUE_UNITS)]
    tasks = [Task(f"thread{number}", variants[number % _ISSUE_UNITS], (), (0,)) for number in range(_THREADS)]
    return Program((Core(0, tuple(units), _THREADS),), tuple(tasks))


def issues_of(program: Program) -> int:
    """Give how many issues the tasks of a program have; each task has one variant."""
    return sum(
        operation.count * phase.repeat
        for task in program.tasks
        for _, phases in task.variants
        for phase in phases
        for operation in phase.body.operations
    )


#: Name -> what the program is, and how to make it.
PROGRAMS: dict[str, tuple[str, Callable[[], Program]]] = {
    "A": (
        "GRU-1024, 1,500 steps, on `column-npu-64k`, one coarse thread",
        lambda: deepbench("deepbench-gru-1024-1500"),
    ),
    "B": (
        "the same four times, on 4 fine threads",
        lambda: deepbench("deepbench-gru-1024-1500", jobs=4, threads=4, thread_policy="fine"),
    ),
    "C": ("like a GPU's multiprocessor: 64 threads, 4 issue units, 3 shared units", multiprocessor),
    "D": ("GRU-2816, 750 steps, on `column-npu-64k`", lambda: deepbench("deepbench-gru-2816-750")),
}
