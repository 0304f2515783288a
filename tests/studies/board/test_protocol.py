"""The host's side of the protocol, on a line that loses and damages what is sent."""

from __future__ import annotations

import zlib

import pytest

from lstmsim.base.errors import LstmsimError
from lstmsim.studies.board.protocol import DAMAGED, DONE, NOT_THERE, READ, SYNC, WRITE, Link, message, words_bytes


class Board:
    """A board as docs/board.md says, on a line where some messages and some answers do not come through."""

    name = "a line"

    def __init__(
        self, lost: tuple[int, ...] = (), damaged: tuple[int, ...] = (), unheard: tuple[int, ...] = ()
    ) -> None:
        self.lost, self.damaged, self.unheard = lost, damaged, unheard
        self.words: dict[int, int] = {}
        self.done: list[int] = []
        self._sent, self._last, self._said = 0, -1, b""

    def clear(self) -> None:
        self._said = b""

    def write(self, data: bytes) -> None:
        self._sent += 1
        assert zlib.crc32(data[:-4]).to_bytes(4, "little") == data[-4:]
        assert data[0] == len(data) - 7
        if self._sent in self.unheard:
            return
        answer = message(0, DAMAGED) if self._sent in self.damaged else self._act(data[1], data[2], data[3:-4])
        self._said = b"" if self._sent in self.lost else answer

    def _act(self, number: int, command: int, payload: bytes) -> bytes:
        address, *words = [int.from_bytes(payload[at : at + 4], "little") for at in range(0, len(payload), 4)] or [0]
        if command == READ:
            return message(number, DONE, words_bytes([self.words[address + at] for at in range(words[0])]))
        if command == WRITE and address >> 28 == 7:
            return message(number, NOT_THERE)
        if command == WRITE and number != self._last:
            self.done.append(len(words))
            self.words |= {address + at: word for at, word in enumerate(words)}
        assert command in (SYNC, WRITE)
        self._last = number
        return message(number, DONE)

    def read(self, count: int) -> bytes:
        some, self._said = self._said[:count], self._said[count:]
        return some


def test_words_go_there_and_come_back() -> None:
    board = Board()
    link = Link(board)
    words = [zlib.crc32(bytes([number])) for number in range(200)]
    link.write(0x10000000, words)
    assert link.read(0x10000000, 200) == words
    assert (board.done, link.resent) == ([62, 62, 62, 14], 0)


def test_what_is_lost_on_the_way_is_sent_again_and_done_once() -> None:
    board = Board(lost=(3, 5), damaged=(6,), unheard=(2,))
    link = Link(board)
    for number in range(300):
        link.write(number, [number])
    assert board.words == {number: number for number in range(300)}
    assert (board.done, link.resent) == ([1] * 300, 4)


def test_a_line_that_is_dead_and_an_address_that_is_not_there_are_said() -> None:
    with pytest.raises(LstmsimError, match="the board at a line does not answer"):
        Link(Board(unheard=tuple(range(100))))
    with pytest.raises(LstmsimError, match="has no such address"):
        Link(Board()).write(0x70000000, [1])
