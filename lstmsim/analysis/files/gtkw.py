"""GTKWave save files: the rows of a trace in groups, with the whole run in the window.

Each core has a group, and so have the memories. A save file belongs to a wave file that holds the variables `busy`,
`state` and `job` of each row (`vcd.py`, `fst.py`).
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

from vcd.gtkw import GTKWSave

from lstmsim.analysis.timeline import MEMORY, Row, Timeline

__all__ = ["groups", "save_file", "scope", "zoom"]

#: GTKWave's window and the columns left of the waves, in pixels. The zoom fills the rest of the window with the waves.
_WINDOW = (1600, 900)
_TREE_PIXELS, _NAMES_PIXELS = 220, 220
#: Pixels of frames, of the margin of the names, and of the scroll bar.
_BESIDE_PIXELS = 120
#: At zoom 0 GTKWave draws one cycle on so many pixels, at zoom -1 two cycles, and so on.
_FRAME_PIXELS = 200


def scope(row: Row) -> str:
    """The scope in a wave file that holds the variables of a row. A memory belongs to no core.

    >>> scope(Row(0, "thread", 1)), scope(Row(2, "tail")), scope(Row(9, "memory", 1))
    ('lstmsim.core0.thread1', 'lstmsim.core2.tail', 'lstmsim.memory_0')
    """
    unit = row.title.replace(" ", "" if row.kind == "thread" else "_")
    return f"lstmsim.{unit}" if row.kind == MEMORY else f"lstmsim.core{row.core}.{unit}"


def groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each core, and those of memories, by the name of the group.

    >>> list(groups([Row(0, "thread", 1), Row(0, "tail"), Row(1, "memory")]))
    ['core 0', 'memory']
    """
    result: dict[str, list[Row]] = {}
    for row in rows:
        result.setdefault(MEMORY if row.kind == MEMORY else f"core {row.core}", []).append(row)
    return result


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
    start, end = timeline.shown
    text = io.StringIO()
    save = GTKWSave(text)
    save.comment(", ".join(filter(None, ("lstmsim: 1 ns = 1 cycle", timeline.shown_text))))
    if dump.isprintable() and '"' not in dump:
        save.dumpfile(dump, abspath=False)
    save.timestart(start)
    save.size(*_WINDOW)
    save.zoom_markers(zoom(end - start))
    text.write(f"[sst_width] {_TREE_PIXELS}\n")
    save.signals_width(_NAMES_PIXELS)
    save.treeopen("lstmsim.")
    for name, rows in groups(timeline.rows).items():
        with save.group(name):
            for row in rows:
                save.trace(f"{scope(row)}.busy", alias=f"{row.title} busy", datafmt="bin")
                save.trace(f"{scope(row)}.state", alias=f"{row.title} state", datafmt="ascii")
                save.trace(f"{scope(row)}.job", alias=f"{row.title} job", datafmt="ascii")
    return text.getvalue()
