"""The words about the machine in a search for the highest rate and in a curve."""

from __future__ import annotations

import pytest

from lstmsim.studies.serve.curves import measured
from lstmsim.studies.serve.saturation import Saturation, Tried
from tests.studies.serve.collecting import Collector

RUN = Tried(5.0, 0.4, True, 0.0, "below", 10_000)


def test_the_machine_s_line_has_every_limit_and_what_is_not_counted() -> None:
    limits = {"threads": 2000.0, "PE arrays": 1500.0}
    search = Saturation(5.0, None, 0.5, (RUN,), bound_per_second=1500.0, limits_per_second=limits)
    line = " ".join(Saturation.to_text(search).split("\n\n")[1].split())
    assert line.startswith("MACHINE: at most 1,500 requests/s of this mix")
    assert line.endswith("used up at 1,500/s (PE arrays), 2,000/s (threads)")
    more = Saturation(5.0, None, 0.5, (RUN,), None, 99.0, {}, 1500.0, limits, ("the job lstm", "a stream"))
    line = " ".join(Saturation.to_text(more).split("\n\n")[1].split())
    assert line.endswith("used up at 1,500/s (PE arrays), 2,000/s (threads); not counted: the job lstm, a stream")
    assert "MACHINE" not in Saturation.to_text(Saturation(5.0, None, 0.5, (RUN,)))


@pytest.mark.parametrize("kept", [True, False])
def test_a_lower_rate_that_breaks_the_bound_is_remarked_on(kept: bool) -> None:
    lower = Tried(3.0, 0.4, kept, 0.0, "below" if kept else "above", 10_000)
    text = Saturation.to_text(Saturation(5.0, None, 0.5, (lower, RUN)))
    assert ("not every lower rate keeps it" in text) == (not kept)


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([], None),
        (["too few"], "undecided: 1 rate has too few requests for an interval; --most-requests allows more"),
        (["cannot tell"] * 2, "undecided: 2 rates have the bound within the interval; --most-requests allows more"),
        (
            ["too few", "too few", "cannot tell"],
            "undecided: 2 rates have too few requests for an interval, 1 rate has the bound within the interval;",
        ),
    ],
)
def test_rates_that_could_not_tell_are_counted_by_why(verdicts: list[str], said: str | None) -> None:
    open_ = [Tried(6.0 + at, 0.4, None, 0.0, verdict, 100) for at, verdict in enumerate(verdicts)]
    text = " ".join(Saturation.to_text(Saturation(5.0, None, 0.5, (RUN, *open_))).split())
    assert ("undecided" in text) == (said is not None)
    assert (said or "") in text


def test_a_need_that_a_run_has_met_in_vain_is_not_told() -> None:
    met, open_ = (Tried(6.0 + needs, 0.4, None, 0.0, "too few", 100_000, needs=needs) for needs in (50_000, 200_000))
    text = " ".join(Saturation.to_text(Saturation(5.0, None, 0.5, (RUN, met))).split())
    assert "1 rate has too few requests for an interval; --most-requests" in text
    text = " ".join(Saturation.to_text(Saturation(5.0, None, 0.5, (RUN, met, open_))).split())
    assert "2 rates have too few requests for an interval (the lowest needs 200,000);" in text


def test_a_point_of_a_curve_is_in_milliseconds() -> None:
    """260 MHz are 260,000 cycles a millisecond."""
    collector = Collector(260)
    for number in range(20):
        collector.add(number, 100_000 * number, 100_000 * number, 100_000 * number + 26_000)
    own = measured(collector.figures())
    assert own.mean is not None
    assert own.mean.value_ms == pytest.approx(0.1)
    assert [each.value_ms for each in own.percentiles.values()] == pytest.approx([0.1] * len(own.percentiles))
    assert own.in_time == 1.0
