"""What a run of a million spans costs as a file: every trace format, the picture and the page, against `.csv`.

Run as `python benchmarks/spans.py`; `make bench` has the table too. Times are of one process, each the least of three.
Memory is the most that a new process has, which gets the timeline from a file and writes one other file.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from measures import cpu_seconds, measured_package, new_process, table

from lstmsim import load_scenario
from lstmsim.analysis.files import SUFFIXES, save_trace
from lstmsim.analysis.spans import use_over_time
from lstmsim.analysis.timeline import Timeline
from lstmsim.report.page.frame import embedded
from lstmsim.studies.simulate.page.explorer import explorer
from lstmsim.studies.simulate.page.timeline import timeline_sections
from lstmsim.studies.simulate.picture import plot
from lstmsim.studies.simulate.run import trace

__all__ = ["SPANS_HEAD", "SPANS_NOTE", "spans_rows"]

SPANS_HEAD = ["the spans as", "CPU ms", "times `.csv`", "file: MB", "process: MB"]
SPANS_NOTE = """\
Eight LSTM-256 of about 5,700 steps on 2 cores of 4 threads: 1,003,801 spans in 12 rows. The page is its part that shows
the spans: a drawing, and every span for its scripts. Beside it a process that only has the timeline. A format whose
library is not installed has no row."""
_STEPS = 5700
_WHAT = sorted((*SUFFIXES, ".png", ".html"), key=lambda each: each != ".csv")


def a_timeline(steps: int) -> Timeline:
    """Eight jobs on two cores with four threads each."""
    core = {"npe": 1024, "ep": 16, "vp": 64, "threads": 4}
    chip = {"kind": "column-npu", "name": "c", "frequency_mhz": 260, "cores": [core] * 2}
    jobs = [{"name": f"j{number}", "model": "lstm-256", "steps": steps + number} for number in range(8)]
    return trace(load_scenario({"chip": chip, "jobs": jobs}))


def write(timeline: Timeline, path: Path) -> None:
    """Write a timeline as what the file's name ends in."""
    if path.suffix == ".png":
        plot(timeline, path)
    elif path.suffix == ".html":
        use = use_over_time(timeline)
        drawn = "".join(each.content for each in timeline_sections(timeline, use))
        path.write_text(drawn + embedded("timeline", explorer(timeline, use, {})), encoding="utf-8")
    else:
        save_trace(timeline, path, None)


def spans_rows() -> list[list[str]]:
    """A row for everything that can be written here, `.csv` first."""
    rows, unit = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "timeline")
        new_process(__file__, "make", str(kept))
        paths = [Path(folder, f"a{suffix}") for suffix in _WHAT if _can_write(suffix)]
        # as long as this process is small: what it has had counts for those that it starts
        memory = [
            new_process(__file__, str(kept), *map(str, each)).memory_mb for each in ([], *([path] for path in paths))
        ]
        timeline = pickle.loads(kept.read_bytes())
        for path, most in zip(paths, memory[1:], strict=True):
            seconds = cpu_seconds(lambda path=path: write(timeline, path), times=3)  # type: ignore[misc]
            unit = unit or seconds
            name, size = path.name.removeprefix("a"), path.stat().st_size / 1e6
            rows.append([f"`{name}`", f"{1000 * seconds:,.0f}", f"{seconds / unit:.1f}", f"{size:.1f}", f"{most:.0f}"])
    return [*rows, ["nothing", "", "", "", f"{memory[0]:.0f}"]]


def _can_write(suffix: str) -> bool:
    needs = {".fst": "pylibfst", ".pftrace": "perfetto"}.get(suffix)
    return needs is None or find_spec(needs) is not None


def main() -> int:
    match sys.argv[1:]:
        case ["make", path]:
            Path(path).write_bytes(pickle.dumps(a_timeline(_STEPS)))
        case [kept, *paths]:
            timeline = pickle.loads(Path(kept).read_bytes())
            for path in paths:
                write(timeline, Path(path))
        case _:
            print(table(SPANS_HEAD, spans_rows(), names=1))
    return 0


if __name__ == "__main__":
    measured_package()
    sys.exit(main())
