"""The long-run rate and variability of each kind of arrivals."""

from __future__ import annotations

from math import inf

from lstmsim.model.offer import Offer, estimated_offer
from lstmsim.traffic.arrivals import Bursty, Fixed, OpenArrivals, Periodic, Poisson, Stream, Timestamps
from lstmsim.traffic.closed_loop import ClosedLoop

__all__ = ["offer_of"]


def offer_of(arrivals: OpenArrivals | ClosedLoop, frequency_mhz: float) -> Offer:
    """Say what arrivals offer in the long run; the offer is empty where all come at once.

    `bursty` is the interrupted Poisson process, whose gaps are independent; with lambda its rate while on, g = 1 / mean
    time on, w = 1 / mean time off, their squared coefficient of variation is 1 + 2 lambda g / (g + w)^2 (Kuczura: The
    interrupted Poisson process as an overflow process; Bell System Technical Journal 52, 1973). Jitter of `periodic`
    arrivals does not add up, so that in the long run they come evenly.

    >>> offer = offer_of(Bursty(2000, mean_on_ms=5, mean_off_ms=20), 250)
    >>> offer.rate_per_second, offer.variability
    (400.0, 13.8)
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
        case Stream(frame_ms):
            return Offer(1000 / frame_ms, process=arrivals)
        case ClosedLoop(clients, _, think):
            return Offer(clients=clients, memory_seconds=0.0 if think == "exponential" else inf)
        case Timestamps(cycles):
            return estimated_offer(cycles, frequency_mhz)
