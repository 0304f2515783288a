"""`lstmsim accuracy`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.outputs import check_outputs, check_suffix, inputs_of, progress, remark, status, write_json

if TYPE_CHECKING:
    from lstmsim.studies.accuracy.study import AccuracyReport

__all__ = ["command"]

_PLOTTED_BITS = "4:12"


@click.command(name="accuracy", short_help="Compare fixed point with floating point: what do 8 bits cost?")
@click.argument("scenario", type=click.Path())
@click.option(
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)
@click.option(
    "--random-weights",
    metavar="SEED",
    type=click.IntRange(0, 2**32 - 1),
    help="Draw weights for models that have none.",
)
@click.option("--steps", is_flag=True, help="Show every step too.")
@click.option(
    "--bits",
    "bits_text",
    metavar="LOW:HIGH",
    help=f"Repeat with weights and vectors of each width in this range; with --plot {_PLOTTED_BITS} unless given.",
)
@click.option("--json", "json_path", metavar="FILE", help="Write the report as JSON; - is standard output.")
@click.option(
    "--plot",
    "plot_path",
    metavar="FILE",
    help="Draw the accuracy of each width: .png, .svg or .pdf; the numbers go beside it, as .csv.",
)
def command(
    scenario: str,
    overrides: tuple[str, ...],
    random_weights: int | None,
    steps: bool,
    bits_text: str | None,
    json_path: str | None,
    plot_path: str | None,
) -> None:
    """Compare fixed point, as the `precision` of the file SCENARIO says, with float64, for each of its jobs.

    Formats are calibrated on the frames of `precision.calibration`; without that on the very frames that are judged,
    which is optimistic and said. Of a scenario with a network of g2p-en also the share of words is shown
    whose phonemes do not change. Nothing is simulated for this: `lstmsim simulate --check-numerics` shows that what is
    simulated computes the same fixed-point numbers, bit for bit.

    \b
    lstmsim accuracy scenario.yaml --steps
    lstmsim accuracy scenario.yaml --set precision.weight_scale=tensor
    lstmsim accuracy scenario.yaml --bits 4:12 --plot accuracy.png
    """
    bits = _bits(bits_text if plot_path is None else bits_text or _PLOTTED_BITS)
    _check(inputs_of(scenario, overrides), json_path, plot_path)
    with progress("comparing with float64") as show:
        from lstmsim.studies.accuracy.request import accuracy

        report = accuracy(scenario, overrides=overrides, random_weights=random_weights, bits=bits, progress=show)
    written = _write(report, json_path, plot_path)
    if json_path != "-":
        from lstmsim.studies.accuracy.report import accuracy_text

        click.echo(accuracy_text(report, steps))
    for path in written:
        remark(f"wrote {path}")


def _bits(text: str | None) -> range:
    """The widths of LOW:HIGH, none without a text."""
    if text is None:
        return range(0)
    from lstmsim.model.model import WIDTHS

    least, most = WIDTHS["weight_bits"]
    match = re.fullmatch(r"(\d{1,4}):(\d{1,4})", text, re.ASCII)
    low, high = (int(each) for each in match.groups()) if match else (0, 0)
    if not least <= low <= high <= most:
        raise InputError(
            Mistake(f"--bits {text}", f"expected LOW:HIGH with {least} <= LOW <= HIGH <= {most}, like 4:12")
        )
    return range(low, high + 1)


def _check(inputs: Iterable[str], json_path: str | None, plot_path: str | None) -> None:
    """Refuse outputs that cannot be written before any time is spent."""
    outputs = {"--json": json_path, "--plot": plot_path}
    if plot_path is not None:
        from lstmsim.report.pictures.figures import SUFFIXES
        from lstmsim.studies.accuracy.picture import numbers_path

        check_suffix("--plot", plot_path, SUFFIXES)
        outputs["--plot's numbers"] = numbers_path(plot_path)
    check_outputs(outputs, inputs=inputs)


def _write(report: AccuracyReport, json_path: str | None, plot_path: str | None) -> list[str]:
    """Write the files that were asked for; return their names, standard output left out."""
    written = []
    if plot_path is not None:
        from lstmsim.studies.accuracy.picture import numbers_path
        from lstmsim.studies.accuracy.request import plot_accuracy

        with status(f"drawing {os.path.basename(plot_path)}"):
            plot_accuracy(report, plot_path)
        written += [plot_path, numbers_path(plot_path)]
    if json_path is not None:
        write_json(json_path, report.to_dict())
        written += [json_path] if json_path != "-" else []
    return written
