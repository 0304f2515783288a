"""Change the package in one place at a time and see whether a test fails: survivors show what no test holds.

    python tools/mutate.py lstmsim/targets [--tests tests/targets tests/replay ...] [--sample 60] [--seed 1] [--limit S]

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
longer than without the change counts as noticed, for a user would notice.

Survivors are printed as they are found, and last the score, also where the run is interrupted. Not every survivor is a
hole: some changes cannot be seen by anybody. After somebody has shown that, the mutant is written with the reason into
`tools/mutants_examined.toml`. It is then reported as `examined: equivalent`, is not tried, and no part of the score.
Other survivors are held by the tests of another room: name these tests as well. Run long ones in the background:
`nice -n 19 python tools/mutate.py ...`. Exit code: 0, or 2 if nothing could be measured.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
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

__all__ = ["Mutant", "main", "mutants", "outcome"]

ROOT = Path(__file__).resolve().parents[1]
#: What is not copied: the tests read none of it. The compiled engine is copied, for compiling it takes long.
_LEFT_OUT = (".*", "*.pyc", "out", "dist", "build")
#: Mutants that were shown to be equivalent: file, text of the line, change and reason.
_EXAMINED = Path("tools", "mutants_examined.toml")
#: The file in a copy of the checkout into which pytest's output goes.
_SAID_BY_TESTS = "said_by_tests.txt"
#: Stands for every test, as in `mutate_pytest`.
_EVERY = "*"

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}


@dataclass(frozen=True)
class Mutant:
    """One change of a source text.

    line: where it is, from 1.
    kind: comparison, constant, arithmetic, condition or logic.
    start, end: the bytes of the text (UTF-8) that are replaced.
    before, after: what stands there, and what takes its place.
    """

    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str

    def applied(self, source: str) -> str:
        """The source text with the change.

        source: the text in which the mutant was found.

        >>> mutants("a < 5")[0].applied("a < 5")
        'a <= 5'
        """
        content = source.encode()
        return (content[: self.start] + self.after.encode() + content[self.end :]).decode()


def mutants(source: str) -> list[Mutant]:
    """Every mutant of a source text, in the order of their places.

    source: a Python module.

    >>> [each.applied("x = y + 2") for each in mutants("x = y + 2")]
    ['x = y - 2', 'x = y + 3', 'x = y + 1']
    """
    finder = _Finder(source)
    return sorted(finder.below(ast.parse(source)), key=lambda each: (each.start, each.end))


class _Finder:
    """Finds mutants in a tree, by the places that its nodes have in the text."""

    def __init__(self, source: str) -> None:
        self.content = source.encode()
        self.lines = [0, *(match.end() for match in re.finditer(b"\n", self.content))]

    def below(self, node: ast.AST) -> Iterator[Mutant]:
        """Mutants of a node and of all that it is made of."""
        yield from self._own(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns") or isinstance(node, ast.JoinedStr):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.below(child)

    def _own(self, node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for one, operator, two in zip(operands, node.ops, node.comparators, strict=False):
                yield self._between("comparison", one, two, *_COMPARISONS[type(operator)])
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            if not any(isinstance(part, ast.JoinedStr) or _is_text(part) for part in (node.left, node.right)):
                yield self._between("arithmetic", node.left, node.right, *_ARITHMETIC[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for one, two in zip(node.values, node.values[1:], strict=False):
                yield self._between("logic", one, two, *words)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start = self._start(node)
            yield Mutant(node.lineno, "logic", start, start + len("not"), "not", "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and type(node.value) is not bool:
            for value in [node.value + 1] + [node.value - 1] * isinstance(node.value, int):
                yield self._instead("constant", node, repr(value) if value >= 0 else f"({value!r})")
        elif isinstance(node, ast.If | ast.IfExp) and not _is_typing(node.test):
            yield from (self._instead("condition", node.test, word) for word in ("True", "False"))
        elif isinstance(node, ast.comprehension):
            yield from (self._instead("condition", each, "True") for each in node.ifs)

    def _between(self, kind: str, one: ast.expr, two: ast.expr, before: str, after: str) -> Mutant:
        """The operator `before` between two operands becomes `after`."""
        begin, end = self._end(one), self._start(two)
        pattern = rb"\s+".join(re.escape(word.encode()) for word in before.split())
        match = re.search(pattern, self.content[begin:end])
        assert match is not None, f"line {one.end_lineno}: no {before} between operands"
        line = self.content.count(b"\n", 0, begin + match.start()) + 1
        return Mutant(line, kind, begin + match.start(), begin + match.end(), match[0].decode(), after)

    def _instead(self, kind: str, node: ast.expr, after: str) -> Mutant:
        start, end = self._start(node), self._end(node)
        return Mutant(node.lineno, kind, start, end, self.content[start:end].decode(), after)

    def _start(self, node: ast.expr) -> int:
        return self.place(node.lineno, node.col_offset)

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.place(node.end_lineno, node.end_col_offset)

    def place(self, line: int, column: int) -> int:
        """The byte at which a line (from 1) and column (in bytes, from 0) stand."""
        return self.lines[line - 1] + column


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_typing(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"


def outcome(root: Path, tests: Sequence[str], limit: float | None = None) -> str:
    """`passed`, `failed`, `late` (over the limit), or `broken` if no test could be run.

    root: a checkout; its package comes before an installed one.
    tests: files or folders below it; also words for pytest.
    limit: seconds after which the tests are stopped (None: never).
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "mutate_pytest", *tests]
    # no compiled files: a change that keeps length and second of a file would not be seen
    paths = os.pathsep.join([str(root), str(ROOT / "tools")])
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": paths}
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
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return "late"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    # 1: a test failed; 2: interrupted, as by a module that cannot be imported
    return {0: "passed", 1: "failed", 2: "failed"}.get(code, "broken")


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
        lines = _function_of(source, mutant)
        names = {_EVERY} if lines is None else set(self.unseen).union(*self._ran_in(name, *lines))
        tests = [test for test in self.seconds if names & {_EVERY, test, test.split("::")[0]}]
        return sorted(tests, key=lambda test: self.seconds[test])

    def _ran_in(self, name: str, first: int, last: int) -> Iterator[Sequence[str]]:
        """The tests of each function that begins between two lines of a file."""
        for function, tests in self.ran.items():
            path, _, line = function.rpartition(":")
            if path == name and first <= int(line) <= last:
                yield tests


def _function_of(source: str, mutant: Mutant) -> tuple[int, int] | None:
    """First and last line of the innermost function that holds a mutant in its body; None where it runs on import."""
    # compiled functions do not show when they run
    if "njit" in source:
        return None
    finder = _Finder(source)
    innermost = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            first = finder.place(node.body[0].lineno, 0)
            last = finder.place(node.end_lineno or 0, node.end_col_offset or 0)
            if first <= mutant.start < last:
                # from outside to inside, as `walk` goes
                innermost = (min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno or 0)
    return innermost


def _all_mutants(root: Path, folders: Sequence[str]) -> list[tuple[str, Mutant]]:
    """Every file (its name below `root`) with each of its mutants."""
    places = [root / folder for folder in folders]
    files = {each for place in places for each in ([place] if place.is_file() else sorted(place.rglob("*.py")))}
    sources = {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in sorted(files)}
    return [(name, each) for name, source in sources.items() for each in mutants(source)]


def _tests_of(root: Path, folders: Sequence[str]) -> list[str]:
    """The folders of tests that mirror some folders of the package."""
    mirrors = [Path("tests", *Path(folder).parts[1:]) for folder in folders if len(Path(folder).parts) > 1]
    return [str(each) for each in mirrors if (root / each).is_dir()]


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
            return outcome(self.copy, ["--mutate-chosen", str(chosen), *files], limit)
        finally:
            file.write_text(source, encoding="utf-8")


#: What is said of an outcome; nothing of the others.
_SAID = {"passed": "survives", "unreached": "survives, for no test runs it", "broken": "cannot be tested"}


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="a folder or file, such as lstmsim/targets")
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
        what = "Python file that can be changed" if tests else "folder of tests of that name: expected --tests"
        print(f"{' '.join(asked.folders)}: there is no {what}", file=sys.stderr)
        return 2
    chosen = random.Random(asked.seed).sample(everything, min(asked.sample, len(everything)))
    with tempfile.TemporaryDirectory(prefix="lstmsim-mutants-") as name:
        copy, noted = Path(name, "checkout"), Path(name, "notes.json")
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT))
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
    rest = {"late": "of them by the time they take", "equivalent": "more examined: equivalent"}
    return "".join([text, *(f", {count[each]} {words}" for each, words in rest.items() if count[each])])


if __name__ == "__main__":
    sys.exit(main())
