"""`lstmsim gemm`, `sparse` and `fuse`: single products and graphs on a chip."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lstmsim.base.errors import InputError, Mistake, ReplayError
from lstmsim.cli.options import (
    check_outputs,
    check_suffix,
    chip_options,
    engine_option,
    json_option,
    progress,
    remark,
    seed_option,
    setting_option,
    status,
    write_json,
)

if TYPE_CHECKING:
    from lstmsim.studies.fuse.result import FusionReport
    from lstmsim.studies.gemm.result import GemmReport
    from lstmsim.studies.sparse.result import SparseReport


F = TypeVar("F", bound=Callable[..., Any])


#: The arguments of a command that the options of `product_options` give.
OUTPUTS = ("output", "timeline", "trace", "trace_window", "json")


def product_options(picture: str, *, result: bool = True) -> Callable[[F], F]:
    """The options for what is written; their arguments are `OUTPUTS`."""
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
        json_option("everything", "json"),
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
    """Write what was asked for, print the report, and say what was written."""
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


_NUMBER = re.compile(r"[+-]?\d{1,300}", re.ASCII)


class _Sizes(click.Command):
    """A command whose arguments may be negative numbers, which get a sentence of their own and are no options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # a space before it keeps the parser from reading `-5` as an option
        return super().parse_args(ctx, [f" {each}" if re.fullmatch(r"-[\d.]\S*", each) else each for each in args])


def _size(text: str) -> object:
    """A size as a number if it is one, else as it was written."""
    word = text.strip()
    return int(word) if _NUMBER.fullmatch(word) else word


@click.command(cls=_Sizes, name="gemm", short_help="Threads for a matrix product on a multi-core chip.")
@click.argument("sizes", nargs=-1, metavar="[M N K]")
@click.option("--model", metavar="MODEL", help="In place of M N K: a model's name or file, whose layer is computed.")
@click.option(
    "--product",
    default="step",
    show_default=True,
    metavar="NAME",
    help="Product of the layer. step: one time step. projection: the inputs of all steps. gradient: of the weights.",
)
@click.option("--layer", type=click.IntRange(min=0), default=0, show_default=True, help="Number of the layer.")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Inferences at once.")
@click.option("--steps", type=click.IntRange(min=1), help="Time steps of a projection or gradient.")
@click.option(
    "--part",
    type=click.IntRange(min=0),
    help="Number of the product, where gates read different vectors; default: the largest one.",
)
@click.option(
    "--threads",
    metavar="P[,P...]",
    help="Number of cores that compute; default: all of the chip. Several numbers (1,2,4,8): a table of them.",
)
@chip_options("epyc-7742", "frequency_mhz=2000")
@click.option(
    "--caches",
    default="warm",
    show_default=True,
    metavar="STATE",
    help="cold: empty at the start. warm: as the same product left them. Both are simulated; this one is shown in "
    "full.",
)
@click.option(
    "--packed",
    metavar="WHEN",
    help="When B is packed. once: before, as a job holds its weights. each: at every call. Default: once, but each "
    "for a gradient, whose B is new at every call.",
)
@click.option(
    "--cut",
    metavar="CUT",
    help="Run this cut, not the fastest: MK:4x1x16 (kind MN, MK, NK or MNK, then p_m x p_n x p_k), or with blocks "
    "MK:4x1x16:8x512x264.",
)
@click.option(
    "--relief",
    default="plan",
    show_default=True,
    metavar="NAME",
    help="How threads that add into the same block of C keep out of each other's way: plan, none, sub, buffer or both.",
)
@setting_option("settings", "A parameter of the planner, like contention=4 or mn=all")
@click.option(
    "--baselines/--no-baselines",
    "baselines",
    default=None,
    help="Simulate all candidates and all M/N pairs, so that the fastest is known; default: if it takes no minutes.",
)
@click.option("--ablate", is_flag=True, help="Simulate the cut under each relief.")
@click.option(
    "--numbers/--no-numbers",
    "numbers",
    default=None,
    help="Compute C in the order of the steps and compare with numpy; default: if the product is not too large.",
)
@seed_option("Seed of the numbers of A and B.")
@engine_option
@product_options("what each thread does over time")
def gemm_command(sizes: tuple[str, ...], **arguments: Any) -> None:
    """Plan threads for the product C = A B with A of M x K and B of K x N, and simulate the plan and other ways.

    Threads share the rows and columns of C, or also the sums along K. The first sentence says what to cut: the
    fastest that was simulated, against the other kind of cut. Then stands what the planner's rule would have taken,
    beside M/N threads by BLIS's rule and the best M/N pair.

    \b
    lstmsim gemm 8 512 512 --threads 64
    lstmsim gemm 8 512 512 --threads 1,2,4,8,16,32,64
    lstmsim gemm 64 32 8192 --threads 16 --ablate --timeline threads.png
    lstmsim gemm 32 512 4096 --threads 64 --cut MK:4x1x16
    lstmsim gemm --model lstm-512 --product gradient --batch 4 --steps 100 --chip xeon-gold-5122
    """
    outputs = {name: arguments.pop(name) for name in OUTPUTS}
    given = arguments.pop("threads")
    threads = [] if given is None else [_size(each) for each in given.split(",")]
    several = len(threads) > 1
    if several:
        _check_several(outputs, arguments, len(threads))
    view = check_product_outputs(outputs, (arguments["chip"], arguments["model"] or ""))
    if len(sizes) not in (0, 3):
        raise click.UsageError(f"expected M, N and K, or --model; got {len(sizes)} sizes: {' '.join(sizes)}")
    from lstmsim.studies.gemm.run import plot_threads, run_gemm

    if several:
        _run_several(sizes, threads, arguments, outputs["json"])
        return
    if outputs["output"] is not None:
        arguments["numbers"] = True
    with progress("simulating") as show:
        report = run_gemm(*map(_size, sizes), threads=next(iter(threads), None), **arguments, progress=show)  # type: ignore[arg-type]
    write_product_outputs(report, outputs, lambda path: plot_threads(report, path), view)


def _check_several(outputs: Mapping[str, Any], arguments: Mapping[str, Any], count: int) -> None:
    """Refuse what is for one number of threads only."""
    from lstmsim.base.errors import InputError, Mistake
    from lstmsim.studies.gemm.scaling import wrong_for_several

    wrong = wrong_for_several({**outputs, **arguments}, count)
    mistakes = [Mistake(f"--{each.place.replace('_', '-')}", each.sentence) for each in wrong]
    if mistakes:
        raise InputError(mistakes)


def _run_several(sizes: tuple[str, ...], threads: list[object], arguments: dict[str, Any], json: str | None) -> None:
    """The product on several numbers of threads: a table, and JSON if it is asked for."""
    from lstmsim.studies.gemm.scaling import run_gemm_threads

    with progress("simulating") as show:
        scaling = run_gemm_threads(*map(_size, sizes), threads=threads, **arguments, progress=show)  # type: ignore[arg-type]
    if json is not None:
        write_json(json, scaling.to_dict())
    if json != "-":
        click.echo(scaling.to_text())
        if json is not None:
            remark(f"wrote {json}")


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
@setting_option("options", "A parameter of the kernel, like tile=64")
@click.option("--prune", type=float, metavar="FRACTION", help="Take this fraction of a model's weights away.")
@click.option(
    "--prune-by", default="magnitude", show_default=True, metavar="WAY", help="magnitude, row, bank or block."
)
@click.option("--banks", type=click.IntRange(min=1), default=4, show_default=True, help="Banks of a row.")
@click.option("--block", type=click.IntRange(min=1), default=4, show_default=True, help="Rows and columns of a block.")
@seed_option("Seed of the numbers of dense operands.")
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
def sparse_command(matrix: str, **arguments: Any) -> None:
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
    help="Mode whose kernels are reported, drawn over time and traced; default: stitch, the pass.",
)
@click.option("--explain", is_flag=True, help="Say why: every decision of the pass.")
@click.option("--ablate", is_flag=True, help="Add the mechanisms of the pass one after the other.")
@click.option(
    "--cycles/--no-cycles", "cycles", default=None, help="Simulate the kernels; default: if the graph is not too large."
)
@click.option(
    "--numbers/--no-numbers",
    "numbers",
    default=None,
    help="Execute the kernels on numbers and compare with numpy, with exit code 1 if they differ; default: if the "
    "graph is not too large.",
)
@seed_option("Seed of these numbers.")
@engine_option
@click.option("--picture", metavar="FILE", help="Draw the graph with its groups: .png, .svg, .pdf.")
@click.option("--save", metavar="FILE", help="Write the graph as a graph file: .yaml, .yml or .json.")
@product_options("the blocks of each core over time", result=False)
def fuse_command(graph: str, **arguments: Any) -> None:
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
    from lstmsim.report import renderings
    from lstmsim.studies.fuse.report import document
    from lstmsim.studies.fuse.request import save_graph
    from lstmsim.studies.fuse.run import plot_fusion, plot_kernels, run_fusion

    if (outputs["timeline"] or outputs["trace"]) and arguments["cycles"] is None:
        arguments["cycles"] = True
    with progress("simulating") as show:
        report = run_fusion(graph, **arguments, progress=show)
    if picture is not None:
        with status(f"drawing {picture}"):
            plot_fusion(report, picture)
    if saved is not None:
        save_graph(report.graph, saved)
    text = renderings.text(document(report, explain))
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
