"""The build hook of the package: compiles its native libraries, where there is a compiler.

    python hatch_build.py

does the same by hand, in place. The compiler is `$CXX`, or else the first of `COMPILERS` on the path. Without one, or
if it fails, the package is built all the same: then everything runs in Python, more slowly.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

#: Names under which a compiler is looked for.
COMPILERS = ("c++", "g++", "clang++")
#: The folder of the package in a checkout, and the module that knows its native sources.
PACKAGE = "lstmsim"
SOURCES = f"{PACKAGE}/native/sources.py"


class CompilerError(Exception):
    """There is no compiler, or it did not make a library; the text says which."""


class CustomBuildHook(BuildHookInterface[Any]):
    """Gives the wheel the libraries and the platform's tag, or neither."""

    #: Where the libraries lie until they are in the wheel.
    folder: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the libraries: into the checkout for an editable install, else into the wheel alone.

        version: what hatchling builds, "editable" or "standard".
        build_data: what hatchling is told of the wheel.
        """
        if self.target_name != "wheel":
            return
        if version != "editable":
            self.folder = tempfile.mkdtemp()
        try:
            made = build_all(Path(self.root), None if self.folder is None else Path(self.folder))
        except CompilerError as error:
            self.app.display_warning(
                f"The native core was not built: {error}. The package is complete without it and gives the same "
                "numbers on the reference engine, which takes some hundred times as long. To get the core, install a "
                "C++17 compiler (or name one in CXX) and install this package again."
            )
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform()}"
        if version != "editable":
            build_data["force_include"].update({str(file): place for place, file in made.items()})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the wheel was made of."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def sources_of(root: Path) -> ModuleType:
    """Load the module of a checkout that knows the native sources, without the package around it.

    root: the checkout's folder.
    """
    spec = importlib.util.spec_from_file_location("lstmsim_native_sources", root / SOURCES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_all(root: Path, folder: Path | None = None) -> dict[str, Path]:
    """Build all libraries of a checkout; give the file of each by its place in the package, as a path from `root`.

    After a failure the others are built all the same, and the first failure is a `CompilerError`.
    root: the checkout's folder.
    folder: where the libraries go; None: each to its place.
    """
    sources = sources_of(root)
    made: dict[str, Path] = {}
    failures = []
    for number, core in enumerate(sources.cores_of(root / PACKAGE)):
        place = sources.library_of(core)
        file = place
        if folder is not None:
            file = folder / str(number) / place.name
            file.parent.mkdir()
        try:
            build(sources, core, file)
        except CompilerError as error:
            failures.append(error)
        made[place.relative_to(root).as_posix()] = file
    if not made:
        raise CompilerError("its sources are missing")
    if failures:
        raise failures[0]
    return made


def build(sources: ModuleType, core: Path, library: Path) -> None:
    """Build a library, unless it is there already; `CompilerError` if that fails.

    A library of other sources is removed first: nobody shall take it for this one.
    sources: the module `lstmsim/native/sources.py`.
    core: the folder of the library's sources.
    library: the file to write.
    """
    digest = sources.digest_of(core)
    if library.exists():
        try:
            if sources.digest_in(ctypes.CDLL(str(library))) == digest:
                return
        except OSError:
            pass
        library.unlink()
    # what is half written must not be found: the name comes last
    unfinished = library.with_name(f"{library.name}.{os.getpid()}.tmp")
    command = [*compiler(), *sources.arguments(core), "-o", str(unfinished)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode or not unfinished.exists():
            told = "\n".join(done.stderr.strip().splitlines()[:20])
            raise CompilerError(f"`{command[0]}` failed with exit code {done.returncode}" + f"\n{told}\n" * bool(told))
        sys.stderr.write(done.stderr)
        unfinished.replace(library)
    except OSError as error:
        raise CompilerError(f"`{command[0]}` could not be run ({error.strerror or error})") from None
    finally:
        unfinished.unlink(missing_ok=True)


def compiler() -> list[str]:
    """Give the compiler's command; `CompilerError` if there is none."""
    wanted = shlex.split(os.environ.get("CXX", ""))
    if wanted:
        return wanted
    path = next(filter(None, map(shutil.which, COMPILERS)), None)
    if path is None:
        raise CompilerError(f"there is no C++ compiler (looked for {', '.join(COMPILERS)})")
    return [path]


def platform() -> str:
    """Give the platform's tag.

    A library that was built here may need what only this system has, so the tag promises no older one: `auditwheel`
    finds out how far it reaches, and renames the wheel.
    """
    return next(each.platform for each in sys_tags() if not each.platform.startswith(("manylinux", "musllinux")))


if __name__ == "__main__":
    try:
        libraries = build_all(Path(__file__).resolve().parent)
    except CompilerError as failure:
        raise SystemExit(f"the native core was not built: {failure}") from None
    print(*libraries.values(), sep="\n")
