"""A fingerprint of each row of the published tables, so that no edit of a figure goes unnoticed.

After a correction that the source itself asks for: `python -m tests.files.published_rows` writes them anew.
"""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

from lstmsim.files.published import published_folder, table_names

RECORD = Path(__file__).parents[1] / "data" / "published_rows.json"
#: How many of each table's first columns name a row.
NAMED_BY = {"deepbench": 6, "intel_npu": 1, "accelerators": 8, "hardware": 1, "claims": 1, "fusion": 1}

Prints = dict[str, dict[str, str]]


def fields_of(folder: Path, table: str) -> list[list[str]]:
    """Header and rows as they stand in the file; read without the package's own reader."""
    with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def fingerprints(folder: Path, table: str) -> dict[str, str]:
    prints = {}
    for row in fields_of(folder, table):
        name = " ".join(field for field in row[: NAMED_BY[table]] if field)
        prints[name] = hashlib.sha256(json.dumps(row).encode()).hexdigest()[:16]
    return prints


def changes(folder: Path, record: Path = RECORD) -> list[str]:
    """A sentence for each row that is not what was recorded from its source."""
    recorded: Prints = json.loads(record.read_text(encoding="utf-8"))
    changed = []
    for table in table_names():
        expected, there = recorded[table], fingerprints(folder, table)
        changed += [f"{table}.csv: the row {name!r} is missing" for name in expected if name not in there]
        changed += [f"{table}.csv: the row {name!r} is new" for name in there if name not in expected]
        both = [name for name in expected if name in there]
        changed += [f"{table}.csv: the row {name!r} has changed" for name in both if expected[name] != there[name]]
        if not changed and list(expected) != list(there):
            changed.append(f"{table}.csv: the rows stand in another order")
    return changed


if __name__ == "__main__":
    text = json.dumps({table: fingerprints(published_folder(), table) for table in table_names()}, indent=1)
    RECORD.write_text(text + "\n", encoding="utf-8")
