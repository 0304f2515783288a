"""What does fusing the memory-intensive part of a recurrent network save on a GPU-like device, and where does it lose?

Norms, softmax, gates: what lies between the products of a time step. The pass makes one kernel of each connected part;
beside it stand a kernel for each operation and kernels like those of XLA and TVM, the strongest of which is the
baseline. The published rule for splitting rows stands beside one that counts what a split costs.

Run `python experiments/fusion/run.py` (some minutes); `--write` refreshes expected.md; pictures.py draws.
"""

from __future__ import annotations

import textwrap

from experiments.fusion import beside, grid, shapes

__all__ = ["summary", "text"]


def summary(small: bool = False) -> str:
    """Tables and what they say, as Markdown; `small`: of a few sizes."""
    sizes = [(hidden, batch) for batch in grid.BATCHES for hidden in grid.HIDDEN]
    plain = [(64, 1), (2048, 1), (256, 16), (512, 256)]
    sizes, plain = (sizes[:3], plain[:1]) if small else (sizes, plain)
    ablated, kinds = (some[:2] if small else some for some in (beside.ABLATED, beside.KINDS))
    rows = shapes.SHAPES[::-1][1:3] if small else shapes.SHAPES
    layernorm, tail = grid.GRAPHS
    sections = [
        ("Cycles of a layer-normalised LSTM", grid.ABOUT["cycles"], grid.cycles_table(layernorm, sizes)),
        ("Kernels and bytes of a layer-normalised LSTM", grid.ABOUT["bytes"], grid.bytes_table(layernorm, sizes)),
        ("A plain LSTM", grid.ABOUT["plain"], [*grid.cycles_table(tail, plain), "", *grid.bytes_table(tail, plain)]),
        (
            "Mechanism after mechanism",
            f"{beside.ABOUT['ablation']} {beside.ablation_verdict(ablated)}",
            beside.ablation_table(ablated),
        ),
        ("Other graphs", beside.ABOUT["kinds"], beside.kinds_table(kinds)),
        ("Published counts of kernels", beside.ABOUT["published"], beside.published_table()),
        ("Threads by shape", shapes.ABOUT, shapes.shapes_table(rows)),
        ("Refused, and too large", "", beside.refused()),
    ]
    lines = ["# Fusion of the memory-intensive part", ""]
    lines += textwrap.wrap(f"{grid.verdict(sizes)} {shapes.verdict(rows)}", 120)
    for title, about, table in sections:
        lines += ["", f"## {title}", "", *textwrap.wrap(about, 120, break_on_hyphens=False), "", *table]
    return "\n".join([*lines, ""]).replace("\n\n\n", "\n\n")


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(small) + ("" if small else grid.holds())


if __name__ == "__main__":
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from experiments.run import main

    main("fusion")
