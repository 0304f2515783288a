"""The bridge behind its pins, with a stub in place of the chip: what it says and writes, for streams of bytes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from lstmsim.base.records import record

__all__ = ["QUIET", "Stream", "build", "streamed"]

#: Quiet times of 256 cycles behind a stream: the pause that ends a message, and the answer to it.
QUIET = 8
_PAUSE = 256


@record
class Stream:
    """What came of a stream of bytes."""

    said: bytes  # what the bridge said
    written: tuple[tuple[int, int], ...]  # address and data of each word on the bus


def build(folder: Path) -> Path:
    """Compile the bridge with its testbench."""
    verilog = files("lstmsim.machines.column.rtl") / "verilog" / "board"
    names = [verilog / name for name in ("npu_uart.v", "npu_bridge.v", "npu_board.v")]
    names += [verilog / "sim" / "npu_board_tb.v", Path(__file__).with_name("stub_system.v")]
    target = folder / "pins.vvp"
    sizes = ["-Pnpu_board_tb.CLOCKS=4", f"-Pnpu_board_tb.PAUSE={_PAUSE}"]
    words = ["iverilog", "-g2005", *sizes, "-s", "npu_board_tb", "-o", str(target), *map(str, names)]
    subprocess.run(words, check=True)
    return target


def streamed(program: Path, streams: Iterable[Iterable[bytes]]) -> list[Stream]:
    """Send streams, one after another; each is several runs of bytes with a pause after each."""
    asked, ends = bytearray(), []
    for stream in streams:
        runs = list(stream)
        for run in runs:
            asked += b"".join(bytes((0, each)) for each in run) + bytes((1, QUIET))
        ends.append(len(runs))
    words = ["vvp", "-n", str(program), "+writes"]
    lines = iter(subprocess.run(words, input=bytes(asked), stdout=subprocess.PIPE, check=True).stdout.splitlines())
    return [_stream(lines, count) for count in ends]


def _stream(lines: Iterator[bytes], runs: int) -> Stream:
    said, written = bytearray(), []
    while runs:
        line = next(lines).decode()
        if line.startswith("="):
            runs -= 1
        elif line.startswith("W"):
            address, data = line[1:].split()
            written.append((int(address, 16), int(data, 16)))
        else:
            assert "!" not in line
            said.append(int(line, 16))
    return Stream(bytes(said), tuple(written))
