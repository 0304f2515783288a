"""Conclusions that hold: the same question again, with the latencies and bandwidths that no source gives at both ends.

A study says how it draws its conclusions from chips; here the chips are changed, one assumption at a time and all of
them together, and a conclusion that flips is followed by simulation to the value at which it does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.machines.target import RATES
from lstmsim.model.scenario import Chip
from lstmsim.report.stability import Assumption, Conclusions, Flip, Stability, percents
from lstmsim.studies.shared.stamp import key_values

#: What changes a chip.
Vary = Callable[[Chip], Chip]
#: Draws the conclusions again, from chips that `Vary` has changed; `InputError` if one cannot be built or refuses.
Ask = Callable[[Vary], Conclusions]


def assumptions(chips: Sequence[Chip], left_out: Collection[str] = ()) -> tuple[Assumption, ...]:
    """Give the latencies and bandwidths of chips that no source gives; those of one machine count once.

    left_out: paths that the study varies itself.

    >>> from lstmsim.files.scenario.scenario_file import load_chip
    >>> [each.path for each in assumptions([load_chip("epyc-7742")])][:2]
    ['remote_cycles_per_line', 'handover_cycles']
    """
    found: dict[tuple[str, str], Assumption] = {}
    for chip in chips:
        for each in key_values(chip):
            numbers = tuple(dict.fromkeys(value for value in each.values if isinstance(value, int | float)))
            if not (each.assumed and each.is_speed and numbers) or each.path in left_out:
                continue
            place, key = (chip.kind, each.path), each.described.key
            made = Assumption(*place, numbers, key.unit, each.described.kind is int, key.low, key.high)
            before = found.get(place, made)
            found[place] = replace(made, values=tuple(dict.fromkeys((*before.values, *numbers))))
    return tuple(found.values())


@lru_cache(4096)
def _assumed(chip: Chip, sources: tuple[tuple[str, str], ...]) -> frozenset[tuple[str, str]]:
    """Kind and path of a chip's assumptions; equal chips may have other `sources`."""
    return frozenset((chip.kind, each.path) for each in key_values(chip) if each.assumed)


def _slower(each: Assumption, share: float) -> float:
    """Give the share by which it moves where the machine gets slower: latencies grow, bandwidths fall."""
    return -share if each.unit in RATES else share


def moved(chip: Any, moves: Sequence[tuple[Assumption, float]]) -> Any:
    """Give a chip with the values of some assumptions moved, as far as they are assumptions of this chip."""
    own = _assumed(chip, tuple(chip.sources.items()))
    for each, share in moves:
        if (each.kind, each.path) not in own:
            continue
        of_cores, *path = ["", *each.path.split(".")] if not each.path.startswith("cores.") else each.path.split(".")
        if of_cores:
            made = {core: _with(core, path, each, share) for core in dict.fromkeys(chip.cores)}
            chip = replace(chip, cores=tuple(made[core] for core in chip.cores))
        else:
            chip = _with(chip, path, each, share)
    return chip


def _with(thing: Any, path: Sequence[str], each: Assumption, share: float) -> Any:
    """A description with the value at a path moved; what is not there stays away."""
    name, *below = path
    value = getattr(thing, name)
    if value is None:
        return thing
    new = _with(value, below, each, share) if below else each.at(value, share)
    return thing if new == value else replace(thing, **{name: new})


def stability(chips: Sequence[Chip], ask: Ask, share: float, left_out: Collection[str] = ()) -> Stability:
    """Ask again with every assumed latency and bandwidth of the chips at both ends, singly and together.

    chips: those on which the conclusions rest.
    ask: draws the conclusions from changed chips.
    share: how far each value is moved, above 0 and below 1.
    left_out: paths that the study varies itself.
    """
    every = assumptions(chips, left_out)
    moving = tuple(each for each in every if each.moves(share) or each.moves(-share))
    base, refused, flips = ask(lambda chip: chip), list[str](), list[Flip]()
    kinds = dict.fromkeys(each.kind for each in moving)
    of_kinds = [tuple(each for each in moving if each.kind == kind) for kind in kinds]
    groups = [some for some in dict.fromkeys([*of_kinds, moving]) if len(some) > 1]
    for some in chain(((each,) for each in moving), groups):
        for end in (-share, share):
            if len(some) == 1 and not some[0].moves(end):
                continue
            try:
                flips += _flips(some, end, base, ask)
            except InputError as error:
                refused.append(f"{_words(some, end)}: {error.mistakes[0]}")
    unmoved = tuple(each.path for each in every if each not in moving)
    return Stability(share, moving, unmoved, base, tuple(flips), tuple(refused))


def _flips(some: Sequence[Assumption], end: float, base: Conclusions, ask: Ask) -> Iterator[Flip]:
    """Find what flips at an end, and the first step at which it does."""
    known: dict[float, Conclusions] = {}

    def at(share: float) -> Conclusions:
        if share not in known:
            signed = [(each, share if len(some) == 1 else _slower(each, share)) for each in some]
            known[share] = ask(lambda chip: moved(chip, signed))
        return known[share]

    levels = some[0].levels(end) if len(some) == 1 else percents(end)
    for question, answer in base.items():
        if at(levels[-1]).get(question) == answer:
            continue
        # The answer holds before `low`, and is another at `high`.
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if at(levels[middle]).get(question) == answer:
                low = middle + 1
            else:
                high = middle
        other = at(levels[high]).get(question, "no answer")
        keys = tuple(each.path for each in some)
        yield Flip(question, answer, other, keys, levels[high], _words(some, levels[high]))


def _words(some: Sequence[Assumption], share: float) -> str:
    if len(some) == 1:
        return some[0].words(share)
    kinds = {each.kind for each in some}
    whose = f" of {kinds.pop()}" if len(kinds) == 1 else ""
    return f"all {len(some)}{whose} together are {100 * abs(share):.0f} % {'slower' if share > 0 else 'faster'}"
