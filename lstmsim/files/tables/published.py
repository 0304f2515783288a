"""Published figures of recurrent-network accelerators from the tables in `published/`, each with its source.

None of these numbers was simulated: models are compared with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from lstmsim.files.tables.published_rows import Anchor, Claim, Hardware, IntelWorkload, KernelCounts, Measurement
from lstmsim.files.tables.published_table import Column, decimal, one_of, read_table, sizes, text, whole

__all__ = ["Anchor", "Claim", "Hardware", "IntelWorkload", "KernelCounts", "Measurement"]
__all__ += ["accelerators", "claims", "deepbench", "fusion", "hardware", "intel_npu", "published_folder", "table_names"]

_Row = TypeVar("_Row")
_Folder = str | os.PathLike[str] | None

_PACKAGE = Path(__file__).resolve().parents[2]

_SOURCE = (text("source"), text("note", empty=True))
_FIGURES = (
    decimal("tops", True),
    decimal("utilization_pct", True),
    whole("macs", True),
    decimal("frequency_mhz", True),
)
_COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "deepbench": (
        *(text("design"), one_of("cell", ("lstm", "gru")), whole("hidden"), whole("input"), whole("steps")),
        *(whole("batch"), decimal("latency_ms", True), *_FIGURES, *_SOURCE),
    ),
    "intel_npu": (
        *(text("workload"), one_of("cell", ("gemv", "mlp", "rnn", "gru", "lstm")), sizes("sizes"), whole("steps")),
        *(whole("batch"), whole("cpp_cycles"), decimal("cpp_tops"), whole("rtl_cycles"), decimal("rtl_tops"), *_SOURCE),
        text("cpp_note", empty=True),
    ),
    "accelerators": (
        *(text("design"), text("device"), one_of("cell", ("lstm", "gru", "rnn", "suite"))),
        *(whole(each, True) for each in ("layers", "hidden", "input", "steps", "batch")),
        decimal("latency_ms", True),
        *(whole(each, True) for each in ("latency_cycles", "interval_cycles", "depth_cycles")),
        *(*_FIGURES, *_SOURCE),
    ),
    "hardware": (
        *(text("design"), text("device"), text("organisation", empty=True), text("precision"), whole("macs", True)),
        *(decimal("frequency_mhz", True), decimal("peak_tops", True)),
        *(*(text(each, empty=True) for each in ("alm", "dsp", "m20k", "power", "preset")), *_SOURCE),
    ),
    "claims": (
        *(text("key"), text("source"), text("quantity"), text("value"), text("unit", empty=True), text("where_read")),
    ),
    "fusion": (
        *(text("network"), whole("kernels_xla"), whole("kernels_fused"), whole("copies_xla"), whole("copies_fused")),
        *_SOURCE,
    ),
}
_KEYS: Mapping[str, tuple[str, ...]] = {
    "deepbench": ("design", "cell", "hidden", "input", "steps", "batch"),
    "intel_npu": ("workload",),
    "accelerators": ("design", "device", "cell", "layers", "hidden", "input", "steps", "batch"),
    "hardware": ("design",),
    "claims": ("key",),
    "fusion": ("network",),
}


def published_folder(package: Path = _PACKAGE) -> Path:
    """The folder of the tables.

    package: folder of the package; an installed package has the tables in `_published`, a checkout in `published`
        beside it.

    >>> sorted(each.stem for each in published_folder().glob("*.csv")) == sorted(table_names())
    True
    """
    inside = package / "_published"
    return inside if inside.is_dir() else package.parent / "published"


def table_names() -> tuple[str, ...]:
    """The names of the tables. Each is a file `<name>.csv` and a function of this module.

    >>> table_names()
    ('deepbench', 'intel_npu', 'accelerators', 'hardware', 'claims', 'fusion')
    """
    return tuple(_COLUMNS)


def deepbench(folder: _Folder = None) -> tuple[Measurement, ...]:
    """Read DeepBench tasks on Brainwave, Plasticine, V100, Xeon and Titan Xp.

    Titan Xp also has batches of 2 and 4 and other numbers of steps.

    folder: folder with tables of the same form; None for the tables of lstmsim.
    `InputError` for a damaged table.

    >>> len([row for row in deepbench() if row.design == "Plasticine"])
    11
    """
    return _read("deepbench", Measurement, folder)


def intel_npu(folder: _Folder = None) -> tuple[IntelWorkload, ...]:
    """Read the 19 benchmarks of the Intel NPU, in the order of the source; `InputError` for a damaged table.

    >>> len(intel_npu())
    19
    """
    return _read("intel_npu", IntelWorkload, folder)


def accelerators(folder: _Folder = None) -> tuple[Anchor, ...]:
    """Read single figures of other accelerators; `InputError` for a damaged table.

    >>> [row.tops for row in accelerators() if row.design == "RENOWN"]
    [29.6]
    """
    return _read("accelerators", Anchor, folder)


def hardware(folder: _Folder = None) -> tuple[Hardware, ...]:
    """Read the descriptions of the machines that the other tables name; `InputError` for a damaged table.

    >>> {row.design for row in deepbench()} <= {row.design for row in hardware()}
    True
    """
    return _read("hardware", Hardware, folder)


def claims(folder: _Folder = None) -> tuple[Claim, ...]:
    """Read headline numbers of papers and of the column-wise LSTM patent; `InputError` for a damaged table.

    >>> next(each.value for each in claims() if each.key == "remarn-quad-core")
    '2.91'
    """
    return _read("claims", Claim, folder)


def fusion(folder: _Folder = None) -> tuple[KernelCounts, ...]:
    """Read how many kernels whole networks have under two compilers; `InputError` for a damaged table.

    >>> [(row.network, row.kernels_fused) for row in fusion()][:2]
    [('CRNN', 297), ('ASR', 218)]
    """
    return _read("fusion", KernelCounts, folder)


def _read(name: str, make: Callable[..., _Row], folder: _Folder) -> tuple[_Row, ...]:
    path = Path(published_folder() if folder is None else folder) / f"{name}.csv"
    return tuple(make(**row) for row in read_table(path, _COLUMNS[name], _KEYS[name]))
