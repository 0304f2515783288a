"""Which columns of a flat program name rows of other tables, and a check that these rows are there.

It also holds numbers to their limits (`lstmsim.program.limits`). The fast engine's core checks more than that
(`lstmsim/engines/fast/core/check*.cpp`), for itself and before it runs. This check is for what Python reads of a flat
program that comes from a file or from somebody's own tables, whichever engine runs it.
"""

from __future__ import annotations

import numpy as np

from lstmsim.base.errors import ProgramError
from lstmsim.base.records import record
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import CYCLE_TABLES
from lstmsim.program.limits import check_limits, refuse_row
from lstmsim.program.packed import check_packed
from lstmsim.program.policy import POLICIES

__all__ = ["FLAGS", "LINKS", "Link", "check_rows"]


@record
class Link:
    """A column that names rows of another table.

    table, column: the column.
    target: the other table.
    count: the column that says how many rows in a row are meant; empty: it is one row.
    optional: whether -1 may stand in place of a row; with `count`, in place of the first of no rows.
    instead: a column of rows that a row has instead, unless -1 stands there; empty: none.
    """

    table: str
    column: str
    target: str
    count: str = ""
    optional: bool = False
    instead: str = ""


#: All of them but those that are read within a variant or a body, where the core checks them.
LINKS = (
    Link("cores", "first_unit", "units", "units"),
    Link("cores", "first_held", "held", "held"),
    Link("held", "content", "contents"),
    Link("groups", "first_place", "places", "places"),
    Link("places", "first_seat", "seats", "seats"),
    Link("seats", "core", "cores"),
    Link("profiles", "group", "groups"),
    Link("profiles", "content", "contents", optional=True),
    Link("profiles", "first_variant", "variants", "variants"),
    Link("profiles", "first_wide", "variants", "wides"),
    Link("variants", "first_phase", "phases", "phases"),
    Link("variants", "first_buffer", "buffers", "buffers"),
    Link("phases", "body", "bodies"),
    Link("buffers", "cause", "causes"),
    Link("bodies", "first_word", "words", "words", optional=True),
    Link("bodies", "first_operation", "operations", "operations", instead="first_word"),
    Link("operations", "first_need", "needs", "needs"),
    Link("needs", "cause", "causes"),
    Link("tasks", "profile", "profiles"),
    Link("tasks", "after", "tasks", optional=True),
    *(Link("tasks", column, "gates", optional=True) for column in ("behind", "starts", "ends", "until")),
)

#: Columns that hold 0 or 1.
FLAGS = (
    ("cores", "shared"),
    ("cores", "mirrors"),
    ("profiles", "affine"),
    ("profiles", "preempts"),
    ("phases", "mirrored"),
    ("operations", "frame"),
    ("needs", "mirrored"),
    ("needs", "gate"),
    ("tasks", "key_from_arrival"),
)


def check_rows(flat: FlatProgram) -> None:
    """Raise `ProgramError` for the first row that names a row which does not exist.

    It also refuses numbers beyond their limits, phases without an iteration, flags that are neither 0 nor 1, unknown
    policies, places without a core, two contents with one key, words of packed bodies that name what is not there, and
    names of cycles that are not those of `lstmsim.program.stall_reasons`.

    >>> from lstmsim.program.flat import flat_program
    >>> check_rows(flat_program({**CYCLE_TABLES, "held": [[3]]}))
    Traceback (most recent call last):
    lstmsim.base.errors.ProgramError: table held, row 0: content is 3, and table contents has 0 rows
    """
    for name, rows in CYCLE_TABLES.items():
        if flat.table(name).ravel().tolist() != list(rows):
            raise ProgramError(f"table {name}: its names of cycles are not those of this version of lstmsim")
    for link in LINKS:
        _check_link(flat, link)
    _check_extras(flat)
    for table, column in FLAGS:
        values = flat.column(table, column)
        refuse_row(table, values, (values < 0) | (values > 1), f"{column} is {{}}, not 0 or 1")
    policies = flat.column("units", "policy")
    refuse_row("units", policies, (policies < 0) | (policies >= len(POLICIES)), f"policy is {{}}, of {len(POLICIES)}")
    seats = flat.column("places", "seats")
    refuse_row("places", seats, seats < 1, "seats is {}, not at least 1")
    keys = flat.column("contents", "key")
    again = np.ones(len(keys), dtype=bool)
    again[np.unique(keys, return_index=True)[1]] = False
    refuse_row("contents", keys, again & (keys != -1), "key is {}, and an earlier row has it too")
    check_packed(flat)
    check_limits(flat)


def _check_link(flat: FlatProgram, link: Link) -> None:
    values, rows = flat.column(link.table, link.column), len(flat.table(link.target))
    if link.count:
        counts = flat.column(link.table, link.count)
        # in this order no difference can be too large for 64 bits
        wrong = (values < 0) | (counts < 0) | (values > rows) | (counts > rows - np.clip(values, 0, rows))
        if link.optional:
            wrong &= (values != -1) | (counts != 0)
        if link.instead:
            wrong &= flat.column(link.table, link.instead) == -1
        refuse_row(link.table, counts, counts < 0, f"{link.count} is {{}}, which is no number of rows")
        text = f"{link.column} is {{}}, and its rows do not lie among the {rows} of table {link.target}"
    else:
        wrong = (values < (-1 if link.optional else 0)) | (values >= rows)
        text = f"{link.column} is {{}}, and table {link.target} has {rows} rows"
    refuse_row(link.table, values, wrong, text)


def _check_extras(flat: FlatProgram) -> None:
    """Columns of a phase have a row for each iteration."""
    firsts, columns, repeats = (flat.column("phases", name) for name in ("first_extra", "extras", "repeat"))
    rows = len(flat.table("extras"))
    refuse_row("phases", repeats, repeats < 1, "repeat is {}, not at least 1")
    # as quotients, because products may be too large for 64 bits
    wrong = (columns < 0) | (columns > rows // repeats)
    refuse_row("phases", columns, wrong, f"extras is {{}}, and table extras has {rows} rows")
    wrong = (firsts < 0) | (firsts > rows - columns * repeats)
    refuse_row(
        "phases", firsts, wrong, f"first_extra is {{}}, and its rows do not lie among the {rows} of table extras"
    )
