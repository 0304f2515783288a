"""Write the `--help` of every command and the table of `lstmsim validate` into README.md, each between its markers.

`--check` only compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lstmsim.cli.group import COMMANDS, lstmsim
from lstmsim.validation.run import validate
from lstmsim.validation.text import readme_table

README = Path(__file__).resolve().parents[1] / "README.md"


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


def _between(readme: str, name: str, section: str) -> str:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, begins, rest = readme.partition(begin)
    _, closed, after = rest.partition(end)
    if not begins or not closed:
        raise SystemExit(f"README.md lacks {begin} and {end}")
    return f"{before}{begin}\n\n{section}\n\n{end}{after}"


def main() -> int:
    """Write the README, or compare it; the exit code is 1 if `--check` shows that it is out of date."""
    old = README.read_text(encoding="utf-8")
    new = with_validation(with_help(old))
    if "--check" in sys.argv[1:]:
        return int(old != new)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
