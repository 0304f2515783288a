"""Signals that end a process: the exit code of the signal stays, whatever is raised on the way out."""

from __future__ import annotations

import signal

import pytest

from lstmsim.base.endings import cleaning_up


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_error_on_the_way_out_is_not_what_ends_the_process(number: signal.Signals) -> None:
    """A lock that was being taken when the signal came says that it is not held."""

    def interrupted() -> None:
        try:
            signal.raise_signal(number)
        except SystemExit:
            raise RuntimeError("release unlocked lock") from None

    with pytest.raises(SystemExit) as ended, cleaning_up():
        interrupted()
    assert ended.value.code == 128 + number
    with pytest.raises(RuntimeError, match="no signal came"), cleaning_up():
        raise RuntimeError("no signal came")
