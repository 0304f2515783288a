"""The command line, one file per command: parse, call one function, print. Heavy imports wait for a command."""

from __future__ import annotations

import atexit
import gc
import os
import sys

#: Objects that are made before Python looks for garbage that refers to itself; at some 100 bytes each these are 20 MB.
_MOST_YOUNG = 200_000
#: Words that ask for products of large matrices. All other commands have one thread of BLAS, because numpy's import
#: would start one for each processor, in as much time as the rest of the import takes.
_MULTIPLYING = {"accuracy", "fuse", "import", "sparse", "validate", "--check-numerics", "--outputs"}


def main() -> None:
    """Run the command line and exit: 0 done, 2 the input is at fault, 1 anything else, 130 interrupted."""
    # Starting makes tens of thousands of objects that stay. To look through them for garbage, again and again, takes a
    # tenth of a small simulation.
    gc.set_threshold(_MOST_YOUNG)
    # at the end Python would look through all of them once more: a tenth of a small simulation, too
    atexit.register(gc.freeze)
    asked = _MULTIPLYING.intersection(word.partition("=")[0] for word in sys.argv[1:])
    if not asked and not any(name.endswith("_NUM_THREADS") for name in os.environ):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
    from lstmsim.cli.group import lstmsim

    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a letter must not turn a result into a failure.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    lstmsim(prog_name="lstmsim")
