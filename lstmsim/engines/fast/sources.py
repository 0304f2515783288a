"""The native core's sources and its library: where both are, how the compiler is called, and whether they belong
together.

The build hook (`hatch_build.py`) loads this file alone, before the package can be imported: it needs the standard
library and nothing else.
"""

from __future__ import annotations

import ctypes
import sys
from hashlib import sha256
from pathlib import Path

__all__ = ["CORE", "FLAGS", "LIBRARY", "digest_in", "digest_of"]

#: The folder of the sources; an installed package has none.
CORE = Path(__file__).with_name("core")
#: The library, as the platform calls it.
LIBRARY = Path(__file__).with_name("_core" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so"))
#: How the compiler is called.
FLAGS = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-shared")


def digest_of(folder: Path = CORE) -> str | None:
    """Give a digest of the sources in a folder and of the compiler's flags; None if there are no sources.

    >>> digest_of(Path("nowhere")) is None
    True
    """
    files = sorted([*folder.glob("*.cpp"), *folder.glob("*.hpp")])
    if not files:
        return None
    digest = sha256(repr(FLAGS).encode())
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def digest_in(library: ctypes.CDLL) -> str:
    """Give the digest that a library was built with; empty if it was built without one.

    library: the library, loaded.
    """
    try:
        function = library.lstmsim_sources
    except AttributeError:
        return ""
    function.argtypes, function.restype = (), ctypes.c_char_p
    text: bytes = function()
    return text.decode()
