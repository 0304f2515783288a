"""The page in a real browser, where one is installed: it renders, light, dark and on paper, without a complaint."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lstmsim.studies.simulate.page.page import report_page
from tests.studies.simulate.runs import run

_NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((path for name in _NAMES if (path := shutil.which(name))), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser on PATH: none of {', '.join(_NAMES)}")

WIDTH, HEIGHT = 1200, 2000
DARK = "--blink-settings=preferredColorScheme=0"


def browse(page: Path, profile: Path, *options: str) -> str:
    """Runs the browser on a page; what it wrote to its log, the page's complaints included."""
    assert BROWSER is not None
    # The page is made here: no sandbox is needed, and root has none.
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    where = [f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}"]
    command = [BROWSER, *fixed, *where, *options, page.as_uri()]
    quiet = os.environ | {"DBUS_SESSION_BUS_ADDRESS": "disabled:"}
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=120, check=True, env=quiet
    ).stderr


def complaints(log: str) -> list[str]:
    """The complaints of the browser about the page: errors, refused loads, broken markup."""
    return [line for line in log.splitlines() if "CONSOLE" in line]


def picture_of(page: Path, folder: Path, *options: str) -> tuple[NDArray[np.uint8], list[str]]:
    """Pixels [height, width, red-green-blue] and complaints."""
    file = folder / "picture.png"
    log = browse(page, folder / "profile", f"--screenshot={file}", *options)
    with Image.open(file) as image:
        return np.asarray(image.convert("RGB")), complaints(log)


def share(pixels: NDArray[np.uint8], colour: str) -> float:
    """Part of the picture that has exactly that colour."""
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return float((pixels == wanted).all(axis=-1).mean())


@pytest.mark.parametrize(
    ("options", "ground", "ink", "hazard"),
    [((), "#FFFFFF", "#1B1F23", "#E4E4E4"), ((DARK,), "#15191E", "#E6EAEE", "#343A40")],
)
def test_the_page_renders_light_and_dark_without_a_complaint(
    tmp_path: Path, options: tuple[str, ...], ground: str, ink: str, hazard: str
) -> None:
    page = tmp_path / "page.html"
    page.write_text(report_page(run("four cores"), trace_file="trace.json"), encoding="utf-8")
    pixels, seen = picture_of(page, tmp_path, *options)
    assert pixels.shape == (HEIGHT, WIDTH, 3)
    assert not seen
    assert 0.4 < share(pixels, ground) < 0.95
    assert share(pixels, ink) > 0.001
    # Useful work in bars and the first job's spans; lines across the page, top to bottom: nothing has collapsed.
    assert share(pixels, "#0072B2") > 0.003
    # A wait shows its ground between the lines of its hatch.
    assert run("four cores").report.losses["hazard"] > 0
    assert share(pixels, hazard) > 0.001
    rows = (pixels != pixels[0, 0]).any(axis=(1, 2))
    assert rows[: HEIGHT // 2].mean() > 0.4
    assert rows[HEIGHT // 2 :].mean() > 0.4


def test_a_complaint_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = report_page(run("one job"))
    page.write_text(text.replace("</main>", '<img src="data:image/png;base64,AAAA" alt=""></main>'), encoding="utf-8")
    _, seen = picture_of(page, tmp_path)
    assert any("Content Security Policy" in line for line in seen), seen


def test_the_page_prints_on_a4(tmp_path: Path) -> None:
    page, file = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(report_page(run("thousand jobs")), encoding="utf-8")
    log = browse(page, tmp_path / "profile", f"--print-to-pdf={file}", "--no-pdf-header-footer")
    assert not complaints(log)
    content = file.read_bytes()
    assert content.startswith(b"%PDF")
    sizes = re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", content)
    assert sizes
    for width, height in sizes:
        assert float(width) == pytest.approx(210 / 25.4 * 72, abs=1.5)
        assert float(height) == pytest.approx(297 / 25.4 * 72, abs=1.5)
    # A thousand rows would take more than twenty pages; the first forty of them are printed.
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 12
