"""`lstmsim saturate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.outputs import check_outputs, chip_remarks, inputs_of, progress, remark, write_json

if TYPE_CHECKING:
    from lstmsim.studies.serve.saturation import Saturation

__all__ = ["command"]


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
@click.option("--bound-ms", metavar="MS", type=float, help="The latency that the percentile of all must keep.")
@click.option(
    "--bound",
    "bounds_ms",
    metavar="NAME=MS",
    multiple=True,
    callback=_bounds,
    help="That of one tenant, by the name of its job entry; repeatable.",
)
@click.option("--percentile", metavar="P", type=float, default=99.0, show_default=True, help="Which one is judged.")
@click.option("--from", "low", metavar="RATE", type=float, help="Lowest rate tried; default: a hundredth of the most.")
@click.option(
    "--to",
    "high",
    metavar="RATE",
    type=float,
    help="Highest rate tried; default: the most that can be done, more where requests may be turned away.",
)
@click.option("--tolerance", metavar="SHARE", type=float, default=0.01, show_default=True, help="Of the answer.")
@click.option("--most-requests", metavar="N", type=int, help="Of one run; default: 1,000,000.")
@click.option(
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)
@click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON; - is standard output.")
def command(scenario: str, json_path: str | None, **options: Any) -> None:
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
