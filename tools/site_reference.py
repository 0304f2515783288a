"""The pages of the site that are read off the code: commands, files, functions, stall reasons, assumptions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, get_args

import click

import lstmsim
from lstmsim.analysis.stall_words import NAMED
from lstmsim.base.keys import Described, keys_of
from lstmsim.cli.editors import KINDS as KINDS_OF_FILES
from lstmsim.cli.group import COMMANDS, command_of
from lstmsim.files.catalog import list_chips
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.files.scenario.schema import chip_of_kind
from lstmsim.files.yaml.document import yaml_text
from lstmsim.files.yaml.source import read_document
from lstmsim.machines.registry import KINDS as MACHINES
from lstmsim.machines.registry import target_of
from lstmsim.program.stall_reasons import CYCLES
from lstmsim.studies.known.file_schema import BY_KIND, FILES
from lstmsim.studies.known.keys import DOCUMENTS, ENTRIES, default_of, described_keys, values_of_key
from lstmsim.studies.known.shapes import example
from lstmsim.studies.shared.stamp import key_values

#: What a file is, and the page that says how it is used.
FILE_PAGES: Mapping[str, tuple[str, str]] = {
    "scenario": ("A chip and its jobs: what `simulate` and most commands read.", "serving"),
    "chip": ("A machine: its kind, its clock and its cores, as presets are and `chip:` of a scenario is.", "trust"),
    "model": ("A network: its layers, and the file of its weights. `lstmsim import` writes such files.", "numerics"),
    "sweep": ("A design space over a scenario: axes, constraints, objectives.", "sweeps"),
    "graph": ("Operations on tensors, for `lstmsim fuse`.", "fusion_files"),
    "device": ("An FPGA: multiplier blocks, memories and logic, for `fit`, `design` and sweeps.", "design"),
}
#: Letters of an example that would make its table too wide.
_LONG = 60
#: What happens in a cycle, by the kind of its name.
_KINDS = {
    "work": "an operation issues",
    "switch": "the unit changes threads",
    "wait": "an operation lacks something",
    "turn": "an operation lacks nothing, and waits for its turn",
    "rest": "no operation is left that could wait",
}


#: Functions that have another name than their command.
_FUNCTIONS = {
    "import": "import_model",
    "list": "list_known",
    "program": "run_program",
    "sparse": "run_sparse",
    "gemm": "run_gemm",
    "fuse": "run_fusion",
    "rtl": "run_rtl",
    "board": "run_board",
}


def pages() -> dict[str, str]:
    """Every page by its path without `.md`, below the folder `reference`."""
    made = {f"commands/{name}": command_page(name) for name in COMMANDS}
    made |= {f"files/{kind}": file_page(kind) for kind in KINDS_OF_FILES}
    made |= {"commands": index_page("Commands", _COMMANDS, "commands", COMMANDS)}
    made |= {"files": index_page("Files", _FILES, "files", KINDS_OF_FILES)}
    made |= {"python": python_page(), "stalls": stalls_page(), "assumptions": assumptions_page()}
    return made


#: What stands on the pages that list others.
_COMMANDS = """`lstmsim COMMAND --help` says the same as these pages. Results go to standard output, remarks and
progress to standard error. `--set PATH=VALUE` changes a value of a scenario and can be repeated. `--json FILE` writes
the result; `-` is standard output. Exit codes: 0 done, 2 the input is at fault (each mistake in a line, with its
place), 1 anything else, 130 interrupted, 143 terminated (SIGTERM), 129 hangup (SIGHUP)."""
_FILES = """Files are YAML 1.2 or JSON. Paths in a file start at its folder. An unknown key, a wrong type and a number
out of bounds are refused with line and column, and with the nearest key that exists. Editors can know the keys, too:
[](/docs/howto/editor.md)."""
_STALLS = """Each cycle of a core's main unit (the PE array) has exactly one of these names. So the cycles of a core add
up to the makespan. A thread that lacks several things has the name of the first that it asks for."""


def index_page(title: str, text: str, folder: str, names: Iterable[str]) -> str:
    """A page that leads to others: with the line of each command, or with what each file is."""
    about = {name: COMMANDS[name][1] if folder == "commands" else FILE_PAGES[name][0] for name in names}
    rows = [f"| [{name}](/reference/{folder}/{name}.md) | {_cell(said)} |" for name, said in about.items()]
    toc = "\n".join(["```{toctree}", ":hidden:", "", *(f"{folder}/{name}" for name in names), "```"])
    return "\n\n".join([f"# {title}", text, "\n".join(["| | |", "| --- | --- |", *rows]), toc]) + "\n"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *([_cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return prose(" ".join(text.split()) or " ").replace("|", "\\|")


def prose(text: str) -> str:
    """A text with what Markdown would take for its own, outside of code, as it is."""
    parts = text.split("`")
    return "`".join(re.sub(r"([*_<\[\]])", r"\\\1", each) if not at % 2 else each for at, each in enumerate(parts))


def command_page(name: str) -> str:
    """The page of a command: what its `--help` says, as a page."""
    command = command_of(name)
    usage = command.make_context(name, [], resilient_parsing=True).command.collect_usage_pieces(
        click.Context(command, info_name=f"lstmsim {name}")
    )
    parts = [f"(command-{name})=", f"# lstmsim {name}", COMMANDS[name][1], _block(f"lstmsim {name} {' '.join(usage)}")]
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        if paragraph.startswith("\b"):
            parts.append(_block(paragraph.lstrip("\b\n"), "console", "$ "))
        else:
            parts.append(prose(" ".join(paragraph.split())))
    rows = [
        [f"`{' / '.join((*each.opts, *each.secondary_opts))}`", _values(each), _default(each), each.help or ""]
        for each in command.params
        if isinstance(each, click.Option)
    ]
    parts += ["## Options", table(["option", "values", "default", "meaning"], rows)] if rows else []
    function = _FUNCTIONS.get(name, name.replace("-", "_"))
    parts += ["## In Python", f"[`lstmsim.{function}`](#{_target(function)})"]
    return "\n\n".join(parts) + "\n"


def _block(text: str, language: str = "text", before: str = "") -> str:
    lines = "\n".join(f"{before}{line}" for line in text.splitlines())
    return f"```{language}\n{lines}\n```"


def _values(option: click.Option) -> str:
    """What an option takes, with its bounds."""
    if option.is_flag:
        return ""
    kind = option.type
    bounds = kind._describe_range() if isinstance(kind, click.IntRange) else ""
    words = " or ".join(kind.choices) if isinstance(kind, click.Choice) else option.metavar or kind.name
    return f"{words}, {bounds}" if bounds else words


def _default(option: click.Option) -> str:
    return str(option.default) if option.show_default else "required" if option.required else ""


def file_page(kind: str) -> str:
    """The page of a kind of file: every key of every mapping in it."""
    about, more = FILE_PAGES[kind]
    parts = [
        f"(file-{kind})=",
        f"# {kind.capitalize()} files",
        f"{about} The format is YAML 1.2 or JSON. More: [{more}](/docs/{more}.md).",
        f"`lstmsim schema {kind}` prints these keys as a JSON schema for editors: [](/docs/howto/editor.md).",
    ]
    if kind == "chip":
        for machine in MACHINES:
            target = target_of(machine)
            parts += [f"(machine-{machine})=", f"## {machine}", f"The {target.title}. {prose(target.fidelity.text)}"]
            presets = [read_document(each.path).data for each in list_chips()]
            parts += _mapping(machine, chip_of_kind(machine), "", [each for each in presets if each["kind"] == machine])
        return "\n\n".join(parts) + "\n"
    for place, entry, _ in ENTRIES:
        if place.split()[0] == kind:
            path = place.partition(" ")[2]
            parts += [f"## {'Top level' if not path else f'`{path}`'}", *_by_kind(entry), *_keys(entry)]
    return "\n\n".join(parts) + "\n"


def _mapping(name: str, entry: type, path: str, given: Sequence[Any]) -> Iterator[str]:
    """The keys of a mapping, and then those of the mappings in it; given: such mappings in presets, for examples."""
    yield f"### {name}: {f'`{path}`' if path else 'the chip'}"
    yield from _keys(entry, given)
    for key, each in described_keys(entry, ()).items():
        inner = _inner(each.type)
        if inner is not None:
            below = f"{key}.{each.key.named_by.upper()}" if each.key.named_by else key
            parts = [data[key] for data in given if data.get(key)]
            inside = [part[0] if isinstance(part, list) else part for part in parts]
            inside = [data for part in inside for data in (part.values() if each.key.named_by else [part])]
            yield from _mapping(name, inner, f"{path}.{below}".lstrip("."), inside)


def _inner(kind: Any) -> type | None:
    """The class of the mapping, or of the mappings, that a value is."""
    if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "any_keys")):
        return kind
    return next((found for part in get_args(kind) if (found := _inner(part)) is not None), None)


def _by_kind(entry: type) -> Iterator[str]:
    cases = BY_KIND.get(entry, {})
    if cases:
        rows = [[f"`{kind}`", _codes(needed), _codes(known)] for kind, (needed, known) in cases.items()]
        yield table(["kind", "required keys", "other keys"], rows)


def _codes(names: Sequence[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def _keys(entry: type, given: Sequence[Any] = ()) -> Iterator[str]:
    """A table of the keys of a mapping, and the sources of their defaults; given: such mappings, for examples."""
    keys = described_keys(entry, DOCUMENTS.get(entry, ()))
    yield table(["key", "meaning", "values", "default", "example"], [_key(each, given) for each in keys.values()])
    own = keys_of(entry)
    sources = [f"* `{name}`: {prose(own[name].key.source)}" for name in keys if own[name].key.source]
    if sources:
        yield "Where defaults come from:"
        yield "\n".join(sources)


def _key(each: Described, given: Sequence[Any]) -> list[str]:
    used = (data[each.name] for data in given if isinstance(data.get(each.name), int | float | str))
    shown = yaml_text({each.name: next(used, example(FILES.value(each)))}).strip()
    short = "\n" not in shown and len(shown) < _LONG and not shown.endswith("{}")
    code = f"`{shown}`" if short else " "
    default = default_of(each).removeprefix("default: ")
    values = values_of_key(each.key) or ("true or false" if bool in each.kinds else "")
    return [f"`{each.name}`", each.key.meaning, values, default, code]


def python_page() -> str:
    """The page of everything public in Python."""
    parts = [
        "# Python",
        "Every command has a function. Results are frozen objects: `to_dict()`, `to_text()`, `to_markdown()`, "
        "`to_records()`, `to_pandas()` and `to_polars()` give their numbers, and notebooks show them with pictures. "
        "Every example below is run by the tests.",
    ]
    for heading, wanted in (("Functions", inspect.isfunction), ("Classes", inspect.isclass)):
        parts.append(f"## {heading}")
        for name in lstmsim.__all__:
            value = getattr(lstmsim, name)
            if wanted(value):
                parts += [f"({_target(name)})=", f"### {name}", *_signature(name, value)]
                parts += _documented(inspect.getdoc(value) or "")
    return "\n\n".join(parts) + "\n"


def _target(name: str) -> str:
    """Where a function or class stands on the page of Python; `run` and `Run` are two places."""
    kind = "class" if name[0].isupper() else "python"
    return f"{kind}-{name.lower().replace('_', '-')}"


def _signature(name: str, value: Callable[..., Any]) -> Iterator[str]:
    try:
        given = inspect.signature(value)
    except (TypeError, ValueError):
        return
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in given.parameters.values()]
    yield _block(
        f"lstmsim.{name}{given.replace(parameters=plain, return_annotation=inspect.Signature.empty)}", "python"
    )


def _documented(text: str) -> Iterator[str]:
    """A docstring as Markdown: paragraphs, a list of arguments or fields, examples."""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = inspect.cleandoc(block).splitlines()
        if lines and lines[0] in ("Args:", "Examples:"):
            lines = inspect.cleandoc("\n".join(["", *lines[1:]])).splitlines()
        elif lines and lines[0] in ("Returns:", "Raises:"):
            yield prose(f"{lines[0]} {' '.join(map(str.strip, lines[1:]))}")
            continue
        if lines and lines[0].startswith(">>>"):
            yield _block("\n".join(lines), "pycon")
            continue
        made: list[str] = []
        for line in lines:
            name, colon, said = line.partition(": ")
            if colon and re.fullmatch(r"[a-z_]\w*(, [a-z_]\w*)*", name):
                made.append(f"* `{name.replace(', ', '`, `')}`: {prose(said)}")
            elif made and (line.startswith(" ") or not made[-1].startswith("* ")):
                made[-1] += f" {prose(line.strip())}"
            else:
                made.append(prose(line) if not made else f"\n{prose(line)}")
        yield "\n".join(made)


def stalls_page() -> str:
    """The page of the names of cycles."""
    own: dict[str, set[str]] = {}
    for chip in (load_chip(each.name) for each in list_chips()):
        for name in (stall for core in chip.core_figures for stall in core.stalls):
            own.setdefault(name, set()).add(chip.kind)
    rows = []
    for each in CYCLES:
        named = NAMED[each.name]
        rows.append(
            [
                f"`{each.name}`",
                _KINDS[each.kind],
                named.glossary or named.meaning or named.share,
                "every machine" if each.everywhere else _codes(sorted(own.get(each.name, ()))),
                "cores and threads" if each.of_cores else "threads only",
            ]
        )
    return (
        "\n\n".join(
            [
                "# Stall reasons",
                _STALLS,
                table(["name", "what happens", "meaning", "which machines", "whose cycles"], rows),
                "How to act on a name: [](/docs/howto/why_not_100.md).",
            ]
        )
        + "\n"
    )


def assumptions_page() -> str:
    """The page of everything that no source gives: of each preset, and of the machines' defaults."""
    parts = [
        "# Assumptions",
        "A value that no source gives is an assumption, and says so. Here are all of them, preset by preset, with the "
        "reason that its file states. `--stability 50%` of `compare`, `sweep` and `design` asks whether a conclusion "
        "survives other values: [How far to trust a number](/docs/trust.md).",
    ]
    for each in list_chips():
        values = [value for value in key_values(load_chip(each.name)) if value.assumed]
        rows = [[f"`{value.path}`", _shown(value.values), value.source or "no source is named"] for value in values]
        parts += [f"## {each.name}", prose(each.source), table(["key", "value", "why"], rows) if rows else "None."]
    return "\n\n".join(parts) + "\n"


def _shown(values: tuple[Any, ...]) -> str:
    return ", ".join(dict.fromkeys(str(each) for each in values))
