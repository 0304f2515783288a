"""Write the `--help` of every command and the table of `lstmsim validate` into README.md, and the tables of the flat
program format into docs/program_format.md, each between its markers.

`--check` only compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lstmsim.cli.group import COMMANDS, lstmsim
from lstmsim.program.flat import FLAT_TABLES, FORMAT
from lstmsim.program.flat_rows import LINKS, Link
from lstmsim.validation.run import validate
from lstmsim.validation.text import readme_table

README = Path(__file__).resolve().parents[1] / "README.md"
FORMAT_PAGE = README.parent / "docs" / "program_format.md"


def help_section() -> str:
    """Give the help of the program and of every command, as Markdown."""
    program = lstmsim.make_context("lstmsim", [], resilient_parsing=True, terminal_width=100)
    parts = [_block("lstmsim --help", lstmsim.get_help(program))]
    for name in COMMANDS:
        command = lstmsim.get_command(program, name)
        assert command is not None
        context = command.make_context(name, [], parent=program, resilient_parsing=True)
        parts.append(_block(f"lstmsim {name} --help", command.get_help(context)))
    return "\n\n".join(parts)


def _block(line: str, text: str) -> str:
    return f"```text\n$ {line}\n{text}\n```"


def validation_section() -> str:
    """Give the results of a whole validation as a short table."""
    return readme_table(validate())


def with_help(readme: str) -> str:
    """Give the README's text with the present help between its markers."""
    return _between(readme, "help", help_section())


def with_validation(readme: str) -> str:
    """Give the README's text with the table of a validation made now between its markers."""
    return _between(readme, "validation", validation_section())


def tables_section() -> str:
    """Give the tables of the flat program format as Markdown, with the tables whose rows columns name."""
    links = {(each.table, each.column): each for each in (*LINKS, Link("phases", "first_extra", "extras"))}
    parts = [f"This is version {FORMAT}. A row of each table stands for:"]
    for table in FLAT_TABLES.values():
        lines = [f"### `{table.name}`: {table.row}", "", "| column | meaning | rows of |", "| --- | --- | --- |"]
        for column, meaning in table.columns.items():
            link = links.get((table.name, column))
            target = "" if link is None else f"`{link.target}`" + (" or -1" if link.optional else "")
            lines.append(f"| `{column}` | {meaning} | {target} |".replace("|  |", "| |"))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def with_tables(page: str) -> str:
    """Give the text of the page on the flat program format with the present tables between its markers."""
    return _between(page, "tables", tables_section())


def _between(readme: str, name: str, section: str) -> str:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, begins, rest = readme.partition(begin)
    _, closed, after = rest.partition(end)
    if not begins or not closed:
        raise SystemExit(f"a page lacks {begin} and {end}")
    return f"{before}{begin}\n\n{section}\n\n{end}{after}"


def main() -> int:
    """Write both files, or compare them; the exit code is 1 if `--check` shows that one is out of date."""
    readme, page = README.read_text(encoding="utf-8"), FORMAT_PAGE.read_text(encoding="utf-8")
    new = with_validation(with_help(readme)), with_tables(page)
    if "--check" in sys.argv[1:]:
        return int((readme, page) != new)
    README.write_text(new[0], encoding="utf-8")
    FORMAT_PAGE.write_text(new[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
