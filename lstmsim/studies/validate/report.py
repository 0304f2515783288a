"""A validation as a document and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lstmsim.report.document import Column, Document, Grid, Section, Text, grid
from lstmsim.report.results import Forms, picked, plain
from lstmsim.studies.validate.rows import ClaimRow, Group, Row, Validation, counts_of, topics_of


def _document(validation: Validation) -> Document:
    """A table for every group, the claims, and a last line that counts."""
    claims = [_topic(topic, rows) for topic, rows in topics_of(validation.claims)]
    headline = f"VALIDATION on the engine {validation.engine}"
    return Document.of(headline, *map(_group, validation.groups), *claims, _last_line(validation))


def _group(group: Group) -> Section:
    remarks = [*([group.judgement.sentence] if group.judgement else []), *group.remarks]
    remarks += [f"source: {each}" for each in group.sources]
    for note in dict.fromkeys(row.note for row in group.rows if row.note):
        noted = dict.fromkeys(row.name for row in group.rows if row.note == note)
        remarks.append(f"note on {', '.join(noted)}: {note}")
    table = _table(group) if group.rows else None
    return Section.of(table, group.result, *(remarks if group.rows else []), title=f"{group.key}: {group.title}")


def _table(group: Group) -> Grid:
    """A line for each name, with all its quantities side by side."""
    blind = any(row.null is not None for row in group.rows)
    heads = [head for unit in dict.fromkeys(row.unit for row in group.rows) for head in (unit, "simulated", "error")]
    rows = []
    for name in dict.fromkeys(row.name for row in group.rows):
        own = [row for row in group.rows if row.name == name]
        nulls = [cell for row in own for cell in _null_figures(row)] if blind else []
        rows.append([name, *(cell for row in own for cell in _figures(row)), *nulls])
    return grid([Column("", left=True), *map(Column, [*heads, *(["null model", "error"] if blind else [])])], rows)


def _figures(row: Row) -> tuple[str, str, str]:
    error = "0" if row.exact else f"{100 * row.error:+.2f} %"
    return _figure(row.published, row.unit), _figure(row.simulated, row.unit), error if row.ok else f"{error} !"


def _null_figures(row: Row) -> tuple[str, str]:
    if row.null is None or row.null_error is None:
        return "", ""
    return _figure(row.null, row.unit), f"{round(100 * row.null_error, 2) + 0.0:+.2f} %"


def _figure(value: float, unit: str) -> str:
    digits = {"cycles": 0, "TOPS": 2}.get(unit, 3)
    return f"{value:,.{digits}f}"


def _topic(topic: str, rows: Sequence[ClaimRow]) -> Section:
    texts: list[Text] = []
    for row in rows:
        if row.verdict == "not simulated":
            texts.append(Text(f"  {row.key}: {row.claim}: {row.condition}", hang=4))
            continue
        facts = {"simulated": row.simulated, "assumed": row.condition, "source": row.source}
        texts.append(Text(f"  {row.verdict}: {row.claim} ({row.key})", hang=4))
        texts += [Text(f"    {name}: {text}", hang=6) for name, text in facts.items() if text]
    return Section.of(*texts, title=f"CLAIMS: {topic}")


def _last_line(validation: Validation) -> str:
    """What was promised and how much of it holds, in one line."""
    exact = [group for group in validation.groups if not group.band and not group.factor]
    others = [group for group in validation.groups if group not in exact]
    parts = [f"{group.key} {group.exact} of {group.promised} exact" for group in exact]
    for band in dict.fromkeys(each.promise for each in others):
        own = [group for group in others if group.promise == band]
        parts.append(f"{sum(each.within for each in own)} of {sum(each.promised for each in own)} within {band}")
    return "; ".join([*parts, *([f"claims: {counts_of(validation.claims)}"] if validation.claims else [])])


def _data(validation: Validation) -> dict[str, Any]:
    """The validation as plain data of schema `lstmsim/validation/1`; errors are shares."""
    groups = [
        {
            **picked(group, "key title chip promised exact within mean_error geometric_mean_ratio remarks"),
            "null_model": _judgement(group),
            "rows": [plain(row) | picked(row, "error ok null_error") for row in group.rows],
        }
        for group in validation.groups
    ]
    return {
        "schema": "lstmsim/validation/1",
        "engine": validation.engine,
        "ok": not validation.failures,
        "failures": list(validation.failures),
        "groups": groups,
        "claims": plain(validation.claims),
    }


def _judgement(group: Group) -> dict[str, Any] | None:
    """The group and its null model; None without one."""
    own = group.judgement
    if own is None:
        return None
    return {
        "mean_error": own.mean(own.errors),
        "null_mean_error": own.mean(own.null_errors),
        "worst_error": max(map(abs, own.errors)),
        "null_worst_error": max(map(abs, own.null_errors)),
        **picked(own, "noise noise_from=why evidence_of_size_dependence=evidence"),
    }


def _records(validation: Validation) -> Iterator[dict[str, Any]]:
    """Every row with the key of its group; a claim is a row of `claims`."""
    data = _data(validation)
    for group in data["groups"]:
        yield from ({"group": group["key"], **row} for row in group["rows"])
    yield from ({"group": "claims", **row} for row in data["claims"])


FORMS = Forms(_data, _document, _records)
