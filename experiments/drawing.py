"""What pictures of experiments share: bars of several machines, and a picture as wide as the page of a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lstmsim.report.pictures.figures import drawn, job_style, write_out
from lstmsim.report.styles import Look

PAGE = Look("page")


def bars(
    path: Path,
    groups: Mapping[str, Sequence[float]],
    names: Sequence[str],
    label: str,
    published: Mapping[str, float] | None = None,
) -> Path:
    """Draw a group of bars for each entry; a line at 1, and dashed ones at published figures.

    groups: by name, the value of each of `names`.
    label: of the upright axis.
    published: by one of `names`.
    """
    width = 0.84 / len(names)
    with drawn(path, (7.16, 3.2), look=PAGE) as figure:
        panel = figure.subplots()
        handles = []
        for number, name in enumerate(names):
            places = [at - 0.42 + (number + 0.5) * width for at in range(len(groups))]
            values = [row[number] for row in groups.values()]
            handles.append(panel.bar(places, values, 0.9 * width, color=job_style(number).fill))
            if published and name in published:
                panel.axhline(published[name], color=job_style(number).fill, linestyle="--", linewidth=1.0)
        panel.axhline(1, color="#333333", linewidth=0.8)
        panel.set_xticks(range(len(groups)), list(groups))
        panel.tick_params(axis="x", length=0, rotation=20 if sum(map(len, groups)) > 80 else 0)
        panel.set_ylabel(label)
        panel.grid(axis="y", color="#DDDDDD", linewidth=0.5)
        panel.set_axisbelow(True)
        said = [f"{each} (dashed: published)" if published and each in published else each for each in names]
        figure.name(handles, said)
    return path


def curves(
    path: Path,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    labels: tuple[str, str],
    *,
    base: float | None = None,
    log: bool = False,
) -> Path:
    """Draw a curve for each entry, of pairs (x, y).

    labels: of both axes.
    base: of a logarithmic lower axis.
    log: whether the upright axis is logarithmic.
    """
    with drawn(path, (7.16, 3.4), look=PAGE) as figure:
        panel = figure.subplots()
        handles = []
        for number, points in enumerate(lines.values()):
            look = {"color": job_style(number).fill, "marker": "osD^vP*Xp"[number % 9]}
            x, y = zip(*points, strict=True) if points else ((), ())
            handles += panel.plot(x, y, markersize=4, linewidth=1.2, **look)  # type: ignore[arg-type]
        if base is not None:
            panel.set_xscale("log", base=base)
        if log:
            panel.set_yscale("log")
        panel.xaxis.set_major_formatter("{x:,.10g}")
        write_out(panel.yaxis)
        panel.set_xlabel(labels[0])
        panel.set_ylabel(labels[1])
        panel.grid(color="#DDDDDD", linewidth=0.5)
        panel.set_axisbelow(True)
        figure.name(handles, list(lines))
    return path
