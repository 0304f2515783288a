"""`lstmsim serve`, `saturate` and `load-latency`: requests that keep coming."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import lstmsim
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key
from lstmsim.cli import options
from lstmsim.studies.serve.request import (
    AlsoMs,
    Batches,
    Chips,
    Folder,
    LoadLatencyRequest,
    SaturateRequest,
    ServeRequest,
)
from lstmsim.studies.shared.request import Jobs

if TYPE_CHECKING:
    from lstmsim.studies.serve.request import Row


class _Judged:
    percentile: Annotated[
        float, Key("Latency percentile that is shown as well, and judged by --until-half-width.", metavar="P")
    ] = 99.0


@options.command(
    "serve",
    *(
        ServeRequest,
        _Judged,
        options.json_output(),
        options.Output("csv", "Write a row for each request, as it ends: .csv.", (".csv",)),
    ),
    left_out=("percentiles", "window", "rows"),
)
def serve_command(files: options.Outputs, percentile: float, **asked: Any) -> None:
    """Serve the requests of the file SCENARIO one after another and show rates, latencies with intervals, and queues.

    The results are those of `simulate --serving`, to the cycle (but for drawn densities, which are drawn once for an
    entry), without a list of all jobs: memory does not grow with their number. Clients that wait for their answers
    (`closed`) need `simulate --serving`. In the rows of --csv times are cycles; core -1 is a request that was rejected,
    at its start. If more than 8,192 requests are in the machine at once, serving ends there: those that came are
    finished and counted, a remark says so, and the exit code is 0.

    \b
    lstmsim serve serving.yaml --requests 1000000
    lstmsim serve serving.yaml --until-half-width 2% --percentile 99.9
    lstmsim serve serving.yaml --requests 100000 --csv requests.csv --set chip.cores.0.threads=4
    """
    if not 0 < percentile < 100:
        raise InputError(Mistake("--percentile", f"must be above 0 and below 100, got {percentile:g}"))
    with options.progress("serving requests") as show, _rows_to(files.paths.get("csv")) as rows:
        from lstmsim.studies.serve.run import serve
        from lstmsim.traffic.latencies import PERCENTILES

        served = serve(**asked, rows=rows, percentiles=(*PERCENTILES, percentile), progress=show)
    # the rows are written while requests end
    files.write(served, {"csv": lambda path: None})
    files.show(served.to_text, served)
    for text in served.remarks:
        options.remark(text)
    if served.ended == "full":
        came = served.serving.requests + served.serving.rejected
        options.remark(f"stopped after {came:,} requests: more than {served.window:,} were in the machine at once")
    files.name()


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


class _Chips:
    chips: Chips = ()
    also_ms: AlsoMs = ()
    batches: Batches = ()
    folder: Folder = None
    jobs: Jobs = None


@options.command(
    "saturate",
    *(SaturateRequest, _Chips, options.json_output(), options.report_output()),
    options.picture_output("plot", "With --chip or --batch: draw the rates against the bounds"),
)
def saturate_command(
    files: options.Outputs, chips: Any, also_ms: Any, batches: Any, folder: Any, jobs: Any, **asked: Any
) -> None:
    """Find the highest rate at which the jobs of the file SCENARIO keep a bound on a percentile of latency.

    The rates of all jobs with arrivals of kind poisson or bursty are changed by one factor. The rate of the answer is
    their sum, in requests per second (of bursty jobs: while they are on). The search bisects rates up to the highest
    that the machine could possibly serve, with the same random numbers at every rate. A run goes on until the 95 %
    interval of the percentile lies on one side of the bound; if it never does, the answer calls the rate undecided. A
    rate with more work than the machine can do is called unstable. If so many requests are rejected (queue_limit,
    patience) that the share of served ones is below the percentile, the bound is broken, too. Ctrl-C shows the rates
    judged so far, and the answer as far as it is known. With --chip a table shows the rate of the file's chip and of
    the others, what limits it, and the chip with the highest rate if that can be told. With --batch a chip has a row
    for every largest batch size. The searches run in several processes.

    \b
    lstmsim saturate serving.yaml --bound-ms 0.5
    lstmsim saturate serving.yaml --bound lstm-512=0.5 --bound lstm-1024=2 --percentile 99.9
    lstmsim saturate serving.yaml --bound-ms 0.5 --from 1000 --to 200000 --set chip.cores.0.threads=4
    lstmsim saturate serving.yaml --bound-ms 1 --also-ms 2,5 --chip v100 --chip epyc-7742 --plot rates.png --out rates
    lstmsim saturate serving.yaml --bound-ms 1 --chip v100 --batch 1,4,16
    """
    if chips or batches:
        _saturate_chips(files, asked, chips=chips, also_ms=also_ms, batches=batches, folder=folder, jobs=jobs)
        return
    given = {"--also-ms": also_ms, "--out": folder is not None, "--plot": "plot" in files.paths}
    text = "needs --chip or --batch: expected another chip next to the file's chip, or batch sizes"
    refuse(Mistake(flag, text) for flag in given if given[flag])
    if asked["bound_ms"] is None and not asked["bounds_ms"]:
        raise InputError(Mistake("--bound-ms", "is missing: expected --bound-ms MS, or --bound NAME=MS"))
    from lstmsim.studies.serve.saturation import SearchInterrupted

    try:
        with options.progress("simulating rates") as show:
            from lstmsim.studies.serve.saturate import saturate

            answer = saturate(**asked, progress=show)
    except SearchInterrupted as stopped:
        # What was simulated is worth something: the end of a search takes minutes.
        if stopped.found is not None:
            files.finish(stopped.found)
        raise
    files.finish(answer)
    options.chip_remarks(asked["scenario"], asked["overrides"])


def _saturate_chips(files: options.Outputs, asked: dict[str, Any], **more: Any) -> None:
    """Search for the rates of several chips."""
    idle = {"--bound": asked.pop("bounds_ms"), "--from": asked.pop("low"), "--to": asked.pop("high")}
    refuse(
        Mistake(flag, "has no meaning with --chip or --batch: leave it out") for flag, value in idle.items() if value
    )
    if asked["bound_ms"] is None:
        raise InputError(Mistake("--bound-ms", "is missing: expected --bound-ms MS"))
    with options.progress("searching rates") as show:
        from lstmsim.studies.serve.chips import saturate_chips

        found = saturate_chips(**asked, **more, progress=show)
    files.write(found, {"plot": lambda path: lstmsim.plot_saturation(found, path, look=files.look)})
    files.show(found.to_text, found)
    for text in found.remarks:
        options.remark(text)
    files.name()


class _Drawn:
    jobs: Jobs = None
    percentile: Annotated[
        float,
        # the values of `lstmsim.studies.serve.curves.CDF`, which is too slow to import for a help text; a test compares
        Key(
            "Percentile that is drawn: 1, 2, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 98, 99, 99.5 or 99.9.",
            metavar="P",
        ),
    ] = 99.0
    cdf_at: Annotated[
        float | None, Key("Load whose distribution is drawn.", follows="the highest stable", metavar="LOAD")
    ] = None


@options.command(
    "load-latency",
    LoadLatencyRequest,
    options.Output("csv", "Write a row for each point, with the distribution: .csv.", (".csv",)),
    *(options.json_output(), options.report_output(), options.picture_output("plot", "Draw the curves"), _Drawn),
)
def load_latency_command(files: options.Outputs, percentile: float, cdf_at: float | None, **asked: Any) -> None:
    """Show latency against offered load for the jobs of the file SCENARIO: a curve for each policy, placement and chip.

    A load is a share of what the file's own chip can possibly do of this mix of requests; the rates of all poisson and
    bursty arrivals change together. Every curve has the same requests: the same rates on all chips, the same random
    numbers. Latencies come with 95 % intervals or the words "too few"; "unstable" points have none. Results do not
    depend on the number of processes.

    \b
    lstmsim load-latency serving.yaml --policies fcfs,sjf,edf --loads 0.3:0.95 --plot curves.png
    lstmsim load-latency serving.yaml --chip column-npu-4x16k --loads 0.5,0.8 --until-half-width 5% --out curves
    """
    if asked["folder"] == "":
        raise InputError(Mistake("--out ''", "the name is empty; expected a folder"))
    with options.progress("serving at loads") as show:
        from lstmsim.studies.serve.load_latency import load_latency, loads_of

        _check_drawn(loads_of(asked["loads"]), percentile, cdf_at)
        curves = load_latency(**asked, progress=show)
    rows = curves.to_records()
    writers = {
        "csv": lambda path: options.write_table(path, [[*rows[0]], *([*row.values()] for row in rows)]),
        "plot": lambda path: lstmsim.plot_load_latency(
            curves, path, percentile=percentile, cdf_at=cdf_at, look=files.look
        ),
    }
    files.write(curves, writers)
    files.show(curves.to_text, curves)
    options.chip_remarks(asked["scenario"], asked["overrides"], asked["chips"])
    files.name()


def _check_drawn(loads: tuple[float, ...], percentile: float, cdf_at: float | None) -> None:
    """Raise `InputError` for a picture that could not be drawn, before the work begins."""
    from lstmsim.studies.serve.curves import CDF

    if percentile not in CDF:
        known = ", ".join(f"{each:g}" for each in CDF)
        raise InputError(Mistake(f"--percentile {percentile:g}", f"must be one of {known}"))
    if cdf_at is not None and cdf_at not in loads:
        known = ", ".join(f"{each:g}" for each in loads)
        raise InputError(Mistake(f"--cdf-at {cdf_at:g}", f"must be one of the loads: {known}"))
