"""Sources of the native libraries: where they are, how the compiler is called, whether a library was built of them.

Wherever the package has a folder `core` with a `core.cpp`, that is the one translation unit of a library, which lies
beside the folder. What libraries share is in `common`.

The build hook (`hatch_build.py`) loads this file alone, before the package can be imported: it needs the standard
library and nothing else.
"""

from __future__ import annotations

import ctypes
import sys
from hashlib import sha256
from pathlib import Path

#: The folder of what libraries share; an installed package has none.
COMMON = Path(__file__).with_name("common")
#: The name of a library, as the platform calls it.
_NAME = "_core" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
#: How the compiler is called.
FLAGS = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-shared")


def cores_of(package: Path) -> list[Path]:
    """Give the folders of sources of which libraries are made, below the folder `lstmsim` of a checkout."""
    return sorted(each.parent for each in package.rglob("core/core.cpp"))


def library_of(core: Path) -> Path:
    """Give the file of the library that belongs to some sources."""
    return core.with_name(_NAME)


def arguments(core: Path, flags: tuple[str, ...] = FLAGS) -> list[str]:
    """Give the compiler's arguments, but for where the library goes; flags: others in place of the usual ones."""
    macro = f'-DLSTMSIM_SOURCES="{digest_of(core)}"'
    return [*flags, f"-I{COMMON}", macro, str(core / "core.cpp")]


def digest_of(core: Path) -> str | None:
    """Give a digest of sources, of what libraries share, and of the flags; None if there are no sources."""
    own = _files(core)
    if not own:
        return None
    digest = sha256(repr(FLAGS).encode())
    for file in [*own, *_files(COMMON)]:
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.cpp"), *folder.glob("*.hpp")])


def digest_in(library: ctypes.CDLL) -> str:
    """Give the digest that a library was built with; empty if it was built without one."""
    try:
        function = library.lstmsim_sources
    except AttributeError:
        return ""
    function.argtypes, function.restype = (), ctypes.c_char_p
    text: bytes = function()
    return text.decode()
