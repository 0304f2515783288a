"""Sweeps of design spaces: options, what users call, shards joined, and the picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated, Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Jobs, Overrides, Path, names_of, takes

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture
    from lstmsim.studies.sweep.run import Merged, Progress, SweepResult
else:
    Progress = Any


def _shard(text: str) -> tuple[int, int]:
    """`3/20` as (3, 20)."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    index, count = (int(each) for each in match.groups()) if match else (0, 0)
    if not 1 <= index <= count:
        raise ValueError(f"{text!r} is not a shard like 3/20, counted from 1")
    return index, count


@record
class SweepRequest:
    """A design space, where its results go, and who computes them."""

    spec: Annotated[Path | Mapping[str, Any], Key("File of the sweep; in Python also the same keys as a mapping.")]
    folder: Annotated[
        Path, Key("Folder for the results, which is made if it is not there.", flag="--out", metavar="DIR")
    ]
    _: KW_ONLY
    jobs: Jobs = None
    dask: Annotated[str | None, Key("Compute on a dask cluster, like tcp://host:8786.", metavar="ADDRESS")] = None
    shard: Annotated[
        tuple[int, int] | None,
        Key("Compute only every N-th point, from the I-th; then merge.", metavar="I/N", read=_shard),
    ] = None
    retry_failed: Annotated[bool, Key("Compute failed points again.")] = False
    resume: Annotated[bool, Key("Forget the results in DIR and begin anew (in Python resume=False).")] = True
    overrides: Overrides = ()
    progress: Annotated[Callable[[Progress], None] | None, Key("Function that is called after every commit.")] = None


@takes(SweepRequest)
def sweep(request: SweepRequest) -> SweepResult:
    """Simulate every point of a design space and write its tables into `folder`.

    `InputError` for a mistake in the file; a mistake of a point is in the point's row.

    >>> import tempfile
    >>> axes = {"ep": {"path": "chip.cores.0.ep", "values": [16, 32]}}
    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep({"scenario": scenario, "axes": axes}, folder, jobs=1).progress.done
    2
    """
    from lstmsim.model.scenario import Scenario
    from lstmsim.studies.shared.loading import file_or_data
    from lstmsim.studies.sweep.run import run_sweep

    spec, shard = request.spec, request.shard
    if shard is not None and not 1 <= shard[0] <= shard[1]:
        text = f"must be a pair (i, n) of whole numbers with i from 1 to n, like (3, 20), got {shard}"
        raise InputError(Mistake("shard", text))
    if isinstance(spec, Mapping) and isinstance(spec.get("scenario"), Scenario | Mapping):
        spec = {**spec, "scenario": file_or_data(spec["scenario"])}
    return run_sweep(
        spec,
        request.folder,
        overrides=request.overrides,
        jobs=request.jobs,
        dask=request.dask,
        shard=shard,
        resume=request.resume,
        retry_failed=request.retry_failed,
        progress=request.progress,
    )


@record
class MergeRequest:
    """The shards of a sweep, and the file that joins them."""

    out: Annotated[Path, Key("SQLite file to write; its name ends in .sqlite.")]
    inputs: Annotated[Path | Sequence[Path], Key("SQLite files of the shards, all of the same sweep.")]


@takes(MergeRequest)
def merge(request: MergeRequest) -> Merged:
    """Join the SQLite files of a sweep's shards into `out`, and write its tables next to it.

    `InputError` if a file belongs to another sweep or is damaged; `out` is then as it was before.
    """
    from lstmsim.studies.sweep import run as merging

    return merging.merge(request.out, names_of(request.inputs))


def plot_sweep(
    swept: SweepResult | Merged, path: Path | None = None, *, kind: str | None = None, objectives: Sequence[str] = ()
) -> Picture:
    """Draw the results of a sweep.

    swept: what `sweep` or `merge` gave.
    path: the picture's file, with its numbers beside it as .csv; None: no file.
    kind: `heatmap`, `utilization` or `pareto`; None: what the sweep varies decides.
    objectives: the two that are drawn.
    """
    from lstmsim.studies.simulate.run import expect
    from lstmsim.studies.sweep import picture as plots
    from lstmsim.studies.sweep.run import Merged, SweepResult
    from lstmsim.studies.sweep.store import Store

    expect(swept, (SweepResult, Merged), "plot_sweep", "a SweepResult or Merged, as lstmsim.sweep and merge give them")
    with Store(swept.path, create=False) as store:
        return plots.plot(store, path, kind=kind, objectives=objectives)
