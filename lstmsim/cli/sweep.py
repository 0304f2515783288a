"""`lstmsim sweep` and `lstmsim merge`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import click

import lstmsim
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.wording import counted
from lstmsim.cli.options import (
    Outputs,
    check_outputs,
    check_suffix,
    command,
    remark,
    report_output,
    say_caption,
    status,
    terminal_line,
)
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.shared.request import listed_in
from lstmsim.studies.sweep.request import MergeRequest, SweepRequest

if TYPE_CHECKING:
    from lstmsim.studies.sweep.request import Progress
    from lstmsim.studies.sweep.run import Merged, SweepResult

_BAR_CELLS = 24
_MOST_REASONS = 5
_NUMBERS = re.compile(r"\d[\d.,]*")
_LIKE = " (for example; the others differ in numbers only)"


class _Drawn:
    """What is drawn of a sweep."""

    plot: Annotated[
        str | None,
        Key(
            "Draw the results: .png, .svg or .pdf; numbers next to it, .csv (it must not be the table's).",
            metavar="FILE",
        ),
    ] = None
    plot_kind: Annotated[
        str | None,
        Key(
            "Draw cycles over EP and VP, utilization over NPE, or two objectives.",
            follows="what the sweep varies",
            choices=("heatmap", "utilization", "pareto"),
        ),
    ] = None
    plot_objectives: Annotated[
        tuple[str, ...], Key("Two objectives that are drawn.", follows="the first two", metavar="X,Y", read=listed_in)
    ] = ()


@command("sweep", *(SweepRequest, _Drawn, Look, report_output()))
def sweep_command(
    files: Outputs,
    spec: str,
    folder: str,
    plot: str | None,
    plot_kind: str | None,
    plot_objectives: tuple[str, ...],
    **asked: Any,
) -> None:
    """Simulate every point of the design space that the file SPEC describes, and write DIR/sweep.csv.

    SPEC names a scenario, axes (a path in the scenario and its values), and constraints. Points that break a constraint
    or cannot be built are kept with their reason. Everything is kept in DIR/sweep.sqlite: whatever stops a sweep, the
    same command goes on where it was. The table does not depend on the number of processes.

    Its column `pareto` marks the points that no other beats in all `objectives` of SPEC, for example {minimise:
    [latency_ms_p99, dsp]}: any columns; with a `device` also those of the resources that the chip takes. Default:
    latency_ms_mean and npe.

    \b
    lstmsim sweep spec.yaml --out results --plot results/map.png
    lstmsim sweep spec.yaml --out results --shard 3/20
    """
    from lstmsim.studies.sweep.run import files_of_sweep, made_folder, sweep, table_stem

    if asked["dask"] is not None and asked["jobs"] is not None:
        raise InputError(Mistake("--jobs", "belongs to processes of this machine, not to --dask"))
    stem = table_stem(folder, asked["shard"])
    pictures = _pictures(plot, plot_kind, plot_objectives, files.look, stem)
    if plot_kind or plot_objectives:
        _check_picture(spec, plot_kind, plot_objectives)
    with made_folder(folder):
        outputs = pictures | {"--report": files.paths.get("report")} | _tables("--out", "--out", stem, f"{stem}.sqlite")
        # a store is continued, not replaced
        kept = [path for what, path in outputs.items() if "store" in what and path and os.path.isfile(path)]
        check_outputs(outputs, inputs=files_of_sweep(spec, asked["overrides"]), kept=kept)
        with _bar(os.path.basename(spec)) as show:
            result = sweep(spec, folder, progress=show, **asked)
    counts = result.progress
    wrong = _explain(result.path, spec, whole=asked["shard"] is None)
    files.show(result.to_text, result)
    if counts.reused:
        remark(f"{counts.reused:,} of them had a result already")
    if result.dropped:
        remark(f"{counted(result.dropped, 'row')} of {result.path} had no checksum or did not match it: computed anew")
    if result.rebuilt:
        remark(
            f"the description of the sweep in {result.path} had no checksum or did not match it: written anew from "
            f"{spec}"
        )
    if counts.failed:
        remark("points that failed are in the table with their error; --retry-failed computes them again")
    for path in [result.path, *result.tables]:
        remark(f"wrote {path}")
    if wrong is not None:
        raise wrong
    files.write(result)
    files.name()
    _draw(result, pictures, plot_kind, plot_objectives, files.look)


def _check_picture(spec: str, kind: str | None, objectives: Sequence[str]) -> None:
    """Raise `InputError` for a picture that the sweep cannot have, before anything is simulated."""
    from lstmsim.studies.sweep.picture import check_kind
    from lstmsim.studies.sweep.spec import drawn_pair
    from lstmsim.studies.sweep.spec_file import load_sweep

    loaded = load_sweep(spec)
    drawn_pair(loaded.objectives, objectives)
    check_kind(loaded.sweep.axes, kind)


def _explain(store_path: str, place: str, *, whole: bool) -> LstmsimError | None:
    """Say on standard error why points are infeasible, and which are on no front.

    If a `whole` sweep (no shard) simulated nothing, give an `InputError` at `place` instead, or a `LstmsimError` where
    all points have failed: then something in the file is misspelt, or lstmsim is at fault.
    """
    from lstmsim.studies.sweep.store import Store
    from lstmsim.studies.sweep.table import judge

    with Store(store_path, create=False) as store:
        infeasible, failed = (_counted(store.reasons(each)) for each in ("infeasible", "failed"))
        nothing = next(store.rows(["point"], "WHERE status = 'done' LIMIT 1"), None) is None
        notes = [] if nothing else judge(store).lines()[1:]
    if whole and nothing and infeasible:
        return InputError([Mistake(place, f"nothing could be simulated: {line}") for line in infeasible])
    if whole and nothing and failed:
        return LstmsimError(f"{place}: nothing could be simulated: {'; '.join(failed)}")
    for line in [f"infeasible: {each}" for each in infeasible] + [f"front: {each}" for each in notes]:
        remark(line)
    return None


def _counted(reasons: Sequence[tuple[str, int]]) -> list[str]:
    """Lines with the most frequent reasons, and one about all others; reasons that differ in numbers only are one."""
    alike: dict[str, list[tuple[str, int]]] = {}
    for reason, count in reasons:
        alike.setdefault(_NUMBERS.sub("0", reason), []).append((" ".join(reason.split()), count))
    merged = [(own[0][0] + (_LIKE if len(own) > 1 else ""), sum(count for _, count in own)) for own in alike.values()]
    reasons = sorted(merged, key=lambda each: -each[1])
    rest = reasons[_MOST_REASONS:]
    lines = [f"{counted(count, 'point')}: {reason}" for reason, count in reasons[:_MOST_REASONS]]
    others = f"{counted(sum(count for _, count in rest), 'point')} for {counted(len(rest), 'other reason')}"
    return [*lines, others] if rest else lines


def _pictures(
    path: str | None, kind: str | None, objectives: Sequence[str], look: Look, stem: str
) -> dict[str, str | None]:
    """Give the files that `--plot` writes, by what they are; `stem`: the table's name without its suffix."""
    if path is None:
        plain = {"--plot-kind": kind, "--plot-objectives": objectives, "--width": look.width}
        for option, given in {**plain, "--style": look.style != SCREEN.style}.items():
            if given:
                raise InputError(Mistake(option, "belongs to --plot, which is not given"))
        return {}
    if kind not in (None, "pareto") and objectives:
        raise InputError(Mistake("--plot-objectives", f"belongs to --plot-kind pareto, not to {kind}"))
    from lstmsim.base.files import identity_of
    from lstmsim.report.pictures.figures import SUFFIXES

    check_suffix("--plot", path, SUFFIXES)
    own, suffix = os.path.splitext(path)
    if identity_of(f"{own}.csv") == identity_of(f"{stem}.csv"):
        text = f"the numbers of the picture would replace {stem}.csv, the table"
        raise InputError(Mistake(f"--plot {path}", f"{text}; call it for example {stem}-front{suffix}"))
    return {"--plot": path, "--plot's numbers": f"{own}.csv"}


def _tables(option: str, table: str, stem: str, store: str) -> dict[str, str | None]:
    """Give the tables, the SQLite file, and the files that SQLite keeps next to it meanwhile, by what they are."""
    from lstmsim.studies.sweep.store import sidecars
    from lstmsim.studies.sweep.table import table_names

    tables = zip((table, f"{table} as Parquet"), table_names(stem), strict=False)
    others = {f"{option}'s store's {each.removeprefix(f'{store}-')}": each for each in sidecars(store)}
    return {**dict(tables), f"{option}'s store": store, **others}


def _draw(
    result: SweepResult | Merged,
    pictures: dict[str, str | None],
    kind: str | None,
    objectives: Sequence[str],
    look: Look,
) -> None:
    """Draw a result, if a picture is asked for, and name the files."""
    if not pictures:
        return
    path = str(pictures["--plot"])
    with status(f"drawing {os.path.basename(path)}"):
        picture = lstmsim.plot_sweep(result, path, kind=kind, objectives=objectives, look=look)
    for each in pictures.values():
        remark(f"wrote {each}")
    say_caption(picture)


@contextmanager
def _bar(text: str) -> Iterator[Callable[[Progress], None] | None]:
    """Give something to call with each `Progress`: a bar with rate and remaining time, on a terminal only."""
    began, first = time.monotonic(), -1

    def show(counts: Progress) -> None:
        nonlocal began, first
        if first < 0:
            began, first = time.monotonic(), counts.done
        if line is not None:
            line(bar_line(text, counts, counts.done - first, time.monotonic() - began))

    with terminal_line() as line:
        yield None if line is None else show


def bar_line(text: str, counts: Progress, computed: int, seconds: float) -> str:
    """Give the line of the bar: `computed` points took `seconds`."""
    filled = _BAR_CELLS * counts.done // max(counts.total, 1)
    parts = [f"{text} [{'#' * filled}{'.' * (_BAR_CELLS - filled)}] {counts.done:,}/{counts.total:,}"]
    if computed and seconds > 0:
        rate = computed / seconds
        parts.append(f"{rate:,.1f}/s" if rate < 100 else f"{rate:,.0f}/s")
        minutes, seconds_left = divmod(round((counts.total - counts.done) / rate), 60)
        clock = f"{minutes // 60}:{minutes % 60:02d}" if minutes >= 60 else f"{minutes}"
        parts.append(f"{clock}:{seconds_left:02d} left")
    if counts.failed:
        parts.append(f"{counts.failed:,} failed")
    return "  ".join(parts)


@command(
    "merge",
    *(MergeRequest, _Drawn, Look),
    left_out=("out", "inputs"),
    more=[
        click.Argument(["out"], type=click.Path(), metavar="OUT.sqlite"),
        click.Argument(["inputs"], type=click.Path(), metavar="IN.sqlite...", nargs=-1, required=True),
    ],
)
def merge_command(
    files: Outputs,
    out: str,
    inputs: tuple[str, ...],
    plot: str | None,
    plot_kind: str | None,
    plot_objectives: tuple[str, ...],
) -> None:
    """Join files that `lstmsim sweep --shard` wrote into OUT.sqlite, and write the table next to it, as .csv.

    All must come from the same sweep file, scenario and version. The table is that of a sweep without shards.

    \b
    lstmsim merge results/sweep.sqlite results/sweep-*-of-20.sqlite
    """
    from lstmsim.studies.sweep.run import SUFFIX, merge

    check_suffix("OUT", out, [SUFFIX])
    stem = out[: -len(SUFFIX)]
    pictures = _pictures(plot, plot_kind, plot_objectives, files.look, stem)
    check_outputs(_tables("OUT", "OUT's table", stem, out) | pictures, inputs=inputs)
    with status(f"merging {len(inputs)} files"):
        merged = merge(out, inputs)
    wrong = _explain(merged.path, out, whole=merged.points == merged.total)
    click.echo(merged.to_text())
    for path in [merged.path, *merged.tables]:
        remark(f"wrote {path}")
    if wrong is not None:
        raise wrong
    _draw(merged, pictures, plot_kind, plot_objectives, files.look)
