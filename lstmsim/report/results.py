"""The forms that every result has: plain data, a document (text, Markdown, HTML), records for tables.

A class of results does not hold its forms: with one argument it names the `report` module of its package, and that
module has the forms as `FORMS`. It is imported when a form is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from math import isfinite
from operator import attrgetter
from os import PathLike, fspath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from lstmsim.base.errors import InputError
from lstmsim.base.records import record

if TYPE_CHECKING:
    from lstmsim.report.document import Document
    from lstmsim.report.stability import Stability
    from lstmsim.report.stamp import Stamp

#: How objects of a class become plain data: the names of `picked`, or a function that gives what stands for one.
Keys = Mapping[type, str | Callable[[Any], Any]]

_NO_KEYS: Keys = MappingProxyType({})


@record
class Baseline:
    """What the rows of a result are compared with in every chart of its page.

    words: what it is, or why there is none.
    rows: its rows, as numbers from 0.
    """

    words: str
    rows: Sequence[int] = ()


@record
class Forms:
    """How results of one class are shown.

    data: gives what `--json` prints, plain data that `json.dumps` takes.
    document: gives what people read.
    records: gives the rows of the result's table, each a mapping from column to value; None: the result is no table.
    html: gives an HTML fragment with everything escaped; None: that of the document.
    axes: gives the columns of the rows that a page draws across, up and as colours, and `line` if points of a colour
        are joined; None: a page draws no chart.
    baseline: gives what stays in every chart of the page; None: rows are not compared with any of them.
    picture: module and name of the function that draws what a notebook shows below, as `module:function`; "": none.
    headed: whether a page begins with this picture.
    """

    data: Callable[[Any], Mapping[str, Any]]
    document: Callable[[Any], Document]
    records: Callable[[Any], Iterable[Mapping[str, Any]]] | None = None
    html: Callable[[Any], str] | None = None
    axes: Callable[[Any], Sequence[str]] | None = None
    baseline: Callable[[Any], Baseline] | None = None
    picture: str = ""
    headed: bool = False


class Drawn(Protocol):
    """A picture as a notebook shows it."""

    caption: str

    def _repr_png_(self) -> bytes: ...


class Result:
    """A result that can be shown in several forms.

    A subclass names its forms like this: `class Report(Result, forms="lstmsim.analysis.report_text")`.

    forms: the module of the same package that has `FORMS`.
    """

    forms_module: ClassVar[str] = ""

    def __init_subclass__(cls, forms: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        cls.__repr__ = Result.__repr__  # type: ignore[method-assign]  # a dataclass would show every field
        if forms:
            cls.forms_module = forms

    @classmethod
    def _forms(cls) -> Forms:
        forms: Forms = import_module(cls.forms_module).FORMS
        return forms

    @property
    def stamp(self) -> Stamp | None:
        """What its numbers are exact against, and which keys are assumptions; None: no chip was simulated."""
        return None

    @property
    def stability(self) -> Stability | None:
        """Which of its conclusions hold whatever its assumptions are; None: nobody asked."""
        return None

    @property
    def stamps(self) -> tuple[Stamp, ...]:
        """The stamp of each chip that was simulated, the first one first."""
        return () if self.stamp is None else (self.stamp,)

    def compared_with(self) -> list[str]:
        """Say what the cycles were compared with, on a line for each chip."""
        lines = [each.line if len(self.stamps) == 1 else f"{each.chip}: {each.line}" for each in self.stamps]
        return [*lines[:-1], *(f"{each} More: --stamp." for each in lines[-1:])]

    def to_dict(self) -> dict[str, Any]:
        """Give the result as plain data: what the command prints with `--json -`."""
        names = "chip machine preset changed against inside assumed fitted varied clock"
        stamps = [picked(each, names) for each in self.stamps]
        several = {"stamps": stamps} if len(stamps) > 1 else {}
        first = {"stamp": stamps[0]} if stamps else {}
        holds = {} if self.stability is None else {"stability": plain(self.stability)}
        return {**self._forms().data(self), **holds, **first, **several}

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {(self._forms().document(self).headline or self.to_text()).splitlines()[0]}>"

    def to_text(self) -> str:
        """Give the result as the terminal shows it, without a final newline."""
        from lstmsim.report.renderings import text

        return text(stamped(self._forms().document(self), self))

    def to_markdown(self) -> str:
        """Give the result as Markdown, without a final newline."""
        from lstmsim.report.renderings import markdown

        return markdown(stamped(self._forms().document(self), self))

    def to_page(self, title: str = "", command: str = "") -> str:
        """Give the result as one self-contained page to explore, a complete HTML document.

        title: what was done.
        command: how the page came about.
        """
        from lstmsim.report.page.frame import result_page

        forms = self._forms()
        document = stamped(forms.document(self), self)
        records = [] if forms.records is None else [flat(each) for each in forms.records(self)]
        axes = () if forms.axes is None or not records else forms.axes(self)
        base = forms.baseline(self) if forms.baseline is not None and records else None
        baseline = None if base is None else {"words": base.words, "rows": list(base.rows)}
        # a picture of no rows would be an empty frame
        headed = forms.headed and (forms.records is None or records)
        picture = _drawing(forms)(self).to_svg() if headed else ""
        name = title or type(self).__name__
        return result_page(
            document, name, command=command, records=records, axes=axes, baseline=baseline, picture=picture
        )

    def _repr_html_(self) -> str:
        """How a notebook shows the result; its picture is drawn now, when it is shown."""
        forms = self._forms()
        if not forms.picture:
            return self._page(forms)
        return self._page(forms) + in_page(lambda: _drawing(forms)(self))

    def _page(self, forms: Forms) -> str:
        if forms.html is not None:
            return forms.html(self)
        from lstmsim.report.renderings import html

        return html(stamped(forms.document(self), self))


def _drawing(forms: Forms) -> Callable[[Any], Any]:
    """The function that draws."""
    module, _, function = forms.picture.partition(":")
    drawing: Callable[[Any], Any] = getattr(import_module(module), function)
    return drawing


def stamped(document: Document, result: Result) -> Document:
    """Give a document of a result with what holds of its conclusions, and what was compared with, at its end."""
    from lstmsim.report.document import Document, Section, Text

    stamps = Section.of(*(Text(each, hang=2) for each in result.compared_with()))
    holds = None if result.stability is None else result.stability.section
    return Document.of(document.headline, *document.sections, holds, stamps)


class Table(Result):
    """A result that is also a table."""

    def to_records(self) -> list[dict[str, Any]]:
        """Give the rows of the table, each a mapping from column to value; nested values have a dotted column."""
        records = self._forms().records
        return [] if records is None else [flat(each) for each in records(self)]

    def to_pandas(self) -> Any:
        """Give the table as a `pandas.DataFrame`, a row for each record; `InputError` if pandas is not installed."""
        try:
            import pandas
        except ModuleNotFoundError:
            text = "to_pandas() needs the extra: pip install 'lstmsim[pandas]'; to_records() gives the rows without it"
            raise InputError(text) from None
        return pandas.DataFrame.from_records(self.to_records())

    def to_polars(self) -> Any:
        """Give the table as a `polars.DataFrame`, a row for each record; `InputError` if polars is not installed."""
        try:
            import polars
        except ModuleNotFoundError:
            text = "to_polars() needs the extra: pip install 'lstmsim[polars]'; to_records() gives the rows without it"
            raise InputError(text) from None
        # types of columns follow from all rows: whole numbers may come before fractions
        return polars.from_dicts(self.to_records(), infer_schema_length=None)


def in_page(draw: Callable[[], Drawn]) -> str:
    """Give a picture as a part of an HTML fragment; a sentence where it cannot be drawn."""
    from base64 import b64encode

    from lstmsim.report.html.markup import Markup, attributes, element

    try:
        picture = draw()
    except InputError as error:
        return element("p", f"no picture: {error}")
    source = f"data:image/png;base64,{b64encode(picture._repr_png_()).decode()}"
    return Markup(f"<img{attributes({'alt': picture.caption, 'style': 'max-width: 100%', 'src': source})}>")


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Unfold the mappings inside a record into dotted columns."""
    columns: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            columns |= {f"{name}.{below}": each for below, each in flat(value).items()}
        else:
            columns[name] = value
    return columns


def plain(value: Any, keys: Keys = _NO_KEYS) -> Any:
    """Give a frozen result as plain data that `json.dumps` takes.

    Of a dataclass all fields are taken, unless `keys` says otherwise; numbers that are not finite become None.

    value: the result, or a part of one.
    keys: of classes whose data are not simply their fields.

    >>> from fractions import Fraction
    >>> plain({"share": Fraction(1, 2), "cycles": (3, 4)}, {Fraction: "over=numerator denominator"})
    {'share': {'over': 1, 'denominator': 2}, 'cycles': [3, 4]}
    """
    how = keys.get(type(value))
    if isinstance(how, str):
        return picked(value, how, keys)
    if how is not None:
        return plain(how(value), keys)
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(each, keys) for name, each in value.items()}
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name), keys) for each in fields(value) if each.name[0] != "_"}
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist(), keys)
    return [plain(each, keys) for each in value]


def picked(value: object, names: str, keys: Keys = _NO_KEYS) -> dict[str, Any]:
    """Give some attributes of an object as plain data.

    value: the object.
    names: keys in order with spaces between, each with the path of its attribute where that has another name.
    keys: as of `plain`.

    >>> picked(1 + 2j, "real imaginary=imag")
    {'real': 1.0, 'imaginary': 2.0}
    """
    pairs = (each.partition("=") for each in names.split())
    return {key: plain(attrgetter(path or key)(value), keys) for key, _, path in pairs}
