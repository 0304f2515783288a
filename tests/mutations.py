"""Flat programs that are wrong in all ways: words of legal ones changed at random, and garbage. Each is opened and run
by the fast engine's core for a while. It may be refused, with a sentence that is true, or run; nothing else may happen.

    python -m tests.mutations COUNT FOLDER

tries at least COUNT of them. The one that is being tried lies in FOLDER, so that after a crash one can see it.
"""

from __future__ import annotations

import re
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lstmsim import machines
from lstmsim.base.errors import ProgramError
from lstmsim.engines.fast.run import Machine, Outcome, Table
from lstmsim.program.flat import FLAT_TABLES, FORMAT, FlatProgram, flat_program
from lstmsim.program.flatten import flat_of
from lstmsim.program.trace import TASKS
from lstmsim.studies.shared.loading import load_scenario
from tests.barrier_programs import barrier_programs
from tests.machines.test_batching_random import drawn_scenario
from tests.packing import packed
from tests.steady_programs import steady_programs
from tests.strategies import joint_programs, pooled_programs, preempting_programs, programs, scenarios

Words = NDArray[np.int64]

#: Mutations of each program.
OF_EACH = 40
#: Seconds that a flat program may take, and memory beyond what the process has at the start, in bytes.
MOST_SECONDS, MOST_BYTES = 2.0, 3 * 2**29
#: Events of a run, and how often it goes on.
EVENTS, TIMES = 20_000, 3
_CELL = re.compile(r"table (\w+), row (\d+): (\w+) is (-?\d+), .+")
_TABLE = re.compile(r"table (\w+): .+")
_OTHER = re.compile(
    r"the program is not of format \d+|the directory has no place for table \w+|"
    r"where tasks preempt others, there are no barriers and no packed bodies|"
    r"requests cannot come to a program that has barriers"
)
_RUN = re.compile(
    r"the run comes to cycle|a sum does not fit|the frame of step -?\d+ lies|the running tasks remember|"
    r"more than \d+ arrive at barrier|a batch is larger than its tasks have variants for"
)


def numbers(random: Random, value: int) -> int:
    """Another number in place of a value."""
    return random.choice(
        (
            value ^ (1 << random.randrange(63)),
            value + random.choice((-1, 1)),
            value + random.randrange(-9, 10),
            random.randrange(2**31, 2**63),
            (1 << random.randrange(15, 63)) - random.randrange(2),
            -random.randrange(1, 2**63),
            random.choice((-(2**63), -1, 0, 1, 2, 2**63 - 1)),
            random.randrange(12),
        )
    )


def mutated(tables: dict[str, Words], random: Random) -> Words:
    """The words of a program of which something was changed."""
    tables = {name: table.copy() for name, table in tables.items()}
    filled = [name for name, table in tables.items() if len(table)]
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        name = random.choice(filled)
        table = tables[name]
        row, other = random.randrange(len(table)), random.randrange(len(table))
        match random.randrange(9):
            case 0:
                table[[row, other]] = table[[other, row]]
            case 1:
                tables[name] = np.concatenate([table, table[row : row + random.randrange(1, 4)]])
            case 2 if len(table) > 1:
                tables[name] = np.delete(table, row, axis=0)
            case 3:
                column = random.randrange(table.shape[1])
                table[row, column] = table[other, column]
            case _:
                column = random.randrange(table.shape[1])
                table[row, column] = wrapped(numbers(random, int(table[row, column])))
    words = flat_program(tables).words.copy()
    match random.randrange(12):
        case 0:
            place = random.randrange(1 + 2 * len(FLAT_TABLES))
            words[place] = wrapped(numbers(random, int(words[place])))
        case 1:
            words = words[: random.randrange(len(words))]
        case 2:
            place = random.randrange(len(words))
            words[place] = wrapped(numbers(random, int(words[place])))
    return words


def wrapped(number: int) -> int:
    """The number as it is kept in 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def garbage(random: Random) -> Words:
    """Numbers that are no program, most of them with a directory that is right."""
    bits = random.choice((1, 2, 3, 5, 20, 63))
    words = np.array([random.getrandbits(bits) for _ in range(random.randrange(400))], dtype=np.int64)
    if random.randrange(4) == 0:
        return words
    tables = {}
    for name, each in FLAT_TABLES.items():
        count = 1 if name == "head" else random.randrange(4)
        tables[name] = np.array([random.getrandbits(bits) - (bits == 1) for _ in range(count * each.width)], np.int64)
    tables["head"] = np.array([[12, 0, 1, 2, 3, 0]])
    return flat_program(tables).words.copy() if random.randrange(3) else np.concatenate([[FORMAT], words])


def requests(random: Random, tasks: int) -> Words:
    """What may come in a feed; some of it may not."""
    releases = sorted(random.randrange(60) for _ in range(random.randrange(6)))
    rows = [[release, random.randrange(max(tasks, 1)), random.randrange(-3, 4)] for release in releases]
    given = np.array(rows, dtype=np.int64).reshape(-1, 3)
    if len(given) and random.randrange(3) == 0:
        place = random.randrange(given.size)
        given.flat[place] = wrapped(numbers(random, int(given.flat[place])))
    return given


def refusal_is_true(sentence: str, words: Words) -> bool:
    """Whether a refusal says where and what, and whether that is what stands there."""
    if cell := _CELL.fullmatch(sentence):
        table, row, column, value = cell.groups()
        if table == "requests":
            return column in ("release", "template", "key")
        program = FlatProgram(np.ascontiguousarray(words))
        return int(program.column(table, column)[int(row)]) == int(value)
    if reported := _TABLE.fullmatch(sentence):
        return reported[1] in FLAT_TABLES
    return _OTHER.fullmatch(sentence) is not None


def tried(words: Words, random: Random) -> str:
    """What happened to a flat program; `AssertionError` if that may not happen."""
    fed = random.randrange(4) == 0
    try:
        machine = Machine(SimpleNamespace(words=words), keep=random.randrange(2) == 0, fed=fed)  # type: ignore[arg-type]
    except ProgramError as error:
        said = str(error)
        if not refusal_is_true(said, words):
            raise AssertionError(f"refused, but: {said}") from error
        return "refused"
    tasks = int(FlatProgram(words).column("tasks", "profile").shape[0])
    try:
        for time_ in range(TIMES):
            if fed:
                machine.feed(requests(random, tasks), more=time_ < TIMES - 1 and random.randrange(2) == 0)
            outcome = machine.run(EVENTS)
            if outcome is not Outcome.PAUSED and not (fed and outcome is Outcome.HUNGRY):
                break
    except ProgramError as error:
        said = str(error)
        if fed and (refusal_is_true(said, words) or said.startswith("there are requests that have not come")):
            return "refused request"
        if not _RUN.match(said):
            raise AssertionError(f"given up, but: {said}") from error
        return "given up"
    for table in Table:
        machine.table(table, 1)
    machine.waits()
    machine.totals(100_000, 1)
    assert machine.table(Table.TASKS, len(TASKS.names)) is not None
    return outcome.name


def check(words: Words, random: Random, seen: Counter[str], place: Path, slower: int) -> None:
    """Try a flat program, within its time."""
    place.write_bytes(words.tobytes())
    start = time.process_time()
    seen[tried(words, random)] += 1
    seconds = time.process_time() - start
    assert seconds < MOST_SECONDS * slower, f"took {seconds:.1f} s"


def tables_of(program: FlatProgram) -> dict[str, Words]:
    """Its tables by name."""
    return {name: program.table(name) for name in FLAT_TABLES}


@st.composite
def flat_programs(draw: st.DrawFn) -> FlatProgram:
    """Of random programs and scenarios."""
    kind = draw(st.integers(0, 5))
    if kind == 0:
        pooled = load_scenario(drawn_scenario(Random(draw(st.integers(0, 2**32)))))
        return flat_of(machines.lower(pooled.chip, pooled.jobs))
    if kind == 1:
        scenario = draw(scenarios())
        return flat_of(machines.lower(scenario.chip, scenario.jobs))
    plain = st.one_of(
        programs(), joint_programs(), joint_programs(moldable=True), preempting_programs(), pooled_programs()
    )
    flat = flat_of(draw(st.one_of(plain, barrier_programs(), steady_programs())))
    return packed(flat) if draw(st.booleans()) and not flat.column("profiles", "preempts").any() else flat


def limit_memory() -> None:
    """No more than `MOST_BYTES` from now on, where the system can tell and keep that."""
    statistics = Path("/proc/self/statm")
    if statistics.exists():
        now = int(statistics.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MOST_BYTES, -1))


def try_all(count: int, place: Path, *, slower: int = 1) -> Counter[str]:
    """How often each thing happened, with so many flat programs at least.

    place: the file in which the one lies that is being tried.
    slower: how many times longer than usual one may take.
    """
    seen: Counter[str] = Counter()

    @settings(
        max_examples=max(1, count // OF_EACH), deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(flat_programs(), st.integers(0, 2**32))
    def each(program: FlatProgram, seed: int) -> None:
        random, tables = Random(seed), tables_of(program)
        for _ in range(OF_EACH):
            check(mutated(tables, random), random, seen, place, slower)
        for _ in range(OF_EACH // 10):
            check(garbage(random), random, seen, place, slower)

    each()
    return seen


if __name__ == "__main__":
    limit_memory()
    print(dict(try_all(int(sys.argv[1]), Path(sys.argv[2], "words"))))
