"""A page in a browser, driven as users do: keys, the mouse, what stands on the page. No hook in the page is needed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.files.perfetto_page import Page

COMPLAINTS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")


class Explored:
    """A page that is open."""

    def __init__(self, page: Page, file: Path, width: int = 1400, height: int = 900, scheme: str = "light") -> None:
        self.page = page
        page.events.clear()
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.call("Page.navigate", url=file.as_uri())
        self.wait(f"location.href === {json.dumps(file.as_uri())} && document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of an expression."""
        return self.page.run(script)

    def wait(self, script: str) -> Any:
        """The value of an expression as soon as it is true."""
        until = time.monotonic() + 20
        while not (value := self.page.run(script)):
            assert time.monotonic() < until, f"never true: {script}"
            time.sleep(0.02)
        return value

    def complaints(self) -> list[Any]:
        """What the page has complained about since it was opened."""
        self.run("1")
        return [each["params"] for each in self.page.events if each.get("method") in COMPLAINTS]

    def view(self) -> tuple[float, float]:
        """The cycles in view, once they have not changed for two frames."""
        script = """(async () => {
          const canvas = document.querySelector(".view canvas"), frame = () => new Promise(requestAnimationFrame);
          for (let last = ""; last !== canvas.dataset.low + canvas.dataset.high;) {
            last = canvas.dataset.low + canvas.dataset.high;
            await frame(); await frame();
          }
          return [Number(canvas.dataset.low), Number(canvas.dataset.high)];
        })()"""
        low, high = self.run(script)
        return low, high

    def key(self, key: str, seconds: float = 0.0) -> None:
        """Press a key, for some time."""
        # what a key writes, so that fields get it too
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        self.page.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        if seconds:
            time.sleep(seconds)
        self.page.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def write(self, text: str) -> None:
        """Write into the field that has the focus."""
        self.page.call("Input.insertText", text=text)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """One event of the mouse."""
        buttons = {"button": "left", "clickCount": 1} if kind != "mouseWheel" else {}
        self.page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **(buttons | more))

    def drag(self, start: tuple[float, float], end: tuple[float, float], **more: Any) -> None:
        """Press, move and let go."""
        self.mouse("mousePressed", *start, **more)
        for part in (0.3, 0.7, 1.0):
            x, y = (a + part * (b - a) for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, buttons=1, **more)
        self.mouse("mouseReleased", *end, **more)

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        script = f"""(() => {{ const box = document.querySelector({json.dumps(selector)});
            box.scrollIntoView({{block: "center"}}); const at = box.getBoundingClientRect();
            return [at.x + at.width / 2, at.y + at.height / 2]; }})()"""
        x, y = self.run(script)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def place(self, part: float, row: str) -> tuple[float, float]:
        """A point of the canvas: a part of its width in a row by its name."""
        script = f"""(() => {{ const canvas = document.querySelector(".view canvas");
            canvas.scrollIntoView({{block: "center"}}); const at = canvas.getBoundingClientRect();
            const rows = JSON.parse(document.getElementById("data-timeline").textContent).rows;
            let top = 24; for (const [name, group] of rows) {{ if (name === {json.dumps(row)}) break;
              top += [22, 16, 11, 22][group] + 3; }}
            const left = at.width < 600 ? 104 : 132;
            return [at.x + left + {part} * (at.width - left), at.y + top + 5]; }})()"""
        x, y = self.run(script)
        return x, y

    def table(self, selector: str) -> list[list[str]]:
        """The cells of a table's body."""
        return self.run(
            f"[...document.querySelector({json.dumps(selector)}).tBodies[0].rows].map(r => "
            "[...r.cells].map(c => c.textContent))"
        )

    def text(self, selector: str) -> str:
        """What an element says."""
        return self.run(f"document.querySelector({json.dumps(selector)}).textContent")
