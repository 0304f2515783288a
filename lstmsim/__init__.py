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
    from lstmsim.analysis.report import Report
    from lstmsim.analysis.timeline import Timeline
    from lstmsim.base.errors import DeadlockError, InputError, LstmsimError
    from lstmsim.files.scenario.written import save_model
    from lstmsim.importers.files import import_weights
    from lstmsim.importers.imported import ImportedModel
    from lstmsim.importers.keras.models import from_keras
    from lstmsim.importers.pytorch.modules import from_torch
    from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Latency
    from lstmsim.machines.row.npu import RowCore, RowNpu
    from lstmsim.model.cells import cell
    from lstmsim.studies.accuracy.request import accuracy, plot_accuracy
    from lstmsim.studies.compare.request import compare, plot_comparison
    from lstmsim.studies.fit.fit import Fits, fit_summary
    from lstmsim.studies.fit.request import energy, fit
    from lstmsim.studies.fuse.request import load_graph, save_graph
    from lstmsim.studies.fuse.run import plot_fusion, plot_kernels, run_fusion
    from lstmsim.studies.gemm.run import plot_threads, run_gemm
    from lstmsim.studies.gemm.scaling import run_gemm_threads
    from lstmsim.studies.importing import import_model
    from lstmsim.studies.known.run import list_known
    from lstmsim.studies.program.run import load_program, run_program, save_program
    from lstmsim.studies.rtl.picture import plot_rtl
    from lstmsim.studies.rtl.run import run_rtl
    from lstmsim.studies.search.request import search
    from lstmsim.studies.serve.load_latency import load_latency, plot_load_latency
    from lstmsim.studies.serve.run import serve
    from lstmsim.studies.serve.saturate import saturate
    from lstmsim.studies.shared.building import Job, Layer, Model, Scenario
    from lstmsim.studies.shared.loading import load_chip, load_model, load_scenario
    from lstmsim.studies.shared.product_files import save_result
    from lstmsim.studies.simulate.run import Run, check_numerics, explain, outputs, run, serving, simulate, trace
    from lstmsim.studies.simulate.saving import load_trace, plot, save_outputs, save_report, save_trace, timeline
    from lstmsim.studies.sparse.run import plot_blocks, run_sparse
    from lstmsim.studies.sweep.request import merge, plot_sweep, sweep
    from lstmsim.studies.validate.request import validate

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
    "lstmsim.studies.shared.building": ("Job", "Layer", "Model", "Scenario"),
    "lstmsim.studies.fit.fit": ("Fits", "fit_summary"),
    "lstmsim.studies.fuse.run": ("plot_fusion", "plot_kernels", "run_fusion"),
    "lstmsim.studies.fuse.request": ("load_graph", "save_graph"),
    "lstmsim.studies.gemm.run": ("plot_threads", "run_gemm"),
    "lstmsim.studies.gemm.scaling": ("run_gemm_threads",),
    "lstmsim.studies.importing": ("import_model",),
    "lstmsim.studies.known.run": ("list_known",),
    "lstmsim.studies.shared.loading": ("load_chip", "load_model", "load_scenario"),
    "lstmsim.studies.accuracy.request": ("accuracy", "plot_accuracy"),
    "lstmsim.studies.compare.request": ("compare", "plot_comparison"),
    "lstmsim.studies.fit.request": ("energy", "fit"),
    "lstmsim.studies.search.request": ("search",),
    "lstmsim.studies.simulate.saving": ("load_trace", "plot", "save_outputs", "save_report", "save_trace", "timeline"),
    "lstmsim.studies.sweep.request": ("merge", "plot_sweep", "sweep"),
    "lstmsim.studies.validate.request": ("validate",),
    "lstmsim.studies.shared.product_files": ("save_result",),
    "lstmsim.studies.program.run": ("load_program", "run_program", "save_program"),
    "lstmsim.studies.rtl.run": ("run_rtl",),
    "lstmsim.studies.rtl.picture": ("plot_rtl",),
    "lstmsim.studies.simulate.run": (
        "Run",
        "check_numerics",
        "explain",
        "outputs",
        "run",
        "serving",
        "simulate",
        "trace",
    ),
    "lstmsim.studies.serve.load_latency": ("load_latency", "plot_load_latency"),
    "lstmsim.studies.serve.saturate": ("saturate",),
    "lstmsim.studies.serve.run": ("serve",),
    "lstmsim.studies.sparse.run": ("plot_blocks", "run_sparse"),
    "lstmsim.base.errors": ("DeadlockError", "InputError", "LstmsimError"),
    "lstmsim.files.scenario.written": ("save_model",),
    "lstmsim.importers.files": ("import_weights",),
    "lstmsim.importers.keras.models": ("from_keras",),
    "lstmsim.importers.pytorch.modules": ("from_torch",),
    "lstmsim.importers.imported": ("ImportedModel",),
    "lstmsim.analysis.report": ("Report",),
    "lstmsim.analysis.timeline": ("Timeline",),
    "lstmsim.machines.column.npu": ("ColumnCore", "ColumnNpu", "Latency"),
    "lstmsim.machines.row.npu": ("RowCore", "RowNpu"),
    "lstmsim.model.cells": ("cell",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            if isinstance(value, FunctionType):
                value = import_module("lstmsim.studies.shared.called").called(value)
            globals()[name] = value
            return value
    if name.startswith("__"):
        raise AttributeError(f"module 'lstmsim' has no attribute {name!r}")
    from lstmsim.base.wording import nearest

    # Without an object Python does not add a second hint of its own.
    text = f"module 'lstmsim' has no attribute {name!r}{nearest(name, __all__)}"
    raise AttributeError(text, name=name, obj=None)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
