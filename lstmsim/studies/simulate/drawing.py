"""Pictures of runs and of saved traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lstmsim.analysis.timeline import Timeline
from lstmsim.studies.shared.arguments import refuse, wrong_whole, wrong_wholes
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.simulate.run import Run, expect
from lstmsim.studies.simulate.saving import load_trace

if TYPE_CHECKING:
    from lstmsim.report.pictures.figures import Picture

__all__ = ["plot", "timeline"]


def plot(
    timeline: Timeline | Run,
    path: Path | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    cores: Sequence[int] | None = None,
) -> Picture:
    """Draw a timeline, `start <= cycle < end`, of all or some cores.

    timeline: a timeline, or a run.
    path: the picture's file (.png, .svg or .pdf); None: no file.
    start, end: the first cycle, and the cycle before which the picture ends; None: all.
    cores: numbers of the cores drawn; None: all.
    """
    from lstmsim.studies.simulate import picture as plots

    expect(timeline, (Run, Timeline), "plot", "a Run or a Timeline, as lstmsim.trace(scenario) gives it")
    refuse([] if cores is None else wrong_wholes("cores", cores), wrong_whole("start", start), wrong_whole("end", end))
    drawn = timeline.timeline if isinstance(timeline, Run) else timeline
    return plots.plot(drawn, path, start=start, end=end, cores=cores)


def timeline(
    trace: Path,
    path: Path | None = None,
    *,
    start: int | None = None,
    end: int | None = None,
    cores: Sequence[int] | None = None,
) -> Picture:
    """Draw a saved trace, `start <= cycle < end`, of all or some cores.

    trace: the file that `save_trace` or `lstmsim simulate --trace` wrote.
    path: the picture's file; None: no file.
    start, end, cores: as in `plot`.

    `InputError` if the file is no trace, or if there is no such window or core.

    >>> import tempfile, pathlib, lstmsim
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "trace.csv")
    ...     scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 2}]}
    ...     lstmsim.save_trace(lstmsim.trace(scenario), file)
    ...     timeline(file, start=0, end=100)._repr_png_()[1:4]
    b'PNG'
    """
    return plot(load_trace(trace), path, start=start, end=end, cores=cores)
