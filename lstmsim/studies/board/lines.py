"""Lines to a board: a serial port, and simulated pins behind a pseudo-terminal."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import IO, Any

from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.processes import ending_child, run_program, scratch_folder
from lstmsim.studies.rtl.simulators import Simulator, compile_command

#: Cycles a bit, and of the pause that ends a message, of simulated pins: few, so that messages take little time.
SIM_CLOCKS, SIM_PAUSE = 4, 1024
_BENCH = "npu_board_tb"
#: How long the board may be silent, in seconds. Simulated pins are as fast as the machine is.
_PATIENCE, _SIM_PATIENCE = 2.0, 60.0
#: Quiet times of 1,024 cycles, one after another, after which a simulated board that runs nothing waits for its host.
_RESTING = 64


class SerialLine:
    """A serial port, by pyserial."""

    def __init__(self, port: Any, name: str) -> None:
        self._port, self.name = port, name

    def clear(self) -> None:
        """Drop what has come and was not read."""
        self._port.reset_input_buffer()

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._port.write(data)

    def read(self, count: int) -> bytes:
        """Give so many bytes, or fewer if they do not come in time."""
        return bytes(self._port.read(count))


def pyserial() -> Any:
    """The module of pyserial; `InputError`, with its package, if it is not there."""
    try:
        return import_module("serial")
    except ImportError:
        text = "needs pyserial: pip install 'lstmsim[board]'"
        raise InputError(Mistake("--port", text)) from None


@contextmanager
def serial_line(path: str, baud: int, patience: float = _PATIENCE) -> Iterator[SerialLine]:
    """Open a serial port."""
    serial = pyserial()
    try:
        port = serial.Serial(path, baud, timeout=patience, write_timeout=patience, exclusive=True)
    except (serial.SerialException, ValueError, OSError) as error:
        raise InputError(Mistake(f"--port {path}", f"cannot be opened: {error}")) from None
    with port:
        try:
            yield SerialLine(port, path)
        except serial.SerialException as error:
            raise LstmsimError(f"the line {path} broke: {error}") from None


@contextmanager
def simulated_line(simulator: Simulator, folder: str, sources: Sequence[str], baud: int) -> Iterator[SerialLine]:
    """Simulate a board, its pins behind a pseudo-terminal, and open that as a serial port.

    folder, sources: of the design; its Verilog and the testbench of the pins.
    """
    import tty

    pyserial()
    with scratch_folder("board") as built:
        compiling, running = compile_command(
            simulator.name, built, sources, _BENCH, ("rtl", "board"), {"CLOCKS": SIM_CLOCKS, "PAUSE": SIM_PAUSE}
        )
        run_program(compiling, folder)
        with ending_child(running, folder) as pipes:
            ours, theirs = os.openpty()
            tty.setraw(theirs)
            relay = _Relay(*pipes, ours)
            thread = threading.Thread(target=relay.run, daemon=True)
            thread.start()
            try:
                with serial_line(os.ttyname(theirs), baud, _SIM_PATIENCE) as line:
                    line.name = f"simulated pins ({simulator.version})"
                    yield line
            finally:
                relay.over = True
                thread.join()
                os.close(ours)
                os.close(theirs)


class _Relay:
    """Between a pseudo-terminal and the testbench of the pins.

    Simulated time goes on while bytes come, while a schedule runs, and for some time after both; then the board waits
    for its host, so that nobody computes idle cycles.
    """

    def __init__(self, into: IO[bytes], out: IO[bytes], terminal: int) -> None:
        self._into, self._from = into, out
        self._terminal = terminal
        self.over = False

    def run(self) -> None:
        """Relay until it is over, or the simulation has ended."""
        resting = 0
        with suppress(OSError, ValueError):
            while not self.over:
                there, _, _ = select.select([self._terminal], [], [], 0 if resting < _RESTING else 0.05)
                if there:
                    data = os.read(self._terminal, 4096)
                    self._into.write(b"".join(bytes((0, each)) for each in data))
                    resting = 0
                elif resting >= _RESTING:
                    continue
                active = self._pass()
                resting = 0 if active else resting + 1

    def _pass(self) -> bool:
        """Let 1,024 cycles pass; give whether the board has said something, or a schedule runs."""
        self._into.write(bytes((1, 4)))
        self._into.flush()
        said = bytearray()
        for line in self._from:
            if line.startswith(b"="):
                if said:
                    os.write(self._terminal, bytes(said))
                return bool(said) or line.strip() != b"=0"
            with suppress(ValueError):
                said.append(int(line[:2], 16))
        raise OSError("the simulation has ended")
