"""A pytest plugin of `tools/mutate.py`: notes which test runs which function; runs chosen tests in a chosen order.

    python -m pytest -p mutate_pytest --mutate-notes FILE  tests/...     (writes what was run into FILE)
    python -m pytest -p mutate_pytest --mutate-chosen FILE tests/...     (runs only the tests of FILE, in its order)

Notes are JSON: `{"seconds": {test: seconds}, "ran": {function: [tests]}, "unseen": [tests that start a process]}`. A
function is `path:first line`, as Python's code objects name it, the path below the folder in which pytest was started.
Of the tests of a function, `*` stands for every test, and the path of a file for all tests of that file.
"""

from __future__ import annotations

import functools
import gc
import inspect
import json
import os
import resource
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

#: Bytes that a process with a mutant may take: a run that does not end must not take all memory of the computer.
MEMORY = 2 << 30
#: Stands for every test: what runs while modules are imported and tests collected.
EVERY = "*"
#: The class of the stores that keep results from test to test.
KEPT = "<class 'lstmsim.machines.column.phases.Kept'>"
_STARTS_PROCESSES = {"subprocess.Popen", "os.fork", "os.posix_spawn", "os.spawn"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for `tools/mutate.py` alone."""
    parser.addoption("--mutate-notes", help="file into which is written which test runs which function")
    parser.addoption("--mutate-chosen", help="file of test names, one in a line: these are run, in that order")
    parser.addoption("--mutate-limit", type=int, help="seconds of processor time after which the run is ended")


def pytest_configure(config: pytest.Config) -> None:
    """A run gets bounds; functions are noted from here on, before any module of the tests is imported."""
    # also without a change: tests that this stops would seem to notice every mutant
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    limit = config.getoption("--mutate-limit")
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    if config.getoption("--mutate-notes"):
        config.pluginmanager.register(_Notes(Path(config.getoption("--mutate-notes"))), "mutate-notes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out tests that were not chosen, and sorts the others."""
    if config.getoption("--mutate-chosen"):
        lines = Path(config.getoption("--mutate-chosen")).read_text(encoding="utf-8").splitlines()
        place = {name: number for number, name in enumerate(lines)}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


def _is_here(cached: Any) -> bool:
    """Whether a function with a cache was written below the folder in which pytest was started."""
    code = getattr(inspect.unwrap(cached), "__code__", None)
    return code is not None and str(code.co_filename).startswith(os.getcwd() + os.sep)


class _Notes:
    """Which test runs which function, and how long it takes."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seconds: dict[str, float] = {}
        self.ran: dict[str, set[CodeType]] = defaultdict(set)
        # tests that start a process: what it runs cannot be seen from here
        self.unseen: set[str] = set()
        self.now: str = EVERY
        self.codes = self.ran[EVERY]
        self.modules = 0
        self.empty: list[Callable[[], None]] = []
        sys.addaudithook(self._heard)
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            self.codes.add(frame.f_code)

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _STARTS_PROCESSES:
            self.unseen.add(self.now)

    def _turn(self, name: str) -> None:
        self.now = name
        self.codes = self.ran[name]

    def _forget(self) -> None:
        """Empty the caches of the code under test; looked for again only after imports, for it takes long."""
        if len(sys.modules) != self.modules:
            self.modules = len(sys.modules)
            every = gc.get_objects()
            caches = [each for each in every if type(each) is functools._lru_cache_wrapper and _is_here(each)]
            self.empty = [each.cache_clear for each in caches]
            self.empty += [each.clear for each in every if str(type(each)) == KEPT]
        for empty in self.empty:
            empty()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """A test without results that an earlier one left behind in a cache."""
        sys.setprofile(None)
        self._forget()
        start = time.perf_counter()
        self._turn(item.nodeid)
        sys.setprofile(self._called)
        yield
        self._turn(EVERY)
        self.seconds[item.nodeid] = time.perf_counter() - start

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """What a fixture of several tests runs counts for all of its module (or of all, if it is for all)."""
        before = self.now
        if fixturedef.scope != "function":
            self._turn(before.split("::")[0] if fixturedef.scope in ("class", "module") else EVERY)
        yield
        self._turn(before)

    def pytest_sessionfinish(self) -> None:
        """Writes the notes."""
        sys.setprofile(None)
        threading.setprofile(None)
        root = os.getcwd() + os.sep
        functions: dict[str, set[str]] = defaultdict(set)
        for test, codes in self.ran.items():
            for code in codes:
                if code.co_filename.startswith(root):
                    functions[f"{code.co_filename.removeprefix(root)}:{code.co_firstlineno}"].add(test)
        ran = {name: sorted(tests) for name, tests in sorted(functions.items())}
        notes = {"seconds": self.seconds, "ran": ran, "unseen": sorted(self.unseen)}
        self.file.write_text(json.dumps(notes), encoding="utf-8")
