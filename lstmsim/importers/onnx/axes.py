"""Axes of a value by their meaning, sizes that may be symbols, and what a `Reshape` does to both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lstmsim.importers.onnx.graph import Scope

__all__ = ["Axis", "Numbers", "Part", "Size", "View", "fixed", "quotient", "regrouped", "times"]

#: A factor, and the symbols that it is multiplied by. A symbol is a size that the file leaves open, as a number.
Size = tuple[int, tuple[int, ...]]
#: A short list of whole numbers, with None for each number that is not known.
Numbers = tuple[Size | None, ...]


@dataclass(frozen=True)
class Part:
    """A whole axis of one value, in its own order.

    scope, name: the value.
    role: `time`, `direction`, `batch` or `units` of a layer's output, else a number.
    side: the direction (0 or 1) whose units these are, if one direction was picked; else None.
    """

    scope: Scope
    name: str
    role: str | int
    side: int | None = None


#: Parts that one axis runs through, the last part fastest; an axis of size 1 has no parts.
Axis = tuple[Part, ...]
View = tuple[Axis, ...]


def fixed(number: int) -> Size:
    """Make a size of a number that the file states."""
    return number, ()


def times(sizes: Iterable[Size]) -> Size:
    """Multiply sizes.

    >>> times([(2, ()), (3, (7,)), (1, (5,))])
    (6, (5, 7))
    """
    factor, symbols = 1, list[int]()
    for number, more in sizes:
        factor *= number
        symbols += more
    return factor, tuple(sorted(symbols))


def quotient(whole: Size, part: Size) -> Size | None:
    """Divide the size `whole` by `part`; None if that leaves a rest.

    >>> quotient((6, (5, 7)), (3, (7,)))
    (2, (5,))
    """
    left, taken = Counter(whole[1]), Counter(part[1])
    if not part[0] or whole[0] % part[0] or taken - left:
        return None
    return whole[0] // part[0], tuple(sorted((left - taken).elements()))


def regrouped(axis: Axis, sizes: Mapping[Part, Size], wanted: Sequence[Size | None]) -> View | None:
    """Group the parts of a value into axes of the wanted sizes; None if that would cut a part in two.

    axis: the parts, in order.
    sizes: the size of each part.
    wanted: the sizes of the new axes. One of them may be unknown (None): it takes what the others leave.

    >>> regrouped((), {}, [(1, ()), None])
    ((), ())
    """
    open_axes = [at for at, size in enumerate(wanted) if size is None]
    split = open_axes[0] if open_axes else len(wanted)
    front = _taken(axis, sizes, wanted[:split])
    if len(open_axes) > 1 or front is None:
        return None
    rest = axis[sum(map(len, front)) :]
    if not open_axes:
        return None if rest else front
    back = _taken(rest[::-1], sizes, wanted[:split:-1])
    if back is None:
        return None
    count = sum(map(len, back))
    return (*front, rest[: len(rest) - count], *(each[::-1] for each in back[::-1]))


def _taken(axis: Axis, sizes: Mapping[Part, Size], wanted: Sequence[Size | None]) -> View | None:
    """Axes of the wanted sizes, taken from the parts at the front; None if that would cut a part in two."""
    axes, at = list[Axis](), 0
    for size in wanted:
        begin = at
        while size is not None and size != fixed(1):
            size = quotient(size, sizes[axis[at]]) if at < len(axis) else None
            at += 1
        if size is None:
            return None
        axes.append(axis[begin:at])
    return tuple(axes)
