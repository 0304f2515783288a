"""Write the results of `lstmsim validate` into README.md and docs/validation.md, and its claims of the sources of
mechanisms into docs/published.md, between markers.

`--check` only compares.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lstmsim.studies.validate.rows import ClaimRow, Validation, counts_of, topics_of
from lstmsim.studies.validate.run import validate

README = Path(__file__).resolve().parents[1] / "README.md"
PUBLISHED_PAGE = README.parent / "docs" / "published.md"
VALIDATION_PAGE = README.parent / "docs" / "validation.md"
#: Keys of claims begin so if their paper or patent describes a mechanism that is built here.
SOURCES = ("patent-", "que-f", "renown-", "remarn-", "gale-", "yan-", "astitch-")


def validation_section(validation: Validation | None = None) -> str:
    """Give the results of a whole validation as a short table; None: one that is made now."""
    return readme_table(validation or validate())


def short_table(validation: Validation) -> str:
    """Give a line for every group, for the README."""
    lines = ["| published figures | rows | result |", "| --- | ---: | --- |"]
    lines += [f"| {each.title} | {each.promised} | {each.result} |" for each in validation.groups]
    return "\n".join(lines)


def readme_table(validation: Validation) -> str:
    """Give a line for every group and every topic of the claims; without a final newline."""
    lines = ["| published figures | rows | result | band | source |", "| --- | ---: | --- | ---: | --- |"]
    for group in validation.groups:
        result = f"{group.result}; {group.judgement.sentence}" if group.judgement else group.result
        cells = (group.title, str(group.promised), result, group.promise, "; ".join(group.sources))
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    for topic, rows in topics_of(validation.claims):
        # Titles of sources are too long for a short table.
        sources = f"{len({row.source for row in rows})} sources, named by `lstmsim validate claims`"
        lines.append(f"| claims: {topic} | {len(rows)} | {counts_of(rows)} | - | {sources} |")
    return "\n".join(lines)


def claims_section(claims: Sequence[ClaimRow]) -> str:
    """Give the claims of the sources of mechanisms as a table."""
    lines = ["| claim | published | `lstmsim validate claims` prints | assumed, or why it is missing |"]
    lines += ["| --- | --- | --- | --- |"]
    for each in claims:
        if each.key.startswith(SOURCES):
            printed = f"{each.simulated} ({each.verdict})" if each.simulated else f"**{each.verdict}**"
            lines.append(f"| `{each.key}` | {each.claim} | {printed} | {each.condition} |")
    return "\n".join(lines)


def with_validation(readme: str, validation: Validation | None = None) -> str:
    """Give the page's text with the table of a validation between its markers; None: one that is made now."""
    return _between(readme, "validation", validation_section(validation))


def with_short(readme: str, validation: Validation) -> str:
    """Give the README's text with the lines of a validation between its markers."""
    return _between(readme, "validation", short_table(validation))


def with_claims(page: str, claims: Sequence[ClaimRow]) -> str:
    """Give the text of the page on published figures with the claims between its markers."""
    return _between(page, "claims", claims_section(claims))


def _between(readme: str, name: str, section: str) -> str:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, begins, rest = readme.partition(begin)
    _, closed, after = rest.partition(end)
    if not begins or not closed:
        raise SystemExit(f"a page lacks {begin} and {end}")
    return f"{before}{begin}\n\n{section}\n\n{end}{after}"


def main() -> int:
    """Write the files, or compare them; the exit code is 1 if `--check` shows that one is out of date."""
    pages = README, PUBLISHED_PAGE, VALIDATION_PAGE
    readme, figures, table = old = tuple(each.read_text(encoding="utf-8") for each in pages)
    whole = validate()
    new = with_short(readme, whole), with_claims(figures, whole.claims), with_validation(table, whole)
    if "--check" in sys.argv[1:]:
        return int(old != new)
    for page, text in zip(pages, new, strict=True):
        page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
