"""What the commands on single products write: result, picture, trace, JSON. Options, checks and writing are here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.outputs import check_outputs, check_suffix, remark, status, write_json

if TYPE_CHECKING:
    from lstmsim.studies.fuse.run import FusionReport
    from lstmsim.studies.gemm.result import GemmReport
    from lstmsim.studies.sparse.result import SparseReport

__all__ = ["OUTPUTS", "check_product_outputs", "product_options", "write_product_outputs"]

F = TypeVar("F", bound=Callable[..., Any])


#: The arguments of a command that the options of `product_options` give.
OUTPUTS = ("output", "timeline", "trace", "trace_window", "json")


def product_options(picture: str, *, result: bool = True) -> Callable[[F], F]:
    """The options for what is written; their arguments are `OUTPUTS`.

    picture: what is drawn, in words.
    result: whether there is one result that can be written; else the option for it is left out.
    """
    output = click.option("--output", metavar="FILE", help="Write the result as .npy.")
    options = (
        *([output] if result else []),
        click.option("--timeline", metavar="FILE", help=f"Draw {picture}: .png, .svg, .pdf."),
        click.option(
            "--trace",
            metavar="FILE",
            help="Write what happened: .json, .json.gz, .pftrace (Perfetto), .csv, .csv.gz, .kanata, .fst or .vcd.",
        ),
        click.option("--trace-window", metavar="A:B", help="Only cycles A to B, B left out, in the trace."),
        click.option("--json", metavar="FILE", help="Write everything as JSON; - is standard output."),
    )

    def decorate(function: F) -> F:
        for each in reversed(options):
            function = each(function)
        return function

    return decorate


def check_product_outputs(
    outputs: Mapping[str, str | None], inputs: Iterable[str], others: Mapping[str, str | None] = MappingProxyType({})
) -> str | None:
    """Refuse outputs that cannot be written; give the view that will be written beside a trace, if there will be one.

    outputs: what was given for each of `OUTPUTS`.
    inputs: names that may be files.
    others: further outputs by option.
    """
    named = {f"--{name}": outputs[name] for name in ("output", "timeline", "trace", "json")}
    check_suffix("--output", outputs["output"], (".npy",))
    if outputs["timeline"] is not None:
        from lstmsim.report.pictures.figures import SUFFIXES

        check_suffix("--timeline", outputs["timeline"], SUFFIXES)
    view, path, window = None, outputs["trace"], outputs["trace_window"]
    if path is not None:
        from lstmsim.analysis import files as traces

        check_suffix("--trace", path, traces.SUFFIXES)
        view = traces.view_beside(path)
    elif window is not None:
        raise InputError(Mistake("--trace-window", "only with --trace"))
    if window is not None:
        from lstmsim.analysis.timeline import parse_window

        parse_window(window)
    new = view if view is not None and not _is_file(view) else None
    check_outputs({**named, **others, "--trace's view": new}, inputs=[each for each in inputs if _is_file(each)])
    return new


def write_product_outputs(
    report: SparseReport | GemmReport | FusionReport,
    outputs: Mapping[str, str | None],
    draw: Callable[[str], object],
    view: str | None,
    text: str | None = None,
) -> None:
    """Write what was asked for, print the report, and say what was written.

    outputs: as in `check_product_outputs`, which gave `view`.
    draw: draws the picture into a file.
    text: is printed; None: the report's own.
    """
    output, picture, trace, json = (outputs[name] for name in ("output", "timeline", "trace", "json"))
    if output is not None:
        from lstmsim.studies.shared.product_files import save_result

        save_result(report, output)  # type: ignore[arg-type]
    if picture is not None:
        with status(f"drawing {picture}"):
            draw(picture)
    if trace is not None:
        _write_trace(report, trace, outputs["trace_window"])
    if json is not None:
        write_json(json, report.to_dict())
    if json != "-":
        click.echo(report.to_text() if text is None else text)
    for path in (output, picture, trace, view, None if json == "-" else json):
        if path is not None:
            remark(f"wrote {path}")


def _write_trace(report: SparseReport | GemmReport | FusionReport, path: str, window: str | None) -> None:
    """Write what happened, or a window of it."""
    from lstmsim.analysis import files as traces
    from lstmsim.analysis.timeline import parse_window
    from lstmsim.analysis.timeline import window as cut

    with status(f"writing {path}"):
        timeline = report.timeline
        traces.save_trace(timeline if window is None else cut(timeline, *parse_window(window)), path)


def _is_file(name: str) -> bool:
    return "\0" not in name and os.path.isfile(name)
