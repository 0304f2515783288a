"""`lstmsim search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.outputs import check_outputs, inputs_of, progress, remark, write_json

if TYPE_CHECKING:
    from lstmsim.studies.search.result import SearchResult

__all__ = ["command"]


@click.command(name="search", short_help="Search the best EP and VP of an array for a scenario's models.")
@click.argument("scenario", type=click.Path())
@click.option("--npe", metavar="N", type=int, required=True, help="Multipliers of each searched core.")
@click.option("--exhaustive", is_flag=True, help="Simulate every useful pair too: the optimum, and the greedy regret.")
@click.option("--any-ep", is_flag=True, help="Not only powers of two.")
@click.option("--core", metavar="K", type=int, help="Search only this core; else all of the chip, which must be equal.")
@click.option(
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)
@click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON; - is standard output.")
def command(
    scenario: str,
    npe: int,
    exhaustive: bool,
    any_ep: bool,
    core: int | None,
    overrides: tuple[str, ...],
    json_path: str | None,
) -> None:
    """Search the EP and VP with which N multipliers finish the jobs of the file SCENARIO in the fewest cycles.

    EP doubles from 1, VP = min(Hw, N // EP), and every pair is simulated; threads, latencies and all else stay as the
    scenario's chip has them. Of several models each is searched alone too, and the CAT-n that gives each its own EP is
    named.

    \b
    lstmsim search scenario.yaml --npe 65536
    lstmsim search scenario.yaml --npe 65536 --exhaustive --any-ep
    lstmsim search scenario.yaml --npe 16384 --core 2 --json -
    """
    check_outputs({"--json": json_path}, inputs=inputs_of(scenario, overrides))
    with progress("searching") as show:
        from lstmsim.studies.search.request import search

        try:
            result = search(
                scenario,
                npe,
                exhaustive=exhaustive,
                any_ep=any_ep,
                core=core,
                overrides=overrides,
                progress=show,
            )
        except InputError as error:
            raise InputError([_as_option(each) for each in error.mistakes]) from None
    _write(result, json_path)


def _as_option(mistake: Mistake) -> Mistake:
    """Turn a mistake in an argument into a mistake in its option."""
    named = mistake.place in ("npe", "core")
    return Mistake(f"--{mistake.place}", mistake.sentence) if named else mistake


def _write(result: SearchResult, json_path: str | None) -> None:
    if json_path is not None:
        write_json(json_path, result.to_dict())
    if json_path != "-":
        click.echo(result.to_text())
        if json_path is not None:
            remark(f"wrote {json_path}")
