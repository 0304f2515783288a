"""Change the package in one place at a time and see whether a test fails: survivors show what no test holds.

    python tools/mutate.py lstmsim/machines [--tests tests/machines tests/analysis/replay ...] [--sample 60] [--seed 1]

A mutant is a copy of the checkout with one small change in a file of the folders given:

* comparison: the edge (`<` and `<=`, `>` and `>=`), or the opposite (`==`, `in`, `is`);
* constant: a whole number one more or one less, another number one more;
* arithmetic: another operator (`+` and `-`, `*` and `//`, ...);
* condition: an `if` (also in an expression or a comprehension) that always or never holds;
* logic: `and` and `or`, a `not` less.

Annotations and formatted texts stay as they are. Of all mutants a sample is drawn, the same for the same seed and code.
The tests (by default those of the folders of the same names below `tests`) run in the copy, first without a change:
they have to pass. That run notes which test runs which function. A mutant's tests are those that run its function, the
quick ones first and with `-x`; all tests where the change stands outside functions. A mutant whose tests take much
longer than without the change, or crash, counts as noticed, for a user would notice.

The C++ files of the native core have mutants too (`lstmsim/engines/fast/core`): the same kinds, and

* extreme: `std::min` and `std::max`;
* statement: an assignment, a call, a `continue` less.

Each is built into a library of its own in the copy. All tests may notice it. What the compiler refuses is left out.

Survivors are printed as they are found, and last the score, also where the run is interrupted. Not every survivor is a
hole: some changes cannot be seen by anybody. After somebody has shown that, the mutant is written with the reason into
`tools/mutants_examined.toml`. It is then reported as `examined: equivalent`, is not tried, and no part of the score.
Other survivors are held by the tests of another room: name these tests as well. Run long ones in the background:
`nice -n 19 python tools/mutate.py ...`. Exit code: 0, or 2 if nothing could be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import hatch_build
from tools import mutants_cpp
from tools.mutants import Mutant, function_of, mutants

__all__ = ["Mutant", "main", "mutants", "outcome"]

ROOT = Path(__file__).resolve().parents[1]
#: What is not copied: the tests read none of it.
_LEFT_OUT = (".*", "*.pyc", "out", "dist", "build")
#: Mutants that were shown to be equivalent: file, text of the line, change and reason.
_EXAMINED = Path("tools", "mutants_examined.toml")
#: The file in a copy of the checkout into which pytest's output goes.
_SAID_BY_TESTS = "said_by_tests.txt"
#: Stands for every test, as in `mutate_pytest`.
_EVERY = "*"
#: How the names of C++ files end.
_CPP = (".cpp", ".hpp")


def outcome(root: Path, tests: Sequence[str], limit: float | None = None) -> str:
    """`passed`, `failed`, `late` (over the limit), or `broken` if no test could be run.

    root: a checkout; its package comes before an installed one.
    tests: files or folders below it; also words for pytest.
    limit: seconds of processor time after which the tests are stopped, and five times as many of the clock on the
        wall, for they may wait (None: never).
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "mutate_pytest", *tests]
    command += [] if limit is None else ["--mutate-limit", str(round(limit))]
    # no compiled files: a change that keeps length and second of a file would not be seen
    paths = os.pathsep.join([str(root), str(ROOT / "tools")])
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": paths, "LSTMSIM_HYPOTHESIS": "first"}
    # slow tests notice changes, too
    environment["LSTMSIM_TESTS"] = "both"
    with (
        (root / _SAID_BY_TESTS).open("wb") as said,
        subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        ) as process,
    ):
        try:
            code = process.wait(None if limit is None else 5 * limit)
        except subprocess.TimeoutExpired:
            return "late"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if code == -signal.SIGXCPU:
        return "late"
    # 1: a test failed; 2: interrupted, as by a module that cannot be imported; below 0: a crash
    return {0: "passed", 1: "failed", 2: "failed"}.get(code, "failed" if code < 0 else "broken")


def build(root: Path) -> str | None:
    """Build the native libraries of a checkout, quickly and for slow runs; why the compiler did not, or None.

    root: the checkout. If it has no native sources, nothing is built.
    """
    if not (root / hatch_build.SOURCES).exists():
        return None
    sources = hatch_build.sources_of(root)
    for core in sources.cores_of(root / hatch_build.PACKAGE):
        library = sources.library_of(core)
        command = [*hatch_build.compiler(), *sources.arguments(core), "-O0", "-w", "-o", str(library)]
        library.unlink(missing_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return str(done.stderr[-2000:])
    return None


@dataclass(frozen=True)
class _Notes:
    """What the run without a change noted.

    seconds: what each test took.
    ran: the tests that ran a function, by its `path:first line`.
    unseen: tests that started a process, whose functions were not seen.
    """

    seconds: Mapping[str, float]
    ran: Mapping[str, Sequence[str]]
    unseen: Sequence[str]

    def tests_of(self, name: str, source: str, mutant: Mutant) -> list[str]:
        """The tests that can notice a mutant, the quick ones first.

        name: its file, below the checkout.
        source: the text of the file.
        """
        # what the core runs does not show
        lines = None if name.endswith(_CPP) else function_of(source, mutant)
        names = {_EVERY} if lines is None else set(self.unseen).union(*self._ran_in(name, *lines))
        tests = [test for test in self.seconds if names & {_EVERY, test, test.split("::")[0]}]
        return sorted(tests, key=lambda test: self.seconds[test])

    def _ran_in(self, name: str, first: int, last: int) -> Iterator[Sequence[str]]:
        """The tests of each function that begins between two lines of a file."""
        for function, tests in self.ran.items():
            path, _, line = function.rpartition(":")
            if path == name and first <= int(line) <= last:
                yield tests


def _all_mutants(root: Path, folders: Sequence[str]) -> list[tuple[str, Mutant]]:
    """Every file (its name below `root`) with each of its mutants."""
    places = [root / folder for folder in folders]
    files = {each for place in places for each in ([place] if place.is_file() else place.rglob("*.*"))}
    chosen = sorted(file for file in files if file.suffix in (".py", *_CPP))
    sources = {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in chosen}
    makers = {name: mutants_cpp.mutants if name.endswith(_CPP) else mutants for name in sources}
    return [(name, each) for name, source in sources.items() for each in makers[name](source)]


def _tests_of(root: Path, folders: Sequence[str]) -> list[str]:
    """The folders of tests that mirror some folders of the package, or what these are in."""
    mirrors = set()
    for folder in folders:
        parts = Path(folder).parts[1:]
        named = (Path("tests", *parts[:length]) for length in range(len(parts), 0, -1))
        mirrors.add(next((str(each) for each in named if (root / each).is_dir()), ""))
    return sorted(mirrors - {""})


def _examined(root: Path) -> dict[tuple[str, str, str], str]:
    """The reason why a mutant is equivalent, by its file, the text of its line and its change."""
    file = root / _EXAMINED
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["equivalent"] if file.exists() else []
    return {(each["file"], each["line"], each["change"]): each["reason"] for each in entries}


@dataclass(frozen=True)
class _Trial:
    """A copy of the checkout in which mutants are tried.

    copy: the folder.
    notes: what the run without a change noted.
    limit: seconds for a mutant (None: by the time that its tests take without).
    """

    copy: Path
    notes: _Notes
    limit: float | None

    def of(self, name: str, mutant: Mutant) -> str:
        """The outcome of a mutant of a file; the file is as before afterwards."""
        file = self.copy / name
        source = file.read_text(encoding="utf-8")
        tests = self.notes.tests_of(name, source, mutant)
        if not tests:
            return "unreached"
        chosen = self.copy / "chosen.txt"
        chosen.write_text("\n".join(tests), encoding="utf-8")
        files = dict.fromkeys(test.split("::")[0] for test in tests)
        # what is always needed (imports), and a machine that is busier than before
        limit = self.limit or 30 + 3 * sum(self.notes.seconds[test] for test in tests)
        try:
            file.write_text(mutant.applied(source), encoding="utf-8")
            if name.endswith(_CPP) and build(self.copy) is not None:
                return "refused"
            return outcome(self.copy, ["--mutate-chosen", str(chosen), *files], limit)
        finally:
            file.write_text(source, encoding="utf-8")


#: What is said of an outcome; nothing of the others.
_SAID = {
    "passed": "survives",
    "late": "takes too long",
    "unreached": "survives, for no test runs it",
    "broken": "cannot be tested",
}


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="a folder or file, such as lstmsim/machines")
    parser.add_argument("--tests", nargs="+", default=[], help="files or folders; default: tests/ and the same names")
    parser.add_argument("--sample", type=int, default=60, help="how many mutants are tried (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="another number draws another sample")
    parser.add_argument("--limit", type=float, help="seconds for a mutant (default: 3 times its tests without, and 30)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Tries a sample of mutants and prints survivors and the score; the exit code.

    arguments: those of the command line, without the program's name (None: of this process).
    root: the checkout.
    """
    asked = _arguments(arguments)
    everything = _all_mutants(root, asked.folders)
    tests = asked.tests or _tests_of(root, asked.folders)
    if not everything or not tests:
        what = "Python or C++ file that can be changed" if tests else "folder of tests of that name: expected --tests"
        print(f"{' '.join(asked.folders)}: there is no {what}", file=sys.stderr)
        return 2
    chosen = random.Random(asked.seed).sample(everything, min(asked.sample, len(everything)))
    with tempfile.TemporaryDirectory(prefix="lstmsim-mutants-") as name:
        copy, noted = Path(name, "checkout"), Path(name, "notes.json")
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        refusal = build(copy)
        if refusal is not None:
            print(f"the native core cannot be built:\n{refusal}", file=sys.stderr)
            return 2
        if outcome(copy, ["--mutate-notes", str(noted), *tests]) != "passed":
            print((copy / _SAID_BY_TESTS).read_text(encoding="utf-8", errors="replace")[-2000:], file=sys.stderr)
            print(f"{' '.join(tests)}: does not pass without any change", file=sys.stderr)
            return 2
        notes = _Notes(**json.loads(noted.read_text(encoding="utf-8")))
        count = _counted(chosen, _Trial(copy, notes, asked.limit), _examined(root))
    print(f"{_score(count)}; seed {asked.seed}, of {len(everything):,} in all")
    return 0


def _counted(
    chosen: Sequence[tuple[str, Mutant]], trial: _Trial, examined: Mapping[tuple[str, str, str], str]
) -> Counter[str]:
    """How many mutants have which outcome; what nobody noticed is printed."""
    count: Counter[str] = Counter()
    try:
        for file, mutant in chosen:
            change = f"`{mutant.before}` -> `{mutant.after}`"
            line = (trial.copy / file).read_text(encoding="utf-8").split("\n")[mutant.line - 1].strip()
            reason = examined.get((file, line, change))
            result = trial.of(file, mutant) if reason is None else "equivalent"
            count[result] += 1
            said = _SAID.get(result) if reason is None else f"examined: equivalent: {reason}"
            if said:
                print(f"{file}:{mutant.line}: {mutant.kind}: {change}: {said}", flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {count.total()} of {len(chosen)}", flush=True)
    return count


def _score(count: Counter[str]) -> str:
    """`N of M mutants noticed (P %)`, and what else has to be known."""
    noticed = count["failed"] + count["late"]
    total = noticed + count["passed"] + count["unreached"]
    text = f"{noticed} of {total} mutants noticed" + (f" ({100 * noticed / total:.0f} %)" if total else "")
    rest = {
        "late": "of them by the time they take",
        "equivalent": "more examined: equivalent",
        "refused": "more do not compile",
    }
    return "".join([text, *(f", {count[each]} {words}" for each, words in rest.items() if count[each])])


if __name__ == "__main__":
    sys.exit(main())
