"""How alike a hash makes the rows of a group, and how many entries it looks at for that: HBP without a clock."""

from __future__ import annotations

from experiments.sparse_lstm.study import HASHES, REAL, power_law, real
from lstmsim.base.wording import ranged
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.hbp import hashed
from tests.model.sparse.grouping import Grouping, grouping

__all__ = ["ABOUT", "hash_rows", "qualities", "verdict"]

#: Rows of a group: lanes of a warp.
_OMEGA = 32
ABOUT = (
    "80 % pruned, blocks of 512 x 4096 (power law, 4096 x 4096 with 60,000 entries: 512 x 2048), groups of 32 rows. "
    "Deviation: of the rows' lengths in a group, on average (what is saved against no hash). Lockstep: longest row "
    "times rows of all groups, for each entry. Looks of a row: entries of the table that literal probing looks at, "
    "and that a structure of next free entries looks at for the same table; a sort compares about log2 of a block's "
    "rows for each row."
)


def qualities(small: bool = False) -> dict[str, dict[str, Grouping]]:
    """By matrix and hash; `small`: of one real matrix."""
    cases: dict[str, tuple[Csr, int]] = {
        name: (real(name, 0.8), 4096) for name in (("Silero",) if small else list(REAL)[1:])
    }
    if not small:
        cases["power law"] = power_law(entries=60_000), 2048
    return {
        name: {each: grouping(hashed(matrix, 512, columns, _OMEGA, each)) for each in HASHES}
        for name, (matrix, columns) in cases.items()
    }


def hash_rows(by_matrix: dict[str, dict[str, Grouping]]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the table.

    by_matrix: as `qualities` gives it.
    """
    rows = []
    for name, by_hash in by_matrix.items():
        base = by_hash["identity"].deviation
        for each, of in by_hash.items():
            saved = f"{of.deviation:.2f} ({100 * (1 - of.deviation / base):.0f} %)"
            looks = [f"{of.probes:.0f}", f"{of.finds:.1f}"] if of.probes else ["-", "-"]
            compared = f"{of.comparisons:.1f}" if each == "sort" else "-"
            rows.append([f"{name}, {each}", saved, f"{of.lockstep:.2f}", *looks, compared])
    return ["hash", "deviation (saved)", "lockstep", "probes", "finds", "comparisons"], rows


def verdict(by_matrix: dict[str, dict[str, Grouping]]) -> str:
    """What the table says.

    by_matrix: as `qualities` gives it.
    """
    rows = list(by_matrix.values())
    linear = [each["linear"] for each in rows]
    best = all(each["sort"].deviation == min(of.deviation for of in each.values()) for each in rows)
    dearer = all(each["linear"].probes > each["sort"].comparisons for each in rows)
    return (
        f"{'Everywhere' if best else 'Not everywhere'} a sort makes groups most alike. Literal probing looks at "
        f"{ranged(*(f'{pick(of.probes for of in linear):.0f}' for pick in (min, max)))} entries a row (linear), "
        f'{"more than" if dearer else "not always more than"} a sort compares; so "cheaper than sorting" holds for a '
        f"structure of next free entries only, with "
        f"{ranged(*(f'{pick(of.finds for of in linear):.1f}' for pick in (min, max)))}."
    )
