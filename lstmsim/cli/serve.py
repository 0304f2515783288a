"""`lstmsim serve`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.outputs import check_outputs, check_suffix, inputs_of, progress, remark, write_json

if TYPE_CHECKING:
    from lstmsim.studies.serve.run import Row

__all__ = ["command"]


@click.command(name="serve", short_help="Serve millions of requests: rates, latencies, queues, in little memory.")
@click.argument("scenario", type=click.Path())
@click.option(
    "--requests",
    metavar="N",
    type=int,
    help="So many in all, for as long as that takes; default: the file's.",
)
@click.option(
    "--until-half-width",
    metavar="SHARE",
    help="Go on until the 95 % intervals of mean and percentile are that narrow, as 2% or 0.02; then --requests is the"
    " most (10,000,000).",
)
@click.option(
    "--percentile", metavar="P", type=float, default=99.0, help="Show that one too, and judge it; default: 99."
)
@click.option(
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)
@click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON; - is standard output.")
@click.option("--csv", "csv_path", metavar="FILE", help="Write a row for each request, as it ends: .csv.")
def command(
    scenario: str,
    requests: int | None,
    until_half_width: str | None,
    percentile: float,
    overrides: tuple[str, ...],
    json_path: str | None,
    csv_path: str | None,
) -> None:
    """Serve the requests of the file SCENARIO one after another and show rates, latencies with intervals, and queues.

    The same to the cycle as `simulate --serving`, without a list of all jobs: memory does not grow with their number.
    For clients who wait for their answers (`closed`) use that. In the rows of --csv times are
    cycles; core -1 is a request that was turned away, at its start. If more than 8,192 requests are in the machine at
    once, it ends there: those that came are finished and counted, a remark says so, and the exit code is 0.

    \b
    lstmsim serve serving.yaml --requests 1000000
    lstmsim serve serving.yaml --until-half-width 2% --percentile 99.9
    lstmsim serve serving.yaml --requests 100000 --csv requests.csv --set chip.cores.0.threads=4
    """
    check_suffix("--csv", csv_path, (".csv",))
    check_outputs({"--json": json_path, "--csv": csv_path}, inputs=inputs_of(scenario, overrides))
    if not 0 < percentile < 100:
        raise InputError(Mistake("--percentile", f"must be above 0 and below 100, got {percentile:g}"))
    share = None if until_half_width is None else _share(until_half_width)
    with progress("serving requests") as show, _rows_to(csv_path) as rows:
        from lstmsim.studies.serve.run import serve
        from lstmsim.traffic.latencies import PERCENTILES

        served = serve(
            scenario,
            requests=requests,
            overrides=overrides,
            rows=rows,
            progress=show,
            percentiles=(*PERCENTILES, percentile),
            until_half_width=share,
        )
    if json_path is not None:
        write_json(json_path, served.to_dict())
    if json_path != "-":
        click.echo(served.to_text())
    for text in served.remarks:
        remark(text)
    if served.ended == "full":
        came = served.serving.requests + served.serving.turned_away
        remark(f"stopped after {came:,} requests: more than {served.window:,} were in the machine at once")
    for path in (json_path, csv_path):
        if path is not None and path != "-":
            remark(f"wrote {path}")


def _share(text: str) -> float:
    """A share that is written as 2% or as 0.02."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(Mistake("--until-half-width", f"must be a share like 2% or 0.02, got {text!r}")) from None


@contextmanager
def _rows_to(path: str | None) -> Iterator[Callable[[Sequence[Row]], None] | None]:
    """Give what takes rows and writes them, whole or not at all; None where no rows are wanted."""
    if path is None:
        yield None
        return
    from lstmsim.base.csv_table import CsvWriter
    from lstmsim.base.files import whole_file

    with whole_file(path) as file:
        writer = CsvWriter(file)
        writer.writerow(["request", "job", "core", "thread", "arrival", "start", "finish", "steps", "tenant"])
        yield writer.writerows
