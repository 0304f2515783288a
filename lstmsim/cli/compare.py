"""`lstmsim compare` and `lstmsim search`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.options import (
    check_outputs,
    check_suffix,
    engine_option,
    inputs_of,
    json_option,
    overrides_option,
    progress,
    remark,
    status,
    write_json,
)

if TYPE_CHECKING:
    from lstmsim.studies.compare.result import Comparison
    from lstmsim.studies.search.result import SearchResult


@click.command(name="compare", short_help="Simulate the same jobs on several chips, side by side.")
@click.argument("scenario", type=click.Path())
@click.option("--chip", "chips", metavar="NAME_OR_PATH", multiple=True, help="A chip to compare with; repeatable.")
@click.option("--base", metavar="NAME_OR_PATH", help="Compare with this chip instead of the scenario's own.")
@click.option(
    "--each", is_flag=True, help="Run every model alone, one row for each, instead of the scenario as a whole."
)
@click.option("--published", is_flag=True, help="Show published figures of the same tasks too (DeepBench).")
@engine_option
@overrides_option
@json_option()
@click.option("--csv", "csv_path", metavar="FILE", help="Write a table, a row for each workload and chip.")
@click.option("--plot", "plot_path", metavar="FILE", help="Draw bars: .png, .svg or .pdf; numbers next to it, .csv.")
def compare_command(
    scenario: str,
    chips: tuple[str, ...],
    base: str | None,
    each: bool,
    published: bool,
    engine: str,
    overrides: tuple[str, ...],
    json_path: str | None,
    csv_path: str | None,
    plot_path: str | None,
) -> None:
    """Simulate the jobs of the file SCENARIO on its own chip and on others: cycles, time, TOPS, utilization, and how
    many times as fast as the first chip each one is.

    Chips are named like in a scenario. `--set chip....` changes the scenario's own chip only. A chip that cannot run
    the jobs says why. Published figures are printed, never simulated.

    Of jobs that come over time, latencies are compared (mean, p50, p95, p99, with intervals): how long such a run takes
    is up to the arrivals.

    \b
    lstmsim compare scenario.yaml --chip column-npu-16k --chip mine.yaml
    lstmsim compare deepbench.yaml --each --published --chip brainwave-s10 --plot bars.png
    lstmsim compare scenario.yaml --base column-npu-16k --chip column-npu-4x16k --csv table.csv
    """
    _check(scenario, chips, base, published, overrides)
    numbers = None
    if plot_path is not None:
        from lstmsim.report.pictures.figures import SUFFIXES

        check_suffix("--plot", plot_path, SUFFIXES)
        numbers = os.path.splitext(plot_path)[0] + ".csv"
    if json_path == csv_path == "-":
        raise InputError(Mistake("--csv -", "standard output is taken by --json; expected a file"))
    outputs = {"--json": json_path, "--csv": csv_path, "--plot": plot_path, "--plot's numbers": numbers}
    check_outputs(outputs, inputs=inputs_of(scenario, overrides, [*chips, base]))
    with progress("comparing") as show:
        from lstmsim.studies.compare.request import compare

        comparison = compare(
            scenario,
            chips,
            base=base,
            each=each,
            published=published,
            engine=engine,
            overrides=overrides,
            progress=show,
        )
    _write(comparison, json_path, csv_path, plot_path)
    if json_path != "-" and csv_path != "-":
        click.echo(comparison.to_text())
    if published and not any(machine.published for machine in comparison.machines):
        remark("no published row has the cell, hidden, input, steps and batch of " + _what(comparison))
    for path in (json_path, csv_path, plot_path, numbers):
        if path not in (None, "-"):
            remark(f"wrote {path}")


def _what(comparison: Comparison) -> str:
    if comparison.each:
        return "any of these models"
    return (
        "this job" if comparison.workloads[0].jobs == 1 else "several jobs together; --each compares each model alone"
    )


def _check(
    scenario: str, chips: tuple[str, ...], base: str | None, published: bool, overrides: tuple[str, ...]
) -> None:
    """Refuse what cannot be meant before any time is spent."""
    if not chips and not published:
        text = "expected at least one chip to compare with, or --published"
        raise InputError(Mistake("--chip", text))
    if base is None:
        return
    changed = [each for each in overrides if each.strip().startswith("chip.")]
    if changed:
        text = f"changes the scenario's own chip, which --base {base} leaves out"
        raise InputError([Mistake(f"--set {each}", text) for each in changed])


def _write(comparison: Comparison, json_path: str | None, csv_path: str | None, plot_path: str | None) -> None:
    from lstmsim.base.csv_table import CsvWriter
    from lstmsim.base.files import whole_file
    from lstmsim.studies.compare.report import comparison_rows

    if plot_path is not None:
        with status(f"drawing {os.path.basename(plot_path)}"):
            from lstmsim.studies.compare.picture import plot

            plot(comparison, plot_path)
    if csv_path is not None:
        with whole_file(csv_path) as file:
            CsvWriter(file).writerows(comparison_rows(comparison))
    if json_path is not None:
        write_json(json_path, comparison.to_dict())


@click.command(name="search", short_help="Search the best EP and VP of an array for a scenario's models.")
@click.argument("scenario", type=click.Path())
@click.option("--npe", metavar="N", type=int, required=True, help="Multipliers of each searched core.")
@click.option("--exhaustive", is_flag=True, help="Simulate every useful pair too: the optimum, and the greedy regret.")
@click.option("--any-ep", is_flag=True, help="Try every EP, not only powers of two.")
@click.option("--core", metavar="K", type=int, help="Search only this core; else all of the chip, which must be equal.")
@overrides_option
@json_option()
def search_command(
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
                scenario, npe, exhaustive=exhaustive, any_ep=any_ep, core=core, overrides=overrides, progress=show
            )
        except InputError as error:
            raise InputError([_as_option(each) for each in error.mistakes]) from None
    _write_search(result, json_path)


def _as_option(mistake: Mistake) -> Mistake:
    """Turn a mistake in an argument into a mistake in its option."""
    named = mistake.place in ("npe", "core")
    return Mistake(f"--{mistake.place}", mistake.sentence) if named else mistake


def _write_search(result: SearchResult, json_path: str | None) -> None:
    if json_path is not None:
        write_json(json_path, result.to_dict())
    if json_path != "-":
        click.echo(result.to_text())
        if json_path is not None:
            remark(f"wrote {json_path}")
