"""The trace as a table with one line for each span (docs/traces.md)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from lstmsim.analysis.files.columns import Spans, facts, timeline_of, unpacked
from lstmsim.analysis.timeline import STATES, Timeline
from lstmsim.base.csv_table import neutral
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file

#: Unpacked size above which a packed file is not read: about sixty million spans.
LIMIT_BYTES = 4 * 2**30

_LINE = 2**20
#: A text in JSON; and the places in it where a spreadsheet might see the beginning of a formula.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CELL = re.compile(r"([\"',;]\s*)([=+\-@])")

#: `row` is the name of the row, `end` the first cycle after the span, `job_index` the job's place in the scenario.
COLUMNS = ("row", "core", "kind", "index", "start", "end", "cycles", "state", "job", "layer", "step", "job_index")


def _quoted(text: str) -> str:
    """A text as a CSV field on one line. The exact name of a job is in the head of the file."""
    clean = "".join(char if char.isprintable() else " " for char in neutral(text))
    return '"' + clean.replace('"', '""') + '"'


def _fact(value: Any) -> str:
    """A fact as JSON without anything that a spreadsheet would run: `=` may be written as its number."""

    def safe(match: re.Match[str]) -> str:
        return _CELL.sub(lambda each: f"{each[1]}\\u{ord(each[2]):04x}", match[0])

    return _STRING.sub(safe, json.dumps(value, separators=(",", ":")))


def write_csv(timeline: Timeline, path: str) -> None:
    """Write a timeline as CSV in UTF-8, packed by gzip if `path` ends in .gz."""
    rows = [f'"{row.name}",{row.core},{row.label},{row.index}' for row in timeline.rows]
    jobs = [*(_quoted(name) for name in timeline.jobs), ""]
    with whole_file(path, "wz" if path.lower().endswith(".gz") else "w") as file:
        for key, value in facts(timeline).items():
            file.write(f"# {key}: {_fact(value)}\n")
        file.write(",".join(COLUMNS) + "\n")
        for row, start, end, state, job, layer, step in timeline.spans():
            file.write(f"{rows[row]},{start},{end},{end - start},{STATES[state]},{jobs[job]},{layer},{step},{job}\n")


def read_csv(path: str) -> Timeline:
    """Read the timeline from a file of `write_csv`; `InputError` with the line if the file is none of them."""
    with unpacked(path, LIMIT_BYTES, "CSV; cut out a window") as source:
        lines = io.TextIOWrapper(source, encoding="utf-8-sig", newline="")
        try:
            known, first = _head(path, lines)
            # Lines are bounded, because a line without an end would fill the memory.
            others = iter(lambda: lines.readline(_LINE), "")
            return timeline_of(path, known, _spans(path, known, csv.reader(chain([first], others), strict=True)))
        except UnicodeDecodeError:
            raise InputError(Mistake(path, "not UTF-8 text")) from None


def _head(path: str, lines: io.TextIOWrapper) -> tuple[dict[str, Any], str]:
    """The facts in the comment lines, and the first line after them."""
    known: dict[str, Any] = {}
    while (line := lines.readline(2**26)).startswith("#"):
        key, _, value = line[1:].strip().rstrip(",").partition(":")
        try:
            known[key.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            sentence = f"line {len(known) + 1}: expected `# key: value`, got {line[:60]!r}"
            raise InputError(Mistake(path, sentence)) from None
    return known, line


def _spans(path: str, known: dict[str, Any], reader: Iterator[list[str]]) -> Spans:
    spans = Spans()
    states = {state: number for number, state in enumerate(STATES)}
    listed = known.get("rows")
    try:
        rows = {(str(core), kind, str(index)): number for number, (core, kind, index) in enumerate(listed or ())}
        heading = next(reader, [])
        if tuple(heading) != COLUMNS:
            sentence = f"not a trace that lstmsim wrote (expected the columns {', '.join(COLUMNS)})"
            raise InputError(Mistake(path, sentence))
        for cells in reader:
            _, core, kind, index, start, end, _, state, _, layer, step, job = cells
            row = rows[core, kind, index]
            spans.add(row, int(start), int(end), states[state], int(job), int(layer), int(step))
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError, csv.Error) as error:
        place = f"line {len(known) + len(spans) + 2}"
        raise InputError(Mistake(path, f"{place}: not a span of this trace, or cut short ({error!s:.60})")) from None
    return spans
