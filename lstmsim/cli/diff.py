"""`lstmsim diff`."""

from __future__ import annotations

from typing import Any

import click

import lstmsim
from lstmsim.cli import options
from lstmsim.studies.diff.request import DiffRequest


@options.command(
    "diff",
    *(DiffRequest, options.json_output(), options.report_output()),
    options.picture_output("picture", "Draw the critical path's waterfall above both runs over time"),
    left_out=("a", "b"),
    more=[click.Argument(["a"], type=click.Path()), click.Argument(["b"], type=click.Path(), required=False)],
)
def diff_command(files: options.Outputs, **asked: Any) -> None:
    """Compare two runs, A before and B after: which is faster, what differs in the descriptions, and where every cycle
    between them went, by critical path, by core and by job.

    A and B are scenarios, or programs that `lstmsim simulate --program` kept (.npz). Without B, B is A with the changes
    of `--set`. The exit code is 0 whether or not the runs differ.

    \b
    lstmsim diff before.yaml after.yaml
    lstmsim diff scenario.yaml --set chip.cores.0.threads=4 --picture diff.png
    lstmsim diff before.npz after.npz --json -
    """
    with options.status("simulating both sides"):
        from lstmsim.studies.diff.run import diff

        result = diff(**asked)
    files.finish(result, {"picture": lambda path: lstmsim.plot_diff(result, path, look=files.look)})
