"""The protocol of a board: messages and answers as bytes, and a link that sends again until it is answered.

docs/board.md section 3 has the protocol on a page.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from lstmsim.base.errors import LstmsimError
from lstmsim.base.records import record

SYNC, WRITE, READ = range(3)
DONE, DAMAGED, UNKNOWN, NOT_THERE = range(4)
_STATUS = {UNKNOWN: "does not know this message", NOT_THERE: "has no such address"}
#: Most words of a message that writes, and of an answer.
MOST_WRITTEN, MOST_READ = 62, 63
#: Bytes of a message or an answer beside its payload: length, number, command or status, CRC-32.
AROUND = 7
#: How often a message is sent before the line counts as dead.
_TRIES = 6


class Line(Protocol):
    """A line to a board, byte by byte."""

    #: What it is, in words.
    name: str

    def clear(self) -> None:
        """Drop what has come and was not read."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def read(self, count: int) -> bytes:
        """Give so many bytes, or fewer if they do not come in time."""


def message(number: int, command: int, payload: bytes = b"") -> bytes:
    """Give a message as bytes.

    >>> message(1, SYNC).hex()
    '00010053e85ae6'
    """
    body = bytes((len(payload), number, command)) + payload
    return body + zlib.crc32(body).to_bytes(4, "little")


def words_bytes(words: Sequence[int]) -> bytes:
    """Give words of 32 bits as bytes, the lowest one first."""
    return b"".join(word.to_bytes(4, "little") for word in words)


@record
class Answer:
    """What a board has said."""

    number: int  # of the message that it answers
    status: int  # `DONE`, or why not
    payload: bytes


def answer_of(line: Line) -> Answer | None:
    """Read an answer; None: none has come whole."""
    head = line.read(3)
    if len(head) < 3:
        return None
    rest = line.read(head[0] + 4)
    body, crc = head + rest[:-4], rest[-4:]
    if len(rest) < head[0] + 4 or zlib.crc32(body).to_bytes(4, "little") != crc:
        return None
    return Answer(head[1], head[2], body[3:])


class Link:
    """A board, as words at addresses."""

    def __init__(self, line: Line) -> None:
        self.line = line
        #: Messages that had to be sent again.
        self.resent = 0
        self._number = 0
        # what the board has done before is not the answer to what comes
        self._ask(SYNC)

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write words from an address on."""
        for first in range(0, len(words), MOST_WRITTEN):
            self._ask(WRITE, words_bytes([address + first, *words[first : first + MOST_WRITTEN]]))

    def read(self, address: int, count: int) -> list[int]:
        """Read words from an address on."""
        return [word for part in self._parts(address, count) for word in part]

    def _parts(self, address: int, count: int) -> Iterator[list[int]]:
        for first in range(0, count, MOST_READ):
            some = min(MOST_READ, count - first)
            payload = self._ask(READ, words_bytes([address + first, some]))
            if len(payload) != 4 * some:
                raise LstmsimError(f"the board at {self.line.name} gave {len(payload)} bytes of {4 * some}")
            yield [int.from_bytes(payload[place : place + 4], "little") for place in range(0, len(payload), 4)]

    def _ask(self, command: int, payload: bytes = b"") -> bytes:
        """Send a message until it is answered; its number says that it is the same one."""
        self._number = (self._number + 1) % 256
        sent = message(self._number, command, payload)
        for attempt in range(_TRIES):
            self.resent += attempt > 0
            self.line.clear()
            self.line.write(sent)
            answer = answer_of(self.line)
            if answer is None or answer.number != self._number or answer.status == DAMAGED:
                continue
            if answer.status != DONE:
                raise LstmsimError(f"the board at {self.line.name} {_STATUS.get(answer.status, 'refuses')}")
            return answer.payload
        text = f"the board at {self.line.name} does not answer: sent {_TRIES} times, nothing came back whole"
        raise LstmsimError(f"{text}; is the design loaded, and is the line its own?")
