"""An empty C++ loop over the arrays of a program: the limit beside which the core's time stands.

It is compiled into a temporary folder, with the core's flags and the core's reader of flat programs.
"""

from __future__ import annotations

import ctypes
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lstmsim.engines.fast.run import OWN
from lstmsim.native.sources import COMMON, FLAGS
from lstmsim.program.flat import FlatProgram

__all__ = ["BareLoop", "bare_loop"]

SOURCE = Path(__file__).with_name("bare_loop.cpp")


class BareLoop:
    """The loop, compiled.

    function: the function of the library.
    """

    def __init__(self, function: Any) -> None:
        self._function = function

    def reads(self, program: FlatProgram, *, each_issue: bool) -> int:
        """Read an operation's row once in each iteration, or once for each issue; give how often that was."""
        count = ctypes.c_int64()
        if self._function(program.words.ctypes.data, len(program.words), each_issue, ctypes.byref(count)) < 0:
            raise ValueError("the flat program cannot be read")
        return count.value


@contextmanager
def bare_loop(compiler: str) -> Iterator[BareLoop]:
    """Compile the loop; it lives as long as the block.

    compiler: the command of a C++17 compiler.
    """
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "bare_loop.so")
        folders = (f"-I{OWN.core}", f"-I{COMMON}")
        command = [*shlex.split(compiler), *FLAGS, "-fvisibility=default", *folders, "-o", str(library), str(SOURCE)]
        subprocess.run(command, check=True)
        function = ctypes.CDLL(str(library)).bare_loop
        function.restype = ctypes.c_int64
        function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)]
        yield BareLoop(function)
