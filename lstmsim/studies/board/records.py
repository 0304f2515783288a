"""Records of results, as a board keeps them, turned into the events of a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lstmsim.machines.rtl import Event


def parts_of(record: Mapping[str, Any]) -> int:
    """Words of 32 bits of a record."""
    return -(-int(record["bits"]) // 32)


def events_of(record: Mapping[str, Any], records: Sequence[int]) -> tuple[Event, ...]:
    """Give the events of some records, in the order of a log.

    record: the fields of a record, as `board/board.json` has them.
    records: each as a whole number.
    """
    return tuple(event for each in records for event in _events(record, each))


class _Bits:
    """The fields of a number, taken off its lowest bits."""

    def __init__(self, number: int) -> None:
        self._number = number

    def take(self, width: int) -> int:
        low = self._number & ((1 << width) - 1)
        self._number >>= width
        return low


def _events(record: Mapping[str, Any], number: int) -> Iterator[Event]:
    bits, contexts, cores = _Bits(number), record["contexts"], record["cores"]
    cycle = bits.take(32)
    threads = contexts // cores
    places = [divmod(place, threads) for place in range(contexts)]

    def jobs() -> list[tuple[int, int, int]]:
        """Core, thread and job of each context that is meant."""
        meant = bits.take(contexts)
        named = [bits.take(record["job_bits"]) for _ in places]
        return [
            (*place, job) for index, (place, job) in enumerate(zip(places, named, strict=True)) if meant >> index & 1
        ]

    def fields(core: int, *values: int | str) -> tuple[int | str, ...]:
        return values if cores == 1 else (*values, core)

    admitted, ended = jobs(), jobs()
    valid = bits.take(len(record["memories"]))
    vectors = [{name: bits.take(width) for name, width in record["vector"]} for _ in record["memories"]]
    for index, (memory, own) in enumerate(zip(record["memories"], vectors, strict=True)):
        if valid >> index & 1 and memory["slot"] == 0:
            digits = f"{own['word']:0{memory['digits']}x}"
            said = (own["job"], record["pass_of_row"][own["row"]], own["step"], own["unit"], own["count"], digits)
            yield Event("H", cycle, fields(memory["core"], *said))
    for core, _, job in ended:
        yield Event("F", cycle, fields(core, job))
    for core, thread, job in sorted(admitted, key=lambda each: each[2]):
        yield Event("A", cycle, fields(core, thread, job))
