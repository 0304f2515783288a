"""The chips and models that come with lstmsim: the place of their files, and the file of each name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.wording import nearest, show
from lstmsim.files.yaml.source import read_document

_PACKAGE = Path(__file__).resolve().parents[1]
_SUFFIXES = (".yaml", ".yml", ".json")


@record
class Entry:
    """One chip or model that comes with lstmsim."""

    name: str
    path: Path
    source: str


def is_path(name: str) -> bool:
    """Whether a text is the path of a chip's or model's file, not a name: it has a slash or ends like a file."""
    return "/" in name or "\\" in name or name.endswith(_SUFFIXES)


def model_files(package: Path = _PACKAGE) -> Mapping[str, Path]:
    """Name -> file of each model that comes with lstmsim."""
    return _files(_models(package))


def _models(package: Path) -> Path:
    inside = package / "_models"
    return inside if inside.is_dir() else package.parent / "models"


def chip_files(package: Path = _PACKAGE) -> Mapping[str, Path]:
    """Name -> file of each chip preset."""
    return _files(package / "presets")


def input_files(package: Path = _PACKAGE) -> Mapping[str, Path]:
    """Name of a file -> path, for files with real input frames that come with lstmsim."""
    return {each.name: each for each in sorted((_models(package) / "inputs").glob("*.safetensors"))}


def find_model(name: str) -> Path:
    """The file of that model; `InputError` with the nearest name if there is none."""
    return _find("model", name, model_files())


def find_chip(name: str) -> Path:
    """The file of that chip preset; `InputError` with the nearest name if there is none."""
    return _find("chip", name, chip_files())


def file_named(kind: str, name: str, folder: Path | None = None) -> str:
    """The file of a `chip` or `model`: the path itself, from `folder` on, or the file of that name; `InputError`."""
    if is_path(name):
        return name if folder is None else str(folder / name)
    return str(find_chip(name) if kind == "chip" else find_model(name))


def list_models() -> tuple[Entry, ...]:
    """List every model that comes with lstmsim, in the order of names."""
    return _entries(model_files())


def list_chips() -> tuple[Entry, ...]:
    """List every chip preset, in the order of names."""
    return _entries(chip_files())


@cache
def _files(folder: Path) -> Mapping[str, Path]:
    paths = sorted(each for each in folder.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
    return {each.stem: each for each in paths}


def _find(kind: str, name: str, files: Mapping[str, Path]) -> Path:
    if name in files:
        return files[name]
    hint = nearest(name, files) or f"; `lstmsim list` shows all, a file's path ends in {_SUFFIXES[0]}"
    raise InputError(f"no {kind} called {show(name)}{hint}")


def _entries(files: Mapping[str, Path]) -> tuple[Entry, ...]:
    return tuple(Entry(name, path, _source(path)) for name, path in sorted(files.items()))


def _source(path: Path) -> str:
    try:
        source = read_document(path).data.get("source")
    except InputError as error:
        return str(error).splitlines()[0]
    return " ".join(source.split()) if isinstance(source, str) else ""
