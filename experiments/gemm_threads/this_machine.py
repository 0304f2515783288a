"""How far is the model of one thread off on the machine that this runs on?

Describes the machine by lscpu and small measurements, times numpy's BLAS on 16 products of RNN steps with one thread,
and prints what lstmsim predicts beside it, with the rank correlation. Then it does the same with 16 columns more, so
that rows are no power of two apart: what that changes in reality is not modelled. Last come LSTM layers beside ONNX
Runtime, where it is installed.

Run `python experiments/gemm_threads/this_machine.py` (about half a minute); `--small` takes three products.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Products of RNN steps, M x N x K: those of openblas_zen4.csv.
SHAPES: Sequence[tuple[int, int, int]] = (
    *((1, 1024, 512), (1, 2048, 1024), (1, 4096, 2048), (1, 768, 512), (4, 2048, 1024), (8, 512, 512)),
    *((8, 2048, 1024), (8, 4096, 2048), (16, 1024, 512), (16, 2048, 1024), (32, 2048, 1024), (64, 1024, 1024)),
    *((64, 2048, 1024), (64, 4096, 2048), (256, 256, 256), (25, 2048, 512)),
)
SMALL = ((1, 768, 512), (8, 512, 512), (64, 256, 256))
#: Which runs the tables have.
_RUNS = ("10 %", "90 %")
#: What numpy's BLAS must find before numpy is imported, so that it takes one thread.
ONE_THREAD = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def measured(chip: Any, shapes: Sequence[tuple[int, int, int]], seconds: float) -> list[Any]:
    """Products of this machine: cycles predicted, and of the runs that 10 % and 90 % were not slower than.

    chip: the machine as lstmsim has it.
    shapes: M, N and K of each.
    seconds: of each product.
    """
    import numpy as np

    from experiments.gemm_threads.machine_at_hand import least_ns
    from experiments.gemm_threads.measured import Row, predicted

    draw = np.random.default_rng(0)
    rows = []
    for m, n, k in shapes:
        a, b = draw.random((m, k), dtype=np.float32), draw.random((k, n), dtype=np.float32)
        c = np.empty((m, n), dtype=np.float32)
        times = least_ns(lambda a=a, b=b, c=c: np.matmul(a, b, out=c), seconds)  # type: ignore[misc]
        # not the quickest of all: the clock of CPU time may come out short once in a thousand runs
        tenths = (times[len(times) // 10], times[len(times) * 9 // 10])
        quick, slow = (max(1, round(ns * chip.frequency_mhz / 1000)) for ns in tenths)
        rows.append(Row(m, n, k, predicted(chip, m, n, k), quick, slow, len(times)))
    return rows


def blas() -> str:
    """The BLAS that numpy calls."""
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    of = config.get("Build Dependencies", {}).get("blas", {}) if isinstance(config, dict) else {}
    return f"numpy {np.__version__} with {of.get('name', 'a BLAS')} {of.get('version', 'of unknown version')}"


def text(small: bool = False) -> str:
    """The description of the machine and both tables, as Markdown; `small`: three products, and little time each."""
    from experiments.gemm_threads.machine_at_hand import ASSUMED, chip_of, described, found
    from experiments.gemm_threads.measured import power_of_two, summed_up, table
    from lstmsim.machines.multicore.words import LEFT_OUT

    seconds = 0.004 if small else 0.3
    chip, numbers = chip_of(found(seconds))
    shapes = SMALL if small else SHAPES
    plain = measured(chip, shapes, seconds)
    wider = measured(chip, [(m, n + 16, k) for m, n, k in shapes], seconds)
    of, also = summed_up(plain), summed_up(wider)
    verdict = (
        f"On this machine lstmsim predicts {of.low:.2f} to {of.high:.2f} times the cycles that numpy's BLAS takes for "
        f"{len(shapes)} products of RNN steps on one thread, geometric mean {of.mean:.2f}, rank correlation (Spearman) "
        f"{of.rank:.3f}. With 16 columns more, so that no rows are a power of two apart, it is {also.low:.2f} to "
        f"{also.high:.2f}, geometric mean {also.mean:.2f}, rank correlation {also.rank:.3f}."
    )
    costs = [one.measured / other.measured for one, other in zip(plain, wider, strict=True) if power_of_two(one)]
    verdict += (
        f" Products with such rows took {min(costs):.2f} to {max(costs):.2f} times as long as with 16 more columns."
    )
    if numbers["frequency_mhz"].source.startswith(ASSUMED):
        verdict += " But the clock is not known here (no compiler for a measurement): only the ranks say something."
    lines = ["# One thread on this machine: predicted and measured", "", *textwrap.wrap(verdict, 120), ""]
    lines += [f"{described()[0]}; {blas()}.", "", "| number | value | where it is from |", "| --- | ---: | --- |"]
    lines += [f"| `{key}` | {each.value:,} | {each.source} |" for key, each in numbers.items()]
    lines += [
        "",
        "Cycles of CPU time at that clock; measured: what 10 % of the runs were not slower than, and 90 %.",
        "",
    ]
    lines += [*table(plain, *_RUNS), "", "## With 16 columns more", "", *table(wider, *_RUNS), ""]
    lines += _of_layers(chip, small, seconds)
    return "\n".join([*lines, *textwrap.wrap(f"Not modelled: {'; '.join(LEFT_OUT)}.", 120), ""])


def _of_layers(chip: Any, small: bool, seconds: float) -> list[str]:
    """LSTM layers beside ONNX Runtime, where it is installed."""
    from experiments.gemm_threads import layers

    if not layers.available():
        return ["LSTM layers were not measured: ONNX Runtime is not installed (pip install onnx onnxruntime).", ""]
    rows = layers.measured(chip, layers.SMALL if small else layers.LAYERS, seconds)
    return [f"## LSTM layers beside {layers.version()}", "", *layers.table(chip, rows), ""]


if __name__ == "__main__":
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="three products, in a few seconds")
    small = parser.parse_args().small
    from experiments.run import readers_may_leave

    with readers_may_leave():
        print(text(small))
