"""Options of sweeps over design spaces, and of joining their shards."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Jobs, Overrides, Path, StabilityShare


@record
class Progress:
    """How far a sweep is.

    done, total: points with a result, and points to compute, those with a result included.
    reused: points whose result was there before.
    infeasible, failed: points with that status.
    """

    done: int
    total: int
    reused: int = 0
    infeasible: int = 0
    failed: int = 0


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
    stability: StabilityShare = None
    overrides: Overrides = ()
    progress: Annotated[Callable[[Progress], None] | None, Key("Function that is called after every commit.")] = None


@record
class MergeRequest:
    """The shards of a sweep, and the file that joins them."""

    out: Annotated[Path, Key("SQLite file to write; its name ends in .sqlite.")]
    inputs: Annotated[Path | Sequence[Path], Key("SQLite files of the shards, all of the same sweep.")]
