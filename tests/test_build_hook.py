"""`hatch_build.py`: what the package is with a compiler, without one, and with one that fails; several libraries."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from lstmsim.native import sources
from lstmsim.native.library import load

hatch_build = pytest.importorskip("hatch_build", reason="the build hook is not part of the package")

ROOT = Path(hatch_build.__file__).parent
CORES = sources.cores_of(ROOT / hatch_build.PACKAGE)
COMPILER = next(filter(None, map(shutil.which, hatch_build.COMPILERS)), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
#: Where the libraries of the checkout are, in the package; folders of the same depth.
ROOMS = ("engines/one", "targets/two")
NAME = sources.library_of(Path("core")).name
#: How a library says that others may call a function of it.
PUBLIC = 'extern "C" __attribute__((visibility("default")))'
VERSION = 5
FORMAT, DIGEST = (
    f"{PUBLIC} long long lstmsim_format() {{ return {VERSION}; }}\n",
    f"{PUBLIC} const char *lstmsim_sources() {{ return LSTMSIM_SOURCES; }}\n",
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two small libraries, in which the compiler is looked for on the path."""
    monkeypatch.delenv("CXX", raising=False)
    root = tmp_path / "checkout"
    for name in ("models", "published", "lstmsim/native/common", *(f"lstmsim/{each}/core" for each in ROOMS)):
        (root / name).mkdir(parents=True)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore", "lstmsim/__init__.py"):
        shutil.copy(ROOT / name, root / name)
    shutil.copy(ROOT / hatch_build.SOURCES, root / hatch_build.SOURCES)
    (root / "lstmsim/native/common/shared.hpp").write_text("// Of both.\n")
    for room in ROOMS:
        write(root, '#include "shared.hpp"\n' + FORMAT + DIGEST, room)
    return root


def in_sdist(root: Path) -> set[str]:
    return {each.distribution_path for each in SdistBuilder(str(root)).recurse_included_files()}


def test_an_sdist_has_what_belongs_to_the_project_and_no_other_folder(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in ("lstmsim/__init__.py", "docs/index.md", "README.md", "notes/own.md", ".own/run.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert in_sdist(tmp_path) == {"pyproject.toml", "lstmsim/__init__.py", "docs/index.md", "README.md"}


@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="this is no clone")
def test_an_sdist_has_every_file_of_the_project() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
    assert not tracked - in_sdist(ROOT)


def test_the_wheel_has_what_pages_are_made_of() -> None:
    shipped = {each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()}
    made_of = {str(each.relative_to(ROOT)) for end in ("js", "css") for each in (ROOT / "lstmsim").rglob(f"*.{end}")}
    assert len(made_of) >= 7
    assert made_of <= shipped


def core_of(root: Path, room: str = ROOMS[0]) -> Path:
    return root / "lstmsim" / room / "core"


def write(root: Path, text: str, room: str = ROOMS[0]) -> None:
    (core_of(root, room) / "core.cpp").write_text(text)


def why_not(core: Path, library: Path | None = None) -> str | None:
    """Why the library of a checkout's sources cannot be used. The digest is that of the checkout's own files."""
    made = hatch_build.sources_of(core.parents[len(Path(ROOMS[0]).parts) + 1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lstmsim.native.library.digest_of", made.digest_of)
        return load(library or made.library_of(core), core, VERSION)[1]


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
    return [name for name in zipfile.ZipFile(path).namelist() if any(room in name for room in ("native", *ROOMS))]


@pytest.mark.slow
@needs_compiler
def test_a_wheel_carries_the_libraries_and_the_tag_of_the_platform(checkout: Path, tmp_path: Path) -> None:
    made = wheel(checkout)
    assert made.name.startswith("lstmsim-0.2.0-py3-none-")
    assert "any" not in made.name
    assert "manylinux" not in made.name
    assert files(made) == [hatch_build.SOURCES, *(f"lstmsim/{room}/{NAME}" for room in ROOMS)]
    zipfile.ZipFile(made).extractall(tmp_path / "installed")
    for room in ROOMS:
        installed = tmp_path / "installed" / "lstmsim" / room
        loaded, reason = load(installed / NAME, installed / "core", VERSION)
        assert reason is None
        assert loaded is not None
    assert b"Root-Is-Purelib: false" in zipfile.ZipFile(made).read("lstmsim-0.2.0.dist-info/WHEEL")
    assert not list(checkout.rglob("_core.*")), "a wheel leaves nothing in the checkout"


@pytest.mark.slow
@needs_compiler
def test_an_editable_install_has_the_libraries_beside_their_sources(checkout: Path) -> None:
    edit(checkout)
    cores = [core_of(checkout, room) for room in ROOMS]
    paths = [core.with_name(NAME) for core in cores]
    assert [why_not(core) for core in cores] == [None, None]
    built = [path.stat().st_mtime_ns for path in paths]
    edit(checkout)
    assert [path.stat().st_mtime_ns for path in paths] == built, "the same sources are not compiled again"
    write(checkout, FORMAT + DIGEST + "// changed\n")
    assert why_not(cores[0]) == "it was built of other sources than those that are here"
    edit(checkout)
    # a process that has loaded a file goes on with what it has under that name
    assert why_not(cores[0], Path(shutil.copy(paths[0], paths[0].with_name("again.so")))) is None
    assert paths[1].stat().st_mtime_ns == built[1], "what has not changed is not compiled again"
    (checkout / "lstmsim/native/common/shared.hpp").write_text("// Of both, changed.\n")
    edit(checkout)
    assert paths[1].stat().st_mtime_ns != built[1], "what libraries share is part of each"


@pytest.mark.slow
@needs_compiler
def test_a_library_that_fails_does_not_keep_others_from_being_built(checkout: Path) -> None:
    write(checkout, "int no_semicolon\n")
    edit(checkout)
    assert [core_of(checkout, room).with_name(NAME).exists() for room in ROOMS] == [False, True]
    assert wheel(checkout).name.endswith("-py3-none-any.whl"), "a wheel has all libraries or none"


@pytest.mark.parametrize(
    ("variables", "reported"),
    [
        ({"CXX": "false"}, "`false` failed with exit code 1."),
        ({"CXX": "no-such-compiler -O3"}, "`no-such-compiler` could not be run (No such file or directory)."),
        ({"PATH": ""}, "there is no C++ compiler (looked for c++, g++, clang++)."),
    ],
)
def test_without_a_compiler_the_package_is_complete_and_says_so(
    checkout: Path,
    variables: dict[str, str],
    reported: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    stale = core_of(checkout, ROOMS[1]).with_name(NAME)
    stale.write_bytes(b"of other sources")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    made = wheel(checkout)
    assert made.name == "lstmsim-0.2.0-py3-none-any.whl"
    assert not any("_core" in name for name in files(made))
    assert stale.exists()
    edit(checkout)
    assert not stale.exists(), "nobody shall take it for a library of these sources"
    shown = " ".join("".join(capfd.readouterr()).split())
    assert shown.count(f"The native core was not built: {reported} The package is complete without it") == 2
    assert shown.count("install a C++17 compiler") == 2


@needs_compiler
def test_what_the_compiler_says_is_shown(checkout: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(checkout, "int no_semicolon\n")
    wheel(checkout)
    shown = "".join(capfd.readouterr())
    assert "core.cpp:" in shown
    assert "error:" in shown
    assert not list(checkout.rglob("*.tmp"))


@pytest.mark.slow
@needs_compiler
def test_a_library_that_cannot_be_used_says_why(checkout: Path, tmp_path: Path) -> None:
    core = core_of(checkout)
    path = tmp_path / NAME
    assert why_not(core, path) == "it was not built"
    path.write_bytes(b"text")
    assert (why_not(core, path) or "").startswith("it cannot be loaded (")
    for number, (text, said) in enumerate(
        {
            f"{PUBLIC} long long lstmsim_format() {{ return 77; }}\n": "it was built for version 77 of",
            f"{PUBLIC} long long other() {{ return 1; }}\n": "it cannot be loaded (",
            FORMAT + f'{PUBLIC} const char *lstmsim_sources() {{ return ""; }}\n': "it was built of other sources",
            FORMAT: "it was built of other sources",
        }.items()
    ):
        write(checkout, text)
        path = tmp_path / f"{number}{NAME}"
        hatch_build.build(hatch_build.sources_of(checkout), core, path)
        assert (why_not(core, path) or "").startswith(said)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("core", CORES, ids=lambda core: core.parent.name)
def test_libraries_compile_without_a_warning(core: Path) -> None:
    flags = tuple(each for each in sources.FLAGS if each not in ("-shared", "-O2"))
    command = [str(COMPILER), *sources.arguments(core, flags), "-Werror", "-fsyntax-only"]
    assert os.spawnv(os.P_WAIT, command[0], command) == 0


def test_a_digest_is_of_names_contents_what_is_shared_and_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = set()
    core, common = tmp_path / "core", tmp_path / "common"
    common.mkdir()
    monkeypatch.setattr(sources, "COMMON", common)
    for name, text in (("a.cpp", "x"), ("a.hpp", "x"), ("a.hpp", "y"), ("b.hpp", "y")):
        shutil.rmtree(core, ignore_errors=True)
        core.mkdir()
        (core / name).write_text(text)
        digests.add(sources.digest_of(core))
    (common / "c.hpp").write_text("x")
    digests.add(sources.digest_of(core))
    monkeypatch.setattr(sources, "FLAGS", ("-O3",))
    digests.add(sources.digest_of(core))
    assert len(digests) == 6
    (core / "notes.txt").write_text("not a source")
    assert sources.digest_of(core) in digests
