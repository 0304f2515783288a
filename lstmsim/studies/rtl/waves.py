"""One wave file with both: all signals of the RTL, and with them what the simulator says, as a scope of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO

from lstmsim.base.errors import LstmsimError
from lstmsim.base.files import whole_file
from lstmsim.base.records import record
from lstmsim.machines.rtl import Event
from lstmsim.studies.rtl.result import Difference

#: The scope of the simulator's signals.
SCOPE = "lstmsim"
#: Numbers of an issue, in the order of its fields.
_ISSUE = ("thread", "job", "pass", "step", "block", "of_x", "group")
_NUMBER_BITS = 32


@record
class _Signal:
    """A signal of the simulator's scope."""

    core: int
    name: str
    bits: int  # its width; 0: a text


def merge_waves(
    source: str, target: str, testbench: str, events: Sequence[Event], differences: Sequence[Difference]
) -> None:
    """Write the signals of the RTL and of the simulator into one file."""
    values = _values(events, differences)
    with open(source, encoding="utf-8", errors="replace") as lines, whole_file(target) as file:
        codes, cycle_code = _header(lines, file, testbench, list(dict.fromkeys(each for each, _, _ in values)))
        file.write("$dumpvars\n" + "".join(f"{_change(each, None, code)}\n" for each, code in codes.items()) + "$end\n")
        at = _by_cycle(values)
        before = re.compile(rf"b([01]+) {re.escape(cycle_code)}$")
        for line in lines:
            file.write(line)
            hit = before.match(line)
            if hit is not None:
                for signal, value in at.get(int(hit[1], 2), ()):
                    file.write(f"{_change(signal, value, codes[signal])}\n")


_Value = tuple[_Signal, int, int | str | None]


def _values(events: Sequence[Event], differences: Sequence[Difference]) -> list[_Value]:
    """The values of all signals: signal, cycle from which on it holds, value (None: unknown), in the order of time."""
    several = any(len(each.fields) > {"C": 1, "T": 0, "F": 1}[each.kind] for each in events if each.kind in "CTF")
    values: list[_Value] = []
    for each in events:
        core = int(each.fields[-1]) if several else 0
        values += _of_event(each, core)
    if differences:
        values.append((_Signal(-1, "differs", 1), min(each.cycle for each in differences), 1))
    # what ends a value stands before what begins the next in the same cycle
    order = {id(value): place for place, value in enumerate(values)}
    return sorted(values, key=lambda each: (each[1], each[2] is not None and each[2] != 0, order[id(each)]))


def _of_event(event: Event, core: int) -> Iterator[_Value]:
    cycle = event.cycle
    if event.kind == "C":
        yield _Signal(core, "name", 0), cycle, str(event.fields[0])
    elif event.kind == "T":
        yield from _pulse(_Signal(core, "turn", 1), cycle)
    elif event.kind == "I":
        yield from _pulse(_Signal(core, "issue", 1), cycle)
        for name, value in zip(_ISSUE, event.fields, strict=False):
            yield _Signal(core, name, _NUMBER_BITS), cycle, int(value)
            yield _Signal(core, name, _NUMBER_BITS), cycle + 1, None
    elif event.kind == "A":
        yield _Signal(core, f"thread_{event.fields[0]}_job", _NUMBER_BITS), cycle, int(event.fields[1])
    elif event.kind == "F":
        yield from _pulse(_Signal(core, "job_finished", 1), cycle)


def _pulse(signal: _Signal, cycle: int) -> Iterator[_Value]:
    yield signal, cycle, 1
    yield signal, cycle + 1, 0


def _by_cycle(values: Iterable[_Value]) -> Mapping[int, list[tuple[_Signal, int | str | None]]]:
    """The last value of each signal in each cycle in which it has one, where it changes."""
    cycles: dict[int, dict[_Signal, int | str | None]] = {}
    for signal, cycle, value in values:
        cycles.setdefault(cycle, {})[signal] = value
    now: dict[_Signal, int | str | None] = {}
    changes: dict[int, list[tuple[_Signal, int | str | None]]] = {}
    for cycle in sorted(cycles):
        some = [(signal, value) for signal, value in cycles[cycle].items() if now.get(signal, "") != value]
        now.update(some)
        changes[cycle] = some
    return changes


def _change(signal: _Signal, value: int | str | None, code: str) -> str:
    """A line of a dump: a signal has a value from now on; None: none."""
    if signal.bits == 0:
        return f"s{value or '-'} {code}"
    if signal.bits == 1:
        return f"{value or 0}{code}"
    return f"b{'x' if value is None else format(int(value), 'b')} {code}"


def _header(
    lines: Iterator[str], file: IO[str], testbench: str, signals: Sequence[_Signal]
) -> tuple[dict[_Signal, str], str]:
    """Copy the definitions with a scope more; give the code of each new signal, and that of the testbench's `cycle`."""
    kept, taken, scopes, cycle_code = [], set(), list[str](), ""
    for line in lines:
        words = line.split()
        if words[:1] == ["$enddefinitions"]:
            break
        if words[:1] == ["$date"]:
            # equal runs give equal files
            while "$end" not in line:
                line = next(lines)
            continue
        kept.append(line)
        if words[:1] == ["$scope"]:
            scopes.append(words[2])
        elif words[:1] == ["$upscope"]:
            scopes.pop()
        elif words[:1] == ["$var"]:
            taken.add(words[3])
            if words[4] == "cycle" and scopes[-1:] == [testbench]:
                cycle_code = words[3]
    if not cycle_code:
        raise LstmsimError(f"the waves of the RTL have no register 'cycle' in {testbench}")
    free = (f"L{number}" for number in range(10**9))
    codes = {each: next(code for code in free if code not in taken) for each in signals}
    file.writelines(kept)
    file.writelines(f"{line}\n" for line in (*_scope(codes), "$enddefinitions $end"))
    return codes, cycle_code


def _scope(codes: Mapping[_Signal, str]) -> Iterator[str]:
    """The definitions of the simulator's signals, a scope for each core; what belongs to no core stands above."""
    yield f"$scope module {SCOPE} $end"
    for core in sorted({each.core for each in codes}):
        if core >= 0:
            yield f"$scope module core_{core} $end"
        for signal, code in codes.items():
            if signal.core == core:
                kind = "string" if signal.bits == 0 else "wire"
                yield f"$var {kind} {signal.bits or 1} {code} {signal.name} $end"
        if core >= 0:
            yield "$upscope $end"
    yield "$upscope $end"
