"""`lstmsim load-latency`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.outputs import check_outputs, check_suffix, chip_remarks, inputs_of, progress, remark, write_json

if TYPE_CHECKING:
    from lstmsim.studies.serve.curves import LoadLatency

__all__ = ["command", "share_of"]


def share_of(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Read `5%` or `0.05` as 0.05."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,3}(?:\.\d+)?|\.\d+)(\s*%)?", text.strip(), re.ASCII)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share < 1:
        raise click.BadParameter(f"{text!r} is not a share like 5% or 0.05")
    return share


def _words(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    words = tuple(each.strip() for each in text.split(","))
    if "" in words:
        raise click.BadParameter(f"{text!r} has an empty entry; expected names with commas between them")
    return words


@click.command(name="load-latency", short_help="Latency against offered load, a curve for each policy or chip.")
@click.argument("scenario", type=click.Path())
@click.option("--policies", metavar="LIST", callback=_words, help="Like fcfs,sjf,edf+preempt; default: the file's.")
@click.option("--placements", metavar="LIST", callback=_words, help="Like least-loaded,affinity; default: the file's.")
@click.option("--chip", "chips", metavar="NAME_OR_PATH", multiple=True, help="Beside the file's own chip; repeatable.")
@click.option(
    "--loads", metavar="A:B[:N]", default="0.3:0.95", show_default=True, help="Evenly spaced, or a list by commas."
)
@click.option("--requests", metavar="N", type=int, default=20_000, show_default=True, help="Of each point.")
@click.option(
    "--until-half-width",
    metavar="SHARE",
    callback=share_of,
    help="Go on until the 95 % intervals of mean and p99 are no wider, like 5%.",
)
@click.option("--most-requests", metavar="N", type=int, default=640_000, show_default=True, help="Where that ends.")
@click.option("--out", "folder", metavar="DIR", help="Keep every point there; the same command goes on with the rest.")
@click.option("--jobs", metavar="N", type=click.IntRange(1, 1024), help="Processes; default: one for each processor.")
@click.option(
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)
@click.option("--csv", "csv_path", metavar="FILE", help="Write a row for each point, with the distribution: .csv.")
@click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON; - is standard output.")
@click.option("--plot", "plot_path", metavar="FILE", help="Draw the curves: .png, .svg or .pdf.")
@click.option(
    "--percentile",
    metavar="P",
    type=float,
    default=99.0,
    show_default=True,
    # The values of `lstmsim.studies.serve.curves.CDF`, which is too slow to import for a help text; a test compares.
    help="That is drawn: 1, 2, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 98, 99, 99.5 or 99.9.",
)
@click.option("--cdf-at", metavar="LOAD", type=float, help="Whose distribution is drawn; default: the highest stable.")
def command(
    scenario: str,
    csv_path: str | None,
    json_path: str | None,
    plot_path: str | None,
    percentile: float,
    cdf_at: float | None,
    **options: Any,
) -> None:
    """Show latency against offered load for the jobs of the file SCENARIO: a curve for each policy, placement and chip.

    A load is a share of what the file's own chip can possibly do of this mix of requests; the rates of all poisson and
    bursty arrivals change together. Every curve has the same requests: the same rates on all chips, the same random
    numbers. Latencies come with 95 % intervals or the words "too few"; "unstable" points have none. Results do not
    depend on the number of processes.

    \b
    lstmsim load-latency serving.yaml --policies fcfs,sjf,edf --loads 0.3:0.95 --plot curves.png
    lstmsim load-latency serving.yaml --chip column-npu-4x16k --loads 0.5,0.8 --until-half-width 5% --out curves
    """
    outputs = {"--csv": csv_path, "--json": json_path, "--plot": plot_path}
    check_suffix("--csv", csv_path, (".csv",))
    if options["folder"] == "":
        raise InputError(Mistake("--out ''", "the name is empty; expected a folder"))
    if plot_path is not None:
        from lstmsim.report.pictures.figures import SUFFIXES

        check_suffix("--plot", plot_path, SUFFIXES)
    check_outputs(outputs, inputs=inputs_of(scenario, options["overrides"], options["chips"]))
    with progress("serving at loads") as show:
        from lstmsim.studies.serve.load_latency import load_latency, loads_of

        _check_drawn(loads_of(options["loads"]), percentile, cdf_at)
        curves = load_latency(scenario, progress=show, **options)
    _write(curves, csv_path, json_path)
    if plot_path is not None:
        from lstmsim.studies.serve.load_latency import plot_load_latency

        plot_load_latency(curves, plot_path, percentile=percentile, cdf_at=cdf_at)
    if json_path != "-":
        click.echo(curves.to_text())
    chip_remarks(scenario, options["overrides"], options["chips"])
    for path in outputs.values():
        if path is not None and path != "-":
            remark(f"wrote {os.fspath(path)}")


def _check_drawn(loads: tuple[float, ...], percentile: float, cdf_at: float | None) -> None:
    """Raise `InputError` for a picture that could not be drawn, before the work begins."""
    from lstmsim.studies.serve.curves import CDF

    if percentile not in CDF:
        known = ", ".join(f"{each:g}" for each in CDF)
        raise InputError(Mistake(f"--percentile {percentile:g}", f"must be one of {known}"))
    if cdf_at is not None and cdf_at not in loads:
        known = ", ".join(f"{each:g}" for each in loads)
        raise InputError(Mistake(f"--cdf-at {cdf_at:g}", f"must be one of the loads: {known}"))


def _write(curves: LoadLatency, csv_path: str | None, json_path: str | None) -> None:
    from lstmsim.base.csv_table import CsvWriter
    from lstmsim.base.files import whole_file
    from lstmsim.studies.serve.report_load_latency import load_latency_rows

    if json_path is not None:
        write_json(json_path, curves.to_dict())
    if csv_path is not None:
        with whole_file(csv_path) as file:
            CsvWriter(file).writerows(load_latency_rows(curves))
