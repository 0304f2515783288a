"""What the native core costs to build, and how large its library is."""

from __future__ import annotations

import resource
import sys
import tempfile
import zlib
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HOME))

import hatch_build  # noqa: E402
from lstmsim.engines.fast.run import OWN  # noqa: E402

__all__ = ["build_cost", "compiler"]


def compiler() -> str:
    """Give the command of the compiler that the build uses."""
    return " ".join(hatch_build.compiler())


def build_cost() -> tuple[float, float, float]:
    """Build the engine's core anew, beside the one in use; give processor seconds, kB, and kB in a wheel."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "core.so")
        hatch_build.build(hatch_build.sources_of(HOME), OWN.core, library)
        content = library.read_bytes()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, len(content) / 1e3, len(zlib.compress(content)) / 1e3
