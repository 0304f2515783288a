"""`lstmsim design`."""

from __future__ import annotations

import os
from typing import Any

import lstmsim
from lstmsim.cli import options
from lstmsim.studies.design.request import DesignRequest


@options.command(
    "design",
    DesignRequest,
    options.json_output(),
    options.report_output(),
    options.picture_output("plot", "Draw the front, or the bounds next to the simulated values"),
)
def design_command(files: options.Outputs, **asked: Any) -> None:
    """Find the best chip for the jobs of the file SCENARIO among all designs of a space, or the front of the best.

    A design is ruled out by a rule of its machine, by the device, or by a bound: a number of cycles that no schedule
    can beat. All others are simulated, those with the lowest bounds first. The report counts every design once, and
    says how far the answer is from the best bound that is left: 0 % is a proof. It also shows the best design with
    single keys changed, the resource that limits, and the gain from 10 % more of it. With --stability it says whether
    a few of the best designs keep their order under other assumed latencies. Without --axis the space has sizes and
    structures of the chip.

    \b
    lstmsim design scenario.yaml --device arria-10-gx-1150
    lstmsim design scenario.yaml --device none --axis chip.cores.0.ep=8,16,32 --axis chip.cores.0.threads=1,2,4
    lstmsim design scenario.yaml --device alveo-u250 --minimise p99_ms,npe --fill 80% --out designs --plot front.png
    lstmsim design scenario.yaml --device alveo-u250 --maximise requests_per_second --bound-ms 0.5
    """
    if asked["folder"] is not None:
        stem = os.path.join(asked["folder"], "design")
        kept = {"--out's store": f"{stem}.sqlite", "--out's table": f"{stem}.csv"}
        written = {name: files.paths.get(name.removeprefix("--")) for name in ("--json", "--report", "--plot")}
        options.check_outputs({**written, **kept}, kept=list(kept.values()))
    with options.progress("walking the space") as show:
        from lstmsim.studies.design.run import design

        result = design(**asked, progress=show, announce=options.remark)
    files.finish(result, {"plot": lambda path: lstmsim.plot_design(result, path, look=files.look)})
