"""Which parameters of a sparse product a search for the fastest setting varies, and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lstmsim.machines.kernels import Settings, SparseTask
from lstmsim.machines.parallel.device import Device

__all__ = ["settings_of"]

_ORDER = ("plain", "sorted")
_DISPATCH = ("demand", "static", "round", "snake")
#: Of each kind of kernel what is combined, and what is changed alone. Sizes that depend on the product are added.
_TOGETHER: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "spmm": {"tile": (8, 16, 32, 64), "order": _ORDER, "dispatch": (*_DISPATCH, "hybrid")},
    "spmv": {"lanes": (), "order": _ORDER, "v": (1, 2, 4)},
    "hbp": {"m": (), "n": (), "fixed_percent": (100, 50, 0), "merge": ("kernel", "atomic")},
    "sddmm": {"tile": (8, 16, 32, 64), "order": _ORDER, "dispatch": _DISPATCH},
    "dense": {},
}
_ALONE: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "spmm": {
        "v": (1, 2, 4),
        "warps": (1, 2, 4, 8),
        "k_tile": (8, 16, 32, 64),
        "align": ("reverse", "none", "pad"),
        "fetch": ("needed", "all"),
        "share": (False, True),
        "blocks": (),
    },
    "spmv": {"warps": (1, 2, 4, 8), "dispatch": _DISPATCH, "align": ("reverse", "none")},
    "hbp": {
        "batch": (1, 2, 4, 10, 20),
        "warps": (1, 2, 4, 8, 16),
        "blocks_per_sm": (1, 2, 4, 8),
        "hash": ("linear", "linear-warp", "shift", "sampled", "sort"),
    },
    "sddmm": {"v": (1, 2, 4), "lanes": (), "warps": (1, 2, 4, 8)},
    "dense": {},
}
#: Fewest and most columns of a block of HBP, most rows in warps; most thread blocks of a multiprocessor.
_COLUMNS, _WARPS, _SLOTS = (64, 4096), 16, 32


def settings_of(family: str, left: Sequence[str], task: SparseTask, device: Device) -> Settings:
    """What is searched for a kind of kernel.

    family: the kind, a key of `_TOGETHER`.
    left: parameters that are not set.
    task: the product, which says how large blocks can be.
    device: where it runs.
    """
    sizes = {
        # more rows than the matrix has place them otherwise; more columns change nothing
        "m": _doubled(device.warp, _WARPS * device.warp),
        "n": _doubled(_COLUMNS[0], min(_COLUMNS[1], task.matrix.columns)),
        "lanes": _doubled(1, device.warp),
        "blocks": (None, *_doubled(device.sms, _SLOTS * device.sms)),
    }
    together, alone = (
        {name: values or sizes[name] for name, values in some[family].items() if name in left}
        for some in (_TOGETHER, _ALONE)
    )
    return Settings(together, alone)


def _doubled(low: int, enough: int) -> tuple[int, ...]:
    """Sizes from the smallest on, each twice the one before, up to the first that is enough.

    >>> _doubled(64, 500), _doubled(32, 20)
    ((64, 128, 256, 512), (32,))
    """
    sizes = [low]
    while sizes[-1] < enough:
        sizes.append(2 * sizes[-1])
    return tuple(sizes)
