"""Words for a run of the fast engine that got stuck."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lstmsim.engines.fast import layout as at
from lstmsim.engines.fast.streams import end_of_need
from lstmsim.errors import DeadlockError
from lstmsim.program.program import Phase, Program
from lstmsim.program.validate import describe_wait

__all__ = ["deadlock"]


def deadlock(program: Program, T: Sequence[int], S: Sequence[int]) -> DeadlockError:
    """Who waits for what, in order of cores and threads; the cycle is that of the last start or admission."""
    records = [S[at.S_CORE] + core * at.S_CORE_SIZE for core in range(len(program.cores))]
    starts = [int(S[k + at.LAST] + S[k + at.OFFSET]) for k in records]
    contexts = range(sum(core.contexts for core in program.cores))
    entered = [int(S[S[at.S_CONTEXT] + c * at.S_CONTEXT_SIZE + at.ENTERED]) for c in contexts]
    return DeadlockError(max([*starts, *entered]), tuple(_waits(program, T, S)))


def _waits(program: Program, T: Sequence[int], S: Sequence[int]) -> Iterator[str]:
    contexts = ((core, thread) for core in program.cores for thread in range(core.contexts))
    for c, (core, _) in enumerate(contexts):
        x = S[at.S_CONTEXT] + c * at.S_CONTEXT_SIZE
        if S[x + at.TASK] < 0:
            continue
        task = program.tasks[S[x + at.TASK]]
        lead = member = S[x + at.LEAD]
        members = 0
        while member >= 0:
            members, member = members + 1, S[member + at.NEXT]
        phases = task.phases(program.cores[S[lead + at.AT_CORE]].kind, members)
        for u in range(len(core.units)):
            s = S[at.S_STREAM] + (c * T[at.N_UNITS] + u) * at.S_STREAM_SIZE
            if S[s + at.LEFT] > 0 and S[s + at.READY] == at.NEVER:
                operation = phases[S[s + at.PHASE]].body.operations[T[S[s + at.OPERATION] + at.INDEX]]
                yield describe_wait(task, operation, _lacking(T, S, phases, x, s))


def _lacking(T: Sequence[int], S: Sequence[int], phases: tuple[Phase, ...], x: int, s: int) -> str:
    """The first thing that an operation needs and that has not started."""
    own, o = S[s + at.PHASE], S[s + at.OPERATION]
    p = S[x + at.PHASES_AT] + own * at.S_PHASE_SIZE
    iteration = S[s + at.ITERATION] + S[p + at.SKIPPED]
    for index, need in enumerate(phases[own].body.operations[T[o + at.INDEX]].needs):
        if end_of_need(T, S, x, s, T[o + at.NEED0] + index * at.T_NEED_SIZE) == at.NEVER:
            source = own if need.phase is None else need.phase
            where = iteration - need.lag if need.phase is None else iteration
            if need.mirrored and need.phase is not None:
                where = phases[source].repeat - 1 - iteration
            label = phases[source].body.operations[need.operation].label or "operation"
            return f"{label} {need.operation} of phase {source}, iteration {where}"
    return f"a free slot of buffer {T[o + at.TAKES]}"
