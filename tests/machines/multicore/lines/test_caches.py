"""Caches in C++ and in plain Python count the same; what is no table of runs is refused by both."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lstmsim.machines.multicore.lines import caches as native
from lstmsim.machines.multicore.lines.caches import OWN_LIBRARY, Caches, NativeCaches, PlainCaches, open_caches
from lstmsim.machines.multicore.lines.space import COLUMNS, Array, Runs
from lstmsim.native.sources import COMMON
from tests.machines.multicore.chips import TOY, changed, unchecked
from tests.machines.multicore.lines.random_runs import random_case

#: 2,000 and more by LSTMSIM_EXAMPLES=2000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "19"))
needs_library = pytest.mark.skipif(OWN_LIBRARY.absence is not None, reason="the caches' library is missing")
BOTH = [PlainCaches, pytest.param(NativeCaches, marks=needs_library)]
SPACE = (Array("A", 0, 8192), Array("C", 8192, 100, shared=True))


def run(*rows: tuple[int, int, bool]) -> Runs:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Runs(table[:, 0], table[:, 1], table[:, 2].astype(np.bool_))


@needs_library
def test_both_count_the_same_on_random_runs() -> None:
    seen = np.zeros(len(COLUMNS), dtype=np.int64)
    for seed in range(EXAMPLES):
        machine, arrays, cores, runs = random_case(seed)
        plain, quick = PlainCaches(machine, arrays), NativeCaches(machine, arrays)
        half = len(runs) // 2
        for part in (slice(half), slice(half, None)):
            expected = plain.drive(cores[part], runs[part])
            np.testing.assert_array_equal(quick.drive(cores[part], runs[part]), expected, err_msg=f"seed {seed}")
            seen += expected[:, : len(COLUMNS)].sum(axis=0)
            memory = expected[:, COLUMNS.index("memory_read")] + expected[:, COLUMNS.index("memory_write")]
            assert (expected[:, len(COLUMNS) :].sum(axis=1) == memory).all()
    assert (seen > EXAMPLES).all(), dict(zip(COLUMNS, seen.tolist(), strict=True))


@needs_library
def test_steps_may_come_in_any_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, arrays, cores, runs = random_case(5)
    whole = NativeCaches(machine, arrays).drive(cores, runs)
    for portion in (1, 7):
        monkeypatch.setattr(native, "_RUNS", portion)
        np.testing.assert_array_equal(NativeCaches(machine, arrays).drive(cores, runs), whole)


@needs_library
def test_caches_side_by_side_do_not_know_of_each_other() -> None:
    cases = [random_case(seed) for seed in range(8)]

    def counted(number: int) -> np.ndarray:
        machine, arrays, cores, runs = cases[number]
        return NativeCaches(machine, arrays).drive(cores, runs)

    one_by_one = [counted(number) for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for row, expected in zip(pool.map(counted, range(8)), one_by_one, strict=True):
            np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("kind", BOTH)
class TestOf:
    """What a user of the caches sees, of each kind."""

    def test_a_dirty_line_of_another_group_goes_through_its_cache_to_memory(self, kind: type[Caches]) -> None:
        machine = changed(TOY, cores=4, cores_per_llc=1, cores_per_domain=2)
        caches = kind(machine, SPACE)  # type: ignore[call-arg]
        rows = caches.drive([0, 3, 0, 3], [run((8192, 4, write)) for write in (True, False, True, True)])
        column = {name: rows[:, number].tolist() for number, name in enumerate(COLUMNS)}
        assert column["transfers"] == [0, 1, 0, 1]
        # page 2 is at home in memory 0, which is that of cores 0 and 1: core 3 fetches and writes it from afar
        assert (column["memory_read"], column["memory_write"]) == ([1, 1, 1, 1], [0, 1, 0, 1])
        assert column["remote"] == [0, 2, 0, 2]
        assert rows[:, len(COLUMNS) :].tolist() == [[1, 0], [2, 0], [1, 0], [2, 0]]

    def test_a_core_of_the_same_group_finds_a_dirty_line_in_the_last_level(self, kind: type[Caches]) -> None:
        rows = kind(TOY, SPACE).drive([0, 1], [run((8192, 4, True))] * 2)  # type: ignore[call-arg]
        assert rows[1].tolist()[:12] == [1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1]

    def test_nothing_is_touched_by_no_runs_and_by_empty_ones(self, kind: type[Caches]) -> None:
        caches = kind(TOY, SPACE)  # type: ignore[call-arg]
        assert not caches.drive([0, 1], [run(), run((0, 0, True), (12288, 0, False))]).any()
        assert caches.drive([], []).shape == (0, 13)

    @pytest.mark.parametrize("core", [-1, 2, 2**40])
    def test_a_core_that_is_not_there(self, kind: type[Caches], core: int) -> None:
        with pytest.raises(ValueError, match=f"there is no core {core} among 2"):
            kind(TOY, SPACE).drive([core], [run((0, 4, False))])  # type: ignore[call-arg]

    @pytest.mark.parametrize("row", [(-1, 4), (12288, 1), (12000, 289), (0, -1), (2**62, 2**62), (4, 2**63 - 1)])
    def test_a_run_outside_the_space(self, kind: type[Caches], row: tuple[int, int]) -> None:
        with pytest.raises(ValueError, match="a run is not inside the space of 12288 bytes"):
            kind(TOY, SPACE).drive([0], [run((*row, False))])  # type: ignore[call-arg]

    def test_as_many_cores_as_steps(self, kind: type[Caches]) -> None:
        with pytest.raises(ValueError, match="there are 2 cores for 1 steps"):
            kind(TOY, SPACE).drive([0, 1], [run((0, 4, False))])  # type: ignore[call-arg]

    @pytest.mark.parametrize(
        ("arrays", "said"),
        [
            ([Array("B", 4096, 8)], "B does not begin behind"),
            ([Array("A", 0, 5000), Array("B", 4096, 8)], "B does not begin behind"),
            ([Array("A", 0, 8, domain=1)], "A is in memory 1 of 1"),
        ],
    )
    def test_arrays_that_do_not_lie_one_behind_the_other(
        self, kind: type[Caches], arrays: list[Array], said: str
    ) -> None:
        with pytest.raises(ValueError, match=said):
            kind(TOY, arrays)  # type: ignore[call-arg]


@needs_library
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"l1_sets": 0}, "a number of the machine is 0, not 1 to"),
        ({"l2_ways": -3}, "a number of the machine is -3"),
        ({"llc_sets": 2**31, "llc_ways": 2**31}, "how many lines a cache has is"),
        ({"llc_sets": 2**31}, "how many lines a cache has is"),
        ({"cores": 2**21}, "how many cores there are is 2097152, not 1 to 1048576"),
    ],
)
def test_the_library_refuses_machines_that_it_cannot_hold(changes: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        NativeCaches(unchecked(TOY, **changes), SPACE)
    NativeCaches(TOY, SPACE)


@needs_library
def test_the_library_refuses_a_space_of_more_lines_than_it_can_number() -> None:
    with pytest.raises(ValueError, match="how many pages there are is 2, not 0 to 1"):
        NativeCaches(unchecked(TOY, line=1, page=2**30 + 2**29), (Array("A", 0, 2**31),))


def test_without_the_library_the_plain_ones_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OWN_LIBRARY, "absence", "it was not built")
    assert isinstance(open_caches(TOY, SPACE), PlainCaches)


@pytest.mark.skipif(not OWN_LIBRARY.core.is_dir(), reason="native sources are not part of the installed package")
def test_numbers_of_the_library_are_those_of_its_binding() -> None:
    """Version, order of what is counted, failures."""
    header = (OWN_LIBRARY.core / "caches.hpp").read_text()
    (version,) = re.findall(r"FORMAT = (\d+);", header)
    assert OWN_LIBRARY.version == int(version)
    (counted,) = re.findall(r"struct Counts \{\s*i64 ([\w, \n]+);", header)
    assert tuple(re.split(r",\s+", counted)) == COLUMNS
    (failures,) = re.findall(
        r"enum Failure : i64 \{ REFUSED = 4, ([\w, ]+) \};", (COMMON / "interface.hpp").read_text()
    )
    assert native._REFUSED == 4
    assert failures.split(", ").index("NO_MEMORY") + 5 == native._NO_MEMORY
