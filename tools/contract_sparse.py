"""The cases of the parallel device's contracts (docs/parallel_device.md, docs/sparse_kernels.md), run on an engine.

A case has a `device` (a preset and what differs from it), a `kind`, what the kind needs, and `expect`. The result has
the keys of `expect`, so that a key that nobody computes is told as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from lstmsim import engines, load_chip
from lstmsim.base.errors import LstmsimError
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import CLASSES, Instructions, KernelShape, Made, Numbers, Priced
from lstmsim.machines.parallel.kernels.dense import GemmOptions, Tile, default_tiles, gemm, gemv, tile_of
from lstmsim.machines.parallel.kernels.hbp import ConvertOptions, HbpOptions, hbp_conversion, hbp_spmv
from lstmsim.machines.parallel.kernels.recurrent import RecurrentSizes, recurrent_layer
from lstmsim.machines.parallel.kernels.rows import options_of
from lstmsim.machines.parallel.kernels.sddmm import SddmmOptions, sddmm
from lstmsim.machines.parallel.kernels.spmm import SpmmOptions, spmm
from lstmsim.machines.parallel.kernels.spmv import SpmvOptions, spmv
from lstmsim.machines.parallel.lowering.program import program_of_kernels, traffic_of
from lstmsim.machines.parallel.traffic import addresses, priced
from lstmsim.model.sparse.csr import Csr, csr_of_coo
from lstmsim.model.sparse.made import drawn_dense
from lstmsim.program.accounts import totals_of
from lstmsim.program.trace import Totals
from lstmsim.program.unflatten import tabled
from tools.drawn_matrices import checksum, drawn_matrix
from tools.parallel_outcome import Outcome, fits, outcome_of

__all__ = ["KINDS", "device_of", "kernels_of", "outcome", "result"]

Case = Mapping[str, Any]
#: What the device `toy` of the contract has that `v100` has not.
TOY = {"sms": 2, "schedulers": 1, "partitions": 2, "launch": 100}
_LATENCY = "_latency"


def device_of(keys: Case) -> ParallelDevice:
    """The device of a case.

    keys: `preset` and what differs from it; latencies end in `_latency`.

    >>> device_of({"preset": "toy", "l1_latency": 50, "sms": 3}).latencies.l1
    50
    """
    given = {**(TOY if keys["preset"] == "toy" else {}), **{key: each for key, each in keys.items() if key != "preset"}}
    chip: Any = load_chip("v100" if keys["preset"] == "toy" else keys["preset"])
    values: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in given.items()}
    sms = values.pop("sms", len(chip.cores))
    latencies = {key.removesuffix(_LATENCY): values.pop(key) for key in list(values) if key.endswith(_LATENCY)}
    core = chip.cores[0]
    own = {each.name: values.pop(each.name) for each in fields(core) if each.name in values}
    core = replace(core, **own, latency=replace(core.latency, **latencies))
    changed: ParallelDevice = replace(chip, **values, cores=(core,) * sms)
    return changed


def kernels_of(listed: Sequence[Case]) -> tuple[Priced, ...]:
    """Kernels that a case gives instruction by instruction."""
    return tuple(_kernel(each, f"k{number}") for number, each in enumerate(listed))


def _kernel(listed: Case, name: str) -> Priced:
    streams = [stream for block in listed["blocks"] for stream in block["streams"]]
    rows = [row for stream in streams for row in stream]
    waits = [row.get("waits", []) for row in rows]
    misses = [sorted((int(place), count) for place, count in row.get("misses", {}).items()) for row in rows]

    def column(key: str, default: Any, kind: Any) -> Any:
        return np.array([row.get(key, default) for row in rows], dtype=kind)

    def ends(lists: Sequence[Sequence[Any]]) -> Any:
        return np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)

    instructions = Instructions(
        first=ends(streams),
        kind=np.array([CLASSES.index(row["kind"]) for row in rows], dtype=np.int8),
        count=column("count", 1, np.int32),
        first_wait=ends(waits),
        wait=np.array([wait for each in waits for wait in each], dtype=np.int32),
    )
    numbers = Numbers(
        lsu=column("lsu", 0, np.int32),
        sectors=column("sectors", 0, np.int32),
        first_miss=ends(misses),
        partition=np.array([place for each in misses for place, _ in each], dtype=np.int32),
        missing=np.array([count for each in misses for _, count in each], dtype=np.int32),
        in_l1=column("in_l1", False, bool),
        in_l2=column("in_l2", False, bool),
    )
    shape = KernelShape(name, listed["warps"], listed["registers"], listed["shared"], listed.get("persistent", False))
    sm = [-1 if block.get("sm") is None else block["sm"] for block in listed["blocks"]]
    return Priced(shape, np.array(sm, dtype=np.int32), instructions, numbers)


def _matrix(keys: Case) -> Csr:
    if "coo" in keys:
        entries = np.array(keys["coo"], dtype=np.int64).reshape(-1, 3)
        return csr_of_coo(keys["rows"], keys["cols"], entries[:, 0], entries[:, 1], entries[:, 2])
    return drawn_matrix(keys["rows"], keys["cols"], keys["permille"], keys["seed"], keys.get("skew", False))


def _spmm(case: Case, device: ParallelDevice) -> Made:
    matrix = _matrix(case["A"])
    dense = drawn_dense(matrix.columns, case["N"], case["B_seed"])
    return spmm(matrix, dense, options_of(SpmmOptions, case.get("options") or {}), device)


def _vector(case: Case, matrix: Csr) -> Any:
    return drawn_dense(matrix.columns, 1, case["B_seed"])[:, 0]


def _spmv(case: Case, device: ParallelDevice) -> Made:
    matrix = _matrix(case["A"])
    return spmv(matrix, _vector(case, matrix), options_of(SpmvOptions, case.get("options") or {}), device)


def _hbp(case: Case, device: ParallelDevice) -> Made:
    matrix = _matrix(case["A"])
    return hbp_spmv(matrix, _vector(case, matrix), options_of(HbpOptions, case.get("options") or {}), device)


def _convert(case: Case, device: ParallelDevice) -> Made:
    return hbp_conversion(_matrix(case["A"]), options_of(ConvertOptions, case.get("options") or {}), device)


def _sddmm(case: Case, device: ParallelDevice) -> Made:
    matrix = _matrix(case["C"])
    left = drawn_dense(matrix.rows, case["K"], case["A_seed"])
    right = drawn_dense(matrix.columns, case["K"], case["B_seed"])
    return sddmm(matrix, left, right, options_of(SddmmOptions, case.get("options") or {}), device)


def _gemv(case: Case, device: ParallelDevice) -> Made:
    return gemv(case["M"], case["K"], device)


def _gemm(case: Case, device: ParallelDevice) -> Made:
    sizes = case["M"], case["K"], case["N"]
    options = options_of(GemmOptions, case.get("options") or {})
    return _fastest(options, case["N"], device, lambda tile: gemm(sizes, tile, options.split, device))


def _lstm(case: Case, device: ParallelDevice) -> Made:
    sizes = RecurrentSizes(case["H"], case["X"], case["N"], case["steps"])
    if case["N"] == 1:
        # matrix times vector has no tiles: whatever is said of them is ignored
        return recurrent_layer(sizes, None, 0, device)
    options = options_of(GemmOptions, case.get("options") or {})
    return _fastest(options, case["N"], device, lambda tile: recurrent_layer(sizes, tile, options.split, device))


def _fastest(options: GemmOptions, columns: int, device: ParallelDevice, make: Callable[[Tile], Made]) -> Made:
    """The product with the tile that is given, or with the fastest of the default ones."""
    tile = tile_of(options)
    tiles = default_tiles(columns) if tile is None else (tile,)
    made = [make(each) for each in tiles]
    if len(made) == 1:
        return made[0]
    programs = [program_of_kernels(device, priced(each.run, device)).flat for each in made]
    return min(zip(made, programs, strict=True), key=lambda pair: engines.totals(pair[1]).makespan_cycles)[0]


#: Kind of a case -> what makes its kernels; `device` lists them itself.
KINDS: Mapping[str, Callable[[Case, ParallelDevice], Made]] = {
    "spmm": _spmm,
    "spmv": _spmv,
    "hbp": _hbp,
    "convert": _convert,
    "sddmm": _sddmm,
    "gemv": _gemv,
    "gemm": _gemm,
    "lstm": _lstm,
}


def outcome(device: ParallelDevice, kernels: Sequence[Priced], engine: str) -> Outcome:
    """What comes of kernels on a device."""
    lowered = program_of_kernels(device, kernels)
    if engine == "fast":
        totals: Totals = engines.totals(lowered.flat)
    else:
        program = tabled(lowered.flat, lowered.names)
        totals = totals_of(program, engines.run(program, engine))
    return outcome_of(device, lowered, totals)


def result(case: Case, engine: str) -> dict[str, Any]:
    """What the engine makes of a case, as far as `expect` has keys for it; `error` alone if it is refused."""
    try:
        figures = _Figures(case, engine)
        # a case that expects an error says nothing else, and is run all the same
        _ = figures.outcome
        return {key: value for key in case["expect"] if (value := figures.value(key)) is not _NOTHING}
    except LstmsimError as error:
        return {"error": type(error).__name__}


_NOTHING = object()
_BLOCK = ("kernel", "block", "sm", "placed", "may_issue", "end")


@dataclass(frozen=True)
class _Figures:
    """The figures of a case by the names that `expect` has for them.

    case: the case.
    engine: what runs it.
    """

    case: Case
    engine: str

    @cached_property
    def device(self) -> ParallelDevice:
        """The device of the case."""
        return device_of(self.case["device"])

    @cached_property
    def made(self) -> Made | None:
        """What the writer of the kernels made; None if the case lists them itself."""
        kind = self.case["kind"]
        return None if kind == "device" else KINDS[kind](self.case, self.device)

    @cached_property
    def kernels(self) -> tuple[Priced, ...]:
        """The kernels, priced."""
        return kernels_of(self.case["kernels"]) if self.made is None else priced(self.made.run, self.device)

    @cached_property
    def outcome(self) -> Outcome:
        """What came of the run."""
        return outcome(self.device, self.kernels, self.engine)

    def value(self, key: str) -> Any:
        """A figure, `_NOTHING` if there is none of this name."""
        if key == "array_begin_nnz":
            hbp = self._hashed.hbp
            return hbp.begin[hbp.partition.first_group[:-1]].tolist()
        if key.startswith("array_"):
            return getattr(self._hashed.hbp, key.removeprefix("array_")).tolist()
        own = getattr(self, f"_{key}", None)
        if own is not None:
            return own()
        if self.made is None:
            return _NOTHING
        traffic = traffic_of(self.made.run, self.kernels)
        return traffic.counts.get(key, self.made.metrics.get(key, _NOTHING))

    def _makespan(self) -> int:
        return self.outcome.makespan

    def _issue(self) -> Any:
        return self.outcome.accounts["issue"].tolist()

    def _kinds(self) -> dict[str, int]:
        return dict(self.outcome.issues)

    def _lsu(self) -> Any:
        return self.outcome.lsu.tolist()

    def _port(self) -> Any:
        return self.outcome.port.tolist()

    def _dram(self) -> Any:
        return self.outcome.dram.tolist()

    def _atomic(self) -> Any:
        return self.outcome.atomic.tolist()

    def _accounts(self) -> list[dict[str, int]]:
        accounts = self.outcome.accounts
        return [{name: int(cycles[sm]) for name, cycles in accounts.items()} for sm in range(self.device.sms)]

    def _kernels(self) -> list[dict[str, int]]:
        return [{"arrive": each.arrive, "end": each.end, "resident": each.resident} for each in self.outcome.kernels]

    def _blocks(self) -> list[dict[str, int]]:
        return [dict(zip(_BLOCK, row, strict=True)) for row in self.outcome.blocks.tolist()]

    def _loads_by_array(self) -> dict[str, list[int]]:
        assert self.made is not None
        loads = traffic_of(self.made.run, self.kernels).loads
        return {each.array: [each.requests, *(each.sectors[at] for at in ("L2", "L1", "DRAM"))] for each in loads}

    def _fits(self) -> bool:
        assert self.made is not None
        return fits(self.made.run, self.device)

    def _arrays(self) -> list[list[Any]]:
        assert self.made is not None
        arrays = self.made.run.arrays
        return [[each.name, at, 4 * each.elements] for each, at in zip(arrays, addresses(arrays), strict=True)]

    def _order(self) -> Any:
        plan: Any = self.made and self.made.plan
        return plan.dealt.order.tolist() if self._option("order") == "sorted" else None

    def _placing(self) -> Any:
        plan: Any = self.made and self.made.plan
        return None if self._option("dispatch") in (None, "demand") else plan.dealt.sm.tolist()

    def _option(self, name: str) -> Any:
        return (self.case.get("options") or {}).get(name)

    def _checksum(self) -> Any:
        assert self.made is not None
        return _NOTHING if self.made.result is None else checksum(self.made.result)

    @property
    def _hashed(self) -> Any:
        assert self.made is not None
        return self.made.plan.made

    def _probes_per_row(self) -> list[list[int]]:
        hashed = self._hashed
        bounds = np.flatnonzero(np.diff(hashed.hbp.partition.block_of_position, prepend=-1)).tolist()
        return [part.tolist() for part in np.split(hashed.probes, bounds[1:])]

    def _streams(self) -> list[list[list[list[list[Any]]]]]:
        return [_shown(each) for each in self.kernels]


def _shown(kernel: Priced) -> list[list[list[list[Any]]]]:
    """The streams of a kernel, block by block, warp by warp."""
    whole, numbers, warps = kernel.instructions, kernel.numbers, kernel.shape.warps
    misses = list(zip(numbers.partition.tolist(), numbers.missing.tolist(), strict=True))
    waits = whole.wait.tolist()
    rows = []
    for row, kind in enumerate(whole.kind.tolist()):
        own = misses[numbers.first_miss[row] : numbers.first_miss[row + 1]]
        listed = waits[whole.first_wait[row] : whole.first_wait[row + 1]]
        caches = [int(numbers.in_l1[row]), int(numbers.in_l2[row])]
        served = {str(place): count for place, count in own}
        figures = [int(numbers.lsu[row]), int(numbers.sectors[row]), served]
        rows.append([CLASSES[kind], int(whole.count[row]), listed, *figures, *caches])
    streams = [rows[a:b] for a, b in zip(whole.first[:-1].tolist(), whole.first[1:].tolist(), strict=True)]
    return [streams[block * warps : (block + 1) * warps] for block in range(len(kernel.sm))]
