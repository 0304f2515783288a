"""Build the site: `python tools/site.py FOLDER` makes FOLDER/html. Warnings are errors, and links inside are checked.

The sources are laid out in FOLDER/source as in the project, so that links between files lead to pages: docs/, what it
links to beside it, and the reference, which is read off the code (`site_reference.py`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tools.site_reference import pages  # noqa: E402

#: Settings of kernels: they say errors only. A command of a cell must succeed, and writes to no terminal, so there is
#: no progress in its output.
KERNEL = """
import subprocess


def system(command):
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {command}")


get_ipython().system = system
"""

#: What pages of docs/ link to.
BESIDE = ("*.md", "CITATION.cff", "experiments/*/expected.md", "experiments/*/figure.png", "published/README.md")


def lay_out(folder: Path) -> None:
    """Write the sources of the site into a folder; files that are the same stay as old as they are."""
    wanted = {path: path.read_bytes() for path in _copied()}
    texts = {ROOT / f"reference/{name}.md": text.encode() for name, text in pages().items()}
    wanted |= texts | {ROOT / "index.md": wanted.pop(ROOT / "docs/index.md")}
    wanted[ROOT / "docs/machines.md"] += _unlisted({path: wanted[path] for path in wanted if path.suffix == ".md"})
    made = {folder / path.relative_to(ROOT): content for path, content in wanted.items()}
    for old in folder.rglob("*"):
        if old.is_file() and old not in made:
            old.unlink()
    for path, content in made.items():
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _unlisted(files: Mapping[Path, bytes]) -> bytes:
    """A table of contents of the pages right in docs/ that no other page lists: those of new machines."""
    listed = {line.rpartition("/")[2] for text in files.values() for line in text.decode().splitlines()}
    more = sorted(path.stem for path in files if path.parent == ROOT / "docs" and path.stem not in listed)
    return "\n".join(["", "```{toctree}", ":maxdepth: 1", "", *more, "```", ""]).encode() if more else b""


def _copied() -> Iterator[Path]:
    yield from (path for path in (ROOT / "docs").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    for pattern in BESIDE:
        yield from (path for path in ROOT.glob(pattern) if path.name != "README.md" or path.parent != ROOT)


def build(folder: Path, arguments: Sequence[str] = ()) -> int:
    """Build the site; gives the exit code. arguments: more of `sphinx-build`, such as `-D nb_execution_mode=off`."""
    try:
        from sphinx.cmd.build import main as sphinx
    except ImportError:
        print("the site needs the extra docs: pip install 'lstmsim[docs]'", file=sys.stderr)
        return 2
    # pages call `lstmsim`, the one of this Python
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    source, html = folder / "source", folder / "html"
    lay_out(source)
    # kernels read no settings of the user
    settings = folder / "ipython/profile_default/ipython_kernel_config.py"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f"c.IPKernelApp.log_level = 40\nc.IPKernelApp.exec_lines = [{KERNEL!r}]\n")
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    options = ["-W", "--keep-going", "-q", "-c", str(source / "docs"), "-d", str(folder / "doctrees")]
    code: int = sphinx([*options, *arguments, str(source), str(html)])
    for path in html.rglob("*.html"):
        path.write_text(accessible(path.read_text("utf-8")), "utf-8")
    return code or _offline(html)


#: Marks of Sphinx and its theme that lack something, and what they become: captions are headings of some level, and
#: boxes that scroll are reached by keys.
_MARKS = (
    (r'(<p class="caption"[^>]* role="heading")(?! aria-level)', r'\1 aria-level="2"'),
    (
        r'(<pre|<div class="table-wrapper[^"]*"|<div class="output text_html[^"]*")(?![^>]* tabindex)',
        r'\1 tabindex="0"',
    ),
)


def accessible(page: str) -> str:
    """Give the text of a page with levels of captions, and with boxes that scroll among what keys reach."""
    for pattern, mark in _MARKS:
        page = re.sub(pattern, mark, page)
    return page


def _offline(html: Path) -> int:
    """Say which pages load something from elsewhere; gives the exit code."""
    loaded = re.compile(r"<(?:script|link|img)\b[^>]*\b(?:src|href)=\"https?://[^\"]*\"[^>]*>")
    wrong = {path.name: found for path in html.rglob("*.html") if (found := loaded.findall(path.read_text("utf-8")))}
    for name, found in wrong.items():
        print(f"{name} loads {found[0]}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if sys.argv[1:] else "out/site").resolve(), sys.argv[2:]))
