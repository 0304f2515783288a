"""A validation in the forms that people and scripts read: the terminal, Markdown, the README's table, JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, get_args

from lstmsim.report.results import Forms
from lstmsim.report.tables import table
from lstmsim.studies.validate.rows import ClaimRow, Group, Row, Validation, Verdict
from lstmsim.studies.validate.run import TOPICS

SCHEMA = "lstmsim/validation/1"

_WIDTH = 100
_VERDICTS = get_args(Verdict)


def validation_text(validation: Validation) -> str:
    """Write a table for every group, the claims, and a last line that counts; without a final newline."""
    parts = [f"VALIDATION on the engine {validation.engine}"]
    parts += [_group_text(group) for group in validation.groups]
    parts += [_topic_text(topic, rows) for topic, rows in _by_topic(validation.claims)]
    return "\n\n".join([*parts, _last_line(validation)])


def _group_text(group: Group) -> str:
    """A table with a line for each name: all its quantities beside each other."""
    heading = f"{group.key}: {group.title}"
    if not group.rows:
        return f"{heading}\n{_result(group)}"
    names = dict.fromkeys(row.name for row in group.rows)
    units = dict.fromkeys(row.unit for row in group.rows)
    blind = any(row.null is not None for row in group.rows)
    titles = ("null model", "error") if blind else ()
    cells = [["", *(cell for unit in units for cell in (unit, "simulated", "error")), *titles]]
    for name in names:
        own = [row for row in group.rows if row.name == name]
        beside = [cell for row in own for cell in _null_figures(row)] if blind else []
        cells.append([name, *(cell for row in own for cell in _figures(row)), *beside])
    remarks = [*([group.judgement.sentence] if group.judgement else []), *group.remarks]
    remarks += [f"source: {each}" for each in group.sources]
    for note in dict.fromkeys(row.note for row in group.rows if row.note):
        noted = dict.fromkeys(row.name for row in group.rows if row.note == note)
        remarks.append(f"note on {', '.join(noted)}: {note}")
    lines = [line for each in remarks for line in textwrap.wrap(each, _WIDTH, break_on_hyphens=False)]
    return "\n".join([heading, *table(cells, left=[0]), _result(group), *lines])


def _figures(row: Row) -> tuple[str, str, str]:
    return _figure(row.published, row.unit), _figure(row.simulated, row.unit), _error(row)


def _null_figures(row: Row) -> tuple[str, str]:
    if row.null is None or row.null_error is None:
        return "", ""
    return _figure(row.null, row.unit), f"{round(100 * row.null_error, 2) + 0.0:+.2f} %"


def _figure(value: float, unit: str) -> str:
    digits = {"cycles": 0, "TOPS": 2}.get(unit, 3)
    return f"{value:,.{digits}f}"


def _error(row: Row) -> str:
    text = "0" if row.exact else f"{100 * row.error:+.2f} %"
    return text if row.ok else f"{text} !"


def _band(group: Group) -> str:
    return f"a factor of {group.factor:g}" if group.factor else f"{100 * group.band:g} %"


def _result(group: Group) -> str:
    """How many rows keep what is promised, and the worst."""
    if group.factor:
        text = f"{group.within} of {group.promised} within {_band(group)}; mean ratio {group.mean_ratio:.2f}"
    elif group.band == 0:
        unit = f" in {group.quantity}" if group.quantity else ""
        text = f"{group.exact} of {group.promised} exact{unit}"
    else:
        text = f"{group.within} of {group.promised} within {_band(group)}"
    return text if group.worst is None else f"{text}; worst {group.worst.name}, {100 * group.worst.error:+.2f} %"


def _by_topic(claims: Sequence[ClaimRow]) -> list[tuple[str, list[ClaimRow]]]:
    by_topic = [(topic, [row for row in claims if row.topic == topic]) for topic in TOPICS]
    return [(topic, rows) for topic, rows in by_topic if rows]


def _topic_text(topic: str, rows: Sequence[ClaimRow]) -> str:
    lines = [f"claims: {topic}"]
    for row in rows:
        if row.verdict == "not simulated":
            lines += _wrapped(f"{row.key}: {row.claim}: {row.condition}", "  ")
            continue
        lines += _wrapped(f"{row.verdict}: {row.claim} ({row.key})", "  ")
        lines += _wrapped(f"simulated: {row.simulated}", "    ") if row.simulated else []
        lines += _wrapped(f"assumed: {row.condition}", "    ")
        lines += _wrapped(f"source: {row.source}", "    ") if row.source else []
    return "\n".join(lines)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)


def _last_line(validation: Validation) -> str:
    """What was promised and how much of it holds, in one line."""
    exact = [group for group in validation.groups if not group.band and not group.factor]
    others = [group for group in validation.groups if group not in exact]
    parts: list[str] = []
    parts += [f"{group.key} {group.exact} of {group.promised} exact" for group in exact]
    for band in dict.fromkeys(map(_band, others)):
        own = [group for group in others if _band(group) == band]
        parts.append(f"{sum(each.within for each in own)} of {sum(each.promised for each in own)} within {band}")
    if validation.claims:
        parts.append(f"claims: {_counts(validation.claims)}")
    return "; ".join(parts)


def _counts(claims: Sequence[ClaimRow]) -> str:
    counts = {verdict: sum(row.verdict == verdict for row in claims) for verdict in _VERDICTS}
    return ", ".join(f"{count} {_verdict_word(verdict, count)}" for verdict, count in counts.items() if count)


def _verdict_word(verdict: str, count: int) -> str:
    plural = {"holds": "hold", "fails": "fail"}
    return plural.get(verdict, verdict) if count != 1 else verdict


def validation_markdown(validation: Validation) -> str:
    """Write every row and every claim as Markdown tables; ends with a newline."""
    lines = ["# Validation", "", f"Engine: {validation.engine}. {_last_line(validation)}."]
    for group in validation.groups:
        lines += ["", f"## {group.title}", "", f"Chip `{group.chip}`. {_result(group)}.", ""]
        lines += [f"E{_cell(group.judgement.sentence[1:])}.", ""] if group.judgement else []
        lines += [line for each in group.remarks for line in (f"{_cell(each)}.", "")]
        blind = any(row.null is not None for row in group.rows)
        extra = (" null model | null error |", " ---: | ---: |") if blind else ("", "")
        lines += [f"| row | quantity | unit | published | simulated | error |{extra[0]} band | source |"]
        lines += [f"| --- | --- | --- | ---: | ---: | ---: |{extra[1]} ---: | --- |"]
        for row in group.rows:
            figures = " | ".join((*_figures(row), *(_null_figures(row) if blind else ())))
            cells = f"{_cell(row.name)} | {row.quantity} | {row.unit} | {figures}"
            band = f"factor {row.factor:g}" if row.factor else f"{100 * row.band:g} %"
            lines.append(f"| {cells} | {band} | {_cell(row.source)}{_note(row)} |")
    for topic, rows in _by_topic(validation.claims):
        lines += ["", f"## Claims: {topic}", "", "| claim | condition assumed | simulated | verdict | source |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for each in rows:
            texts = (each.claim, each.condition, each.simulated or "-", each.verdict, each.source or "-")
            lines.append(f"| {' | '.join(map(_cell, texts))} |")
    return "\n".join([*lines, ""])


def _note(row: Row) -> str:
    return f" ({_cell(row.note)})" if row.note else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def readme_table(validation: Validation) -> str:
    """Write the README's table: a line for every group and every topic of the claims; without a final newline."""
    lines = ["| published figures | rows | result | band | source |", "| --- | ---: | --- | ---: | --- |"]
    for group in validation.groups:
        sources = "; ".join(map(_cell, group.sources))
        result = f"{_result(group)}; {group.judgement.sentence}" if group.judgement else _result(group)
        lines.append(f"| {group.title} | {group.promised} | {_cell(result)} | {_band(group)} | {sources} |")
    for topic, rows in _by_topic(validation.claims):
        lines.append(f"| claims: {topic} | {len(rows)} | {_counts(rows)} | - | {_places(rows)} |")
    return "\n".join(lines)


def _places(rows: Sequence[ClaimRow]) -> str:
    """How many sources there are: their titles are too long for a short table."""
    return f"{len({row.source for row in rows})} sources, named by `lstmsim validate claims`"


def validation_json(validation: Validation) -> dict[str, Any]:
    """Give the validation as plain data of schema `lstmsim/validation/1`, ready for `json.dumps`; errors are shares."""
    groups = [
        {
            "key": group.key,
            "title": group.title,
            "chip": group.chip,
            "promised": group.promised,
            "exact": group.exact,
            "within": group.within,
            "mean_ratio": group.mean_ratio,
            "remarks": list(group.remarks),
            "null_model": _judgement_json(group),
            "rows": [
                asdict(row) | {"error": row.error, "ok": row.ok, "null_error": row.null_error} for row in group.rows
            ],
        }
        for group in validation.groups
    ]
    return {
        "schema": SCHEMA,
        "engine": validation.engine,
        "ok": not validation.failures,
        "failures": list(validation.failures),
        "groups": groups,
        "claims": [asdict(row) for row in validation.claims],
    }


def _judgement_json(group: Group) -> dict[str, Any] | None:
    """The group beside its null model; None without one."""
    own = group.judgement
    if own is None:
        return None
    return {
        "mean_error": own.mean(own.errors),
        "null_mean_error": own.mean(own.null_errors),
        "worst_error": max(map(abs, own.errors)),
        "null_worst_error": max(map(abs, own.null_errors)),
        "noise": own.noise,
        "noise_from": own.why,
        "evidence_of_size_dependence": own.evidence,
    }


def _records(validation: Validation) -> Iterator[dict[str, Any]]:
    """Every row with the key of its group; a claim is a row of `claims`."""
    plain = validation_json(validation)
    for group in plain["groups"]:
        yield from ({"group": group["key"], **row} for row in group["rows"])
    yield from ({"group": "claims", **row} for row in plain["claims"])


FORMS = Forms(validation_json, validation_text, _records)
