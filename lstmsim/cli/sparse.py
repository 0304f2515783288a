"""`lstmsim sparse`."""

from __future__ import annotations

from typing import Any

import click

from lstmsim.cli.options import chip_options, engine_option, seed_option, setting_option
from lstmsim.cli.outputs import progress, status
from lstmsim.cli.product_outputs import OUTPUTS, check_product_outputs, product_options, write_product_outputs

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
@chip_options("v100", "partitions=8")
@setting_option(
    "options",
    "A parameter of the kernel, like tile=64",
)
@click.option("--prune", type=float, metavar="FRACTION", help="Take this fraction of a model's weights away.")
@click.option(
    "--prune-by", default="magnitude", show_default=True, metavar="WAY", help="magnitude, row, bank or block."
)
@click.option("--banks", type=click.IntRange(min=1), default=4, show_default=True, help="Banks of a row.")
@click.option("--block", type=click.IntRange(min=1), default=4, show_default=True, help="Rows and columns of a block.")
@seed_option("Of the numbers of dense operands.")
@click.option("--values-seed", type=click.IntRange(min=0), help="Draw the values of a file without values; default: 1.")
@click.option(
    "--baselines/--no-baselines",
    "baselines",
    default=None,
    help="Simulate other ways to do the same; default: if the product is not too large.",
)
@click.option("--ablate", is_flag=True, help="Simulate the product with each mechanism off in turn.")
@click.option(
    "--best",
    is_flag=True,
    help="Simulate some hundred settings of the method, take the fastest, and say what the rule loses; --set stays.",
)
@engine_option
@product_options("the blocks of each core over time")
def command(matrix: str, **arguments: Any) -> None:
    """Simulate a product with the sparse matrix MATRIX, and compute its result as the simulated lanes do.

    MATRIX is a file (.mtx, .smtx, each also .gz), or the weights of a layer by name, like resemblyzer:l1: a row for
    each unit of each gate, the columns of x and then of h.

    \b
    lstmsim sparse resemblyzer:l1 --prune 0.9 --kernel spmm --columns 32 --chip v100
    lstmsim sparse layer.mtx --kernel spmv --method hbp --set m=256 --set n=1024 --ablate
    lstmsim sparse layer.mtx --kernel spmv --method hbp --best
    lstmsim sparse layer.mtx --side transposed --columns 16 --trace run.json
    """
    outputs = {name: arguments.pop(name) for name in OUTPUTS}
    view = check_product_outputs(outputs, (matrix, matrix.rpartition(":")[0], arguments["chip"]))
    from lstmsim.studies.sparse.run import plot_blocks, run_sparse

    with progress("searching") if arguments["best"] else status("simulating") as show:
        report = run_sparse(matrix, **arguments, progress=show)
    write_product_outputs(report, outputs, lambda path: plot_blocks(report, path), view)
