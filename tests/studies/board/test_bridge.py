"""The bridge of boards, behind pins that toggle bit by bit: what it does, and that nothing damaged does anything."""

from __future__ import annotations

import os
import random
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from lstmsim.studies.board.protocol import DAMAGED, DONE, NOT_THERE, READ, SYNC, UNKNOWN, WRITE, message, words_bytes
from tests.studies.board.pins import Stream, build, streamed
from tests.studies.rtl.needed import needs_icarus

pytestmark = needs_icarus


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("pins"))


def write(number: int, address: int, *words: int) -> bytes:
    return message(number, WRITE, words_bytes([address, *words]))


def read(number: int, address: int, count: int) -> bytes:
    return message(number, READ, words_bytes([address, count]))


@pytest.mark.slow
def test_messages_are_done_answered_and_refused(program: Path) -> None:
    first = write(2, 0x10000004, 7, 0xFFFFFFFF)
    runs = [
        message(1, SYNC),
        first,
        # its answer was lost: it is answered again, and not done again
        first,
        write(3, 0x10000004, 7),
        read(4, 0xA0000001, 3),
        read(5, 0x90000000, 100),
        read(6, 0xA0000000, 0),
        # spaces that are not there, or not to be read; unknown commands and lengths
        write(7, 0xB0000000, 1),
        read(8, 0x10000000, 1),
        message(9, 9),
        message(10, WRITE, b"abcd"),
        message(11, READ, b"abcd"),
        message(12, SYNC, b"a"),
        # damaged, then cut off in its middle, then whole
        first[:-1] + b"\0",
        first[:9],
        write(13, 0x20000000, 5),
    ]
    # so that the longest answer has time, too
    said = streamed(program, [[each, *([b""] * 6 if each == read(5, 0x90000000, 100) else [])] for each in runs])
    words = words_bytes([0xA0000001, 0xA0000002, 0xA0000003])
    # an answer has the form of a message, with the status in the place of the command
    assert [each.said for each in said[:5]] == [
        message(1, DONE),
        message(2, DONE),
        message(2, DONE),
        message(3, DONE),
        message(4, DONE, words),
    ]
    assert said[5].said == message(5, DONE, words_bytes(range(0x90000000, 0x9000003F)))
    assert said[6].said == message(6, DONE)
    assert [each.said[:-4] for each in said[7:]] == [
        bytes((0, number, status))
        for number, status in [
            (7, NOT_THERE),
            (8, NOT_THERE),
            (9, UNKNOWN),
            (10, UNKNOWN),
            (11, UNKNOWN),
            (12, UNKNOWN),
            (2, DAMAGED),
            (2, DAMAGED),
            (13, DONE),
        ]
    ]
    assert [each.written for each in said if each.written] == [
        ((0x10000004, 7), (0x10000005, 0xFFFFFFFF)),
        ((0x10000004, 7),),
        ((0x20000000, 5),),
    ]


def mutated(draw: random.Random, data: bytes) -> bytes:
    """Some bytes changed, lost, doubled, put in, or cut off."""
    some = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(some) + 1)
        match draw.randrange(6):
            case 0 if place < len(some):
                some[place] ^= 1 << draw.randrange(8)
            case 1:
                del some[place : place + draw.randint(1, 3)]
            case 2:
                some[place:place] = draw.randbytes(draw.randint(1, 4))
            case 3:
                some[place:place] = some[place : place + draw.randint(1, 20)]
            case 4:
                del some[place:]
            case _ if place < len(some):
                some[place] = draw.randrange(256)
    return bytes(some)


@pytest.mark.slow
def test_damaged_streams_write_nothing_that_was_not_sent_and_never_hang(program: Path) -> None:
    """10,000 of them with LSTMSIM_EXAMPLES=10000."""
    draw = random.Random(0)
    streams, allowed = [], []
    for number in range(int(os.environ.get("LSTMSIM_EXAMPLES", "25"))):
        messages, words = [], set()
        for _ in range(draw.randint(1, 3)):
            address = draw.choice([1, 3, 8, 10]) << 28 | draw.randrange(1000)
            some = [draw.getrandbits(32) for _ in range(draw.randint(1, 5))]
            messages.append(draw.choice([write(draw.randrange(256), address, *some), read(3, 0xA0000000, 2)]))
            words |= {(address + place, word) for place, word in enumerate(some)}
        damaged = mutated(draw, b"".join(messages))
        cut = draw.randrange(len(damaged) + 1)
        streams.append([damaged[:cut], damaged[cut:], message(number % 256, SYNC)])
        allowed.append(words)
    for stream, words, number in zip(streamed(program, streams), allowed, range(len(streams)), strict=True):
        assert set(stream.written) <= words
        assert stream.said.endswith(message(number % 256, DONE)), number


def test_noise_on_the_line_is_answered_once_there_is_silence(program: Path) -> None:
    noise = random.Random(1).randbytes(300)
    said = streamed(program, [[noise], [message(1, SYNC)]])
    assert isinstance(said[0], Stream)
    assert said[0].said[2::7][:1] == bytes((DAMAGED,))
    assert said[1].said == message(1, DONE)
    assert not said[0].written


def test_a_system_reads_and_writes_over_wishbone(tmp_path: Path) -> None:
    verilog = files("lstmsim.machines.column.rtl") / "verilog" / "board" / "npu_wishbone.v"
    names = [str(verilog), *(str(Path(__file__).with_name(name)) for name in ("stub_system.v", "wishbone_bench.v"))]
    target = str(tmp_path / "bench.vvp")
    subprocess.run(["iverilog", "-g2005", "-s", "bench", "-o", target, *names], check=True)
    done = subprocess.run(["vvp", "-n", target], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "W 10000003 00000007",
        "ack 00000000",
        "W a0000000 00000001",
        "ack 00000000",
        "ack a0000004",
        "ack 90000123",
        "err 00000000",
        "err 90000123",
        "ack a0000002",
    ]
