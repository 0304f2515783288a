"""`hatch_build.py`: what the package is with a compiler, without one, and with one that fails."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from lstmsim.engines.fast import library, sources
from lstmsim.engines.fast.library import load

hatch_build = pytest.importorskip("hatch_build", reason="the build hook is not part of the package")

ROOT = Path(hatch_build.__file__).parent
COMPILER = next(filter(None, map(shutil.which, hatch_build.COMPILERS)), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
#: How a library says that others may call a function of it.
PUBLIC = 'extern "C" __attribute__((visibility("default")))'
FORMAT, DIGEST = (
    f"{PUBLIC} long long lstmsim_format() {{ return {library.FORMAT}; }}\n",
    f"{PUBLIC} const char *lstmsim_sources() {{ return LSTMSIM_SOURCES; }}\n",
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a small core, in which the compiler is looked for on the path."""
    monkeypatch.delenv("CXX", raising=False)
    root = tmp_path / "checkout"
    for name in ("models", "published", "lstmsim/engines/fast/core"):
        (root / name).mkdir(parents=True)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore", "lstmsim/__init__.py"):
        shutil.copy(ROOT / name, root / name)
    shutil.copy(ROOT / hatch_build.FAST / "sources.py", root / hatch_build.FAST)
    write(root, FORMAT + DIGEST)
    return root


def write(root: Path, text: str) -> None:
    (root / hatch_build.FAST / "core" / "core.cpp").write_text(text)


def wheel(root: Path) -> Path:
    """The wheel that an installer would make."""
    (path,) = WheelBuilder(str(root)).build(directory=str(root / "dist"), versions=["standard"])
    return Path(path)


def edit(root: Path) -> None:
    """What the hook does for an editable install."""
    maker = WheelBuilder(str(root))
    hook = hatch_build.CustomBuildHook(str(root), {}, maker.config, maker.metadata, str(root / "dist"), "wheel")
    data: dict[str, object] = {"pure_python": True}
    hook.initialize("editable", data)
    hook.finalize("editable", data, "")


def files(path: Path) -> list[str]:
    return [name for name in zipfile.ZipFile(path).namelist() if "fast" in name]


@needs_compiler
def test_a_wheel_carries_the_library_and_the_tag_of_the_platform(checkout: Path, tmp_path: Path) -> None:
    made = wheel(checkout)
    assert made.name.startswith("lstmsim-0.1.0-py3-none-")
    assert "any" not in made.name
    assert "manylinux" not in made.name
    assert files(made) == [f"{hatch_build.FAST}/{each}" for each in ("sources.py", sources.LIBRARY.name)]
    zipfile.ZipFile(made).extractall(tmp_path / "installed")
    installed = tmp_path / "installed" / hatch_build.FAST
    loaded, reason = load(installed / sources.LIBRARY.name, installed / "core")
    assert reason is None
    assert loaded is not None
    assert b"Root-Is-Purelib: false" in zipfile.ZipFile(made).read("lstmsim-0.1.0.dist-info/WHEEL")
    assert not list(checkout.rglob("_core.*")), "a wheel leaves nothing in the checkout"


@needs_compiler
def test_an_editable_install_has_the_library_beside_its_sources(checkout: Path) -> None:
    edit(checkout)
    path, core = checkout / hatch_build.FAST / sources.LIBRARY.name, checkout / hatch_build.FAST / "core"
    assert load(path, core)[1] is None
    built = path.stat().st_mtime_ns
    edit(checkout)
    assert path.stat().st_mtime_ns == built, "the same sources are not compiled again"
    write(checkout, FORMAT + DIGEST + "// changed\n")
    assert load(path, core)[1] == "it was built of other sources than those that are here"
    edit(checkout)
    # a process that has loaded a file goes on with what it has under that name
    copy = shutil.copy(path, path.with_name("again.so"))
    assert load(copy, core)[1] is None


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"CXX": "false"}, "`false` failed with exit code 1."),
        ({"CXX": "no-such-compiler -O3"}, "`no-such-compiler` could not be run (No such file or directory)."),
        ({"PATH": ""}, "there is no C++ compiler (looked for c++, g++, clang++)."),
    ],
)
def test_without_a_compiler_the_package_is_complete_and_says_so(
    checkout: Path,
    variables: dict[str, str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    stale = checkout / hatch_build.FAST / sources.LIBRARY.name
    stale.write_bytes(b"of other sources")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    made = wheel(checkout)
    assert made.name == "lstmsim-0.1.0-py3-none-any.whl"
    assert not any("_core" in name for name in files(made))
    assert stale.exists()
    edit(checkout)
    assert not stale.exists(), "nobody shall take it for a library of these sources"
    shown = " ".join("".join(capfd.readouterr()).split())
    assert shown.count(f"The native core was not built: {told} The package is complete without it") == 2
    assert shown.count("install a C++17 compiler") == 2


@needs_compiler
def test_what_the_compiler_says_is_shown(checkout: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(checkout, "int no_semicolon\n")
    wheel(checkout)
    shown = "".join(capfd.readouterr())
    assert "core.cpp:" in shown
    assert "error:" in shown
    assert not list(checkout.rglob("*.tmp"))


@needs_compiler
def test_a_library_that_cannot_be_used_says_why(checkout: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    path = tmp_path / sources.LIBRARY.name
    assert load(path, nowhere) == (None, "it was not built")
    path.write_bytes(b"text")
    loaded, reason = load(path, nowhere)
    assert loaded is None
    assert reason is not None
    assert reason.startswith("it cannot be loaded (")
    for number, (text, said) in enumerate(
        {
            f"{PUBLIC} long long lstmsim_format() {{ return 77; }}\n": "it was built for version 77 of",
            f"{PUBLIC} long long other() {{ return 1; }}\n": "it cannot be loaded (",
            FORMAT + f'{PUBLIC} const char *lstmsim_sources() {{ return ""; }}\n': "it was built of other sources",
            FORMAT: "it was built of other sources",
        }.items()
    ):
        write(checkout, text)
        path = tmp_path / f"{number}{sources.LIBRARY.name}"
        hatch_build.build(hatch_build.sources_of(checkout), path)
        loaded, reason = load(path, checkout / hatch_build.FAST / "core")
        assert loaded is None
        assert (reason or "").startswith(said)


@needs_compiler
def test_the_core_compiles_without_a_warning(tmp_path: Path) -> None:
    flags = [each for each in sources.FLAGS if each not in ("-shared", "-O2")]
    command = [str(COMPILER), *flags, "-Werror", "-fsyntax-only", str(sources.CORE / "core.cpp")]
    assert os.spawnv(os.P_WAIT, command[0], command) == 0


def test_a_digest_is_of_names_contents_and_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for name, text in (("a.cpp", "x"), ("a.hpp", "x"), ("a.hpp", "y"), ("b.hpp", "y")):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        (tmp_path / name).write_text(text)
        digests.add(sources.digest_of(tmp_path))
    monkeypatch.setattr(sources, "FLAGS", ("-O3",))
    digests.add(sources.digest_of(tmp_path))
    assert len(digests) == 5
    (tmp_path / "notes.txt").write_text("not a source")
    assert sources.digest_of(tmp_path) in digests
