"""GTKWave save files: the rows of a trace in one group for each core, with the whole run in the window.

A save file belongs to a wave file that holds the variables `busy`, `state` and `job` of each row (`vcd.py`, `fst.py`).
"""

from __future__ import annotations

import io
import math

from vcd.gtkw import GTKWSave

from lstmsim.formats.traces.columns import extent
from lstmsim.metrics.timeline import Row, Timeline

__all__ = ["save_file", "scope", "zoom"]

#: GTKWave's window and the columns left of the waves, in pixels. The zoom fills the rest of the window with the waves.
_WINDOW = (1600, 900)
_TREE_PIXELS, _NAMES_PIXELS = 220, 220
#: Pixels of frames, of the margin of the names, and of the scroll bar.
_BESIDE_PIXELS = 120
#: At zoom 0 GTKWave draws one cycle on so many pixels, at zoom -1 two cycles, and so on.
_FRAME_PIXELS = 200


def scope(row: Row) -> str:
    """The scope in a wave file that holds the variables of a row.

    >>> scope(Row(0, "thread", 1)), scope(Row(2, "tail"))
    ('lstmsim.core0.thread1', 'lstmsim.core2.tail')
    """
    unit = row.title.replace(" ", "" if row.kind == "thread" else "_")
    return f"lstmsim.core{row.core}.{unit}"


def zoom(cycles: int) -> float:
    """GTKWave's zoom at which `cycles` cycles fill the width of the waves.

    Source: calczoom and service_zoom_fit of GTKWave 3.3 (src/analyzer.c, src/zoombuttons.c).

    >>> zoom(1040 * 2), zoom(1)
    (-8.643856189774725, 0.0)
    """
    pixels = _WINDOW[0] - _TREE_PIXELS - _NAMES_PIXELS - _BESIDE_PIXELS
    return min(0.0, -math.log2(max(cycles, 1) * _FRAME_PIXELS / pixels))


def save_file(timeline: Timeline, dump: str) -> str:
    """The text of a save file.

    dump: name of the wave file, which is in the same folder.
    """
    start, end = extent(timeline)
    text = io.StringIO()
    save = GTKWSave(text)
    save.comment("lstmsim: 1 ns = 1 cycle")
    if dump.isprintable() and '"' not in dump:
        save.dumpfile(dump, abspath=False)
    save.timestart(start)
    save.size(*_WINDOW)
    save.zoom_markers(zoom(end - start))
    text.write(f"[sst_width] {_TREE_PIXELS}\n")
    save.signals_width(_NAMES_PIXELS)
    save.treeopen("lstmsim.")
    for core in dict.fromkeys(row.core for row in timeline.rows):
        with save.group(f"core {core}"):
            for row in timeline.rows:
                if row.core == core:
                    label = row.title
                    save.trace(f"{scope(row)}.busy", alias=f"{label} busy", datafmt="bin")
                    save.trace(f"{scope(row)}.state", alias=f"{label} state", datafmt="ascii")
                    save.trace(f"{scope(row)}.job", alias=f"{label} job", datafmt="ascii")
    return text.getvalue()
