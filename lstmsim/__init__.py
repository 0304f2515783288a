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
    run_board                  such a design on a board, or on simulated pins, by its host, and compared
    fit, energy                what a chip takes of an FPGA; relative energy of its jobs
    accuracy, validate         fixed point against floating point; published figures against simulated ones
    import_model               networks of other frameworks (from_torch, from_keras: of modules in memory)
    plot, timeline             pictures of a run and of a saved trace; plot_comparison ... (Look: for papers)
    run_program                a lowered program that was kept, without its scenario
    load_*, save_*             scenarios, chips, models, graphs, programs, traces, reports, outputs
    list_known                 what has a name: models, chips, devices, cells, policies, engines

Where a scenario is expected, a file's path will do, the same keys as a mapping, or a `Scenario`. Results have
`to_dict()` (what `--json` prints) and `to_text()`; results that are tables have `to_records()`, `to_pandas()` and
`to_polars()`; a notebook shows all of them, with pictures. Wrong input is an `InputError` that holds every mistake.

>>> import lstmsim
>>> report = lstmsim.simulate({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
>>> report.makespan_cycles
1423
>>> report.to_dict()["jobs"][0]["name"]
'lstm-512'

Names are imported when they are first used, so that importing the package is cheap.
"""

from __future__ import annotations

from os.path import exists
from typing import Any

__version__ = "0.2.0"

_homes: dict[str, str] = {}


def _home_of(name: str) -> str | None:
    """The module of a public name, which stands in the stub that type checkers and editors read."""
    if not _homes:
        with open(f"{__file__}i", encoding="utf-8") as stub:
            lines = [each.split() for each in stub if each.startswith("from ")]
        _homes.update((words[3], words[1]) for words in lines)
    return _homes.get(name)


def __getattr__(name: str) -> Any:
    home = _home_of(name)
    if name == "__all__":
        return sorted(_homes)
    if home is not None:
        from importlib import import_module

        value = getattr(import_module(home), name)
        if type(value) is type(__getattr__):
            value = import_module("lstmsim.studies.shared.request").called(value)
        globals()[name] = value
        return value
    # Python asks for a package here before it imports it, and needs no hint
    if name.startswith("__") or exists(f"{__path__[0]}/{name}"):
        raise AttributeError(f"module 'lstmsim' has no attribute {name!r}")
    from lstmsim.base.wording import nearest

    # Without an object Python does not add a second hint of its own.
    text = f"module 'lstmsim' has no attribute {name!r}{nearest(name, _homes)}"
    raise AttributeError(text, name=name, obj=None)


def __dir__() -> list[str]:
    return ["__version__", *__getattr__("__all__")]
