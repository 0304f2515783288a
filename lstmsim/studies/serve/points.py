"""Points of a curve, each a run of its own: computed here or by worker processes, and kept in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from lstmsim import engines
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.files import readable_file, whole_file
from lstmsim.files.scenario.scenario_file import checked_scenario, open_scenario
from lstmsim.studies.serve.horizon import serve_on_horizon
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.sweep.evaluate import MODEL_VERSION, digest
from lstmsim.studies.sweep.processes import CannotStartError, ProcessExecutor, WorkerEndedError, processors
from lstmsim.traffic.load_latency import CDF, Measured, measured

__all__ = ["Asked", "compute", "key_of", "run_point"]

#: To be raised when a point is measured in another way than before.
_FORMAT = "lstmsim load-latency point 2"
#: The percentile whose interval may be waited for is the last one.
_WANTED = (*(each for each in CDF if each != 99.0), 99.0)


@dataclass(frozen=True)
class Asked:
    """A run that is asked for.

    scenario: a path or a mapping.
    overrides: texts like `"chip.cores.0.ep=16"`.
    requests: how many, or the fewest with `until_half_width`.
    most: the most requests with `until_half_width`.
    until_half_width: go on until the intervals of mean and p99 are within that share of their values.
    """

    scenario: Path | Mapping[str, Any]
    overrides: tuple[str, ...]
    requests: int
    most: int
    until_half_width: float | None = None


def run_point(asked: Asked) -> Measured:
    """Make the run."""
    served = serve_on_horizon(
        asked.scenario,
        asked.requests,
        asked.overrides,
        _WANTED,
        until_half_width=asked.until_half_width,
        most_requests=asked.most,
    )
    return measured(served.serving)


def key_of(asked: Asked) -> str:
    """Give a hash of all that decides the numbers of a run: its scenario with the files that it names, its length, our
    version."""
    from lstmsim import __version__

    document, _ = open_scenario(asked.scenario)
    checked_scenario(document, asked.overrides, single=True)
    files = [_content(document.folder / name) for name in _files(document.data.get("jobs"))]
    size = [asked.requests, asked.most, asked.until_half_width]
    return digest([__version__, MODEL_VERSION, _FORMAT, list(CDF), size, document.data, files])


def _files(data: Any) -> Iterator[str]:
    """List every `path` of arrivals and lengths below job entries, in their order."""
    if isinstance(data, dict):
        if isinstance(data.get("path"), str):
            yield data["path"]
        for name, each in data.items():
            if name != "model":
                yield from _files(each)
    elif isinstance(data, list):
        for each in data:
            yield from _files(each)


def _content(path: Path) -> str:
    with readable_file(path) as file:
        return sha256(file.read()).hexdigest()


def compute(
    points: Sequence[Asked],
    *,
    folder: Path | None = None,
    jobs: int | None = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Measured]:
    """Give what all runs came to, in their order. Runs that are in `folder` already are read; equal runs are made once.

    points: the runs.
    folder: keeps each point as soon as it is done, whatever stops the others; None: nothing is kept.
    jobs: worker processes; 1: this process alone; None: one for each processor.
    progress: is called with points done and in all.

    `LstmsimError` if a worker ends without an answer.
    """
    keys = [key_of(each) for each in points]
    store = _Store(folder)
    done = {key: known for key in keys if (known := store.read(key)) is not None}
    left = {key: each for key, each in zip(keys, points, strict=True) if key not in done}

    def told() -> None:
        if progress is not None:
            progress(sum(key in done for key in keys), len(keys))

    told()
    workers = min(len(left), processors() if jobs is None else jobs)
    for key, figures in _inline(left) if workers <= 1 else _on_processes(left, workers):
        store.write(key, figures)
        done[key] = figures
        told()
    return [done[key] for key in keys]


def _inline(left: Mapping[str, Asked]) -> Iterator[tuple[str, Measured]]:
    for key, asked in left.items():
        yield key, run_point(asked)


def _on_processes(left: Mapping[str, Asked], workers: int) -> Iterator[tuple[str, Measured]]:
    """Give the runs as they end. The last ones begin first, for those of the highest loads take longest."""
    # what is to be said of the engine is said here, and not by each worker
    engines.has_fast()
    executor = ProcessExecutor(workers)
    try:
        waiting: dict[Future[Measured], str] = {}
        for key, asked in reversed([*left.items()]):
            waiting[executor.submit(run_point, asked)] = key
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                try:
                    yield waiting.pop(future), future.result()
                except (WorkerEndedError, CannotStartError) as error:
                    raise LstmsimError(f"{error}; --jobs 1 needs no worker, and --out keeps what is done") from None
    finally:
        executor.shutdown()


class _Store:
    """A folder with a file for each point; without a folder it keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = None if folder is None else os.path.join(os.fspath(folder), "points")
        if self.folder is not None:
            try:
                os.makedirs(self.folder, exist_ok=True)
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                raise InputError(Mistake(f"--out {folder}", f"cannot be a folder ({reason})")) from None

    def _path(self, key: str) -> str:
        return os.path.join(self.folder or "", f"{key}.json")

    def read(self, key: str) -> Measured | None:
        """Give what is known of a point; a file that does not hold the point is written anew."""
        if self.folder is None or not os.path.isfile(self._path(key)):
            return None
        try:
            with readable_file(self._path(key), kept=False) as file:
                data = json.loads(file.read())
            return Measured.from_plain(data["measured"]) if data["key"] == key else None
        except (ValueError, KeyError, TypeError):
            return None

    def write(self, key: str, figures: Measured) -> None:
        """Keep a point."""
        if self.folder is not None:
            with whole_file(self._path(key)) as file:
                json.dump({"format": _FORMAT, "key": key, "measured": figures.plain()}, file, indent=1)
