"""The forms that every result has: plain data, text, a table, HTML.

A class of results does not hold its forms: with one argument it names a module of its own room, and that module has the
forms as `FORMS`. The module is imported when a form is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, ClassVar

from lstmsim.base.errors import InputError
from lstmsim.base.records import record

__all__ = ["Forms", "Result", "Table", "flat"]

#: Columns stand below each other whatever style sheet the notebook, or the page that is made of it, has.
_PRE = "font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre; overflow-x: auto"


@record
class Forms:
    """How results of one class are shown.

    data: gives what `--json` prints, plain data that `json.dumps` takes.
    text: gives what the terminal prints.
    records: gives the rows of the result's table, each a mapping from column to value; None: the result is no table.
    html: gives an HTML fragment with everything escaped; None: the text stands in place of it.
    """

    data: Callable[[Any], Mapping[str, Any]]
    text: Callable[[Any], str]
    records: Callable[[Any], Iterable[Mapping[str, Any]]] | None = None
    html: Callable[[Any], str] | None = None


class Result:
    """A result that can be shown in several forms.

    A subclass names its forms like this: `class Report(Result, forms="lstmsim.analysis.report_text")`.

    forms: the module of the same room that has `FORMS`.
    """

    forms_module: ClassVar[str] = ""

    def __init_subclass__(cls, forms: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        if forms:
            cls.forms_module = forms

    @classmethod
    def _forms(cls) -> Forms:
        forms: Forms = import_module(cls.forms_module).FORMS
        return forms

    def to_dict(self) -> dict[str, Any]:
        """Give the result as plain data: what the command prints with `--json -`."""
        return dict(self._forms().data(self))

    def to_text(self) -> str:
        """Give the result as the terminal shows it, without a final newline."""
        return self._forms().text(self)

    def _repr_html_(self) -> str:
        """How a notebook shows the result."""
        forms = self._forms()
        if forms.html is not None:
            return forms.html(self)
        from html import escape

        return f'<pre style="{_PRE}">{escape(forms.text(self))}</pre>'


class Table(Result):
    """A result that is also a table."""

    def to_records(self) -> list[dict[str, Any]]:
        """Give the rows of the table, each a mapping from column to value; nested values have a dotted column."""
        records = self._forms().records
        return [] if records is None else [flat(each) for each in records(self)]

    def to_pandas(self) -> Any:
        """Give the table as a `pandas.DataFrame`, a row for each record.

        `InputError` if pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError:
            text = "to_pandas() needs the extra: pip install 'lstmsim[pandas]'; to_records() gives the rows without it"
            raise InputError(text) from None
        return pandas.DataFrame.from_records(self.to_records())


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Unfold the mappings inside a record into dotted columns.

    record: a row, from column to value.

    >>> flat({"name": "a", "cycles": {"busy": 3, "idle": 1}})
    {'name': 'a', 'cycles.busy': 3, 'cycles.idle': 1}
    """
    columns: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            columns |= {f"{name}.{below}": each for below, each in flat(value).items()}
        else:
            columns[name] = value
    return columns
