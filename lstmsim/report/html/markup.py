"""Markup from text: all text of a user is escaped here, and here only."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from lstmsim.report import figures_text


class Markup(str):
    """Text that is HTML already; any other text is escaped when it is put into an element.

    >>> element("b", Markup("a &amp; b")), element("b", "a & b")
    ('<b>a &amp; b</b>', '<b>a &amp; b</b>')
    """

    __slots__ = ()

    def __add__(self, other: str) -> Markup:
        """Put both one behind the other; text that is no markup is escaped."""
        return joined([self, other])


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Put pieces one behind the other; pieces that are no markup are escaped.

    >>> joined([Markup("<br>"), "<"])
    '<br>&lt;'
    """
    return Markup(between.join(map(escaped, parts)))


def escaped(text: str) -> Markup:
    """Write text as HTML.

    Characters that a page may not hold or would not show (controls, halves of letters) become U+FFFD.

    >>> escaped('<a "b">') == "&lt;a &quot;b&quot;&gt;", escaped(chr(0xD800)) == chr(0xFFFD)
    (True, True)
    """
    if isinstance(text, Markup):
        return text
    if not text.isprintable():
        text = "".join(_shown(letter) for letter in text)
    return Markup(html.escape(text))


def _shown(letter: str) -> str:
    if letter.isprintable() or letter == "\n":
        return letter
    return " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}"


def percent(part: float, whole: float) -> str:
    """Write a share for people; a dash stands for no share.

    >>> percent(1, 3), percent(0, 3)
    ('33.3 %', '–')
    """
    return figures_text.percent(part, whole, "–")


def short(text: str, length: int = 40) -> str:
    """Cut text to at most `length` characters.

    >>> short("a name that is far too long", 10)
    'a name th…'
    """
    return figures_text.cut(text, length)


def attributes(values: dict[str, str | float | None]) -> str:
    """Write attributes with a space before each; `None` leaves one out, and a `_` at the end of a name is dropped.

    >>> attributes({"class_": "a", "x": 1.50, "id": None})
    ' class="a" x="1.5"'
    """
    pairs = ((name.rstrip("_").replace("_", "-"), value) for name, value in values.items() if value is not None)
    return "".join(
        f' {name}="{escaped(value) if isinstance(value, str) else number_text(value)}"' for name, value in pairs
    )


def number_text(value: float) -> str:
    """Write a coordinate: hundredths at most, no zeros at the end.

    >>> number_text(1.50), number_text(200), number_text(1 / 3)
    ('1.5', '200', '0.33')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def element(name: str, *content: str, **values: str | float | None) -> Markup:
    """Make one element with its end tag.

    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    return Markup(f"<{name}{attributes(values)}>{''.join(map(escaped, content))}</{name}>")


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading, reached as `#name`.

    name: of the link.
    title: the heading.
    content: what is below the heading.

    >>> Section("jobs", "Jobs", Markup("<p>none</p>")).html.startswith('<section id="jobs"')
    True
    """

    name: str
    title: str
    content: Markup

    @property
    def html(self) -> Markup:
        """The part's markup."""
        heading = element("h2", self.title, id=f"{self.name}-title")
        return element("section", heading, self.content, id=self.name, aria_labelledby=f"{self.name}-title")


def region(label: str, look: str, *content: str) -> Markup:
    """Make a box whose content may be larger than the box: keys scroll it, and it has a name to be read aloud.

    label: the name.
    look: the box's class.
    content: what is inside.

    >>> region("Jobs", "scroll", "...")
    '<div class="scroll" tabindex="0" role="region" aria-label="Jobs">...</div>'
    """
    return element("div", *content, class_=look, tabindex="0", role="region", aria_label=label)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = (0,), caption: str = "") -> Markup:
    """Make a table; the first column names the row.

    head: names of the columns.
    rows: texts.
    left: numbers of the columns that are set to the left; all others are set to the right.
    caption: the text above the table.

    >>> table(["job", "cycles"], [["a", "7"]]).count("<th")
    4
    """
    lefts = set(left)
    classes = ["l" if at in lefts else None for at in range(len(head))]
    top = "".join(element("th", name, scope="col", class_=classes[at]) for at, name in enumerate(head))
    lines = []
    for row in rows:
        first = element("th", row[0], scope="row", class_=classes[0])
        rest = "".join(element("td", cell, class_=classes[at]) for at, cell in enumerate(row[1:], start=1))
        lines.append(f"<tr>{first}{rest}</tr>")
    body = f"<thead><tr>{top}</tr></thead><tbody>{chr(10).join(lines)}</tbody>"
    return element("table", element("caption", caption) if caption else "", Markup(body))


def link_to(path: str) -> str:
    """Make a link of a file's path that no browser takes for another host or a script.

    >>> link_to("a b/<c>.json"), link_to("//host/c"), link_to("javascript:alert(1)")
    ('./a%20b/%3Cc%3E.json', '/host/c', './javascript%3Aalert%281%29')
    """
    try:
        name = quote(path, safe="/", errors="surrogateescape")
    except UnicodeEncodeError:
        name = quote(path, safe="/", errors="replace")
    return "/" + name.lstrip("/") if name.startswith("/") else "./" + name
