"""What the native core costs to build, and how large its library is."""

from __future__ import annotations

import importlib.util
import resource
import tempfile
import zlib
from pathlib import Path
from types import ModuleType

from lstmsim.engines.fast.run import OWN

HOME = Path(__file__).resolve().parents[1]
__all__ = ["build_cost", "compiler"]


def _build_hook() -> ModuleType:
    """The checkout's hook of the build; the checkout stays off the path, so `lstmsim` is the installed one."""
    spec = importlib.util.spec_from_file_location("hatch_build", HOME / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hatch_build = _build_hook()


def compiler() -> str:
    """Give the command of the compiler that the build uses."""
    return " ".join(map(str, hatch_build.compiler()))


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
