"""`lstmsim serve`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from lstmsim.cli.outputs import check_outputs, check_suffix, progress, remark, write_json

if TYPE_CHECKING:
    from lstmsim.traffic.stream import Row, Served

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
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)
@click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON; - is standard output.")
@click.option("--csv", "csv_path", metavar="FILE", help="Write a row for each request, as it ends: .csv.")
def command(
    scenario: str, requests: int | None, overrides: tuple[str, ...], json_path: str | None, csv_path: str | None
) -> None:
    """Serve the requests of the file SCENARIO one after another and show rates, latencies with intervals, and queues.

    The same to the cycle as `simulate --serving`, without a list of all jobs: memory does not grow with their number.
    For clients who wait for their answers (`closed`) and for preemption use that. In the rows of --csv times are
    cycles; core -1 is a request that was turned away, at its start.

    \b
    lstmsim serve serving.yaml --requests 1000000
    lstmsim serve serving.yaml --requests 100000 --csv requests.csv --set chip.cores.0.threads=4
    """
    check_suffix("--csv", csv_path, (".csv",))
    check_outputs({"--json": json_path, "--csv": csv_path}, inputs=[scenario])
    with progress("serving requests") as show, _rows_to(csv_path) as rows:
        from lstmsim.traffic.stream import serve

        found = serve(scenario, requests=requests, overrides=overrides, rows=rows, progress=show)
    if json_path is not None:
        _write(found, json_path)
    if json_path != "-":
        click.echo(_text(found))
    for path in (json_path, csv_path):
        if path is not None and path != "-":
            remark(f"wrote {path}")


@contextmanager
def _rows_to(path: str | None) -> Iterator[Callable[[Sequence[Row]], None] | None]:
    """What takes rows and writes them, whole or not at all; None where none are wanted."""
    if path is None:
        yield None
        return
    import csv

    from lstmsim.formats.files import whole_file

    with whole_file(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["request", "job", "core", "thread", "arrival", "start", "finish"])
        yield writer.writerows


def _write(found: Served, path: str) -> None:
    from lstmsim.serving.text import serving_json

    content = serving_json(found.serving) | {
        "makespan_cycles": found.makespan_cycles,
        "utilization_of_pes": found.utilization,
        "tops": found.tops,
    }
    write_json(path, content)


def _text(found: Served) -> str:
    from lstmsim.serving.text import serving_text

    ms = found.serving.ms(found.makespan_cycles)
    useful = f"utilization {100 * found.utilization:.1f} %, {found.tops:.4g} TOPS"
    return f"{serving_text(found.serving)}\nmakespan {found.makespan_cycles:,} cycles = {ms:.4g} ms, {useful}"
