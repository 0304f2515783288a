"""lstmsim: a cycle-level simulator of recurrent-network accelerators.

The functions of `lstmsim.api.run` and the types they take and give are here by name, and are imported when first used,
so that importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lstmsim.api.run import (
        Run,
        accuracy,
        check_numerics,
        compare,
        energy,
        explain,
        fit,
        load_scenario,
        load_trace,
        outputs,
        plot,
        plot_accuracy,
        plot_comparison,
        run,
        save_outputs,
        save_report,
        save_trace,
        search,
        serving,
        simulate,
        sweep,
        trace,
        validate,
    )
    from lstmsim.api.serving.load_latency import load_latency
    from lstmsim.api.serving.saturate import saturate
    from lstmsim.api.serving.stream import serve
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
    from lstmsim.workload.model import Layer, Model
    from lstmsim.workload.scenario import Job, Scenario

__all__ = [
    "ColumnCore",
    "ColumnNpu",
    "DeadlockError",
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
    "import_weights",
    "load_latency",
    "load_scenario",
    "load_trace",
    "outputs",
    "plot",
    "plot_accuracy",
    "plot_comparison",
    "run",
    "saturate",
    "save_model",
    "save_outputs",
    "save_report",
    "save_trace",
    "search",
    "serve",
    "serving",
    "simulate",
    "sweep",
    "trace",
    "validate",
]

__version__ = "0.1.0"

_HOMES = {
    "lstmsim.api.run": (
        "Run",
        "accuracy",
        "check_numerics",
        "compare",
        "energy",
        "explain",
        "fit",
        "load_scenario",
        "load_trace",
        "outputs",
        "plot",
        "plot_accuracy",
        "plot_comparison",
        "run",
        "save_outputs",
        "save_report",
        "save_trace",
        "search",
        "serving",
        "simulate",
        "sweep",
        "trace",
        "validate",
    ),
    "lstmsim.devices.summary": ("fit_summary",),
    "lstmsim.api.serving.load_latency": ("load_latency",),
    "lstmsim.api.serving.saturate": ("saturate",),
    "lstmsim.errors": ("DeadlockError", "InputError", "LstmsimError"),
    "lstmsim.formats.weights.imported": ("ImportedModel",),
    "lstmsim.formats.scenario.model_writer": ("save_model",),
    "lstmsim.formats.weights": ("import_weights",),
    "lstmsim.formats.weights.from_keras": ("from_keras",),
    "lstmsim.formats.weights.from_torch": ("from_torch",),
    "lstmsim.metrics.report": ("Report",),
    "lstmsim.api.serving.stream": ("serve",),
    "lstmsim.metrics.timeline": ("Timeline",),
    "lstmsim.targets.column.npu": ("ColumnCore", "ColumnNpu", "Latency"),
    "lstmsim.targets.row.npu": ("RowCore", "RowNpu"),
    "lstmsim.workload.cells": ("cell",),
    "lstmsim.workload.model": ("Layer", "Model"),
    "lstmsim.workload.scenario": ("Job", "Scenario"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'lstmsim' has no attribute {name!r}")
