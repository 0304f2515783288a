"""`lstmsim schema` and `init`: what an editor needs to know the keys of files."""

from __future__ import annotations

import os

import click

from lstmsim.cli.options import Output, Outputs, command, remark, write_text

#: Named here too, because asking `lstmsim.studies.known.file_schema` would import numpy for a help text.
KINDS = ("scenario", "chip", "model", "sweep", "graph", "device")


@command(
    "schema",
    Output("out", "Write the schema there; default: standard output."),
    more=[click.Argument(["kind"], type=click.Choice(KINDS))],
)
def schema_command(files: Outputs, kind: str) -> None:
    """Print the JSON schema (draft 7) of a KIND of file: scenario, chip, model, sweep, graph or device.

    An editor with the YAML language server that reads it offers keys and names, shows what each key means with its
    unit, bounds, default and source, and marks misspelt keys, wrong types and numbers out of bounds. Rules between
    keys, such as ep * vp <= npe, are not in it: the command that reads the file checks them.

    \b
    lstmsim schema scenario --out lstmsim-scenario.schema.json
    lstmsim schema chip
    """
    from lstmsim.studies.known.first_scenario import schema_text

    text = schema_text(kind)
    files.write(None, {"out": lambda path: write_text(path, text)})
    if "out" not in files.paths:
        click.echo(text, nl=False)
    files.name()


@command("init", more=[click.Argument(["file"], required=False, default="scenario.yaml", type=click.Path())])
def init_command(files: Outputs, file: str) -> None:
    """Write FILE, a scenario to begin with, and the schema by which an editor knows its keys.

    FILE is scenario.yaml unless given. It runs as it is; all other keys stand in it as comments. Its first line names
    the schema, lstmsim-scenario.schema.json in the same folder. Files that are there are never replaced.

    \b
    lstmsim init
    lstmsim init speech.yaml
    """
    from lstmsim.studies.known.first_scenario import SCHEMA_FILE, init

    there = os.path.lexists(os.path.join(os.path.dirname(file), SCHEMA_FILE))
    scenario, schema = init(file)
    remark(f"wrote {scenario}")
    remark(f"kept {schema}; `lstmsim schema scenario --out {schema}` makes it anew" if there else f"wrote {schema}")
