"""The wait of M/D/1, exactly: Poisson arrivals, every service as long, one server."""

from __future__ import annotations

from decimal import Decimal, localcontext

__all__ = ["md1_percentile", "md1_rate"]


def wait_at_most(load: float, time: float) -> float:
    """P(wait <= time), time in services: (1 - load) sum over k <= time of (load (k - time))^k exp(load (time - k)) / k!

    Source: Erlang, The theory of probabilities and telephone conversations; Nyt Tidsskrift for Matematik B 20, 1909.
    The terms alternate and are large, so that it takes decimals of many digits.
    """
    with localcontext() as context:
        context.prec = 60 + 2 * int(time)
        rate, total, factorial = Decimal(load), Decimal(0), Decimal(1)
        for k in range(int(time) + 1):
            factorial *= max(k, 1)
            away = rate * (Decimal(k) - Decimal(time))
            total += (away**k if k else Decimal(1)) / factorial * (-away).exp()
        return float((1 - rate) * total)


def md1_percentile(load: float, percent: float) -> float:
    """The percentile of the latency (wait and service), in services."""
    low, high = 0.0, 1.0
    while wait_at_most(load, high) < percent / 100:
        high *= 2
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (middle, high) if wait_at_most(load, middle) < percent / 100 else (low, middle)
    return 1 + high


def md1_rate(bound: float, percent: float) -> float:
    """The highest load at which the percentile of the latency is at most `bound` services."""
    low, high = 0.0, 0.995
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if md1_percentile(middle, percent) <= bound else (low, middle)
    return low
