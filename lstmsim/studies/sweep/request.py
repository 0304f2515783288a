"""Sweeps of design spaces: what users ask, shards joined, and the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.model.scenario import Scenario
from lstmsim.studies.shared.arguments import refuse, wrong_names, wrong_path, wrong_whole
from lstmsim.studies.shared.loading import Path, file_or_data
from lstmsim.studies.simulate.run import expect

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture
    from lstmsim.studies.sweep.run import Merged, Progress, SweepResult


def sweep(
    spec: Path | Mapping[str, Any],
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    dask: str | None = None,
    shard: tuple[int, int] | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> SweepResult:
    """Simulate every point of a design space and write its tables into `folder`.

    spec: the sweep's file, or the same keys as a mapping.
    folder: where the results go.
    overrides: texts like `"chip.cores.0.ep=16"`.
    jobs: worker processes; None: one for each processor.
    dask: address of a scheduler that computes in place of worker processes.
    shard: (i, n) computes only every n-th point, from the i-th, counted from 1; then `merge`.
    resume: False forgets the results in `folder`.
    retry_failed: compute points again that have failed.
    progress: is called after every commit.

    `InputError` for a mistake in the file; a mistake of a point is in the point's row.

    >>> import tempfile
    >>> axes = {"ep": {"path": "chip.cores.0.ep", "values": [16, 32]}}
    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep({"scenario": scenario, "axes": axes}, folder, jobs=1).progress.done
    2
    """
    from lstmsim.base.wording import show
    from lstmsim.studies.sweep.run import run_sweep

    given: object = spec
    if not isinstance(given, str | PathLike | Mapping):
        text = f"must be a file's path or a mapping of keys to values, got {show(given)}"
        raise InputError(Mistake("sweep", text))
    refuse(wrong_path("folder", folder), wrong_whole("jobs", jobs, 1), _wrong_shard(shard))
    if isinstance(spec, Mapping) and isinstance(spec.get("scenario"), Scenario | Mapping):
        spec = {**spec, "scenario": file_or_data(spec["scenario"])}
    return run_sweep(
        spec,
        folder,
        overrides=overrides,
        jobs=jobs,
        dask=dask,
        shard=shard,
        resume=resume,
        retry_failed=retry_failed,
        progress=progress,
    )


def _wrong_shard(shard: object) -> list[Mistake]:
    """Say what is wrong with a shard, which is a pair of whole numbers."""
    from lstmsim.base.wording import show

    if shard is None:
        return []
    if isinstance(shard, list | tuple) and len(shard) == 2:
        index, count = shard
        if not (wrong_whole("", count, 1) or wrong_whole("", index, 1, count)) and None not in shard:
            return []
        got = f"({show(index)}, {show(count)})"
    else:
        got = show(shard)
    return [Mistake("shard", f"must be a pair (i, n) of whole numbers with i from 1 to n, like (3, 20), got {got}")]


def merge(out: Path, inputs: Path | Sequence[Path]) -> Merged:
    """Join the SQLite files of a sweep's shards into `out`, and write its tables beside it.

    out: a file name that ends in .sqlite.
    inputs: the shards' files, all of the same sweep.

    `InputError` if a file belongs to another sweep or is damaged; `out` is then as it was before.
    """
    from lstmsim.studies.sweep import run as merging

    refuse(wrong_path("out", out), wrong_names("inputs", inputs, "a path"))
    return merging.merge(out, [inputs] if isinstance(inputs, str | PathLike) else inputs)


def plot_sweep(
    swept: SweepResult | Merged, path: Path | None = None, *, kind: str | None = None, objectives: Sequence[str] = ()
) -> Picture:
    """Draw the results of a sweep.

    swept: what `sweep` or `merge` gave.
    path: the picture's file, with its numbers beside it as .csv; None: no file.
    kind: `heatmap`, `utilization` or `pareto`; None: what the sweep varies decides.
    objectives: the two that are drawn.
    """
    from lstmsim.studies.sweep import picture as plots
    from lstmsim.studies.sweep.run import Merged, SweepResult
    from lstmsim.studies.sweep.store import Store

    expect(swept, (SweepResult, Merged), "plot_sweep", "a SweepResult or Merged, as lstmsim.sweep and merge give them")
    with Store(swept.path, create=False) as store:
        return plots.plot(store, path, kind=kind, objectives=objectives)
