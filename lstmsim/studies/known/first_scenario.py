"""A first scenario: a file that runs as it is, with every other key as a comment, and the schema for the editor."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.files.scenario.schema import JobEntry, ScenarioFile
from lstmsim.studies.known.file_schema import FILES, schema
from lstmsim.studies.known.keys import DOCUMENTS, described_keys, key_line
from lstmsim.studies.known.shapes import example

#: The schema that the first line of the scenario names, in the same folder.
SCHEMA_FILE = "lstmsim-scenario.schema.json"
_CHIP = {"chip": "column-npu-64k"}
_JOB = {"model": "lstm-512", "steps": 25, "count": 4}
_WIDTH = 100
#: Letters of an example that is no help in a line.
_LONG = 40


def first_scenario() -> str:
    """Give the text of a scenario that runs, with the line by which editors find its schema.

    >>> print(first_scenario().splitlines()[0])
    # yaml-language-server: $schema=lstmsim-scenario.schema.json
    """
    head = [
        f"# yaml-language-server: $schema={SCHEMA_FILE}",
        "# A scenario: a chip and its jobs. `lstmsim simulate` runs it.",
        "# Every other key is a comment: an example of its value, then its meaning, bounds and default.",
        "",
    ]
    scenario = _lines(ScenarioFile, _CHIP, skip=("jobs",))
    job = list(_lines(JobEntry, _JOB))
    return "\n".join([*head, *scenario, "", "jobs:", f"  - {job[0]}", *(f"    {line}" for line in job[1:])]) + "\n"


def _lines(entry: type, used: Mapping[str, Any], skip: tuple[str, ...] = ()) -> Iterator[str]:
    """The keys of an entry, those with values first; each followed by its meaning."""
    keys = described_keys(entry, DOCUMENTS[entry])
    schemas = FILES.mapping(entry)["properties"]
    shown = [*used, *(name for name in keys if name not in used and name not in skip)]
    for name in shown:
        value = used[name] if name in used else example(schemas[name])
        text = value if isinstance(value, str) else json.dumps(value)
        line = f"{'' if name in used else '# '}{name}: {text if len(text) < _LONG else '{}'}"
        first, *more = textwrap.wrap(key_line(keys[name]), _WIDTH - 40, break_on_hyphens=False)
        yield f"{line:34}  # {first}"
        yield from (f"{'':34}  # {each}" for each in more)


def init(path: str | os.PathLike[str] = "scenario.yaml") -> tuple[str, ...]:
    """Write a scenario to begin with, and next to it the schema that its first line names. Give the names of both.

    path: the scenario's file, .yaml or .yml. Nothing is ever replaced: a schema that is there is kept.
    `InputError` if the scenario is there already.

    >>> import tempfile
    >>> from lstmsim import init
    >>> folder = tempfile.mkdtemp()
    >>> [name.rpartition("/")[2] for name in init(f"{folder}/scenario.yaml")]
    ['scenario.yaml', 'lstmsim-scenario.schema.json']
    """
    file = Path(path)
    if file.suffix not in (".yaml", ".yml"):
        raise InputError(Mistake(str(file), "expected a file name that ends in .yaml, .yml"))
    if os.path.lexists(file):
        raise InputError(Mistake(str(file), "is there already, and is not replaced; expected another name"))
    if not file.parent.is_dir():
        raise InputError(Mistake(str(file), f"there is no folder {file.parent}"))
    beside = file.with_name(SCHEMA_FILE)
    texts = {file: first_scenario()} | ({} if os.path.lexists(beside) else {beside: schema_text("scenario")})
    for name, text in texts.items():
        with whole_file(str(name)) as written:
            written.write(text)
    return str(file), str(beside)


def schema_text(kind: str) -> str:
    """Give the JSON schema of a kind of file as text."""
    return json.dumps(schema(kind), indent=1) + "\n"
