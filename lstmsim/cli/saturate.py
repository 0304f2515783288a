"""`lstmsim saturate`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lstmsim.cli.outputs import check_outputs, progress, remark, write_json

if TYPE_CHECKING:
    from lstmsim.serving.saturation import Saturation

__all__ = ["command"]


@click.command(name="saturate", short_help="The highest rate of requests at which the p99 latency keeps a bound.")
@click.argument("scenario", type=click.Path())
@click.option("--bound-ms", metavar="MS", type=float, required=True, help="The p99 latency that must be kept.")
@click.option("--from", "low", metavar="RATE", type=float, help="Lowest rate tried; default: a tenth of the file's.")
@click.option("--to", "high", metavar="RATE", type=float, help="Highest rate tried; default: ten times the file's.")
@click.option("--tolerance", metavar="SHARE", type=float, default=0.01, show_default=True, help="Of the highest rate.")
@click.option(
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)
@click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON; - is standard output.")
def command(
    scenario: str,
    bound_ms: float,
    low: float | None,
    high: float | None,
    tolerance: float,
    overrides: tuple[str, ...],
    json_path: str | None,
) -> None:
    """Find the highest rate at which the jobs of the file SCENARIO keep a bound on the 99th percentile of latency.

    Jobs with arrivals of kind poisson or bursty come faster or more slowly together, each in its share; the rate is
    their sum, in requests per second. By bisection, with the same random numbers at every rate. A rate at which more
    than 1 % of the requests are turned away (queue_limit, patience) does not keep the bound.

    \b
    lstmsim saturate serving.yaml --bound-ms 0.5
    lstmsim saturate serving.yaml --bound-ms 0.5 --from 1000 --to 200000 --set chip.cores.0.threads=4
    """
    check_outputs({"--json": json_path}, inputs=[scenario])
    with progress("simulating rates") as show:
        from lstmsim.traffic.saturate import saturate

        found = saturate(
            scenario, bound_ms, low=low, high=high, tolerance=tolerance, overrides=overrides, progress=show
        )
    if json_path is not None:
        write_json(json_path, {"schema": "lstmsim/saturation/1", **asdict(found)})
    if json_path != "-":
        click.echo(_text(found))
        if json_path is not None:
            remark(f"wrote {json_path}")


def _text(found: Saturation) -> str:
    from lstmsim.metrics.tables import table

    away = any(run.turned_away for run in found.runs)
    rows = [["requests/s", "p99 ms", *["turned away"] * away, "bound kept"]]
    for run in sorted(found.runs, key=lambda each: each.rate):
        share = [f"{100 * run.turned_away:.2f} %"] * away
        rows.append([f"{run.rate:,.1f}", f"{run.p99_ms:.4g}", *share, "yes" if run.kept else "no"])
    bound = f"a p99 of {found.bound_ms:g} ms"
    if found.rate is None:
        answer = f"not even {found.fails_from:,.1f} requests/s keep {bound}"
    elif found.fails_from is None:
        answer = f"{found.rate:,.1f} requests/s, the highest rate tried, still keep {bound}"
    else:
        answer = f"{found.rate:,.1f} requests/s keep {bound}, {found.fails_from:,.1f} do not"
    odd = [] if found.monotone else ["not every lower rate keeps it: the runs are too short, or the order is unfair"]
    return "\n".join(["RATES", *table(rows), "", answer, *odd])
