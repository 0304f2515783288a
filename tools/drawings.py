"""Draw the machines: `python tools/drawings.py` writes docs/drawings/*.svg; `--check` only compares.

A drawing is boxes and arrows. Letters are those of the reader; grounds are white, so that it can be read on dark pages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "drawings"
#: Fills: memories, what multiplies, what works on elements, control, what is outside.
MEMORY, ARRAY, TAIL, CONTROL, OUTSIDE = "#E7EEF7", "#CFE3D4", "#F7E6C8", "#EDE3F3", "#F2F2F2"


class Drawing:
    """Boxes, arrows and texts, which become SVG."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title = (width, height), title
        self.parts: list[str] = []

    def box(self, x: float, y: float, w: float, h: float, text: str = "", fill: str = "white", size: int = 13) -> None:
        """A box with lines of text in its middle."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="4" fill="{fill}" stroke="#444"/>'
        )
        lines = text.split("\n") if text else []
        top = y + h / 2 - (len(lines) - 1) * size * 0.62 + size * 0.36
        for number, line in enumerate(lines):
            self.text(x + w / 2, top + number * size * 1.24, line, size)

    def frame(self, x: float, y: float, w: float, h: float, text: str) -> None:
        """A dashed frame around parts, with its name at the top left."""
        rect = f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6"'
        self.parts.append(f'{rect} fill="none" stroke="#888" stroke-dasharray="5 4"/>')
        self.text(x + 8, y + 17, text, 12, "start", "#555")

    def text(self, x: float, y: float, text: str, size: int = 13, anchor: str = "middle", ink: str = "#222") -> None:
        """A line of text."""
        place = f'x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{ink}"'
        self.parts.append(f"<text {place}>{escape(text)}</text>")

    def cores(self, count: int, pitch: float, *frame: float) -> Iterator[float]:
        """Frames of cores side by side, y, width and height each; gives where each begins."""
        y, w, h = frame
        for number in range(count):
            x = 24 + number * pitch
            self.frame(x, y, w, h, "core n" if number == count - 1 else f"core {number}")
            yield x

    def arrow(self, *points: tuple[float, float], label: str = "", at: tuple[float, float] | None = None) -> None:
        """An arrow through points; at: where its label stands."""
        line = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f'<polyline points="{line}" fill="none" stroke="#444" stroke-width="1.4" marker-end="url(#a)"/>'
        )
        if label:
            x, y = at or ((points[0][0] + points[1][0]) / 2, points[0][1] - 6)
            self.text(x, y, label, 12, ink="#333")

    @property
    def svg(self) -> str:
        """The file's text."""
        width, height = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="Helvetica, Arial, sans-serif" role="img" aria-label="{escape(self.title)}">'
        )
        marker = (
            '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0,0 L8,4 L0,8 z" fill="#444"/></marker></defs>'
        )
        ground = f'<rect width="{width}" height="{height}" fill="white"/>'
        return "\n".join([head, f"<title>{escape(self.title)}</title>", marker, ground, *self.parts, "</svg>\n"])


def column() -> Drawing:
    """The column-wise NPU: threads, array, adder trees, accumulators, tail."""
    d = Drawing(860, 400, "A core of the column-wise NPU")
    d.frame(8, 8, 844, 384, "core")
    for number, name in enumerate(("thread 0", "thread 1")):
        d.box(24, 60 + 62 * number, 104, 50, f"{name}\nx, h, c", MEMORY)
    d.box(24, 196, 104, 44, "thread policy", CONTROL)
    d.text(76, 262, "coarse: goes on with", 11, ink="#555")
    d.text(76, 277, "another on a hazard", 11, ink="#555")
    d.box(178, 300, 250, 44, "weights, interleaved by gate", MEMORY)
    d.frame(168, 36, 270, 250, "array: ep x vp multipliers")
    for row in range(4):
        for element in range(5):
            d.box(184 + element * 36, 64 + row * 44, 28, 28, "×", ARRAY, 15)
        d.box(372, 64 + row * 44, 54, 28, "tree", ARRAY, 12)
        d.arrow((356, 78 + row * 44), (371, 78 + row * 44))
        d.arrow((426, 78 + row * 44), (463, 78 + row * 44))
    d.text(264, 256, "ep elements of [x, h]", 12)
    d.text(303, 274, "a tile a cycle; vp rows of the gate matrix", 11, ink="#555")
    d.arrow((303, 300), (303, 287))
    d.arrow((128, 85), (167, 85))
    d.arrow((128, 147), (150, 147), (150, 100), (167, 100))
    d.box(464, 60, 78, 160, "accumu-\nlators:\nbanks of\neach thread", MEMORY, 12)
    d.text(503, 240, "CAT-n: a tree gives", 11, ink="#555")
    d.text(503, 255, "1, 2, ... n sums", 11, ink="#555")
    d.arrow((542, 140), (577, 140))
    d.box(578, 114, 70, 52, "adapter", CONTROL)
    d.arrow((648, 140), (679, 140))
    d.frame(672, 36, 168, 250, "tail: tail_width units")
    d.box(690, 66, 132, 44, "sigmoid, tanh", TAIL)
    d.box(690, 122, 132, 44, "products, sums", TAIL)
    d.box(690, 178, 132, 44, "round (quantize)", TAIL)
    d.arrow((756, 110), (756, 121))
    d.arrow((756, 166), (756, 177))
    d.text(716, 252, "the graph of the cell,", 11, "start", "#555")
    d.text(716, 267, "a row block in turn", 11, "start", "#555")
    d.arrow(
        (704, 222),
        (704, 368),
        (76, 368),
        (76, 285),
        label="h and c of this step: what the next step waits for (hazard)",
        at=(416, 362),
    )
    return d


def row() -> Drawing:
    """Row-wise NPUs: a matrix-vector unit of tiles, and a vector pipe in order."""
    d = Drawing(860, 320, "A core of the row-wise NPU")
    d.frame(8, 8, 844, 304, "core")
    d.box(24, 40, 118, 54, "instructions\nto all decoders", CONTROL, 12)
    d.text(83, 112, "one every", 11, ink="#555")
    d.text(83, 127, "dispatch_cycles", 11, ink="#555")
    d.box(24, 150, 118, 54, "vectors in the\ntiles: x, h", MEMORY, 12)
    d.frame(184, 36, 262, 204, "matrix-vector unit (MVU)")
    for number in range(3):
        d.box(200, 62 + number * 50, 116, 42, "tile: engines x\nlanes multipliers", ARRAY, 11)
        d.arrow((316, 83 + number * 50), (347, 83 + number * 50))
    d.box(348, 62, 82, 142, "sums of\nthe tiles,\naccumu-\nlators", MEMORY, 12)
    d.text(315, 228, "starts when the whole vector is there", 11, ink="#555")
    d.arrow((142, 67), (183, 67))
    d.arrow((142, 177), (183, 177))
    d.box(200, 252, 230, 28, "weights in each tile", MEMORY, 12)
    d.arrow((315, 252), (315, 241))
    d.arrow((446, 135), (489, 135))
    d.frame(480, 36, 360, 180, "vector pipe: vector_lanes elements a cycle, in order")
    names = ("eVRF:\nregisters", "MFU0", "MFU1", "loader")
    for number, text in enumerate(names):
        d.box(490 + number * 88, 108, 74, 54, text, (MEMORY, TAIL, TAIL, CONTROL)[number], 12)
        if number < 3:
            d.arrow((564 + number * 88, 135), (577 + number * 88, 135))
    d.text(660, 190, "each MFU: activation, sum, product", 11, ink="#555")
    d.arrow((791, 162), (791, 296), (83, 296), (83, 205))
    d.text(620, 290, "h goes back to the tiles: the next product waits (hazard)", 12, ink="#333")
    return d


def parallel() -> Drawing:
    """The GPU-like device: cores with warps, a cache each, partitions of the second level, DRAM."""
    d = Drawing(860, 330, "The parallel device")
    d.box(24, 24, 812, 34, "launch: blocks of a kernel are dealt to cores in waves", CONTROL)
    for x in d.cores(3, 276, 78, 260, 150):
        for warp in range(4):
            d.box(x + 14 + warp * 38, 104, 30, 34, "w", MEMORY)
        d.text(x + 210, 126, "warps: streams", 11, ink="#555")
        d.box(x + 14, 148, 74, 34, "issue", CONTROL)
        d.box(x + 96, 148, 74, 34, "alu, fma, sfu", ARRAY, 11)
        d.box(x + 178, 148, 68, 34, "load/store", TAIL, 11)
        d.box(x + 14, 190, 150, 28, "shared memory", MEMORY, 12)
        d.box(x + 178, 190, 68, 28, "L1", MEMORY, 12)
        d.arrow((x + 130, 58), (x + 130, 77))
        d.arrow((x + 212, 218), (x + 212, 247))
    d.box(24, 248, 812, 30, "second-level cache: partitions, each with its port", MEMORY)
    d.arrow((430, 278), (430, 293))
    d.box(24, 294, 812, 28, "DRAM: a bandwidth and a latency", OUTSIDE)
    return d


def multicore() -> Drawing:
    """The multi-core CPU: cores with private caches, domains with a shared cache, sockets with a memory."""
    d = Drawing(860, 330, "The multi-core CPU")
    d.box(24, 20, 812, 34, "plan of threads: M x N x K is cut; threads along K add to the same results", CONTROL)
    for x in d.cores(4, 206, 70, 194, 116):
        d.box(x + 12, 96, 80, 34, "vector units", ARRAY, 12)
        d.box(x + 102, 96, 80, 34, "pack", TAIL, 12)
        d.box(x + 12, 140, 80, 34, "L1", MEMORY)
        d.box(x + 102, 140, 80, 34, "L2", MEMORY)
        d.arrow((x + 97, 54), (x + 97, 69))
        d.arrow((x + 142, 174), (x + 142, 207))
    d.box(24, 208, 400, 32, "last-level cache of some cores", MEMORY)
    d.box(436, 208, 400, 32, "last-level cache of the others", MEMORY)
    d.arrow((224, 240), (224, 261))
    d.arrow((636, 240), (636, 261))
    d.box(24, 262, 812, 32, "memory domains: a bandwidth and a latency each; lines move between caches", OUTSIDE)
    d.text(
        430,
        315,
        "waits: memory (a line is on its way), contention (another thread adds), barrier (others have not come)",
        12,
        ink="#555",
    )
    return d


#: The drawing of each machine, by the name of its file.
DRAWINGS: Mapping[str, Callable[[], Drawing]] = {
    "column": column,
    "row": row,
    "parallel": parallel,
    "multicore": multicore,
}


def stale(folder: Path = FOLDER) -> list[str]:
    """Name the files that are not what is drawn now."""
    files = {f"{name}.svg": make().svg for name, make in DRAWINGS.items()}
    return [name for name, text in files.items() if not _is(folder / name, text)]


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def main(arguments: Iterable[str]) -> int:
    """Write the drawings, or compare them."""
    if "--check" in arguments:
        return int(bool(stale()))
    FOLDER.mkdir(exist_ok=True)
    for name, make in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(make().svg, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
