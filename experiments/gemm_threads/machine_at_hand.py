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

__all__ = ["ASSUMED", "Named", "chip_of", "described", "found", "least_ns"]

#: How the source of a number begins that is not of this machine.
ASSUMED = "assumption"
_ASSUMED = f"{ASSUMED}: as zen4-2core.yaml, because nothing here tells"
#: Prints MHz: additions one after the other take a cycle each. Then, for each size in bytes that it is given, the
#: cycles of a line of 64 bytes of a vector that is read again and again.
_PROBE = r"""
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>
static double now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(int count, char **sizes) {
    double best = 1e18;
    for (int turn = 0; turn < 40; ++turn) {
        uint64_t x = 1;
        double begun = now();
        for (long i = 0; i < 1000000; ++i)
            for (int j = 0; j < 4; ++j) { x += 1; asm volatile("" : "+r"(x)); }
        double ns = now() - begun;
        if (ns < best) best = ns;
    }
    double ghz = 4e6 / best;
    std::printf("%f\n", 1000 * ghz);
    for (int each = 1; each < count; ++each) {
        std::vector<uint32_t> held(std::atol(sizes[each]) / 4, 1);
        double least = 1e18;
        for (double end = now() + 2e8; now() < end;) {
            uint32_t sum = 0;
            double begun = now();
            for (uint32_t one : held) sum += one;
            double ns = now() - begun;
            asm volatile("" : : "r"(sum));
            if (ns < least) least = ns;
        }
        std::printf("%f\n", least * ghz * 16 / held.size());
    }
}
"""


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
    """MHz, and cycles of a line in vectors of so many bytes; empty: there is no compiler."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.cpp"), Path(folder, "probe")
        source.write_text(_PROBE, encoding="utf-8")
        _printed(compiler, "-O3", "-march=native", str(source), "-o", str(program))
        return [float(line) for line in _printed(str(program), *map(str, sizes)).split()]


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
    clock, *cycles = _probed([lines * line for lines in held.values()]) or [0.0]
    if not clock:
        return {}
    reported = {"frequency_mhz": Named(round(clock), "measured: additions one after the other, one a cycle")}
    for (key, lines), each in zip(held.items(), cycles, strict=False):
        taken = each * line / 64
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
    macs, packed = n * k / max(each, 1), n * k / max(fixed, 1)
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
