"""Native libraries under AddressSanitizer and UBSan: what they do against what Python does, and wrong tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lstmsim.engines.fast.run import OWN
from lstmsim.machines.column.points import OWN as POINTS
from lstmsim.machines.multicore.lines.caches import OWN_LIBRARY
from lstmsim.native import sources

hatch_build = pytest.importorskip("hatch_build", reason="the build hook is not part of the package")

ROOT = Path(hatch_build.__file__).parent
#: The libraries, by the names that `WITH_LIBRARY` knows.
LIBRARIES = {"engine": OWN, "caches": OWN_LIBRARY, "points": POINTS}
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
#: Runs tests, or flat programs, with another library in place of the usual one of a module.
WITH_LIBRARY = """
import sys
from pathlib import Path
from lstmsim.engines.fast.run import OWN
from lstmsim.machines.column.points import OWN as POINTS
from lstmsim.machines.multicore.lines.caches import OWN_LIBRARY
library = {"engine": OWN, "caches": OWN_LIBRARY, "points": POINTS}[sys.argv[1]]
library.path = Path(sys.argv[2])
assert library.absence is None, library.absence
if sys.argv[3] == "mutations":
    from tests.mutations import try_all
    print(dict(try_all(int(sys.argv[4]), Path(sys.argv[2] + ".words"), slower=5)))
else:
    import pytest
    sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[3:]]))
"""

pytestmark = pytest.mark.skipif("LSTMSIM_EXAMPLES" not in os.environ, reason="takes minutes: LSTMSIM_EXAMPLES")


@pytest.fixture(scope="module")
def first() -> str:
    """The libraries that must be loaded before all others.

    AddressSanitizer takes the place of functions of the C++ library, and must find them when the process begins.
    """
    try:
        compiler = hatch_build.compiler()
    except hatch_build.CompilerError as missing:
        pytest.skip(str(missing))
    names = [
        subprocess.run([*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False).stdout
        for name in ("libasan.so", "libstdc++.so")
    ]
    if not all(Path(name.strip()).is_absolute() for name in names):
        pytest.skip(f"`{compiler[0]}` has no library of AddressSanitizer")
    return " ".join(name.strip() for name in names)


def run(first: str, folder: Path, library: str, *arguments: str) -> str:
    """What a process says that uses a library with both sanitizers.

    Leaks are not looked for: Python itself has some at its end.
    """
    core, path = LIBRARIES[library].core, folder / f"{library}.so"
    flags = tuple(each for each in sources.FLAGS if each != "-O2")
    command = [*hatch_build.compiler(), *sources.arguments(core, flags), *SANITIZERS, "-o", str(path)]
    subprocess.run(command, check=True)
    own = {"LD_PRELOAD": first, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    command = [sys.executable, "-c", WITH_LIBRARY, library, str(path), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    return done.stdout


def test_random_programs_and_feeds(first: str, tmp_path: Path) -> None:
    tests = [f"tests/engines/test_{name}.py" for name in ("engines_agree", "feed", "steady", "periods")]
    said = run(first, tmp_path, "engine", *tests)
    assert " passed" in said


def test_wrong_flat_programs(first: str, tmp_path: Path) -> None:
    said = run(first, tmp_path, "engine", "mutations", os.environ["LSTMSIM_EXAMPLES"])
    assert "'refused'" in said
    assert "'DONE'" in said


def test_random_runs_of_caches(first: str, tmp_path: Path) -> None:
    assert " passed" in run(first, tmp_path, "caches", "tests/machines/multicore/lines/test_caches.py")


def test_random_points_of_sweeps(first: str, tmp_path: Path) -> None:
    assert " passed" in run(first, tmp_path, "points", "tests/machines/column/test_points.py")


def test_every_library_has_such_a_test() -> None:
    assert {own.core for own in LIBRARIES.values()} == set(sources.cores_of(ROOT / "lstmsim"))


def test_sanitizers_are_at_work(first: str, tmp_path: Path) -> None:
    """A mistake of memory ends the process: else the tests above could not fail."""
    source = tmp_path / "wrong.cpp"
    source.write_text(
        "#include <vector>\n"
        'extern "C" int wrong(int n) { std::vector<int> row(4); volatile int* a = row.data(); return a[n]; }\n'
    )
    wrong = tmp_path / "wrong.so"
    command = [*hatch_build.compiler(), "-shared", "-fPIC", *SANITIZERS, "-o", str(wrong), str(source)]
    subprocess.run(command, check=True)
    own = {"LD_PRELOAD": first, "ASAN_OPTIONS": "detect_leaks=0"}
    code = f"import ctypes; ctypes.CDLL({str(wrong)!r}).wrong(4)"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | own, capture_output=True, check=False)
    assert done.returncode != 0
    assert b"heap-buffer-overflow" in done.stderr
