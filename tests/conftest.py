"""Settings of the whole test run."""

from __future__ import annotations

import gc
import os
import warnings
from collections import Counter
from itertools import compress

import pytest
from _pytest import unraisableexception
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings
from hypothesis.internal.conjecture import providers

from lstmsim import engines
from lstmsim.analysis.explanations.what_if import WhatIf
from lstmsim.engines.fast.run import OWN
from lstmsim.studies.sweep import store

# The usual run finds the same on every machine and day; LSTMSIM_HYPOTHESIS=explore looks for new examples.
#: Examples of a test that names no number of its own.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "14"))
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True, max_examples=EXAMPLES)
settings.register_profile("explore", deadline=None, print_blob=True)
# For `tools/mutate.py`: as many examples; the first that fails says enough, and finding the simplest one takes long.
settings.register_profile(
    "first", deadline=None, derandomize=True, max_examples=EXAMPLES, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(os.environ.get("LSTMSIM_HYPOTHESIS", "repeatable"))
if os.environ.get("LSTMSIM_HYPOTHESIS") != "explore" and hasattr(providers, "_get_local_constants"):
    # It would mix numbers of the package's sources into what it draws: of those modules that the tests before have
    # imported, and reading them takes seconds.
    providers._get_local_constants = lambda: providers._local_constants


def pytest_configure(config: pytest.Config) -> None:
    """Say once that there is no native core, before any test could be disturbed by that."""
    config.addinivalue_line("markers", "needs_core: takes too long, or has nothing to test, without the native core")
    config.addinivalue_line("markers", "long: repeats on more cases what a short test holds; LSTMSIM_EXAMPLES runs it")
    config.addinivalue_line("markers", "slow: takes a fifth of a second or more; `make slow` runs it, and so does CI")
    config.addinivalue_line("markers", "halved: every second case in the usual run; `make slow` runs the others")
    config.addinivalue_line("filterwarnings", "ignore::lstmsim.base.errors.EngineWarning")
    # what hypothesis draws with is made of small objects that are hardly ever a ring
    gc.set_threshold(100_000, 20, 100)
    if hasattr(unraisableexception, "gc_collect_iterations_key"):
        # at the end: five times over all that a worker holds find no more than once
        config.stash[unraisableexception.gc_collect_iterations_key] = 1
    # of the thousands of files that are written none has to outlive a loss of power, for which each waits for the disk
    os.fsync = lambda _: None
    store.SYNCHRONOUS = "OFF"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engines.has_fast()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow and long tests out of the usual run, and skip what needs the native core where there is none."""
    if "LSTMSIM_EXAMPLES" not in os.environ:
        # the summary counts them as deselected: to skip each would take seconds
        numbers: Counter[str] = Counter()
        # what failed is run again, whatever it is
        asked = "both" if config.getoption("lf", False) else os.environ.get("LSTMSIM_TESTS", "usual")
        if asked not in PARTS:
            raise pytest.UsageError(f"LSTMSIM_TESTS: expected one of {', '.join(PARTS)}, got {asked!r}")
        parts = PARTS[asked]
        out = [_part_of(item, numbers) not in parts for item in items]
        config.hook.pytest_deselected(items=[*compress(items, out)])
        items[:] = [item for item, left in zip(items, out, strict=True) if not left]
    reason = None if engines.has_fast() else OWN.absence
    for item in items if reason is not None else ():
        if item.get_closest_marker("needs_core"):
            item.add_marker(pytest.mark.skip(reason=f"needs the native core, which is missing: {reason}"))


#: What LSTMSIM_TESTS may say, and which tests it runs. Together, `usual` and `slow` are all but the long ones.
PARTS = {"usual": {"usual"}, "slow": {"slow"}, "both": {"usual", "slow"}}


def _part_of(item: pytest.Item, numbers: Counter[str]) -> str:
    """Which run a test belongs to: `usual`, `slow`, `long`; `numbers`: cases seen of each halved test."""
    left_out = _left_out(item, numbers)
    if item.get_closest_marker("long"):
        return "long"
    return "slow" if left_out or item.get_closest_marker("slow") else "usual"


def _left_out(item: pytest.Item, numbers: Counter[str]) -> bool:
    """Whether a case of a halved test is of the half that the usual run leaves out; `numbers`: cases seen of each."""
    if item.get_closest_marker("halved") is None:
        return False
    name = item.nodeid.partition("[")[0]
    numbers[name] += 1
    # even and odd numbers of ones take turns in no period, so that no parameter always has the same value
    return (numbers[name] - 1).bit_count() % 2 == 1


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker send what somebody reads of a test: its outcome, and what else took long or went wrong.

    A worker sends five messages for each test. To send and take those of ten thousand tests costs seconds.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > 0.005:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.fixture
def no_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """For explanations of which a test reads nothing about other machines: simulating these takes most of the time."""
    monkeypatch.setattr("lstmsim.analysis.explanations.explanation.what_if", lambda _, base, *more: WhatIf(base, ()))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what collecting thousands of tests has left, which lives to the end."""
    gc.freeze()
