"""Build the source distribution and a wheel with the native core, and say on which systems the wheel can be installed.

    python tools/build_wheels.py [folder]

The wheel is built from the source distribution, into `dist` or the folder named. Where `auditwheel` is installed (on
Linux, best in an image of manylinux, whose compiler asks for old libraries only), it finds out which systems have all
that the core needs and renames the wheel for these (`manylinux_...`). Without `auditwheel` the wheel keeps the tag
`linux_...`: it is for this machine and others like it, and package indexes refuse it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build(folder: Path) -> Path:
    """Build both into a folder, and give the wheel; ends the program if that fails, or if a library is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("lstmsim-*"):
        old.unlink()
    done = subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=False)
    if done.returncode:
        raise SystemExit(f"`python -m build` failed with exit code {done.returncode}")
    (wheel,) = folder.glob("*.whl")
    wanted = len([*ROOT.glob("lstmsim/**/core/core.cpp")])
    if sum("/_core." in name for name in zipfile.ZipFile(wheel).namelist()) < wanted:
        raise SystemExit(f"{wheel} has not the {wanted} native libraries: the compiler's message is above")
    return wheel


def repaired(wheel: Path) -> Path:
    """Give the wheel under the name that says where it can be installed, in the place of the one without."""
    tool = shutil.which("auditwheel", path=str(Path(sys.executable).parent)) or shutil.which("auditwheel")
    if tool is None or not sys.platform.startswith("linux"):
        print(f"auditwheel is not installed or not for this system: the tag of {wheel.name} stays as it is")
        return wheel
    folder = wheel.parent / "repaired"
    done = subprocess.run([tool, "repair", "--wheel-dir", str(folder), str(wheel)], check=False)
    if done.returncode:
        raise SystemExit(f"`auditwheel repair` failed with exit code {done.returncode}")
    (better,) = folder.glob("*.whl")
    wheel.unlink()
    better = better.replace(wheel.parent / better.name)
    folder.rmdir()
    return better


def main() -> None:
    """Build and repair."""
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        raise SystemExit(__doc__)
    print(repaired(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve())))


if __name__ == "__main__":
    main()
