"""`lstmsim fuse`."""

from __future__ import annotations

from typing import Any

import click

from lstmsim.base.errors import ReplayError
from lstmsim.cli.options import chip_options, engine_option, seed_option, setting_option
from lstmsim.cli.outputs import check_suffix, progress, remark, status
from lstmsim.cli.product_outputs import OUTPUTS, check_product_outputs, product_options, write_product_outputs

__all__ = ["command"]


@click.command(name="fuse", short_help="Few kernels for the memory-intensive part of a network, on a chip.")
@click.argument("graph", type=click.Path())
@click.option(
    "--size",
    "sizes",
    metavar="NAME=N",
    multiple=True,
    help="A size of the graph, like hidden=512, or of an open axis of an ONNX file; repeatable.",
)
@chip_options("v100", "partitions=8")
@setting_option(
    "settings",
    "A setting of the pass, like split_rule=costed or shared_limit=2048; docs/fusion.md has all in section 4",
)
@click.option(
    "--modes",
    default="op,xla,tvm,stitch",
    show_default=True,
    metavar="NAME[,NAME...]",
    help="Ways to cut the graph into kernels that are compared.",
)
@click.option(
    "--mode",
    metavar="NAME",
    help="The one whose kernels are told, drawn over time and traced; default: stitch, the pass.",
)
@click.option("--explain", is_flag=True, help="Say why: every decision of the pass.")
@click.option("--ablate", is_flag=True, help="Add the mechanisms of the pass one after the other.")
@click.option(
    "--cycles/--no-cycles",
    "cycles",
    default=None,
    help="Simulate the kernels; default: if the graph is not too large.",
)
@click.option(
    "--numbers/--no-numbers",
    "numbers",
    default=None,
    help="Execute the kernels on numbers and compare with numpy, with exit code 1 if they differ; default: if the "
    "graph is not too large.",
)
@seed_option("Of these numbers.")
@engine_option
@click.option("--picture", metavar="FILE", help="Draw the graph with its groups: .png, .svg, .pdf.")
@click.option("--save", metavar="FILE", help="Write the graph as a graph file: .yaml, .yml or .json.")
@product_options("the blocks of each core over time", result=False)
def command(graph: str, **arguments: Any) -> None:
    """Fuse the memory-intensive part of GRAPH, and compare its kernels with those of compilers.

    GRAPH is a name (`lstmsim list graphs`), a graph file (.yaml, .json) or an ONNX file. What lies between matrix
    products (norms, softmax, gates ...) becomes one kernel for each connected part. The kernels are planned, executed
    on numbers, and simulated beside a kernel for each operation and kernels like those of XLA and TVM.

    \b
    lstmsim fuse ln-lstm --size hidden=512 --size batch=16 --chip v100
    lstmsim fuse ln-lstm --size hidden=512 --set split_rule=costed --explain
    lstmsim fuse figure-7 --ablate --picture graph.png --timeline blocks.png
    lstmsim fuse attention.onnx --size steps=40 --json -
    """
    outputs: dict[str, str | None] = {name: arguments.pop(name, None) for name in OUTPUTS}
    picture, saved, explain = (arguments.pop(name) for name in ("picture", "save", "explain"))
    view = _check(outputs, picture, saved, (graph, arguments["chip"]))
    arguments["modes"] = [each.strip() for each in arguments["modes"].split(",") if each.strip()]
    from lstmsim.studies.fuse.graph import save_graph
    from lstmsim.studies.fuse.pictures import plot_fusion, plot_kernels
    from lstmsim.studies.fuse.run import run_fusion
    from lstmsim.studies.fuse.text import fusion_text

    if (outputs["timeline"] or outputs["trace"]) and arguments["cycles"] is None:
        arguments["cycles"] = True
    with progress("simulating") as show:
        report = run_fusion(graph, **arguments, progress=show)
    if picture is not None:
        with status(f"drawing {picture}"):
            plot_fusion(report, picture)
    if saved is not None:
        save_graph(report.graph, saved)
    text = fusion_text(report, explain)
    write_product_outputs(report, outputs, lambda path: plot_kernels(report, path), view, text)
    for path in (picture, saved):
        if path is not None:
            remark(f"wrote {path}")
    if report.wrong:
        # all is written, for whoever looks for the reason; scripts see it by the exit code
        raise ReplayError("; ".join(report.wrong))


def _check(
    outputs: dict[str, str | None], picture: str | None, saved: str | None, inputs: tuple[str, ...]
) -> str | None:
    """Refuse outputs that cannot be written; the view that will be written beside a trace, if there will be one."""
    from lstmsim.files.graphs import SUFFIXES as GRAPHS
    from lstmsim.report.pictures.figures import SUFFIXES

    check_suffix("--picture", picture, SUFFIXES)
    check_suffix("--save", saved, GRAPHS)
    return check_product_outputs(outputs, inputs, {"--picture": picture, "--save": saved})
