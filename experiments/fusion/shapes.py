"""One reduce over rows of many shapes: threads fixed as compilers take them, and chosen by shape."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.fusion.study import PASSES, Way, head, line, ways

__all__ = ["ABOUT", "SHAPES", "shapes_table", "verdict"]

ABOUT = (
    "A sum of each row. Fixed: a block for each row, of at most 1,024 threads, as compilers take them. By shape: rows "
    "packed into blocks of 1,024 threads, several tiles a block so that the grid is one wave, long rows split over "
    "blocks. Launch included. A split costs a grid barrier of 3,830 cycles, and its partials are loaded one after the "
    "other, some 200 cycles each. The costed rule counts the barrier against the loads of one thread, 400 cycles "
    "each, and neither the partials nor that loads of several warps overlap. So it still splits 64 rows of 30,000, "
    "and loses."
)
#: Rows and their length. Those of the paper are <750000, 32> and <64, 30000>.
SHAPES = ((750_000, 32), (30_000, 64), (2048, 256), (160, 1024), (64, 30_000), (4, 2048), (1, 8192), (1, 262_144))


def _cut(rows: int, length: int) -> dict[str, Way]:
    """With fixed threads (`xla`), and by shape under each rule for splits; with one reduce, that is the whole pass."""
    return ways("row-sum", {"rows": rows, "length": length}, ("xla",))


def shapes_table(shapes: Sequence[tuple[int, int]]) -> list[str]:
    """A row for each shape."""
    lines = head("rows, length", "fixed", "blocks", "by shape, paper", "blocks", "by shape, costed", "blocks")
    for rows, length in shapes:
        of = _cut(rows, length)
        fixed = of["xla"]
        cells = [f"{fixed.cycles:,}", f"{fixed.blocks:,}"]
        for rule in PASSES:
            cells += [f"{of[rule].cycles:,} ({fixed.cycles / of[rule].cycles:.2f})", f"{of[rule].blocks:,}"]
        lines.append(line(f"{rows:,}, {length:,}", *cells))
    return lines


def verdict(shapes: Sequence[tuple[int, int]]) -> str:
    """Where choosing threads by shape pays, in sentences."""
    said = []
    for rule, words in zip(PASSES, ("the published rule", "the costed one"), strict=True):
        gains = {shape: (of := _cut(*shape))["xla"].cycles / of[rule].cycles for shape in shapes}
        best, worst = max(gains, key=lambda each: gains[each]), min(gains, key=lambda each: gains[each])
        said.append(
            f"by {words} between {gains[worst]:.2f} times ({worst[0]:,} x {worst[1]:,}) and {gains[best]:.2f} times "
            f"({best[0]:,} x {best[1]:,}) as fast as with fixed ones"
        )
    return f"With threads chosen by shape a sum of rows is {' and '.join(said)}."
