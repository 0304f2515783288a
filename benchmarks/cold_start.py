"""What a small command costs before and around its simulation: processor time of new processes, against numpy's import.

Run it alone (`python benchmarks/cold_start.py`), or see its line in BENCHMARKS.md. A preset, a model by its name, 20
steps. Both commands of a pair run one after the other, so that their ratio carries over to slower and busier machines.
Byte code is kept, as an installed package has it.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

PAIRS = 9
SCENARIO = "chip: column-npu-64k\njobs:\n  - {model: lstm-512, steps: 20}\n"


class ColdStart(NamedTuple):
    """Medians over the pairs.

    times: the command against numpy's import.
    command_s, numpy_s: processor seconds of each.
    """

    times: float
    command_s: float
    numpy_s: float


def cold_start(pairs: int = PAIRS) -> ColdStart:
    """Measure `lstmsim simulate` of a small scenario in a new process against `python -c "import numpy"` in another."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def seconds(*words: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.yaml")
        path.write_text(SCENARIO)
        simulate = ("-m", "lstmsim", "simulate", str(path))
        seconds(*simulate)  # writes the byte code
        measured = [(seconds(*simulate), seconds("-c", "import numpy")) for _ in range(pairs)]
    commands, numpys = zip(*measured, strict=True)
    ratio = statistics.median(command / numpy for command, numpy in measured)
    return ColdStart(ratio, statistics.median(commands), statistics.median(numpys))


if __name__ == "__main__":
    cost = cold_start()
    print(f"{cost.times:.2f} times: {cost.command_s:.3f} s against {cost.numpy_s:.3f} s of numpy's import")
