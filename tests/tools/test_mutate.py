"""`tools/mutate.py`: which changes it makes, and that it tells a tested line from an untested one."""

from __future__ import annotations

import ast
import doctest
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("hatch_build", reason="the build hook is not part of the package")

from tools import mutants, mutants_cpp, mutate


def changed(source: str) -> list[str]:
    return [each.applied(source) for each in mutate.mutants(source)]


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("a < b", ["a <= b"]),
        ("a <= b < c", ["a < b < c", "a <= b <= c"]),
        ("(a) == (b)", ["(a) != (b)"]),
        ("a in b", ["a not in b"]),
        ("a is  not b", ["a is b"]),
        ("a * b", ["a // b"]),
        ("(a + b) - c", ["(a - b) - c", "(a + b) + c"]),
        ("a and b and c", ["a or b and c", "a and b or c"]),
        ("not (a)", [" (a)"]),
        ("f(0)", ["f((-1))", "f(1)"]),
        ("x = 0.5", ["x = 1.5"]),
        ("a if b else c", ["a if False else c", "a if True else c"]),
        ("[a for a in b if c]", ["[a for a in b if True]"]),
        ("ä = 'ö' * n < é", ["ä = 'ö' * n <= é"]),
        # nothing in texts, annotations, names, formatted values
        ('"""1 < 2"""', []),
        ("x: f[3 + 4]", []),
        ("def f(a: g[1]) -> g[2]: ...", []),
        ('f"{a + 1:3}"', []),
        ('a + "text"', []),
        ("True", []),
    ],
)
def test_every_change_of_a_line(source: str, after: list[str]) -> None:
    assert sorted(changed(source)) == sorted(after)


@pytest.mark.long
def test_every_mutant_of_a_real_file_is_another_program() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    tree = ast.dump(ast.parse(source))
    several = mutate.mutants(source)
    assert len(several) > 20
    for mutant in several:
        assert ast.dump(ast.parse(mutant.applied(source))) != tree, mutant


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("a < b;", ["a <= b;"]),
        ("    a = b;", ["    ;"]),
        ("    i64 a = 0;", ["    i64 a = 1;", "    i64 a = (-1);"]),
        ("    a.b[c] = std::max(d, e);", ["    ;", "    a.b[c] = std::min(d, e);"]),
        ("    f(a);", ["    ;"]),
        ("    ++a;", ["    ;"]),
        ("    continue;", ["    ;"]),
        ("return a && !(b);", ["return a || !(b);", "return a && (b);"]),
        ("if (f(a) != b) c();", ["if (true) c();", "if (false) c();", "if (f(a) == b) c();"]),
        ("while (a) b();", ["while (false) b();"]),
        ("    a += ä;  // b < c", ["    a -= ä;  // b < c", "    ;  // b < c"]),
        # nothing in comments, texts, types, returns
        ("// a < b", []),
        ('throw Fault("1 < 2");', []),
        ("Slice<const T> f(T* a, T&& b);", []),
        ("static_assert(a < 2);", []),
        ("#define A 1", []),
        ("return a->b;", []),
    ],
)
def test_every_change_of_a_line_of_cpp(source: str, after: list[str]) -> None:
    assert sorted(each.applied(source) for each in mutants_cpp.mutants(source)) == sorted(after)


@pytest.mark.long
def test_every_file_of_the_core_has_mutants_that_are_other_texts() -> None:
    core = Path(mutate.ROOT, "lstmsim", "engines", "fast", "core")
    for file in sorted(core.glob("*.cpp")):
        source = file.read_text(encoding="utf-8")
        several = {each.applied(source) for each in mutants_cpp.mutants(source)}
        assert len(several - {source}) == len(several)
        assert len(several) > 20 or file.name == "core.cpp", file.name


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a line that a test holds in part."""
    # its tests need none of the plugins, which take longer to load than they to run
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    package, tests = tmp_path / "own" / "room", tmp_path / "tests" / "room"
    package.mkdir(parents=True)
    tests.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "adult.py").write_text("def adult(age):\n    return age >= 18\n")
    (tests / "test_adult.py").write_text(
        "from own.room.adult import adult\n\n\ndef test_adult():\n    assert adult(18)\n    assert not adult(16)\n"
    )
    return tmp_path


@pytest.mark.slow
def test_survivors_and_the_score(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (project / "own" / "room" / "adult.py").read_text()
    assert mutate.main(["own/room"], project) == 0
    lines = capsys.readouterr().out.splitlines()
    # 17 is never asked about; 19 and > are noticed at 18
    assert lines == [
        "own/room/adult.py:2: constant: `18` -> `17`: survives",
        "2 of 3 mutants noticed (67 %); seed 1, of 3 in all",
    ]
    assert (project / "own" / "room" / "adult.py").read_text() == before


@pytest.mark.long
def test_a_mutant_that_does_not_end_is_noticed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "own" / "room" / "adult.py").write_text("def adult(age):\n    while age < 17: pass\n    return True\n")
    test = project / "tests" / "room" / "test_adult.py"
    test.write_text(test.read_text().replace("not adult(16)", "adult(17)").replace("adult(18)", "adult(17)"))
    assert mutate.main(["own/room", "--limit", "1", "--sample", "1", "--seed", "4"], project) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 of 1 mutants noticed (100 %), 1 of them by the")


@pytest.mark.long
def test_an_interrupted_run_has_a_score(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, results = mutate.outcome, iter(["failed", "passed"])

    def outcome(root: Path, tests: Sequence[str], limit: float | None = None) -> str:
        if "--mutate-notes" in tests:
            return real(root, tests, limit)
        try:
            return next(results)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(mutate, "outcome", outcome)
    assert mutate.main(["own/room"], project) == 0
    *survivors, stopped, score = capsys.readouterr().out.splitlines()
    assert (len(survivors), stopped) == (1, "interrupted after 2 of 3")
    assert score == "1 of 2 mutants noticed (50 %); seed 1, of 3 in all"


@pytest.mark.long
def test_a_mutant_that_was_shown_to_be_equivalent_is_no_part_of_the_score(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tools").mkdir()
    (project / "tools" / "mutants_examined.toml").write_text(
        '[[equivalent]]\nfile = "own/room/adult.py"\nline = "return age >= 18"\n'
        'change = "`18` -> `17`"\nreason = "nobody is 17"\n'
    )
    assert mutate.main(["own/room"], project) == 0
    assert capsys.readouterr().out.splitlines() == [
        "own/room/adult.py:2: constant: `18` -> `17`: examined: equivalent: nobody is 17",
        "2 of 2 mutants noticed (100 %), 1 more examined: equivalent; seed 1, of 3 in all",
    ]


@pytest.mark.long
def test_only_tests_that_run_a_function_are_run_the_quick_ones_first(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "own" / "room" / "adult.py").write_text(
        "from functools import cache\n\nEDGE = 18\n\n\n@cache\ndef adult(age):\n    return age >= EDGE\n\n\n"
        "def child(age):\n    return age < 7\n"
    )
    (project / "tests" / "room" / "test_adult.py").write_text(
        "import time\nfrom own.room.adult import adult, child\n\n\n"
        "def test_slow():\n    time.sleep(0.2)\n    assert adult(18)\n\n\n"
        # would have its answer from the first test
        "def test_quick():\n    assert adult(18)\n\n\n"
        "def test_other():\n    assert child(2)\n"
    )
    real, chosen = mutate.outcome, {}

    def outcome(root: Path, tests: Sequence[str], limit: float | None = None) -> str:
        if "--mutate-notes" in tests:
            return real(root, tests, limit)
        names = (root / "chosen.txt").read_text().replace("tests/room/test_adult.py::test_", "").split()
        chosen[(root / "own" / "room" / "adult.py").read_text().splitlines()[-1 if "other" in names else 7]] = names
        return "passed"

    monkeypatch.setattr(mutate, "outcome", outcome)
    assert mutate.main(["own/room"], project) == 0
    assert chosen["    return age > EDGE"] == ["quick", "slow"]
    assert chosen["    return age <= 7"] == ["other"]
    # 18 -> 19 outside of functions
    assert sorted(chosen["    return age < 7"]) == ["other", "quick", "slow"]


@pytest.mark.long
def test_a_line_that_no_test_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "own" / "room" / "child.py").write_text("def child(age):\n    return age < 7\n")
    assert mutate.main(["own/room/child.py", "--tests", "tests/room", "--sample", "1"], project) == 0
    survivor, score = capsys.readouterr().out.splitlines()
    assert survivor.endswith(": survives, for no test runs it")
    assert score == "0 of 1 mutants noticed (0 %); seed 1, of 3 in all"


@pytest.mark.slow
def test_what_cannot_be_measured_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate.main(["own/none"], project) == 2
    assert "own/none: there is no folder of tests of that name" in capsys.readouterr().err
    assert mutate.main(["own/none", "--tests", "tests/room"], project) == 2
    assert "own/none: there is no Python or C++ file" in capsys.readouterr().err
    (project / "own" / "room" / "adult.py").write_text("def adult(age):\n    return age > 18\n")
    assert mutate.main(["own/room"], project) == 2
    assert "tests/room: does not pass without any change" in capsys.readouterr().err
    # what the bound of memory stops would seem to notice every mutant
    (project / "tests" / "room" / "test_adult.py").write_text("def test_adult():\n    bytearray(3 << 30)\n")
    assert mutate.main(["own/room"], project) == 2
    said = capsys.readouterr().err
    assert "MemoryError" in said
    assert "tests/room: does not pass without any change" in said


@pytest.mark.long
@pytest.mark.needs_core
def test_mutants_of_a_core_are_built_and_tried(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast, tests = project / "lstmsim" / "engines" / "fast", project / "tests" / "engines"
    native = project / "lstmsim" / "native"
    for folder in (fast / "core", native, tests):
        folder.mkdir(parents=True)
    shutil.copy(Path(mutate.ROOT, "lstmsim", "native", "sources.py"), native)
    source = (
        'extern "C" __attribute__((visibility("default"))) int adult(int age) {\n'
        "    static const int ages[] = {18};\n"
        "    return age >= ages[0];\n}\n"
    )
    (fast / "core" / "core.cpp").write_text(source)
    (tests / "test_core.py").write_text(
        "import ctypes\nfrom pathlib import Path\n\n\ndef test_core():\n"
        "    core = ctypes.CDLL(str(next(Path('lstmsim/engines/fast').glob('_core.*'))))\n"
        "    assert core.adult(18)\n    assert not core.adult(16)\n"
    )
    assert mutate.main(["lstmsim/engines/fast/core"], project) == 0
    *survivors, score = capsys.readouterr().out.splitlines()
    assert survivors[0] == "lstmsim/engines/fast/core/core.cpp:2: constant: `18` -> `17`: survives"
    # what stands behind an array may be anything
    assert all("core.cpp:3: constant: `0` -> " in each for each in survivors[1:])
    assert score.endswith("seed 1, of 5 in all")
    (fast / "core" / "core.cpp").write_text(source.replace("return", "give"))
    assert mutate.main(["lstmsim/engines/fast/core"], project) == 2
    assert "the native core cannot be built" in capsys.readouterr().err


def test_examples_of_the_tool() -> None:
    for module in (mutants, mutants_cpp):
        result = doctest.testmod(module)
        assert (result.failed, result.attempted > 0) == (0, True)
