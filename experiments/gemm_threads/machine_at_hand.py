"""The machine that this runs on, described as a multi-core CPU of which one thread is used.

Each number says where it is from: lscpu, a small measurement, or an assumption where neither tells. What cannot be
found out is taken from `zen4-2core.yaml`.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, log2
from pathlib import Path
from time import process_time_ns
from typing import Any, NamedTuple

import lstmsim
from experiments.gemm_threads.measured import HERE

__all__ = ["ASSUMED", "Named", "chip_of", "described", "found", "least_ns", "plausible"]

#: How the source of a number begins that is not of this machine.
ASSUMED = "assumption"
_ASSUMED = f"{ASSUMED}: as zen4-2core.yaml, because nothing here tells"
#: Prints MHz by register additions one after the other, a cycle each, then the cycles of a dependent multiplication at
#: that clock. Then, for each size in bytes that it is given, the cycles of a line of 64 bytes of a vector that is read
#: again and again. Everything is CPU time. An addition of a constant would not do: some processors fold several of
#: them into one cycle.
_PROBE = r"""
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>
static double now() { timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
// not the least: the clock of CPU time comes out short now and then
static double tenth(std::vector<double> &times) {
    std::nth_element(times.begin(), times.begin() + times.size() / 10, times.end());
    return times[times.size() / 10];
}
template <class Step> static double step_ns(Step step) {
    std::vector<double> times;
    for (int turn = 0; turn < 40; ++turn) {
        uint64_t x = 1, y = 3;
        asm volatile("" : "+r"(x), "+r"(y));
        double begun = now();
        for (long i = 0; i < 1000000; ++i)
            for (int j = 0; j < 4; ++j) { x = step(x, y); asm volatile("" : "+r"(x)); }
        times.push_back(now() - begun);
    }
    return tenth(times) / 4e6;
}
int main(int count, char **sizes) {
    double addition = step_ns([](uint64_t x, uint64_t y) { return x + y; });
    double product = step_ns([](uint64_t x, uint64_t y) { return x * y; });
    std::printf("%f\n%f\n", 1000 / addition, product / addition);
    for (int size = 1; size < count; ++size) {
        std::vector<uint32_t> held(std::atol(sizes[size]) / 4, 1);
        std::vector<double> times;
        for (double end = now() + 2e8; now() < end;) {
            uint32_t sum = 0;
            double begun = now();
            for (uint32_t one : held) sum += one;
            asm volatile("" : : "r"(sum));
            times.push_back(now() - begun);
        }
        std::printf("%f\n", tenth(times) / addition * 16 / held.size());
    }
}
"""
#: What no processor of today goes beyond: MHz; cycles of a dependent multiplication (3 on x86 since 2008, 3 or 4 on
#: Arm, 5 on the oldest of both); cycles of a line of a cache or of memory that is read in sequence.
_PLAUSIBLE = {"MHz": (400, 6500), "cycles of a multiplication": (2.5, 5.5), "cycles of a line": (0.4, 200)}


class Named(NamedTuple):
    """A number of the machine.

    value: the number.
    source: where it is from, in words.
    """

    value: int
    source: str


#: Keys of a chip and of its cores, each with its number.
Found = Mapping[str, Named]


def _printed(*command: str) -> str:
    """What a program prints; empty: it is not there, or it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _lscpu(*options: str) -> Mapping[str, Any]:
    """What lscpu knows; empty: it is missing, or too old for JSON."""
    try:
        read = json.loads(_printed("lscpu", "-J", *options))
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def described() -> tuple[str, str]:
    """The machine in words, and the flags of its processor; no flags where lscpu is missing."""
    fields = {each.get("field"): each.get("data") for each in _lscpu().get("lscpu", [])}
    model = fields.get("Model name:") or platform.processor() or platform.machine() or "an unknown processor"
    cpus = f", {fields['CPU(s):']} CPUs" if fields.get("CPU(s):") else ""
    return f"{model}{cpus}, {platform.system()}", str(fields.get("Flags:") or "")


def _caches() -> dict[str, Named]:
    """Sets and ways of each cache, and the bytes of a line, by lscpu; empty unless it knows three levels."""
    numbers: dict[str, Named] = {}
    for each in _lscpu("-B", "-C=LEVEL,TYPE,WAYS,SETS,COHERENCY-SIZE").get("caches", []):
        level = {1: "l1", 2: "l2", 3: "llc"}.get(int(each.get("level") or 0))
        sizes = [int(each.get(name) or 0) for name in ("sets", "ways", "coherency-size")]
        if level and each.get("type") != "Instruction" and all(sizes):
            keys = (f"{level}_sets", f"{level}_ways", "line")
            numbers |= {key: Named(size, "lscpu") for key, size in zip(keys, sizes, strict=True)}
    return numbers if len(numbers) == 7 else {}


def _probed(sizes: Sequence[int]) -> list[float]:
    """MHz, cycles of a multiplication, and cycles of a line in vectors of these sizes; empty: there is no compiler."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.cpp"), Path(folder, "probe")
        source.write_text(_PROBE, encoding="utf-8")
        _printed(compiler, "-O3", "-march=native", str(source), "-o", str(program))
        return [float(line) for line in _printed(str(program), *map(str, sizes)).split()]


def plausible(name: str, value: float) -> float:
    """A measured number that some processor can have; another one ends the run, because every ratio would be wrong.

    name: a key of the ranges that are known.

    >>> plausible("MHz", 7537)
    Traceback (most recent call last):
    SystemExit: this machine cannot be described: 7,537.0 MHz were measured, and no processor is outside ...
    """
    low, high = _PLAUSIBLE[name]
    if not low <= value <= high:
        raise SystemExit(
            f"this machine cannot be described: {value:,.1f} {name} were measured, and no processor is outside "
            f"{low:,} to {high:,}: the probe does not fit this processor, or the machine is too busy"
        )
    return value


def _clock_and_lines(caches: Found) -> dict[str, Named]:
    """The clock, and cycles of a line of L2, of the last-level cache, of memory; empty: there is no compiler.

    caches: empty: only the clock.
    """
    held: dict[str, int] = {}
    if caches:
        l2, llc = (caches[f"{level}_sets"].value * caches[f"{level}_ways"].value for level in ("l2", "llc"))
        # each vector is too large for the level before, and leaves room in its own
        held = {"l2_cycles_per_line": l2 // 2, "llc_cycles_per_line": max(2 * l2, llc // 4)}
        held["core_memory_cycles_per_line"] = min(4 * llc, 1 << 22)
    line = caches["line"].value if caches else 64
    probed = _probed([lines * line for lines in held.values()])
    if not probed:
        return {}
    clock, product, *cycles = probed
    plausible("MHz", clock)
    plausible("cycles of a multiplication", product)
    source = f"measured: register additions one after the other, one a cycle; a multiplication takes {product:.1f}"
    reported = {"frequency_mhz": Named(round(clock), source)}
    for (key, lines), each in zip(held.items(), cycles, strict=True):
        taken = plausible("cycles of a line", each) * line / 64
        source = f"measured: {taken:.1f}, a sum over {lines * line:,} bytes again and again"
        reported[key] = Named(max(1, round(taken)), source)
    return reported


def least_ns(call: Callable[[], object], seconds: float, least: int = 5) -> list[int]:
    """CPU times of as many runs as take some seconds together, in nanoseconds, the quickest first.

    call: what is timed; it runs once before.
    least: runs at least.
    """
    call()
    times: list[int] = []
    while len(times) < least or sum(times) < seconds * 1e9:
        begun = process_time_ns()
        call()
        times.append(max(1, process_time_ns() - begun))
    return sorted(times)


def _of_blas(mhz: float, seconds: float) -> dict[str, Named]:
    """Multiply-accumulates of a cycle, and elements packed in one, by a straight line through products of some rows."""
    import numpy as np

    n, k, rows = 1040, 528, (16, 48, 80, 128)
    draw = np.random.default_rng(0)
    b = draw.random((k, n), dtype=np.float32)
    cycles = []
    for m in rows:
        a, c = draw.random((m, k), dtype=np.float32), np.empty((m, n), dtype=np.float32)
        cycles.append(least_ns(lambda a=a, c=c: np.matmul(a, b, out=c), seconds)[0] * mhz / 1000)  # type: ignore[misc]
    each, fixed = np.polyfit(rows, cycles, 1)
    if each <= 0 or fixed <= 0:  # a busy machine: more rows took less time, or no rows less than none
        return {}
    macs, packed = n * k / each, n * k / fixed
    return {
        "macs_per_cycle": Named(
            1 << max(0, ceil(log2(macs / 1.05))),
            f"measured: the power of two above {macs:.1f}, which numpy's BLAS reaches for each further row",
        ),
        "pack_per_cycle": Named(
            min(64, max(1, round(packed))),
            f"measured: {packed:.1f}, what {n} x {k} weights cost beside the rows (straight line, M 16 to 128)",
        ),
    }


def found(seconds: float = 0.2) -> dict[str, Named]:
    """What can be found out of the machine.

    seconds: for each of four products; other measurements take a second together.
    """
    flags, caches = described()[1], _caches()
    tile = {"lanes": 16, "mr": 12, "nr": 32} if "avx512f" in flags else {"lanes": 8, "mr": 6, "nr": 16}
    reported = "flags of lscpu; BLIS's micro-tile for such vectors" if flags else f"{ASSUMED}: vectors of 32 bytes"
    tiles = {key: Named(value, reported) for key, value in tile.items()}
    clock = _clock_and_lines(caches)
    of_blas = _of_blas(clock["frequency_mhz"].value, seconds) if clock else {}
    return {**caches, **tiles, **clock, **of_blas}


#: The numbers that one thread meets whose caches are warm.
_SHOWN = (
    *("frequency_mhz", "l1_sets", "l1_ways", "l2_sets", "l2_ways", "llc_sets", "llc_ways", "line", "page"),
    *("l2_cycles_per_line", "llc_cycles_per_line", "core_memory_cycles_per_line", "memory_latency"),
    *("macs_per_cycle", "lanes", "mr", "nr", "kernel_cycles", "pack_per_cycle"),
)


def chip_of(numbers: Found) -> tuple[Any, Found]:
    """The chip, and its numbers as far as one thread with warm caches meets them, with where they are from.

    numbers: what was found; the others are those of zen4-2core.yaml.
    """
    known: Any = lstmsim.load_chip(HERE / "zen4-2core.yaml")
    core = known.cores[0]
    of_core = {key: each.value for key, each in numbers.items() if hasattr(core, key)}
    of_chip = {key: each.value for key, each in numbers.items() if key not in of_core}
    made = replace(core, **of_core)
    chip = replace(known, name="this machine", cores=(made,) * len(known.cores), **of_chip)
    values = {key: getattr(made if hasattr(made, key) else chip, key) for key in _SHOWN}
    return chip, {key: numbers.get(key, Named(value, _ASSUMED)) for key, value in values.items()}
