"""Draw the README's picture, and write the results of `lstmsim validate` between markers: groups into README.md, these
and the claims by topic into docs/validation.md, claims of the sources of mechanisms into docs/published.md.

`--check` only compares.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from PIL import Image

import lstmsim
from lstmsim.report.pictures.figures import Picture, settings
from lstmsim.studies.validate.rows import ClaimRow, Judgement, Validation, counts_of, topics_of
from lstmsim.studies.validate.run import validate

README = Path(__file__).resolve().parents[1] / "README.md"
PUBLISHED_PAGE = README.parent / "docs" / "published.md"
VALIDATION_PAGE = README.parent / "docs" / "validation.md"
PICTURE = README.parent / "docs" / "timeline.png"
#: What the picture shows, and `make demo` simulates.
DEMO = README.parent / "experiments" / "scenarios" / "demo.yaml"
#: Keys of claims begin so if their paper or patent describes a mechanism that is built here.
SOURCES = ("patent-", "que-f", "renown-", "remarn-", "gale-", "yan-", "astitch-")


def short_table(validation: Validation) -> str:
    """Give a line for every group, for the README; without a final newline."""
    return _groups_table(validation, ["mean error of a null model"])


def page_section(validation: Validation) -> str:
    """Give the lines of the README, a note on every group, and a line for each topic of the claims."""
    lines = [_groups_table(validation, ["mean error of a null model", "its worst error"]), ""]
    for group in validation.groups:
        spread = group.result.partition("simulated / published ")[2]
        notes = [f"Simulated / published: {spread}"] if spread else []
        notes += [f"{group.judgement.sentence[0].upper()}{group.judgement.sentence[1:]}"] if group.judgement else []
        notes += [f"{each[0].upper()}{each[1:]}" for each in group.remarks]
        text = ". ".join([group.title, *notes, "Source: " + "; ".join(group.sources)])
        lines += textwrap.wrap(
            f"* {text}.", 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    lines += ["", "| claims on | claims | result | sources (`lstmsim validate claims` names them) |"]
    lines.append("| --- | ---: | --- | ---: |")
    for topic, rows in topics_of(validation.claims):
        lines.append(f"| {topic} | {len(rows)} | {counts_of(rows)} | {len({row.source for row in rows})} |")
    return "\n".join(lines)


def _groups_table(validation: Validation, null_columns: Sequence[str]) -> str:
    heads = ["published figures", "agreement", "mean error", "worst error", *null_columns]
    lines = [f"| {' | '.join(heads)} |", f"| --- | --- | ---: | --- |{' ---: |' * len(null_columns)}"]
    for group in validation.groups:
        worst = f"{group.worst.name}, {100 * group.worst.error:+.2f} %" if group.worst else "-"
        cells = [group.title, group.kept, f"{100 * group.mean_error:.2f} %" if group.worst else "0 %", worst]
        blind = group.judgement.null_errors if group.judgement else ()
        nulls = [Judgement.mean(blind), max(map(abs, blind), default=0.0)][: len(null_columns)]
        lines.append(f"| {' | '.join([*cells, *(f'{100 * each:.2f} %' if blind else '-' for each in nulls)])} |")
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


def with_validation(page: str, validation: Validation) -> str:
    """Give the text of the page on validation with the results between its markers."""
    return _between(page, "validation", page_section(validation))


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


def drawn(picture: Picture) -> str:
    """Give a digest of the data that a picture draws: places, colours, hatching and words, but no pixels or fonts."""
    every = [part for axes in picture.axes for part in (axes, *axes.child_axes)]
    artists = [artist for axes in every for artist in (*axes.get_children(), axes.xaxis.label, axes.yaxis.label)]
    artists += [part for legend in picture.legends for part in (*legend.get_patches(), *legend.get_texts())]
    rows = [list(getattr(axes.yaxis.get_major_formatter(), "seq", ())) for axes in every]
    data = [*rows, *(part for artist in artists for part in _parts(artist))]
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def _parts(artist: Artist) -> Iterator[list[Any]]:
    if isinstance(artist, Text) and artist.get_text():
        yield [artist.get_text(), _places(artist.get_position())]
    elif isinstance(artist, Collection):
        colours = [to_hex(each) for each in (*artist.get_facecolor(), *artist.get_edgecolor())]
        yield [colours, artist.get_hatch(), *(_places(path.vertices) for path in artist.get_paths())]
    elif isinstance(artist, Patch):
        yield [to_hex(artist.get_facecolor()), artist.get_hatch(), _places(artist.get_path().vertices)]
    elif isinstance(artist, Line2D):
        yield [to_hex(artist.get_color()), _places(artist.get_xydata())]


def _places(numbers: Any) -> list[str]:
    return [f"{each:.6g}" for each in numpy.ravel(numbers)]


def readme_picture() -> Picture:
    """Draw the picture anew, without writing it."""
    return lstmsim.plot(lstmsim.run(DEMO))


def png_of(picture: Picture) -> bytes:
    """Give a picture as PNG that names the digest of its data."""
    content = io.BytesIO()
    with settings(picture.look.style):
        picture.savefig(content, format="png", dpi=150, metadata={_DIGEST: drawn(picture)})
    return content.getvalue()


#: The name of the digest in the PNG.
_DIGEST = "Drawn"


def digest_in(file: Path) -> str | None:
    """Give the digest of the data that was drawn in a PNG; None if it names none."""
    with Image.open(file) as image:
        digest = image.info.get(_DIGEST)
    return None if digest is None else str(digest)


def main() -> int:
    """Write the files, or compare them; the exit code is 1 if `--check` shows that one is out of date."""
    only_check = "--check" in sys.argv[1:]
    picture = readme_picture()
    if digest_in(PICTURE) != drawn(picture):
        if only_check:
            print(f"{PICTURE} shows other data than is drawn now: run `make readme`", file=sys.stderr)
            return 1
        PICTURE.write_bytes(png_of(picture))
    pages = README, PUBLISHED_PAGE, VALIDATION_PAGE
    readme, figures, table = old = tuple(each.read_text(encoding="utf-8") for each in pages)
    whole = validate()
    new = with_short(readme, whole), with_claims(figures, whole.claims), with_validation(table, whole)
    if only_check:
        return int(old != new)
    for page, text in zip(pages, new, strict=True):
        page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
