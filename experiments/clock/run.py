"""How well the clock of generated hardware is told before it is built: a model by design beside one clock for all.

The builds are in built.csv (`python experiments/clock/build.py FOLDER`). The model is made of the first 80 designs of a
draw (`python experiments/clock/model.py`), and judged here by the 20 that follow.

Run `python experiments/clock/run.py`; `--write` refreshes expected.md beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.clock.draw import FIT, HELD_OUT, SEED, VALUES, repeated
from experiments.clock.model import CLOSE, Builds, judged
from lstmsim.machines.column.clock import modules

_NAMES = ("cell", "layers", "hidden", "input", "ep", "vp", "threads", "tail_width", "convert", "formats", "shift")


def judged_rows(builds: Builds) -> Iterator[str]:
    """The model and the null model, on the designs of the fit (each left out in turn) and on those held out."""
    for title, names in (("by design", builds.features), ("one clock for all", ("constant",))):
        ns = builds.model(names)
        parts = {"fit, each left out": builds.fit.left_out(names), "held out": builds.held_out.errors(ns)}
        for part, errors in parts.items():
            found = judged(errors)
            close = f"{round(found['within'] * len(errors))} of {len(errors)}"
            figures = f"{100 * found['median']:.1f} % | {100 * found['worst']:.1f} %"
            pairs = f"{100 * (builds.fit.pairs(errors) - 1):.0f} %"
            yield f"| {title} | {part} | {close} | {figures} | {pairs} |"


def held_out_rows(builds: Builds) -> Iterator[str]:
    """Each design held out with the time of its reference jobs, told and after placement."""
    own = builds.data["ns"]
    rows = [row for row in builds.first if int(row["design"]) >= FIT]
    for row, ns, error in zip(rows, builds.held_out.ns, builds.held_out.errors(own), strict=True):
        cycles, keys = int(row["cycles"]), ", ".join(f"{row[name]}" for name in _NAMES)
        told = 1000 / (ns * (1 + error))
        us = f"{cycles:,} | {cycles / told:,.1f} | {cycles * ns / 1000:,.1f}"
        yield f"| {row['design']} | {keys} | {told:.1f} | {row['mhz']} | {us} | {100 * error:+.1f} % |"


def placement_rows(builds: Builds) -> Iterator[str]:
    """The designs that were placed with several seeds."""
    for number in repeated():
        clocks = [float(row["mhz"]) for row in builds.rows if int(row["design"]) == number]
        if len(clocks) > 1:
            spread = 100 * (max(clocks) / min(clocks) - 1)
            yield f"| {number} | {', '.join(f'{each:.1f}' for each in clocks)} | {spread:.1f} % |"


def threads_words(builds: Builds) -> Iterator[str]:
    """For pairs of designs with two numbers of threads, within what the null model tells the ratio of their times."""
    for (one, two), factor in builds.fit.pairs_by_threads(builds.fit.left_out(["constant"])).items():
        yield f"{100 * (factor - 1):.0f} % ({one} and {two} threads)"


def verdict(builds: Builds) -> str:
    """Which model is used, and why."""
    data = builds.data
    told = {name: round(data[name] * data["held_out"]) for name in ("within", "null_within")}
    if data["null"]:
        nearer = builds.nearer(builds.model(builds.features))
        chance = builds.by_chance(builds.model(builds.features))
        return (
            f"The null model, one clock for all designs, tells {told['null_within']} of {data['held_out']} held-out "
            f"designs within 15 %, no fewer than the model by design, which is nearer in {nearer} of them: chance "
            f"alone gives that or more with p = {chance:.2f} (sign test, two-sided). So the null model is what is used."
        )
    return (
        f"The model by design tells {told['within']} of {data['held_out']} held-out designs within 15 %, one clock for "
        f"all {told['null_within']}: the model is used."
    )


def too_few(builds: Builds) -> str:
    """The summary while there are too few builds for a model."""
    lines = [
        "# The clock of a design before it is built",
        "",
        f"{len(builds.first)} of {FIT + HELD_OUT} designs are built. A model is made of the first {FIT} and judged by "
        f"the other {HELD_OUT}, at least half of them: there is none yet, and no verdict hangs on an assumed latency.",
        "",
        "| design | MHz |",
        "| ---: | ---: |",
        *(f"| {row['design']} | {row['mhz']} |" for row in builds.first),
        "",
    ]
    return "\n".join(lines)


def text(small: bool = False) -> str:
    """The summary; `small`: without the designs one by one."""
    builds = Builds()
    if not builds.enough:
        return too_few(builds)
    data, clocks = builds.data, [float(row["mhz"]) for row in builds.first]
    same = "the same as" if data["verilog"] == modules() else "older than"
    lines = ["# The clock of a design before it is built", "", verdict(builds), ""]
    lines += [
        f"{len(builds.fit.ns)} designs of the fit and {len(builds.held_out.ns)} held out of a draw of {FIT} and "
        f"{HELD_OUT} with seed {SEED}. None that is held out was built before the Verilog and the features were fixed.",
        f"Built out of context for an ECP5-85 of speed grade 6 by {data['tools']}, one seed of placement: "
        f"{min(clocks):.1f} to {max(clocks):.1f} MHz, median {np.median(clocks):.1f}.",
        f"The Verilog (hash {data['verilog']}) is {same} that of this version.",
        "The error is that of a run's time, cycles over the told clock, against cycles over the clock after placement;",
        "cycles are exact. No verdict hangs on an assumed latency: the Verilog has the latencies of the chip.",
        "The last column: for 95 % of all pairs of designs the ratio of their times is told within this.",
        "",
        f"| model | designs | within {100 * CLOSE:.0f} % | median error | worst | ratio of two |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        *judged_rows(builds),
        "",
        "With one clock for all, the ratio of two times is told less well where numbers of threads differ: of the fit "
        f"within {', '.join(threads_words(builds))}. The largest of all these, {100 * (data['pairs'] - 1):.0f} %, is "
        "what reports go by.",
        "",
        "## The model by design",
        "",
        "Nanoseconds of a cycle, as the sum of these. Chosen on the designs of the fit alone, each left out in turn.",
        "",
        "| feature | ns |",
        "| --- | ---: |",
        *(f"| {name} | {ns:+.2f} |" for name, ns in builds.model(builds.features).items()),
        "",
        "## Placement alone",
        "",
        "| design | MHz of seeds 1, 2, 3 | largest over least |",
        "| ---: | --- | ---: |",
        *placement_rows(builds),
        "",
    ]
    if not small:
        keys = ", ".join(_NAMES)
        lines += [
            "## The designs held out",
            "",
            f"| design | {keys} | MHz told | MHz after placement | cycles | us told | us after placement | error |",
            "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *held_out_rows(builds),
            "",
        ]
    varied = ", ".join(f"{name} {' '.join(map(str, dict.fromkeys(each)))}" for name, each in VALUES.items())
    return "\n".join([*lines, f"Drawn values: {varied}.", ""])


if __name__ == "__main__":
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from experiments.run import main

    main("clock")
