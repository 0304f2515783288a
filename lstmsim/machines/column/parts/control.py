"""The control of a core: issue logic with its threads, the order of the tail with its delay line, the dispatcher."""

from __future__ import annotations

from lstmsim.machines.column.parts.sizes import Sizes
from lstmsim.machines.column.tail import depths
from lstmsim.machines.hardware import Demand, Part

__all__ = ["control"]

#: Functions of four inputs for a bit of a thread's running numbers, and for each row of the control store more.
_THREAD_GATES, _ROW_GATES = 4.0, 0.25
#: Functions of four inputs a thread for each further kind of job: how a job begins is a table of constants that each
#: thread chooses from, and alike jobs have alike entries. Of two designs with 4 and 14 kinds of jobs.
_KIND_GATES = 25


def control(sizes: Sizes) -> tuple[Part, ...]:
    """Issue logic, tail control, dispatcher."""
    return _issue(sizes), _tail(sizes), _dispatch(sizes)


def _token(sizes: Sizes) -> int:
    """Bits of what goes with a block from its last tile to the tail."""
    words = sizes.words
    names = ("thread", "job", "row", "step", "block", "bank", "turn", "constant")
    return sum(words[each] for each in names) + 2 * words["unit"] + words["element"] * sizes.kept


def _issue(sizes: Sizes) -> Part:
    """Threads, each with running addresses and counters of what is visible; the way of a block to the tail."""
    core, words = sizes.core, sizes.words
    counters = max(
        sum(layer.directions * (1 + len(layer.cell.stages[1:])) for layer in model.layers) for model in sizes.models
    )
    names = (
        "job",
        "row",
        "row",
        "read",
        "step",
        "block",
        "group",
        "weight",
        "frame",
        "frame",
        "bank",
        "bank",
        "constant",
    )
    thread = sum(words[each] for each in names) + 2 * words["unit"] + counters * (words["step"] + words["unit"])
    thread += words["element"] * (1 + 3 * sizes.kept)
    cycles = core.latency.mvm_cycles(core.ep) - core.latency.convert
    gates = core.threads * thread * (_THREAD_GATES + _ROW_GATES * sizes.stage_rows)
    gates += core.threads * _KIND_GATES * (sizes.stored.kinds - 1)
    return Part("issue", gates=round(gates), registers=core.threads * thread + cycles * (_token(sizes) + 1))


def _tail(sizes: Sizes) -> Part:
    """The queue of blocks, the turns of one of them, and the line of tokens down to the write of h."""
    core, words = sizes.core, sizes.words
    latency = vars(core.latency)
    depth = [depths(cell, latency, core.tail_width) for cell in sizes.cells]
    visible = max(each[cell.output] for each, cell in zip(depth, sizes.cells, strict=True))
    cycles = core.latency.convert + visible + core.latency.writeback
    names = ("thread", "job", "row", "step")
    entry = sum(words[each] for each in names) + 2 * words["unit"] + 3 + words["element"] * sizes.kept
    token = _token(sizes)
    going = token + words["unit"]
    queue = Demand("blocks", core.threads * core.accumulator_banks * token, token, writes=1, instant=True)
    return Part(
        "tail control",
        gates=round(3.5 * going),
        registers=cycles * entry + (cycles // 2) * words["turn"] + going + core.threads * 8,
        memories=(queue,),
    )


def _dispatch(sizes: Sizes) -> Part:
    """Which job takes which context."""
    contexts, bits = sizes.core.threads, sizes.words["job"] + 1
    # each of the next jobs is compared with the count of posted ones, and chosen for each context
    return Part("dispatch", gates=contexts * (contexts + 1) * bits * 2, registers=contexts + bits)
