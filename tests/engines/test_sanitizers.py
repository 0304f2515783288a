"""The core under AddressSanitizer and UBSan: random programs against the reference, feeds, and wrong flat programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lstmsim.engines.fast import sources

hatch_build = pytest.importorskip("hatch_build", reason="the build hook is not part of the package")

ROOT = Path(hatch_build.__file__).parent
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
#: Runs tests, or flat programs, with another library in place of the usual one.
WITH_LIBRARY = """
import sys
from pathlib import Path
from lstmsim.engines.fast import library
library.LIBRARY = Path(sys.argv[1])
assert library.available(), library.absence()
if sys.argv[2] == "mutations":
    from tests.mutations import try_all
    print(dict(try_all(int(sys.argv[3]), Path(sys.argv[1] + ".words"), slower=5)))
else:
    import pytest
    sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""

pytestmark = pytest.mark.skipif("LSTMSIM_EXAMPLES" not in os.environ, reason="takes minutes: LSTMSIM_EXAMPLES")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The core with both sanitizers, and the libraries that must be loaded before all others.

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
    first = " ".join(name.strip() for name in names)
    if not all(Path(name).is_absolute() for name in first.split()):
        pytest.skip(f"`{compiler[0]}` has no library of AddressSanitizer")
    path = tmp_path_factory.mktemp("core") / sources.LIBRARY.name
    flags = [each for each in sources.FLAGS if each != "-O2"]
    macro = f'-DLSTMSIM_SOURCES="{sources.digest_of()}"'
    command = [*compiler, *flags, *SANITIZERS, macro, "-o", str(path), str(sources.CORE / "core.cpp")]
    subprocess.run(command, check=True)
    return path, first


def run(library: tuple[Path, str], *arguments: str) -> str:
    """What a process says that uses the library. Leaks are not looked for: Python itself has some at its end."""
    path, first = library
    own = {"LD_PRELOAD": first, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    command = [sys.executable, "-c", WITH_LIBRARY, str(path), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    return done.stdout


def test_random_programs_and_feeds(library: tuple[Path, str]) -> None:
    said = run(library, "tests/engines/test_engines_agree.py", "tests/engines/test_feed.py")
    assert " passed" in said


def test_wrong_flat_programs(library: tuple[Path, str]) -> None:
    said = run(library, "mutations", os.environ["LSTMSIM_EXAMPLES"])
    assert "'refused'" in said
    assert "'DONE'" in said


def test_sanitizers_are_at_work(library: tuple[Path, str], tmp_path: Path) -> None:
    """A mistake of memory ends the process: else the tests above could not fail."""
    source = tmp_path / "wrong.cpp"
    source.write_text(
        "#include <vector>\n"
        'extern "C" int wrong(int n) { std::vector<int> row(4); volatile int* a = row.data(); return a[n]; }\n'
    )
    wrong = tmp_path / "wrong.so"
    command = [*hatch_build.compiler(), "-shared", "-fPIC", *SANITIZERS, "-o", str(wrong), str(source)]
    subprocess.run(command, check=True)
    own = {"LD_PRELOAD": library[1], "ASAN_OPTIONS": "detect_leaks=0"}
    code = f"import ctypes; ctypes.CDLL({str(wrong)!r}).wrong(4)"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | own, capture_output=True, check=False)
    assert done.returncode != 0
    assert b"heap-buffer-overflow" in done.stderr
