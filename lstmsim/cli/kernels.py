"""`lstmsim gemm`, `sparse` and `fuse`: single products and graphs on a chip."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

import lstmsim
from lstmsim.base.errors import Mistake, ReplayError, refuse
from lstmsim.cli.options import (
    Output,
    Outputs,
    command,
    json_output,
    picture_output,
    progress,
    report_output,
    status,
    trace_output,
)
from lstmsim.studies.fuse.request import FusionRequest
from lstmsim.studies.gemm.request import GemmRequest
from lstmsim.studies.shared.request import listed_in
from lstmsim.studies.sparse.request import SparseRequest

_OUTPUT = Output("output", "Write the result as .npy.", (".npy",))
_TRACE = trace_output(
    "Write the trace of the run: .json, .json.gz, .pftrace (Perfetto), .csv, .csv.gz, .kanata, .fst or .vcd."
)
_FILES = _TRACE, json_output("everything"), report_output()


def _result_to(report: Any) -> dict[str, Any]:
    """What writes the result of a product."""
    from lstmsim.studies.shared.product_files import save_result

    return {"output": lambda path: save_result(report, path)}


def _check_threads(threads: Any, asked: Mapping[str, Any]) -> None:
    """Refuse what is no number of threads with the cores of the chip, which the key of the option does not know."""
    if isinstance(threads, str) or (threads is not None and threads < 1):
        from lstmsim.studies.gemm.asked import threads_on
        from lstmsim.studies.shared.products import chip_of

        threads_on(chip_of(asked["chip"], asked["chip_overrides"]), threads)


class _Sizes(click.Command):
    """A command whose arguments may be negative numbers, which get a sentence of their own and are no options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # a space before it keeps the parser from reading `-5` as an option
        return super().parse_args(ctx, [f" {each}" if re.fullmatch(r"-[\d.]\S*", each) else each for each in args])


@command(
    "gemm",
    GemmRequest,
    *(_OUTPUT, picture_output("timeline", "Draw the activity of each thread over time"), *_FILES),
    left_out=("m", "n", "k"),
    windowed=("trace",),
    more=[click.Argument(["sizes"], nargs=-1, metavar="[M N K]")],
    kind=_Sizes,
)
def gemm_command(files: Outputs, sizes: tuple[str, ...], threads: Any, **asked: Any) -> None:
    """Plan threads for the product C = A B with A of M x K and B of K x N, and simulate the plan and other ways.

    Threads share the rows and columns of C, or also the sums along K. The first sentence compares the fastest cut that
    was simulated with the fastest of the other kind. Then follow the cut that the planner's rule would have taken, M/N
    threads by BLIS's rule, and the best M/N pair.

    \b
    lstmsim gemm 8 512 512 --threads 64
    lstmsim gemm 8 512 512 --threads 1,2,4,8,16,32,64
    lstmsim gemm 64 32 8192 --threads 16 --ablate --timeline threads.png
    lstmsim gemm 32 512 4096 --threads 64 --cut MK:4x1x16
    lstmsim gemm --model lstm-512 --product gradient --batch 4 --steps 100 --chip xeon-gold-5122
    """
    if len(sizes) not in (0, 3):
        raise click.UsageError(f"expected M, N and K, or --model; got {len(sizes)} sizes: {' '.join(sizes)}")
    shape = [listed_in(each)[0] for each in sizes]
    for each in threads if isinstance(threads, tuple) else (threads,):
        _check_threads(each, asked)
    if isinstance(threads, tuple):
        from lstmsim.studies.gemm.scaling import run_gemm_threads

        text = f"is for one number of threads, and {len(threads)} are given"
        refuse(Mistake(f"--{each}", text) for each in ("output", "timeline", "trace") if each in files.paths)
        with progress("simulating") as show:
            scaling = run_gemm_threads(*shape, threads=threads, **asked, progress=show)
        files.finish(scaling)
        return
    from lstmsim.studies.gemm.run import run_gemm

    if "output" in files.paths:
        asked["numbers"] = True
    with progress("simulating") as show:
        report = run_gemm(*shape, threads=threads, **asked, progress=show)
    files.finish(
        report, {**_result_to(report), "timeline": lambda path: lstmsim.plot_threads(report, path, look=files.look)}
    )


@command(
    "sparse",
    SparseRequest,
    *(_OUTPUT, picture_output("timeline", "Draw the blocks of each core over time"), *_FILES),
    windowed=("trace",),
)
def sparse_command(files: Outputs, **asked: Any) -> None:
    """Simulate a product with the sparse matrix MATRIX, and compute its result as the simulated lanes do.

    MATRIX is a file (.mtx, .smtx, each also .gz), or the weights of a layer by name, like resemblyzer:l1: a row for
    each unit of each gate, the columns of x and then of h.

    \b
    lstmsim sparse resemblyzer:l1 --prune 0.9 --kernel spmm --columns 32 --chip v100
    lstmsim sparse layer.mtx --kernel spmv --method hbp --set m=256 --set n=1024 --ablate
    lstmsim sparse layer.mtx --kernel spmv --method hbp --best
    lstmsim sparse layer.mtx --side transposed --columns 16 --trace run.json
    """
    from lstmsim.studies.sparse.run import run_sparse

    with progress("searching") if asked["best"] else status("simulating") as show:
        report = run_sparse(**asked, progress=show)
    files.finish(
        report, {**_result_to(report), "timeline": lambda path: lstmsim.plot_blocks(report, path, look=files.look)}
    )


@command(
    "fuse",
    FusionRequest,
    *(picture_output("timeline", "Draw the blocks of each core over time"), *_FILES),
    picture_output("picture", "Draw the graph with its groups"),
    Output("save", "Write the graph as a graph file: .yaml, .yml or .json.", (".yaml", ".yml", ".json")),
    windowed=("trace",),
    more=[click.Option(["--explain"], is_flag=True, help="Show every decision of the pass with its reason.")],
)
def fuse_command(files: Outputs, explain: bool, **asked: Any) -> None:
    """Fuse the memory-intensive part of GRAPH, and compare its kernels with those of compilers.

    GRAPH is a name (`lstmsim list graphs`), a graph file (.yaml, .json) or an ONNX file. Each connected part between
    matrix products (norms, softmax, gates ...) becomes one kernel. The kernels are planned, executed on numbers and
    simulated; so are one kernel for each operation, and kernels as XLA and TVM cut them.

    \b
    lstmsim fuse ln-lstm --size hidden=512 --size batch=16 --chip v100
    lstmsim fuse ln-lstm --size hidden=512 --set split_rule=costed --explain
    lstmsim fuse figure-7 --ablate --picture graph.png --timeline blocks.png
    lstmsim fuse attention.onnx --size steps=40 --json -
    """
    from lstmsim.report import renderings
    from lstmsim.report.results import stamped
    from lstmsim.studies.fuse.asked import save_graph
    from lstmsim.studies.fuse.report import document
    from lstmsim.studies.fuse.result import simulated_row
    from lstmsim.studies.fuse.run import run_fusion

    if asked["cycles"] is None and {"timeline", "trace"} & set(files.paths):
        asked["cycles"] = True
    with progress("simulating") as show:
        report = run_fusion(**asked, progress=show)
    if "picture" in files.paths:
        import_module("lstmsim.studies.fuse.picture").refuse_large(report.plan)
    if "timeline" in files.paths:
        simulated_row(report, "timeline")
    writers = {
        "picture": lambda path: lstmsim.plot_fusion(report, path, look=files.look),
        "save": lambda path: save_graph(report.graph, path),
        "timeline": lambda path: lstmsim.plot_kernels(report, path, look=files.look),
    }
    files.finish(report, writers, lambda: renderings.text(stamped(document(report, explain), report)))
    if report.wrong:
        # all is written, for whoever looks for the reason; scripts see it by the exit code
        raise ReplayError("; ".join(report.wrong))
