"""The document that a study gives: everything that people read of a result, before it has any form.

A `Document` begins with its headline, the one sentence that a user needs. Sections follow, each with paragraphs, facts
(a name and a sentence) and tables with typed columns. `lstmsim.report.renderings` shows a document as text, Markdown
and HTML. Parts hold values, not their texts, as far as a column can write them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lstmsim.base.records import record
from lstmsim.report.figures_text import percent, three_digits

#: A value of a table; None: there is none.
Cell = str | int | float | None


@record
class Column:
    """A column of a table.

    head: what stands above it.
    key: its name for programs; empty: the head.
    unit: is written behind each number.
    digits: behind the point of fractions; None: three digits in all.
    form: writes a value; None: as a number, texts as they are.
    left: whether it is aligned to the left; else to the right.
    bar: width of a bar in characters; values are then 0 to 1. 0: no bar.
    missing: stands for None.
    meaning: what the values are, a sentence.
    """

    head: str
    key: str = ""
    unit: str = ""
    digits: int | None = None
    form: Callable[[Cell], str] | None = None
    left: bool = False
    bar: int = 0
    missing: str = "-"
    meaning: str = ""

    @property
    def name(self) -> str:
        """Its name for programs."""
        return self.key or self.head

    def text(self, value: Cell) -> str:
        """Write a value.

        >>> Column("cycles").text(1423), Column("ratio", digits=3).text(1 / 3), Column("share", unit="%").text(None)
        ('1,423', '0.333', '-')
        """
        if value is None:
            return self.missing
        if self.bar and not isinstance(value, str):
            return "#" * round(self.bar * value)
        if self.form is not None:
            return self.form(value)
        if isinstance(value, str):
            return value
        whole = isinstance(value, int) or (float(value).is_integer() and self.digits == 0)
        number = (
            f"{value:,.0f}" if whole else three_digits(value) if self.digits is None else f"{value:,.{self.digits}f}"
        )
        return f"{number} {self.unit}" if self.unit else number


@record
class Grid:
    """A table.

    columns: its columns.
    rows: a value for each column.
    title: a sentence above it.
    headed: whether the heads of the columns are shown.
    limit: most rows that people are shown; None: all. Programs get all.
    more: what follows "... and 3 more" where rows are left out.
    repeated: so many first columns are repeated where the others do not fit side by side; 0: nothing is split.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    headed: bool = True
    limit: int | None = None
    more: str = "rows"
    repeated: int = 0

    @property
    def shown(self) -> list[list[str]]:
        """The rows that people are shown, as texts; without the heads."""
        return [
            [each.text(cell) for each, cell in zip(self.columns, row, strict=True)] for row in self.rows[: self.limit]
        ]

    @property
    def left_out(self) -> str:
        """A sentence on the rows that are not shown; empty if all are."""
        count = 0 if self.limit is None else len(self.rows) - self.limit
        return f"... and {count:,} more {self.more}" if count > 0 else ""

    def records(self) -> list[dict[str, Cell]]:
        """All rows for programs, by the names of the columns.

        >>> grid(["<job", "cycles"], [["a", 1423]]).records()
        [{'job': 'a', 'cycles': 1423}]
        """
        return [{each.name: cell for each, cell in zip(self.columns, row, strict=True)} for row in self.rows]


def grid(
    columns: Iterable[str | Column],
    rows: Iterable[Iterable[Any]],
    title: str = "",
    *,
    headed: bool = True,
    limit: int | None = None,
    more: str = "rows",
    repeated: int = 0,
) -> Grid:
    """Make a table, as of `Grid`.

    columns: each a `Column`, or its head in short: `cycles`, and `<job` for one that is aligned to the left.
    """
    made = (
        each if isinstance(each, Column) else Column(each.removeprefix("<"), left=each.startswith("<"))
        for each in columns
    )
    return Grid(tuple(made), tuple(map(tuple, rows)), title, headed, limit, more, repeated)


def accounts(title: str, cycles: Mapping[str, int], whole: int) -> Grid:
    """A table of cycles by name, with their shares of `whole` and their sum."""
    rows = [(name, count, percent(count, whole)) for name, count in cycles.items()]
    return grid([f"<{title}", "", ""], [*rows, ("sum", sum(cycles.values()), "")])


@record
class Facts:
    """Names and texts; an empty name goes on with the one before. width: characters that names take at the left."""

    pairs: tuple[tuple[str, str], ...]
    width: int = 13


def facts(*pairs: tuple[str, str], width: int = 13) -> Facts:
    """Make facts of pairs; pairs without a text are left out."""
    return Facts(tuple(each for each in pairs if each[1]), width)


@record
class Text:
    """A paragraph.

    text: what it says; a newline ends a line.
    kind: `text`, `remark` or `advice`.
    hang: by so many characters further lines are indented.
    """

    text: str
    kind: str = "text"
    hang: int = 0


def remark(text: str, hang: int = 0) -> Text:
    """A sentence on what to bear in mind when the numbers are read."""
    return Text(text, "remark", hang)


def advice(text: str, hang: int = 0) -> Text:
    """A sentence on what a user could do."""
    return Text(text, "advice", hang)


Part = Text | Facts | Grid


@record
class Section:
    """Parts that belong together, below a title (empty: none)."""

    parts: tuple[Part, ...]
    title: str = ""

    @staticmethod
    def of(*parts: Part | str | None, title: str = "") -> Section:
        """Make a section of parts; a text is a paragraph, and None is left out."""
        given = (Text(each) if isinstance(each, str) else each for each in parts if each is not None and each != "")
        return Section(tuple(given), title)


#: What a document is made of: a section, or a part or a text that is a section of its own; None: nothing.
Piece = Section | Part | str | None


@record
class Document:
    """What people read of a result: the one sentence that a user needs, and sections in order."""

    headline: str
    sections: tuple[Section, ...] = ()

    @staticmethod
    def of(headline: str, *sections: Piece) -> Document:
        """Make a document; a part or a text is a section of its own, and what is None or empty is left out."""
        made = (each if isinstance(each, Section) else Section.of(each) for each in sections)
        return Document(headline, tuple(each for each in made if each.parts or each.title))

    @property
    def grids(self) -> list[Grid]:
        """Its tables, in order."""
        return [part for section in self.sections for part in section.parts if isinstance(part, Grid)]
