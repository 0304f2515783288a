"""Signals that end a process clean up first: one handler, for every command and wherever programs run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

#: What a supervisor, a batch system or a closed terminal sends, and what would end Python without any cleaning up.
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def cleaning_up() -> Iterator[None]:
    """Let signals that end the process clean up first, unless somebody else handles them or other threads run this.

    The process then leaves through all `finally` blocks, with the exit code that a shell gives for the signal. An error
    raised on the way out, as by a lock that the signal interrupted, does not replace that code.
    """
    codes: list[int] = []

    def end(number: int, _: FrameType | None) -> NoReturn:
        codes.append(128 + number)
        raise SystemExit(codes[0])

    main = threading.current_thread() is threading.main_thread()
    own = [number for number in _ENDING if main and signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in own:
            signal.signal(number, end)
        yield
    except Exception:
        if codes:
            raise SystemExit(codes[0]) from None
        raise
    finally:
        for number in own:
            signal.signal(number, signal.SIG_DFL)
