"""When requests arrive: descriptions of arrivals. `lstmsim.traffic.arrival_cycles` gives the cycles."""

from __future__ import annotations

from fractions import Fraction

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record

__all__ = [
    "MAX_CYCLE",
    "Bursty",
    "Fixed",
    "OpenArrivals",
    "Periodic",
    "Poisson",
    "Stream",
    "Timestamps",
    "exact",
    "positive",
]

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
    """Raise `InputError` with a sentence for each number that is not above 0 and finite.

    place: what the numbers belong to, the first part of the place in each sentence.
    numbers: the numbers by their names.
    """
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

    >>> from lstmsim.traffic.arrival_cycles import arrivals
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

    >>> from lstmsim.traffic.arrival_cycles import arrivals
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

    >>> from lstmsim.traffic.arrival_cycles import arrivals
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

    >>> from lstmsim.traffic.arrival_cycles import arrivals
    >>> len(list(arrivals(Bursty(2000, 5, 20), 100, 250, (1, "a"))))
    100
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
    """A real-time stream brings a frame every `frame_ms`; each frame is due before the next one comes.

    `lstmsim.traffic.arrival_cycles.deadlines` gives these times.

    start_cycle: when the first frame comes.

    >>> from lstmsim.traffic.arrival_cycles import arrivals
    >>> list(arrivals(Stream(0.3), 4, 1))
    [0, 300, 600, 900]
    """

    frame_ms: float
    start_cycle: int = 0

    def __post_init__(self) -> None:
        positive("stream", frame_ms=self.frame_ms)
        _whole("stream", 0, start_cycle=self.start_cycle)


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


#: Whatever arrives without regard to what has been served; `lstmsim.traffic.closed_loop` has the other kind.
OpenArrivals = Fixed | Periodic | Poisson | Bursty | Stream | Timestamps
