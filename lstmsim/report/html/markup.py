"""Markup from text, where all text of a user is escaped, and small pictures by hand."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from lstmsim.report import figures_text


class Markup(str):
    """Text that is HTML already; any other text is escaped when it is put into an element."""

    __slots__ = ()

    def __add__(self, other: str) -> Markup:
        """Join both; text that is no markup is escaped."""
        return joined([self, other])


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Join pieces; pieces that are no markup are escaped."""
    return Markup(between.join(map(escaped, parts)))


def escaped(text: str) -> Markup:
    """Write text as HTML.

    Characters that a page may not hold or would not show (controls, halves of letters) become U+FFFD.
    """
    return text if isinstance(text, Markup) else Markup(html.escape(printable(text)))


def printable(text: str) -> str:
    """Give a text with U+FFFD for each character that a page may not hold or would not show."""
    return text if text.isprintable() else "".join(_shown(letter) for letter in text)


def _shown(letter: str) -> str:
    if letter.isprintable() or letter == "\n":
        return letter
    return " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}"


def percent(part: float, whole: float) -> str:
    """Write a share for people; a dash stands for no share."""
    return figures_text.percent(part, whole, "–")


def short(text: str, length: int = 40) -> str:
    """Cut text to at most `length` characters."""
    return figures_text.cut(text, length)


def attributes(values: dict[str, str | float | None]) -> str:
    """Write attributes with a space before each; `None` leaves one out, and a `_` at the end of a name is dropped."""
    pairs = ((name.rstrip("_").replace("_", "-"), value) for name, value in values.items() if value is not None)
    return "".join(
        f' {name}="{escaped(value) if isinstance(value, str) else number_text(value)}"' for name, value in pairs
    )


def number_text(value: float) -> str:
    """Write a coordinate: hundredths at most, no zeros at the end."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def element(name: str, *content: str, **values: str | float | None) -> Markup:
    """Make one element with its end tag."""
    return Markup(f"<{name}{attributes(values)}>{''.join(map(escaped, content))}</{name}>")


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading (empty: none), reached as `#name`."""

    name: str
    title: str
    content: Markup

    @property
    def html(self) -> Markup:
        """The part's markup."""
        if not self.title:
            return element("section", self.content, id=self.name)
        heading = element("h2", self.title, id=f"{self.name}-title")
        return element("section", heading, self.content, id=self.name, aria_labelledby=f"{self.name}-title")


def region(label: str, look: str, *content: str) -> Markup:
    """Make a box whose content may be larger than the box: keys scroll it, and its label is read aloud."""
    return element("div", *content, class_=look, tabindex="0", role="region", aria_label=label)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = (0,), caption: str = "") -> Markup:
    """Make a table; the first column names the row.

    left: numbers of the columns that are set to the left; all others are set to the right.
    caption: the text above the table.
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
    """Make a link of a file's path that no browser takes for another host or a script."""
    try:
        name = quote(path, safe="/", errors="surrogateescape")
    except UnicodeEncodeError:
        name = quote(path, safe="/", errors="replace")
    return "/" + name.lstrip("/") if name.startswith("/") else "./" + name


@dataclass(frozen=True)
class Scale:
    """The mapping of values from `low` to `high` to coordinates from `left` to `right`."""

    low: float
    high: float
    left: float
    right: float

    def __call__(self, value: float) -> float:
        """Give the coordinate of a value."""
        return self.left + (value - self.low) / (self.high - self.low) * (self.right - self.left)


def picture(width: float, height: float, label: str, *content: str) -> Markup:
    """Make a picture that grows and shrinks with the page; `label` says in a sentence what it shows."""
    return element("svg", *content, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=label)


def _titled(title: str) -> list[Markup]:
    return [element("title", title)] if title else []


def rectangle(x: float, y: float, width: float, height: float, look: str, title: str = "") -> Markup:
    """Draw a rectangle of a class; `title` is shown under the pointer."""
    return element("rect", *_titled(title), x=x, y=y, width=width, height=height, class_=look)


def circle(x: float, y: float, radius: float, look: str, title: str = "") -> Markup:
    """Draw a dot of a class; `title` is shown under the pointer."""
    return element("circle", *_titled(title), cx=x, cy=y, r=radius, class_=look)


def line(x1: float, y1: float, x2: float, y2: float, look: str) -> Markup:
    """Draw a straight line of a class."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=look)


def path(data: str, look: str, title: str = "") -> Markup:
    """Draw an outline of a class; `data` is SVG path data, `title` is shown under the pointer."""
    return element("path", *_titled(title), d=data, class_=look)


def words(x: float, y: float, text: str, look: str = "", anchor: str = "start") -> Markup:
    """Write text whose base line begins, has its middle or ends (`anchor`) at a point."""
    return element("text", text, x=x, y=y, class_=look or None, text_anchor=None if anchor == "start" else anchor)


def swatch(look: str) -> Markup:
    """Make a sample of a look for a legend; the legend's text follows it."""
    sample = element("rect", x=0.5, y=0.5, width=17, height=11, class_=f"{look} edge")
    return element("svg", sample, width=18, height=12, viewBox="0 0 18 12", aria_hidden="true", class_="swatch")


def round_ticks(low: float, high: float, most: int = 8, whole: bool = False) -> list[float]:
    """Give multiples of 1, 2 or 5 times a power of ten for an axis, about `most`; whole: only whole numbers."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
    if whole:
        step = max(1.0, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # A power of ten below one is not exact, its quotient is.
    values = [number / round(1 / step) if step < 1 else number * step for number in range(first, last + 1)]
    return [int(value) if value == int(value) else value for value in values]


def _tick(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def bottom_axis(scale: Scale, y: float, what: str, ticks: list[float], above: bool = False, unit: str = "") -> Markup:
    """Draw an axis at height `y` with numbers (and their unit) below or above it, and the text `what` at its end."""
    away = -1 if above else 1
    parts = [line(scale.left, y, scale.right, y, "axis")]
    for tick in ticks:
        at = scale(tick)
        parts += [line(at, y, at, y + 4 * away, "axis")]
        parts += [words(at, y + (-7 if above else 15), _tick(tick) + unit, "tick", "middle")]
    if what:
        parts.append(words(scale.right, y + (-20 if above else 29), what, "tick", "end"))
    return joined(parts)


def level_lines(scale: Scale, upright: Scale, ticks: Sequence[float], unit: str = "") -> Markup:
    """Draw a line across the picture for each tick of the axis `upright`, with its number (and unit) at the left."""
    parts = []
    for tick in ticks:
        height = upright(tick)
        parts.append(line(scale.left, height, scale.right, height, "grid"))
        parts.append(words(scale.left - 6, height + 4, _tick(tick) + unit, "tick", "end"))
    return joined(parts)


def area(scale: Scale, upright: Scale, edges: Sequence[float], levels: Sequence[float]) -> Markup:
    """Draw a quantity over time as columns from zero; `edges`: where they begin and end, one more than `levels`."""
    tops = [round(upright(level), 2) for level in levels]
    return path(steps([scale(edge) for edge in edges], tops, [upright(0)] * len(tops)), "area")


def steps(edges: list[float], tops: list[float], bottoms: list[float]) -> str:
    """Give the outline of columns between neighbouring edges; empty columns are left out, equal ones joined."""
    parts: list[str] = []
    begin = 0
    for at in range(1, len(tops) + 1):
        if at < len(tops) and tops[at] == tops[begin] and bottoms[at] == bottoms[begin]:
            continue
        if tops[begin] != bottoms[begin]:
            left, right = number_text(edges[begin]), number_text(edges[at])
            parts.append(f"M{left} {number_text(tops[begin])}H{right}V{number_text(bottoms[begin])}H{left}z")
        begin = at
    return "".join(parts)
