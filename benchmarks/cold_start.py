"""What a small command costs before and around its simulation: processor time of new processes, against numpy's import.

numpy's import is measured as it is, where it starts a thread of BLAS for each processor, and with one such thread; the
command starts one by itself.

Run it alone (`python benchmarks/cold_start.py`), or see its line in BENCHMARKS.md. A preset, a model by its name, 20
steps. The commands of a round run one after the other, so that their ratios carry over to slower and busier machines.
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

from measures import measured_package

PAIRS = 9
SCENARIO = "chip: column-npu-64k\njobs:\n  - {model: lstm-512, steps: 20}\n"


class ColdStart(NamedTuple):
    """Medians over the rounds.

    times: the command against numpy's import.
    times_one: the command against numpy's import with one thread of BLAS.
    command_s, numpy_s, one_s: processor seconds of each.
    """

    times: float
    times_one: float
    command_s: float
    numpy_s: float
    one_s: float


def cold_start(pairs: int = PAIRS) -> ColdStart:
    """Measure `lstmsim simulate` of a small scenario in a new process against `python -c "import numpy"` in another."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if key != "PYTHONDONTWRITEBYTECODE" and not key.endswith("_NUM_THREADS")
    }

    def seconds(*words: str, **more: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, env=environment | more, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.yaml")
        path.write_text(SCENARIO)
        simulate = ("-P", "-m", "lstmsim", "simulate", str(path))
        seconds(*simulate)  # writes the byte code
        imported = ("-c", "import numpy")
        measured = [
            (seconds(*simulate), seconds(*imported), seconds(*imported, OPENBLAS_NUM_THREADS="1")) for _ in range(pairs)
        ]
    ratios = [statistics.median(each[0] / each[other] for each in measured) for other in (1, 2)]
    return ColdStart(*ratios, *map(statistics.median, zip(*measured, strict=True)))


if __name__ == "__main__":
    measured_package()
    cost = cold_start()
    print(f"{cost.times:.2f} times: {cost.command_s:.3f} s against {cost.numpy_s:.3f} s of numpy's import")
    print(f"{cost.times_one:.2f} times with one thread of BLAS: against {cost.one_s:.3f} s")
