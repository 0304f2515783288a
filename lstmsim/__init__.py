"""lstmsim: a cycle-level simulator of recurrent-network accelerators.

Each command of `lstmsim` is a function here, under the same name (`import` is `import_model`, `list` is `list_known`,
`load-latency` is `load_latency`, `program` is `run_program`, `sparse` is `run_sparse`, `gemm` is `run_gemm`,
`fuse` is `run_fusion`, `rtl` is `run_rtl`), and gives what the command prints as a result.

    simulate, run, trace       one simulation: its report, all of it, what happened cycle by cycle
    explain, serving           why a run is not faster; what serving its jobs came to
    check_numerics, outputs    the run executed on real weights, and the numbers that it computed
    compare, search, sweep     several chips; the best (EP, VP); a whole design space (merge joins its shards)
    serve, saturate            streams of requests; the highest rate that keeps a bound
    load_latency               latency against offered load
    run_sparse                 a product with a sparse matrix: its time, its result, other ways to do the same
    run_gemm                   threads for a matrix product: planned, its time, its result, other ways to do the same
    run_gemm_threads           the same on several numbers of threads (`lstmsim gemm --threads 1,2,4`)
    run_fusion                 few kernels for the memory-intensive part of a graph: their time, other ways to cut it
    run_rtl                    the chip as Verilog, simulated and compared with lstmsim event for event
    fit, energy                what a chip takes of an FPGA; relative energy of its jobs
    accuracy, validate         fixed point against floating point; published figures against simulated ones
    import_model               networks of other frameworks (from_torch, from_keras: of modules in memory)
    plot, timeline             pictures of a run and of a saved trace; plot_comparison, plot_sweep ...
    run_program                a lowered program that was kept, without its scenario
    load_*, save_*             scenarios, chips, models, graphs, programs, traces, reports, outputs
    list_known                 what has a name: models, chips, devices, cells, policies, engines

Where a scenario is expected, a file's path will do, the same keys as a mapping, or a `Scenario`. Results have
`to_dict()` (what `--json` prints) and `to_text()`; results that are tables have `to_records()` and `to_pandas()`; a
notebook shows all of them. Wrong input is an `InputError` that holds every mistake.

>>> import lstmsim
>>> report = lstmsim.simulate({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
>>> report.makespan_cycles
1423
>>> report.to_dict()["jobs"][0]["name"]
'lstm-512'

Names are imported when they are first used, so that importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lstmsim.api.building import Job, Layer, Model, Scenario
    from lstmsim.api.fits import Fits
    from lstmsim.api.fuse import run_fusion
    from lstmsim.api.fuse_graph import load_graph, save_graph
    from lstmsim.api.fuse_pictures import plot_fusion, plot_kernels
    from lstmsim.api.gemm import plot_threads, run_gemm
    from lstmsim.api.gemm_scaling import run_gemm_threads
    from lstmsim.api.importing import import_model
    from lstmsim.api.known import list_known
    from lstmsim.api.loading import load_chip, load_model, load_scenario
    from lstmsim.api.pictures import plot, plot_accuracy, plot_comparison, plot_load_latency, plot_sweep, timeline
    from lstmsim.api.product_files import save_result
    from lstmsim.api.programs import load_program, run_program, save_program
    from lstmsim.api.rtl import run_rtl
    from lstmsim.api.rtl_pictures import plot_rtl
    from lstmsim.api.run import Run, check_numerics, explain, outputs, run, serving, simulate, trace
    from lstmsim.api.saving import load_trace, save_outputs, save_report, save_trace
    from lstmsim.api.serving.load_latency import load_latency
    from lstmsim.api.serving.saturate import saturate
    from lstmsim.api.serving.stream import serve
    from lstmsim.api.sparse import plot_blocks, run_sparse
    from lstmsim.api.studies import accuracy, compare, energy, fit, merge, search, sweep, validate
    from lstmsim.devices.summary import fit_summary
    from lstmsim.errors import DeadlockError, InputError, LstmsimError
    from lstmsim.formats.scenario.model_writer import save_model
    from lstmsim.formats.weights import import_weights
    from lstmsim.formats.weights.from_keras import from_keras
    from lstmsim.formats.weights.from_torch import from_torch
    from lstmsim.formats.weights.imported import ImportedModel
    from lstmsim.metrics.report import Report
    from lstmsim.metrics.timeline import Timeline
    from lstmsim.targets.column.npu import ColumnCore, ColumnNpu, Latency
    from lstmsim.targets.row.npu import RowCore, RowNpu
    from lstmsim.workload.cells import cell

__all__ = [
    "ColumnCore",
    "ColumnNpu",
    "DeadlockError",
    "Fits",
    "ImportedModel",
    "InputError",
    "Job",
    "Latency",
    "Layer",
    "LstmsimError",
    "Model",
    "Report",
    "RowCore",
    "RowNpu",
    "Run",
    "Scenario",
    "Timeline",
    "accuracy",
    "cell",
    "check_numerics",
    "compare",
    "energy",
    "explain",
    "fit",
    "fit_summary",
    "from_keras",
    "from_torch",
    "import_model",
    "import_weights",
    "list_known",
    "load_chip",
    "load_graph",
    "load_latency",
    "load_model",
    "load_program",
    "load_scenario",
    "load_trace",
    "merge",
    "outputs",
    "plot",
    "plot_accuracy",
    "plot_blocks",
    "plot_comparison",
    "plot_fusion",
    "plot_kernels",
    "plot_load_latency",
    "plot_rtl",
    "plot_sweep",
    "plot_threads",
    "run",
    "run_fusion",
    "run_gemm",
    "run_gemm_threads",
    "run_program",
    "run_rtl",
    "run_sparse",
    "saturate",
    "save_graph",
    "save_model",
    "save_outputs",
    "save_program",
    "save_report",
    "save_result",
    "save_trace",
    "search",
    "serve",
    "serving",
    "simulate",
    "sweep",
    "timeline",
    "trace",
    "validate",
]

__version__ = "0.1.0"

#: The module of each public name.
_HOMES = {
    "lstmsim.api.building": ("Job", "Layer", "Model", "Scenario"),
    "lstmsim.api.fits": ("Fits",),
    "lstmsim.api.fuse": ("run_fusion",),
    "lstmsim.api.fuse_graph": (
        "load_graph",
        "save_graph",
    ),
    "lstmsim.api.fuse_pictures": (
        "plot_fusion",
        "plot_kernels",
    ),
    "lstmsim.api.gemm": (
        "plot_threads",
        "run_gemm",
    ),
    "lstmsim.api.gemm_scaling": ("run_gemm_threads",),
    "lstmsim.api.importing": ("import_model",),
    "lstmsim.api.known": ("list_known",),
    "lstmsim.api.loading": (
        "load_chip",
        "load_model",
        "load_scenario",
    ),
    "lstmsim.api.pictures": (
        "plot",
        "plot_accuracy",
        "plot_comparison",
        "plot_load_latency",
        "plot_sweep",
        "timeline",
    ),
    "lstmsim.api.product_files": ("save_result",),
    "lstmsim.api.programs": (
        "load_program",
        "run_program",
        "save_program",
    ),
    "lstmsim.api.rtl": ("run_rtl",),
    "lstmsim.api.rtl_pictures": ("plot_rtl",),
    "lstmsim.api.run": (
        "Run",
        "check_numerics",
        "explain",
        "outputs",
        "run",
        "serving",
        "simulate",
        "trace",
    ),
    "lstmsim.api.saving": (
        "load_trace",
        "save_outputs",
        "save_report",
        "save_trace",
    ),
    "lstmsim.api.serving.load_latency": ("load_latency",),
    "lstmsim.api.serving.saturate": ("saturate",),
    "lstmsim.api.serving.stream": ("serve",),
    "lstmsim.api.sparse": (
        "plot_blocks",
        "run_sparse",
    ),
    "lstmsim.api.studies": (
        "accuracy",
        "compare",
        "energy",
        "fit",
        "merge",
        "search",
        "sweep",
        "validate",
    ),
    "lstmsim.devices.summary": ("fit_summary",),
    "lstmsim.errors": (
        "DeadlockError",
        "InputError",
        "LstmsimError",
    ),
    "lstmsim.formats.scenario.model_writer": ("save_model",),
    "lstmsim.formats.weights": ("import_weights",),
    "lstmsim.formats.weights.from_keras": ("from_keras",),
    "lstmsim.formats.weights.from_torch": ("from_torch",),
    "lstmsim.formats.weights.imported": ("ImportedModel",),
    "lstmsim.metrics.report": ("Report",),
    "lstmsim.metrics.timeline": ("Timeline",),
    "lstmsim.targets.column.npu": (
        "ColumnCore",
        "ColumnNpu",
        "Latency",
    ),
    "lstmsim.targets.row.npu": (
        "RowCore",
        "RowNpu",
    ),
    "lstmsim.workload.cells": ("cell",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            if isinstance(value, FunctionType):
                value = import_module("lstmsim.api.called").called(value)
            globals()[name] = value
            return value
    if name.startswith("__"):
        raise AttributeError(f"module 'lstmsim' has no attribute {name!r}")
    from lstmsim.wording import nearest

    # Without an object Python does not add a second hint of its own.
    text = f"module 'lstmsim' has no attribute {name!r}{nearest(name, __all__)}"
    raise AttributeError(text, name=name, obj=None)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
