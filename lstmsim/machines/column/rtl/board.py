"""What a design has on a board: the bridge's sizes, its schedule, and how its records of results are read.

The Verilog is `verilog/board/`; docs/board.md section 2 has the memory map, and says what a record is.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from importlib.resources import files as package_files
from itertools import groupby
from typing import Any

from lstmsim.base.errors import Mistake
from lstmsim.machines.column.rtl.lanes.netlist import safe
from lstmsim.machines.column.rtl.layout import headers, localparams, number_text, widths
from lstmsim.machines.column.rtl.plan import Design, VectorMemory
from lstmsim.machines.column.shape import LATENCIES
from lstmsim.machines.rtl import AT_PORTS, Event
from lstmsim.model.cell import REDUCTIONS

#: Words of an entry of the schedule, and of the fields in its second word.
_FRAMES, _JOB_SHIFT, _MOST_JOBS, _MOST_STEPS = 1 << 31, 16, 1 << 15, (1 << 16) - 1


def schedule(design: Design) -> list[tuple[int, int]]:
    """The entries of the schedule: the cycle from which on something is there, and what (a count of jobs or of frames).

    Frames of jobs are there from the start, as far as they come with the job: nobody reads them before it.
    """
    jobs = list(enumerate(design.jobs))
    entries = [
        (0, _FRAMES | number << _JOB_SHIFT | (1 if job.frame_interval else job.steps))
        for number, job in jobs
        if job.steps
    ]
    for arrival, own in groupby(jobs, key=lambda each: each[1].arrival):
        entries.append((arrival, max(number for number, _ in own) + 1))
    for number, job in jobs:
        if job.frame_interval:
            first = job.arrival
            entries += [
                (first + step * job.frame_interval, _FRAMES | number << _JOB_SHIFT | step + 1)
                for step in range(1, job.steps)
            ]
    return sorted(entries, key=lambda entry: entry[0])


def schedule_mistakes(design: Design) -> list[Mistake]:
    """Why a schedule cannot be posted from its memory: an entry a cycle, those of a cycle gathered before it."""
    if len(design.jobs) >= _MOST_JOBS or any(job.steps > _MOST_STEPS for job in design.jobs):
        return [Mistake("jobs", f"a board takes up to {_MOST_JOBS - 1} jobs of up to {_MOST_STEPS} steps")]
    if design.split:
        return [Mistake("jobs", "split over cores, and a board's bridge knows no members of jobs: leave out `split`")]
    if design.memory is not None:
        return [Mistake("chip", "memory: a board streams no weights, they must fit on the chip")]
    before = 0
    for due, own in groupby(schedule(design), key=lambda entry: entry[0]):
        count = len(list(own))
        if due and count > due - before:
            text = f"{count} jobs and frames come in cycle {due:,}, {due - before:,} cycles after those before"
            return [Mistake("jobs", f"{text}: the schedule memory of a board gives one a cycle")]
        before = due
    return []


def records(events: Sequence[Event]) -> int:
    """Records of results that a run makes: cycles in which a job is admitted or ends, or h is there."""
    return len({each.cycle for each in events if each.kind in AT_PORTS})


def board_files(
    design: Design, events: Sequence[Event], files: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """The Verilog of a board behind its pins, below `board/`, and what its host must know.

    files: those of the design.
    """
    sizes = board_sizes(design, events, files)
    folder = package_files("lstmsim.machines.column.rtl") / "verilog" / "board"
    modules = {f"board/{each.name}": each.read_text(encoding="utf-8") for each in folder.iterdir() if each.is_file()}
    bench = folder / "sim" / "npu_board_tb.v"
    modules["board/sim/npu_board_tb.v"] = bench.read_text(encoding="utf-8")
    known = localparams(files["rtl/npu_config.vh"]) | localparams(number_text(sizes.items()))
    sized = {path.replace("rtl/", "board/"): text for path, text in headers(modules, known).items()}
    return dict(sorted({**modules, **sized}.items())), board_data(design, sizes)


def board_sizes(design: Design, events: Sequence[Event], files: Mapping[str, str]) -> dict[str, int]:
    """The localparams of a board; DESIGN_ID tells whether a bitstream is of these files."""
    most = max(plan.core.tail_width for plan in design.cores) * design.precision.vector_bits
    # of designs whose jobs are a table, the testbench's sizes are no part of what is synthesized
    apart = "rtl/npu_config.vh" if design.capacity else ""
    names = (name for name in sorted(files) if name.startswith("rtl/") and name != apart)
    text = "".join(f"{name}\n{files[name]}" for name in names)
    room = _room(design)
    return {
        "RESULTS": max(2, records(events) * room),
        "SCHEDULE": max(2, len(schedule(design)) * room),
        "MOST_WORD": most,
        # the log has no other vectors than h
        "KEPT": sum((memory.slot == 0) << place for place, memory in enumerate(_memories(design))),
        # from the text, for a host that asks what it talks to
        "DESIGN_ID": zlib.crc32(text.encode()),
    }


def _room(design: Design) -> int:
    """How many times the steps of its jobs a table of jobs may have: results and schedule have as much more room."""
    most = design.capacity[0] * design.capacity[1] if design.capacity else 0
    return max(1, -(-most // max(1, sum(job.steps for job in design.jobs))))


def _memories(design: Design) -> list[VectorMemory]:
    return [memory for plan in design.cores for memory in plan.memories]


def board_data(design: Design, sizes: Mapping[str, int]) -> dict[str, Any]:
    """What a host program must know: schedule, sizes, and the fields of a record from its lowest bit on."""
    wide = widths(design)
    contexts = len(design.cores) << wide["W_THREAD"]
    memories = [
        {
            "core": plan.number,
            "slot": memory.slot,
            "digits": -(-plan.core.tail_width * design.precision.vector_bits // 4),
        }
        for plan in design.cores
        for memory in plan.memories
    ]
    vector = [
        ("job", wide["W_JOB"]),
        ("row", wide["W_ROW"]),
        ("step", wide["W_STEP"]),
        ("unit", wide["W_UNIT"]),
        ("count", wide["W_UNIT"]),
        ("word", sizes["MOST_WORD"]),
    ]
    bits = 32 + 2 * contexts * (1 + wide["W_JOB"]) + len(memories) * (1 + sum(width for _, width in vector))
    return {
        "design_id": sizes["DESIGN_ID"],
        "results": sizes["RESULTS"],
        "jobs": len(design.jobs),
        "schedule": [list(entry) for entry in schedule(design)],
        "record": {
            "bits": bits,
            "cores": len(design.cores),
            "contexts": contexts,
            "job_bits": wide["W_JOB"],
            "vector": [list(each) for each in vector],
            "vector_bits": design.precision.vector_bits,
            "memories": memories,
            "pass_of_row": [row.number for row in design.rows],
        },
    }


#: Parts of a design by their instances, the innermost first: the name in words; the latency that gives such a path
#: further registers (empty: none does), and from which value on.
_PLACES: tuple[tuple[str, str, str, int], ...] = (
    (r"adapter\.adapters\[(\d+)\]", "adapter{product} of lane {lane}", "convert", 7),
    (r"constant_memory\.|[.]pick\.", "choice of what the adapter takes", "convert", 5),
    (r"array\.rows\[(\d+)\]\.row\.(?:operand|product)", "array{product} of row {number}", "multiply", 4),
    (r"array\.rows\[(\d+)\]\.row\.levels", "adder tree of row {number}", "add", 2),
    (r"array\.rows\[(\d+)\]", "accumulator of row {number}", "accumulate", 2),
    (r"(?:weight|frame)_memory\.|memories\[\d+\]\.vectors", "memories of operands", "read", 4),
    (r"issue\.threads\[(\d+)\]", "readiness of thread {number}", "", 0),
    (r"\bissue\.", "ring of the threads", "", 0),
    (r"\btail\.", "order of the tail", "", 0),
    (r"\bdispatch\.", "dispatcher", "", 0),
    (r"\bboard\.(?!system\.chip)", "host bridge", "", 0),
)


#: A multiplier, as Yosys names it or as an instance of `npu_product`.
_PRODUCT = re.compile(r"MULT18X18D|\.blocks\[\d+\]\.block\b")
#: From which `convert` on the blocks of the adapter's product have registers before and behind them.
_SPLIT_PRODUCT = 5
#: A lane of the tail by its instance: kind of cell, lane, what of it.
_LANE = re.compile(r"cores\[(\d+)\].*?\bg_k(\d+)\[(\d+)\]\.lane\.(\w*)")


def path_words(design: Design, cells: Sequence[str]) -> tuple[str, str]:
    """A path of a placed design in words, and what would shorten it.

    cells: the cells on it, by their names in the netlist, which begin with the path of instances.
    """
    product = " product" if any(_PRODUCT.search(cell) for cell in cells) else ""
    (start, _), (end, advice) = (_place(design, each, product) for each in (cells[0], cells[-1]))
    return (end if start == end else f"{start} to {end}"), advice


def _place(design: Design, cell: str, product: str) -> tuple[str, str]:
    """Where a cell is, in words, and which latency would help there."""
    if match := _LANE.search(cell):
        return _in_lane(design, match, product)
    core = int(match[1]) if (match := re.search(r"cores\[(\d+)\]", cell)) else 0
    for pattern, words, key, least in _PLACES:
        match = re.search(pattern, cell)
        if match is None:
            continue
        number = int(match[1]) if match.groups() else 0
        text = words.format(number=number, lane=number // design.cores[core].sums, product=product)
        if not key:
            return text, "no latency of a scenario gives this path another register"
        now = getattr(design.cores[core].core.latency, key)
        least = _SPLIT_PRODUCT if product and key == "convert" else least
        if now >= least:
            return text, f"no latency: from {least} on, latency.{key} (now {now}) gives this path no other register"
        return text, f"latency.{key} of {least} instead of {now} gives this path more registers, and changes cycles"
    return cell, "not known"


def _in_lane(design: Design, match: re.Match[str], product: str) -> tuple[str, str]:
    """A place in a lane of the tail: the node is the one with the longest name that fits."""
    plan = design.cores[int(match[1])]
    named = {f"n_{safe(node.name)}": node for node in plan.kinds[int(match[2])].cell.nodes}
    fits = [name for name in named if match[4] == name or match[4].startswith(f"{name}_")]
    lane = f"tail lane {match[3]}{product}"
    if not fits:
        return lane, "not known"
    node = named[max(fits, key=len)]
    key = LATENCIES.of_operation(node.operation) if node.operation not in REDUCTIONS else "elementwise_add"
    now = getattr(plan.core.latency, key)
    return f"{lane}, {node.operation} {node.name}", f"latency.{key} (now {now}) is how many registers this has"
