"""Names of job entries and of their jobs, made unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count, product, repeat
from string import ascii_lowercase

__all__ = ["job_names", "tenant_names", "unique_names"]


def job_names(names: list[str], counts: list[int]) -> list[str]:
    """Name the jobs of entries: the requests of an entry are numbered from 1 on, an entry of one job gives its name.

    names: of the entries.
    counts: how many jobs each has.

    >>> job_names(["voice", "ads"], [3, 1]), job_names(["m", "m"], [2, 1]), job_names(["m", "m"], [1, 1])
    (['voice #1', 'voice #2', 'voice #3', 'ads'], ['m #1 #1', 'm #1 #2', 'm'], ['m-a', 'm-b'])
    """
    single = iter(unique_names([name for name, requests in zip(names, counts, strict=True) if requests == 1]))
    jobs: list[str] = []
    for tenant, requests in zip(tenant_names(names), counts, strict=True):
        jobs += [next(single)] if requests == 1 else [f"{tenant} #{number}" for number in range(1, requests + 1)]
    # Nothing but a name that a user gave, like `voice #2`, can be there twice.
    return unique_names(jobs)


def tenant_names(names: list[str]) -> list[str]:
    """Make tenants of the names of entries: equal names get a number each.

    >>> tenant_names(["a", "b", "a"]), tenant_names(["a", "a #1", "a"])
    (['a #1', 'b', 'a #2'], ['a #2', 'a #1', 'a #3'])
    """
    # A number that makes the name of another entry is left out: requests of two entries are never counted as one's.
    times, taken = Counter(names), set(names)
    numbers = {name: map("{} #{}".format, repeat(name), count(1)) for name in times}
    return [next(each for each in numbers[name] if each not in taken) if times[name] > 1 else name for name in names]


def unique_names(names: list[str]) -> list[str]:
    """Make names unique: equal names get a letter each. Letters, because trace viewers ignore digits in colours.

    >>> unique_names(["a", "b", "a", "a-a"])
    ['a-b', 'b', 'a-c', 'a-a']
    """
    times: Mapping[str, int] = Counter(names)
    taken = set(names)
    letters: dict[str, Iterator[str]] = {}
    unique = []
    for name in names:
        if times[name] > 1:
            suffixes = letters.setdefault(name, _letters())
            plain = name
            while name in taken:
                name = f"{plain}-{next(suffixes)}"
            taken.add(name)
        unique.append(name)
    return unique


def _letters() -> Iterator[str]:
    """a ... z, aa, ab ... zz, aaa ..."""
    return ("".join(word) for length in count(1) for word in product(ascii_lowercase, repeat=length))
