"""When requests arrive: descriptions of arrivals, clients that ask again, and what each kind offers in the long run.

Descriptions stand for whole cycles, one at a time or in arrays. Everything is exact but for one rounding per arrival:
an arrival at the real time t belongs to cycle floor(t * clock), the cycle within which it falls. Rates, times and clock
count as the decimals that they are written as (0.1 is 1/10, not the double next to it). Random times are sums of whole
multiples of 2^-52 of a mean. Both meet in whole numbers of any length: nothing drifts, not even over billions of
arrivals. (Floored arrivals leave the mean wait of M/D/1 unchanged, exactly, where the service takes whole cycles.)

A Poisson process of another rate with the same key is the same process on another scale: no arrival comes later at a
higher rate. Runs at several rates therefore differ by the rate alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, islice, repeat
from itertools import count as count_up
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounds import MAX_JOBS
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.model.scenario import Offer, estimated_offer
from lstmsim.traffic import streams

#: The last cycle at which anything may arrive: differences and small sums of cycles stay within 64 bits.
MAX_CYCLE = 2**62

#: Fewest requests that an "on" period of `Bursty` holds on average: below, nearly all of the work would be to draw
#: periods in which nothing arrives, of a process that cannot be told from Poisson any more.
LEAST_PER_BURST = 0.001


def exact(number: float) -> Fraction:
    """Give a number as the decimal that it is written as.

    >>> exact(0.1), exact(250)
    (Fraction(1, 10), Fraction(250, 1))
    """
    return Fraction(str(number))


def positive(place: str, **numbers: float) -> None:
    """Raise `InputError` with a sentence for each of these numbers of `place` that is not above 0 and finite."""
    wrong = [(key, number) for key, number in numbers.items() if not 0 < number < float("inf")]
    if wrong:
        text = "must be a finite number above 0, got"
        raise InputError([Mistake(f"{place}: {key}", f"{text} {number}") for key, number in wrong])


def _whole(place: str, least: int, **numbers: int) -> None:
    """Raise `InputError` with a sentence for each number that does not lie between `least` and `MAX_CYCLE`."""
    wrong = [(key, number) for key, number in numbers.items() if not least <= number <= MAX_CYCLE]
    if wrong:
        text = f"must be a whole number from {least} to {MAX_CYCLE}, got"
        raise InputError([Mistake(f"{place}: {key}", f"{text} {number}") for key, number in wrong])


@record
class Fixed:
    """A request comes every `interval_cycles`.

    interval_cycles: from one arrival to the next; with 0 all requests come at once.
    start_cycle: when the first request comes.

    >>> list(arrivals(Fixed(100, start_cycle=5), 3, 250))
    [5, 105, 205]
    """

    interval_cycles: int
    start_cycle: int = 0

    def __post_init__(self) -> None:
        _whole("fixed", 0, interval_cycles=self.interval_cycles, start_cycle=self.start_cycle)


@record
class Periodic:
    """A request comes every `interval_cycles`, with a random lateness of its own.

    The lateness is 0 ... `jitter_cycles`, equally likely, independent of that of other requests; it does not add up.

    interval_cycles: from one arrival to the next, without the lateness; at least 1.
    jitter_cycles: the largest lateness; at most one interval, so that requests keep their order.
    start_cycle: when the first request comes, without its lateness.

    >>> list(arrivals(Periodic(100, 10), 3, 250, (1, "mic")))
    [7, 110, 202]
    """

    interval_cycles: int
    jitter_cycles: int
    start_cycle: int = 0

    def __post_init__(self) -> None:
        _whole("periodic", 1, interval_cycles=self.interval_cycles)
        _whole("periodic", 0, jitter_cycles=self.jitter_cycles, start_cycle=self.start_cycle)
        if self.jitter_cycles > self.interval_cycles:
            text = f"must be at most interval_cycles ({self.interval_cycles}), got {self.jitter_cycles}"
            raise InputError(Mistake("periodic: jitter_cycles", f"{text}: requests would overtake each other"))


@record
class Poisson:
    """Requests come with independent exponential gaps of mean 1 / `rate_per_second`; the first gap begins at cycle 0.

    >>> slow, fast = (list(arrivals(Poisson(rate), 3, 250, (1, "a"))) for rate in (1000, 2000))
    >>> slow == fast, all(abs(2 * b - a) <= 1 for a, b in zip(slow, fast))
    (False, True)
    """

    rate_per_second: float

    def __post_init__(self) -> None:
        positive("poisson", rate_per_second=self.rate_per_second)


@record
class Bursty:
    """Poisson arrivals come while the process is on, none while it is off; it begins on.

    This is the interrupted Poisson process (Kuczura: The interrupted Poisson process as an overflow process; Bell
    System Technical Journal 52, 1973). Its rate in the long run is on_rate * mean_on / (mean_on + mean_off).

    on_rate_per_second: the rate while on.
    mean_on_ms, mean_off_ms: mean lengths of the periods, which are exponential.
    """

    on_rate_per_second: float
    mean_on_ms: float
    mean_off_ms: float

    def __post_init__(self) -> None:
        numbers = {"on_rate_per_second": self.on_rate_per_second, "mean_on_ms": self.mean_on_ms}
        positive("bursty", **numbers, mean_off_ms=self.mean_off_ms)
        held = self.on_rate_per_second * self.mean_on_ms / 1000
        if held < LEAST_PER_BURST:
            text = f"an on period holds {held:.2g} requests on average, expected at least {LEAST_PER_BURST}"
            raise InputError(Mistake("bursty: mean_on_ms", f"{text}; use poisson for arrivals that come one by one"))


@record
class Stream:
    """A real-time stream brings a frame every `frame_ms`; each frame is due before the next one of its stream comes.

    `deadline_arrays` gives these times. Of n streams, request r is frame r div n of stream r mod n.

    start_cycle: when the first frame comes.
    streams: how many streams bring frames, each every `frame_ms`.
    together: whether their frames come at once; else the k-th of n streams begins k / n of a period later.

    >>> list(arrivals(Stream(0.3), 4, 1)), list(arrivals(Stream(0.3, streams=2), 4, 1))
    ([0, 300, 600, 900], [0, 150, 300, 450])
    >>> list(arrivals(Stream(0.3, streams=2, together=True), 4, 1))
    [0, 0, 300, 300]
    """

    frame_ms: float
    start_cycle: int = 0
    streams: int = 1
    together: bool = False

    def __post_init__(self) -> None:
        positive("stream", frame_ms=self.frame_ms)
        _whole("stream", 0, start_cycle=self.start_cycle)
        _whole("stream", 1, streams=self.streams)


@record
class Timestamps:
    """Requests come at known cycles.

    cycles: the arrivals in order (`lstmsim.files.scenario.arrival_file` reads them from a file).

    >>> Timestamps((3, 2))
    Traceback (most recent call last):
    lstmsim.InputError: timestamps: must not go back in time, got 2 after 3 (number 2 of 2)
    """

    cycles: tuple[int, ...]

    def __post_init__(self) -> None:
        before = 0
        for number, cycle in enumerate(self.cycles, 1):
            where = f"(number {number} of {len(self.cycles)})"
            if not 0 <= cycle <= MAX_CYCLE:
                raise InputError(Mistake("timestamps", f"must be from 0 to {MAX_CYCLE}, got {cycle} {where}"))
            if cycle < before:
                raise InputError(Mistake("timestamps", f"must not go back in time, got {cycle} after {before} {where}"))
            before = cycle


#: Whatever arrives without regard to what has been served; `ClosedLoop` is the other kind.
OpenArrivals = Fixed | Periodic | Poisson | Bursty | Stream | Timestamps


@record
class ClosedLoop:
    """A number of clients ask, wait for the answer, think, and ask again: each has at most one request on its way.

    clients: number of clients, each of which waits for its answer; at most as many as a scenario may have jobs.
    think_ms: time for which a client thinks between an answer and its next request; the mean of exponential times.
    think: `exponential` (all times independent) or `fixed`. Fixed clients that begin together stay together until the
        queue has drawn them apart.
    """

    clients: int
    think_ms: float
    think: Literal["exponential", "fixed"] = "exponential"

    def __post_init__(self) -> None:
        if not 1 <= self.clients <= MAX_JOBS:
            raise InputError(Mistake("closed: clients", f"must be from 1 to {MAX_JOBS}, got {self.clients}"))
        if self.think_ms != 0:
            positive("closed", think_ms=self.think_ms)
        if self.think not in ("exponential", "fixed"):
            raise InputError(Mistake("closed: think", f"must be exponential or fixed, got {self.think!r}"))


def think_cycles(
    description: ClosedLoop, client: int, frequency_mhz: float, seed_key: streams.StreamKey = (0,)
) -> Iterator[int]:
    """Give the think times of a client (from 0) in whole cycles.

    They depend on the key and the client's number only, not on the order in which clients finish. Their sum is rounded
    down to whole cycles, so roundings do not add up.
    """
    mean = exact(description.think_ms) * exact(frequency_mhz) * 1000
    # a few words at a time: there may be many clients with few requests each
    key = (*seed_key, "think", client)
    times = streams.exponentials(key, chunk=16) if description.think == "exponential" else repeat(streams.UNIT)
    total = before = 0
    for time in times:
        total += time * mean.numerator
        now = total // (mean.denominator * streams.UNIT)
        yield now - before
        before = now


def offer_of(arrivals: OpenArrivals | ClosedLoop, frequency_mhz: float) -> Offer:
    """Say what arrivals offer in the long run; the offer is empty where all come at once.

    `bursty` is the interrupted Poisson process, whose gaps are independent; with lambda its rate while on, g = 1 / mean
    time on, w = 1 / mean time off, their squared coefficient of variation is 1 + 2 lambda g / (g + w)^2 (Kuczura: The
    interrupted Poisson process as an overflow process; Bell System Technical Journal 52, 1973). Jitter of `periodic`
    arrivals does not add up, so that in the long run they come evenly.
    """
    match arrivals:
        case Poisson(rate):
            return Offer(rate, 1.0, process=arrivals)
        case Bursty(rate, on_ms, off_ms):
            up, down = 1000 / on_ms, 1000 / off_ms
            variability = 1 + 2 * rate * up / (up + down) ** 2
            return Offer(rate * on_ms / (on_ms + off_ms), variability, memory_seconds=1 / (up + down), process=arrivals)
        case Fixed(interval) | Periodic(interval):
            return Offer(frequency_mhz * 1e6 / interval, process=arrivals) if interval else Offer()
        case Stream(frame_ms, _, many):
            return Offer(1000 / frame_ms * many, process=arrivals)
        case ClosedLoop(clients, _, think):
            return Offer(clients=clients, memory_seconds=0.0 if think == "exponential" else inf)
        case Timestamps(cycles):
            return estimated_offer(cycles, frequency_mhz)


Ints = NDArray[np.int64]


def arrivals(
    description: OpenArrivals, count: int, frequency_mhz: float, seed_key: streams.StreamKey = (0,)
) -> Iterator[int]:
    """Give the cycles of `arrival_arrays` one at a time, in memory that does not grow."""
    blocks = arrival_arrays(description, count, frequency_mhz, seed_key)
    return (cycle for block in blocks for cycle in block.tolist())


def arrival_arrays(
    description: OpenArrivals,
    count: int,
    frequency_mhz: float,
    seed_key: streams.StreamKey = (0,),
    chunk: int = streams.CHUNK,
) -> Iterator[Ints]:
    """Give the cycles of the first `count` arrivals in order, in arrays of shape [`chunk`]; the last may be shorter.

    description: how requests come.
    frequency_mhz: the clock.
    seed_key: the key of the stream of random numbers; equal keys give equal arrivals on every machine.
    `InputError` for more arrivals than a list of time stamps holds; on the way, for an arrival after `MAX_CYCLE`.
    """
    positive("chip", frequency_mhz=frequency_mhz)
    if isinstance(description, Timestamps) and count > len(description.cycles):
        raise InputError(Mistake("timestamps", f"holds {len(description.cycles)} arrivals, expected {count} or more"))
    if count < 0:
        raise InputError(Mistake("count", f"must be at least 0, got {count}"))
    chunk = max(1, min(chunk, count))
    return _bounded(_endless(description, exact(frequency_mhz) * 1000, seed_key, chunk), count)


def deadline_arrays(stream: Stream, count: int, frequency_mhz: float, chunk: int = streams.CHUNK) -> Iterator[Ints]:
    """Give the cycle at which each of the first `count` frames is due, in arrays: its stream's next frame's arrival.

    A frame that finishes at that very cycle is in time: its results are there when the next frame arrives.
    """
    chunk = max(1, min(chunk, count))
    return _bounded(_frames(stream, exact(frequency_mhz) * 1000, chunk, first=stream.streams), count)


def _endless(description: OpenArrivals, cycles_per_ms: Fraction, key: streams.StreamKey, chunk: int) -> Iterator[Ints]:
    """All arrivals of a description, in arrays; only those of `Timestamps` end."""
    match description:
        case Fixed(interval, start):
            return _evenly(Fraction(interval), start, chunk)
        case Periodic(interval, jitter, start):
            late = streams.below_arrays((*key, "jitter"), jitter + 1, chunk)
            return map(np.add, _evenly(Fraction(interval), start, chunk), late)
        case Stream():
            return _frames(description, cycles_per_ms, chunk)
        case Poisson(rate):
            gap = 1000 * cycles_per_ms / exact(rate)
            return streams.floors_of_sums(streams.exponential_arrays((*key, "gap"), chunk), gap / streams.UNIT)
        case Bursty():
            bursts = _bursts(description, cycles_per_ms, key)
            return (np.array(list(islice(bursts, chunk)), dtype=object) for _ in repeat(None))
        case Timestamps(cycles):
            known = np.array(cycles, dtype=np.int64)
            return (known[first : first + chunk] for first in range(0, len(known), chunk))


def _evenly(interval: Fraction, start: int, chunk: int, first: int = 0) -> Iterator[Ints]:
    """Arrivals number `first` and following, one every `interval` cycles from `start` on."""
    return (streams.floors(np.arange(at, at + chunk), interval, start) for at in count_up(first, chunk))


def _frames(stream: Stream, cycles_per_ms: Fraction, chunk: int, first: int = 0) -> Iterator[Ints]:
    period, many = exact(stream.frame_ms) * cycles_per_ms, stream.streams
    if not stream.together:
        return _evenly(period / many, stream.start_cycle, chunk, first)
    numbers = (np.arange(at, at + chunk) // many for at in count_up(first, chunk))
    return (streams.floors(each, period, stream.start_cycle) for each in numbers)


def _bursts(bursty: Bursty, cycles_per_ms: Fraction, key: streams.StreamKey) -> Iterator[int]:
    """Arrivals of a Poisson process on a clock that runs only while on; the periods off are added between."""
    gap = 1000 * cycles_per_ms / exact(bursty.on_rate_per_second)
    on, off = exact(bursty.mean_on_ms) * cycles_per_ms, exact(bursty.mean_off_ms) * cycles_per_ms
    common = gap.denominator * on.denominator * off.denominator
    per_gap, per_on, per_off = (int(each * common) for each in (gap, on, off))
    ons, offs = streams.exponentials((*key, "on")), streams.exponentials((*key, "off"))
    end, away = next(ons) * per_on, 0
    for time in accumulate(streams.exponentials((*key, "gap"))):
        now = time * per_gap
        while now >= end:
            away += next(offs) * per_off
            end += next(ons) * per_on
        yield (now + away) // (common * streams.UNIT)


def _bounded(blocks: Iterator[Ints], count: int) -> Iterator[Ints]:
    """The first `count` of these cycles; `InputError` at the first one after `MAX_CYCLE`."""
    while count:
        block = next(blocks)[:count]
        count -= len(block)
        late = int(np.searchsorted(block, MAX_CYCLE, side="right"))
        if late:
            yield block[:late].astype(np.int64, copy=False)
        if late < len(block):
            text = f"would go on to cycle {block[late]}, expected at most {MAX_CYCLE} (2^62)"
            raise InputError(Mistake("arrivals", text))
