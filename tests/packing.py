"""Packs the bodies of a flat program, as far as they can be: the other way round than `lstmsim.program.operations`."""

from __future__ import annotations

from lstmsim.program.flat import FLAT_TABLES, FlatProgram, flat_program
from lstmsim.program.operations import MOST_NEEDS, need_word, operation_word

_OPERATION, _NEED = FLAT_TABLES["operations"], FLAT_TABLES["needs"]


def packable(flat: FlatProgram) -> list[int]:
    """Bodies at which no other phase looks, and whose operations have nothing that a word cannot hold."""
    needs, operations = flat.table("needs"), flat.table("operations")
    phase, lag = needs[:, _NEED.place("phase")], needs[:, _NEED.place("lag")]
    looked_at = set()
    for first, count in flat.table("variants")[:, 2:4].tolist():
        bodies = flat.column("phases", "body")[first : first + count]
        for body in bodies.tolist():
            looked_at |= {int(bodies[other]) for need in _needs(flat, body) if (other := int(phase[need])) >= 0}
    able = []
    for body in range(len(flat.table("bodies"))):
        first, count = flat.table("bodies")[body, :2]
        columns = [operations[first : first + count, _OPERATION.place(name)] for name in ("takes", "frees", "extra")]
        simple = all((column == -1).all() for column in columns) and all(
            phase[need] == -1 and lag[need] == 0 for need in _needs(flat, body)
        )
        if simple and body not in looked_at and first >= 0:
            able.append(body)
    return able


def _needs(flat: FlatProgram, body: int) -> list[int]:
    first, count = flat.table("bodies")[body, :2]
    rows = flat.table("operations")[first : first + count]
    spans = rows[:, [_OPERATION.place("first_need"), _OPERATION.place("needs")]].tolist()
    return [need for begin, number in spans for need in range(begin, begin + number)]


def packed(flat: FlatProgram) -> FlatProgram:
    """The same program with packed bodies where that can be. Rows that nobody names any more stay."""
    tables = {name: flat.table(name).tolist() for name in FLAT_TABLES}
    able, prototypes, shared = packable(flat), {}, {}
    for body in able:
        first, count, *_ = tables["bodies"][body]
        begin = len(tables["words"])
        for row in [list(row) for row in tables["operations"][first : first + count]]:
            first_need, needs = row[_OPERATION.place("first_need")], row[_OPERATION.place("needs")]
            assert needs <= MOST_NEEDS
            # needs of a prototype do not count, so that another number there changes nothing
            row[_OPERATION.place("first_need")] = row[_OPERATION.place("needs")] = 0
            at = prototypes.setdefault(tuple(row), len(tables["operations"]))
            tables["operations"] += [row] if at == len(tables["operations"]) else []
            tables["words"].append([operation_word(at, needs)])
            for need in [list(need) for need in tables["needs"][first_need : first_need + needs]]:
                other, need[_NEED.place("operation")] = need[_NEED.place("operation")], 0
                at = shared.setdefault(tuple(need), len(tables["needs"]))
                tables["needs"] += [need] if at == len(tables["needs"]) else []
                tables["words"].append([need_word(at, other)])
        tables["bodies"][body] = [-1, count, begin, len(tables["words"]) - begin]
    return flat_program(tables)
