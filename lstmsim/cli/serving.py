"""`lstmsim serve`, `saturate` and `load-latency`: requests that keep coming."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.options import (
    check_outputs,
    check_suffix,
    chip_remarks,
    inputs_of,
    json_option,
    overrides_option,
    progress,
    remark,
    write_json,
)

if TYPE_CHECKING:
    from lstmsim.studies.serve.curves import LoadLatency
    from lstmsim.studies.serve.run import Row
    from lstmsim.studies.serve.saturation import Saturation


@click.command(name="serve", short_help="Serve millions of requests: rates, latencies, queues, in little memory.")
@click.argument("scenario", type=click.Path())
@click.option(
    "--requests", metavar="N", type=int, help="Number of requests in all, however long they take; default: the file's."
)
@click.option(
    "--until-half-width",
    metavar="SHARE",
    help="Go on until the 95 % intervals of mean and percentile are that narrow, as 2% or 0.02; then --requests is the"
    " most (10,000,000).",
)
@click.option(
    "--percentile",
    metavar="P",
    type=float,
    default=99.0,
    help="Latency percentile that is shown as well, and judged; default: 99.",
)
@overrides_option
@json_option()
@click.option("--csv", "csv_path", metavar="FILE", help="Write a row for each request, as it ends: .csv.")
def serve_command(
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


def _bounds(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    """`NAME=MS` as a bound of the tenant NAME."""
    bounds: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not equals or not name or not 0 < number < float("inf"):
            raise click.BadParameter(f"{text!r} is not a job entry's name and its bound in ms, like lstm-512=0.5")
        if name in bounds:
            raise click.BadParameter(f"{name!r} has two bounds")
        bounds[name] = number
    return bounds


#: Options by the arguments that they give.
_OPTIONS = {
    "bound_ms": "--bound-ms",
    "low": "--from",
    "high": "--to",
    "tolerance": "--tolerance",
    "percentile": "--percentile",
    "most_requests": "--most-requests",
}


def _as_option(mistake: Mistake) -> Mistake:
    """Turn a mistake in an argument into a mistake in its option."""
    name = _OPTIONS.get(mistake.place.removeprefix("saturation: "))
    return mistake if name is None else Mistake(name, mistake.sentence.replace("above low (", "above --from ("))


@click.command(name="saturate", short_help="The highest rate of requests at which latencies keep their bounds.")
@click.argument("scenario", type=click.Path())
@click.option("--bound-ms", metavar="MS", type=float, help="Bound on that percentile of the latencies of all requests.")
@click.option(
    "--bound",
    "bounds_ms",
    metavar="NAME=MS",
    multiple=True,
    callback=_bounds,
    help="Bound on the latency of one tenant, by the name of its job entry; repeatable.",
)
@click.option(
    "--percentile",
    metavar="P",
    type=float,
    default=99.0,
    show_default=True,
    help="Latency percentile that must meet the bound.",
)
@click.option("--from", "low", metavar="RATE", type=float, help="Lowest rate tried; default: a hundredth of the most.")
@click.option(
    "--to",
    "high",
    metavar="RATE",
    type=float,
    help="Highest rate tried; default: the most that can be done, more where requests may be turned away.",
)
@click.option(
    "--tolerance",
    metavar="SHARE",
    type=float,
    default=0.01,
    show_default=True,
    help="Relative tolerance of the reported rate.",
)
@click.option("--most-requests", metavar="N", type=int, help="Most requests of one run; default: 1,000,000.")
@overrides_option
@json_option()
def saturate_command(scenario: str, json_path: str | None, **options: Any) -> None:
    """Find the highest rate at which the jobs of the file SCENARIO keep a bound on a percentile of latency.

    Jobs with arrivals of kind poisson or bursty come faster or more slowly together, each in its share; the rate is
    their sum, in requests per second (of bursty ones: while on). By bisection, with the same random numbers at every
    rate, below the most that the machine can possibly do. A run goes on until the 95 % interval of the percentile lies
    on one side of the bound; where it does not, the answer says which rates cannot be told. More work than the machine
    can do is called unstable. So many turned away (queue_limit, patience) that fewer than the percentile are served
    break the bound too. Ctrl-C shows the rates judged so far, and the answer as far as it is known.

    \b
    lstmsim saturate serving.yaml --bound-ms 0.5
    lstmsim saturate serving.yaml --bound lstm-512=0.5 --bound lstm-1024=2 --percentile 99.9
    lstmsim saturate serving.yaml --bound-ms 0.5 --from 1000 --to 200000 --set chip.cores.0.threads=4
    """
    if options["bound_ms"] is None and not options["bounds_ms"]:
        raise InputError(Mistake("--bound-ms", "is missing: expected --bound-ms MS, or --bound NAME=MS"))
    check_outputs({"--json": json_path}, inputs=inputs_of(scenario, options["overrides"]))
    from lstmsim.studies.serve.saturation import SearchInterrupted

    try:
        with progress("simulating rates") as show:
            from lstmsim.studies.serve.saturate import saturate

            answer = saturate(scenario, progress=show, **options)
    except InputError as error:
        raise InputError([_as_option(each) for each in error.mistakes]) from None
    except SearchInterrupted as stopped:
        # What was simulated is worth something: the end of a search takes minutes.
        if stopped.found is not None:
            _show(stopped.found, json_path)
        raise
    _show(answer, json_path)
    chip_remarks(scenario, options["overrides"])


def _show(answer: Saturation, json_path: str | None) -> None:
    if json_path is not None:
        write_json(json_path, answer.to_dict())
    if json_path != "-":
        click.echo(answer.to_text())
        if json_path is not None:
            remark(f"wrote {json_path}")


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
@click.option(
    "--policies",
    metavar="LIST",
    callback=_words,
    help="Orders of dispatch, like fcfs,sjf,edf+preempt; default: the file's.",
)
@click.option(
    "--placements", metavar="LIST", callback=_words, help="Placements, like least-loaded,affinity; default: the file's."
)
@click.option(
    "--chip", "chips", metavar="NAME_OR_PATH", multiple=True, help="A chip besides the file's own; repeatable."
)
@click.option(
    "--loads",
    metavar="A:B[:N]",
    default="0.3:0.95",
    show_default=True,
    help="Loads that are simulated: evenly spaced, or a list by commas.",
)
@click.option("--requests", metavar="N", type=int, default=20_000, show_default=True, help="Requests of each point.")
@click.option(
    "--until-half-width",
    metavar="SHARE",
    callback=share_of,
    help="Go on until the 95 % intervals of mean and p99 are no wider, like 5%.",
)
@click.option(
    "--most-requests",
    metavar="N",
    type=int,
    default=640_000,
    show_default=True,
    help="Most requests of a point where intervals decide.",
)
@click.option("--out", "folder", metavar="DIR", help="Keep every point there; the same command goes on with the rest.")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1, 1024), help="Number of processes; default: one for each processor."
)
@overrides_option
@click.option("--csv", "csv_path", metavar="FILE", help="Write a row for each point, with the distribution: .csv.")
@json_option()
@click.option("--plot", "plot_path", metavar="FILE", help="Draw the curves: .png, .svg or .pdf.")
@click.option(
    "--percentile",
    metavar="P",
    type=float,
    default=99.0,
    show_default=True,
    # The values of `lstmsim.studies.serve.curves.CDF`, which is too slow to import for a help text; a test compares.
    help="Percentile that is drawn: 1, 2, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 98, 99, 99.5 or 99.9.",
)
@click.option(
    "--cdf-at", metavar="LOAD", type=float, help="Load whose distribution is drawn; default: the highest stable."
)
def load_latency_command(
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

    if json_path is not None:
        write_json(json_path, curves.to_dict())
    if csv_path is not None:
        with whole_file(csv_path) as file:
            rows = curves.to_records()
            CsvWriter(file).writerows([[*rows[0]], *([*row.values()] for row in rows)])
