"""`lstmsim sparse`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from lstmsim.cli.options import engine_option
from lstmsim.cli.outputs import check_outputs, check_suffix, remark, status, write_json
from lstmsim.errors import InputError, Mistake

if TYPE_CHECKING:
    from lstmsim.api.sparse import SparseReport

__all__ = ["command"]


@click.command(name="sparse", short_help="A product with a sparse matrix on a chip, and other ways to do it.")
@click.argument("matrix", type=click.Path())
@click.option("--kernel", default="spmm", show_default=True, metavar="NAME", help="spmv, spmm or sddmm.")
@click.option("--method", metavar="NAME", help="csr, dense, hbp ...; default: the first one that the chip has.")
@click.option(
    "--threshold",
    type=float,
    metavar="FRACTION",
    help="Instead of --method: the sparse one if more than this fraction of MATRIX is zero, else dense.",
)
@click.option(
    "--side",
    default="left",
    show_default=True,
    metavar="SIDE",
    help="left: W B (forward). transposed: W^T B (backward, by the CSC of W; also of spmv). right: A W (sparse inputs; "
    "spmm only). The gradient of the weights, [dY X^T] o I(W), is --kernel sddmm --method gradient.",
)
@click.option(
    "--columns",
    metavar="N",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Columns of the dense operand (rows, for --side right); of sddmm the length of the inner products.",
)
@click.option("--chip", default="v100", show_default=True, metavar="CHIP", help="A preset's name or a chip's file.")
@click.option(
    "--chip-set",
    "chip_overrides",
    metavar="PATH=VALUE",
    multiple=True,
    help="Change a value of the chip, like partitions=8; repeatable.",
)
@click.option(
    "--set",
    "options",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the kernel, like tile=64; repeatable.",
)
@click.option("--prune", type=float, metavar="FRACTION", help="Take this fraction of a model's weights away.")
@click.option(
    "--prune-by", default="magnitude", show_default=True, metavar="WAY", help="magnitude, row, bank or block."
)
@click.option("--banks", type=click.IntRange(min=1), default=4, show_default=True, help="Banks of a row.")
@click.option("--block", type=click.IntRange(min=1), default=4, show_default=True, help="Rows and columns of a block.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the numbers of dense operands."
)
@click.option("--values-seed", type=click.IntRange(min=0), help="Draw the values of a file without values; default: 1.")
@click.option(
    "--baselines/--no-baselines",
    "baselines",
    default=None,
    help="Simulate other ways to do the same; default: if the product is not too large.",
)
@click.option("--ablate", is_flag=True, help="Simulate the product with each mechanism off in turn.")
@engine_option
@click.option("--output", "output_path", metavar="FILE", help="Write the result as .npy.")
@click.option("--timeline", "picture", metavar="FILE", help="Draw the blocks of each core over time: .png, .svg, .pdf.")
@click.option(
    "--trace",
    "trace_path",
    metavar="FILE",
    help="Write what happened: .json, .json.gz, .pftrace (Perfetto), .csv, .csv.gz, .kanata, .fst or .vcd.",
)
@click.option("--trace-window", metavar="A:B", help="Only cycles A to B, B left out, in the trace.")
@click.option("--json", "json_path", metavar="FILE", help="Write everything as JSON; - is standard output.")
def command(
    matrix: str,
    output_path: str | None,
    picture: str | None,
    trace_path: str | None,
    trace_window: str | None,
    json_path: str | None,
    **arguments: Any,
) -> None:
    """Simulate a product with the sparse matrix MATRIX, and compute its result as the simulated lanes do.

    MATRIX is a file (.mtx, .smtx, each also .gz), or the weights of a layer by name, like resemblyzer:l1: a row for
    each unit of each gate, the columns of x and then of h.

    \b
    lstmsim sparse resemblyzer:l1 --prune 0.9 --kernel spmm --columns 32 --chip v100
    lstmsim sparse layer.mtx --kernel spmv --method hbp --set m=256 --set n=1024 --ablate
    lstmsim sparse layer.mtx --side transposed --columns 16 --trace run.json
    """
    outputs = {"--output": output_path, "--timeline": picture, "--trace": trace_path, "--json": json_path}
    view = _check(outputs, trace_window, (matrix, matrix.rpartition(":")[0], arguments["chip"]))
    from lstmsim.api.sparse import run_sparse, save_result

    with status("simulating"):
        report = run_sparse(matrix, **arguments)
    if output_path is not None:
        save_result(report, output_path)
    if picture is not None:
        from lstmsim.api.sparse import plot_blocks

        plot_blocks(report, picture)
    if trace_path is not None:
        _trace(report, trace_path, trace_window)
    if json_path is not None:
        write_json(json_path, report.to_dict())
    if json_path != "-":
        click.echo(report.to_text())
    for path in (output_path, picture, trace_path, view, None if json_path == "-" else json_path):
        if path is not None:
            remark(f"wrote {path}")


def _check(outputs: Mapping[str, str | None], window: str | None, inputs: Iterable[str]) -> str | None:
    """Refuse outputs that cannot be written; give the view that will be written beside a trace, if there will be one.

    outputs: files by their options.
    window: of the trace.
    inputs: names that may be files.
    """
    check_suffix("--output", outputs["--output"], (".npy",))
    if outputs["--timeline"] is not None:
        from lstmsim.plots.figures import SUFFIXES

        check_suffix("--timeline", outputs["--timeline"], SUFFIXES)
    view = None
    path = outputs["--trace"]
    if path is not None:
        from lstmsim.formats import traces

        check_suffix("--trace", path, traces.SUFFIXES)
        view = traces.view_beside(path)
    elif window is not None:
        raise InputError(Mistake("--trace-window", "only with --trace"))
    if window is not None:
        from lstmsim.formats.traces.window import parse_window

        parse_window(window)
    new = view if view is not None and not _is_file(view) else None
    check_outputs({**outputs, "--trace's view": new}, inputs=[each for each in inputs if _is_file(each)])
    return new


def _trace(report: SparseReport, path: str, window: str | None) -> None:
    """Write what happened, or a window of it."""
    from lstmsim.formats import traces
    from lstmsim.formats.traces.window import parse_window
    from lstmsim.formats.traces.window import window as cut

    with status(f"writing {path}"):
        timeline = report.timeline
        traces.save_trace(timeline if window is None else cut(timeline, *parse_window(window)), path)


def _is_file(name: str) -> bool:
    import os

    return "\0" not in name and os.path.isfile(name)
