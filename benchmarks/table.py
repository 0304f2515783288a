"""Measures lstmsim's speed and writes BENCHMARKS.md: everything in one run, so that the ratios carry over.

Run as `make bench`; it takes about six minutes and wants an idle machine. Seconds belong to the machine, ratios do
not. What cannot be measured again (an earlier version, a core that was changed) stands in `once.md`, and goes into
BENCHMARKS.md as it is.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from bare_loop import bare_loop
from build_cost import compiler
from engine_rows import HEAD as ENGINES_HEAD
from engine_rows import engine_rows, legend
from fusion import BOTH_HEAD, FUSION_HEAD, FUSION_NOTE, both_rows, fusion_rows
from gemm import GEMM_HEAD, GEMM_NOTE, WALK_HEAD, gemm_rows, walk_rows
from kernels import KERNELS_HEAD, KERNELS_NOTE, kernel_rows
from lowering import HEAD as RATIOS_HEAD
from lowering import design_points, ratios
from measures import measured_package, table, timeouts_per_second
from spans import SPANS_HEAD, SPANS_NOTE, spans_rows
from whole import whole_rows

HOME = Path(__file__).resolve().parents[1]


def main() -> int:
    measured_package()
    load = os.getloadavg()[0]
    whole, sparse, products = whole_rows(), kernel_rows(), gemm_rows()
    walks, fused, both, spans = walk_rows(), fusion_rows(), both_rows(), spans_rows()
    timeouts = timeouts_per_second()
    with bare_loop(compiler()) as loop:
        engines = engine_rows(timeouts, loop)
    baselines = ratios(design_points())
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    text = f"""# Benchmarks

Written by `make bench` (benchmarks/table.py) on {machine}.
When it began, {load:.1f} processes wanted a processor. With more than one, seconds are too many, CPU seconds hardly.
Ratios carry over to other machines, seconds do not. CPU times are the least of several runs.
SimPy alone: {timeouts / 1e6:.2f} million timeouts a processor second in the same run.
*Thousand timeouts* is a time in this unit: in that time SimPy alone waits so many thousand times.

## The engines

An *issue* is one tile or one row block in the tail; an *operation* is a run of issues that wait for the same.
Programs are lowered before the clock starts. A run of the core has the flattening in it, not the validation.
The reference engine's time of C follows from 30 of its 1,002 iterations.
*Times SimPy alone* are issues against timeouts of SimPy, in the same processor time.
Iterations that come again are not run; a trace has their rows written again. *Every iteration run* has that off.
The empty loop is C++: it reads the rows of the flat program that the core reads, and does nothing else.

{legend()}

{table(ENGINES_HEAD, engines)}

Where no other thread may come between the issues of an operation, the core takes them together: so it can be quicker
than the loop that reads for each issue. The rest of the distance to the loop is the price of the model of a machine.

## Whole tasks

{table(["what", "unit", "measured"], whole)}

{table(RATIOS_HEAD, baselines)}

## Sparse kernels

{KERNELS_NOTE}

{table(KERNELS_HEAD, sparse, names=1)}

## Fused kernels

{FUSION_NOTE}

{table(FUSION_HEAD, fused, names=1)}

{table(BOTH_HEAD, both, names=1)}

## Threads for matrix products

{GEMM_NOTE}

{table(GEMM_HEAD, products, names=1)}

{table(WALK_HEAD, walks, names=1)}

## A million spans

{SPANS_NOTE}

{table(SPANS_HEAD, spans, names=1)}

{(HOME / "benchmarks" / "once.md").read_text(encoding="utf-8")}"""
    (HOME / "BENCHMARKS.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
