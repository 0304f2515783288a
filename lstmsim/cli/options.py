"""Commands made of requests: their options, and their output files, checked before the work and named after it."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import MISSING, replace
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lstmsim.base.errors import InputError, LstmsimError, Mistake, refuse
from lstmsim.base.keys import Described, keys_of
from lstmsim.base.records import record
from lstmsim.base.wording import listed
from lstmsim.report.styles import SCREEN, Look
from lstmsim.report.tables import folded
from lstmsim.studies.shared.request import sentence_of

if TYPE_CHECKING:
    from lstmsim.analysis.timeline import Timeline

#: By the names of outputs, what writes them.
Writers = Mapping[str, Callable[[str], object]]
_DRAWING = "drawing"
_STAMP = "Print the full evidence for these cycles, with every assumed key by name."
_STAMPED = "simulate serve saturate load-latency compare search sweep design diff gemm sparse fuse"
#: First cycle, and the cycle behind the last; None: the end.
Window = tuple[int, int | None]


def command(
    name: str,
    *parts: type | Output,
    left_out: Sequence[str] = (),
    windowed: Sequence[str] = (),
    more: Sequence[click.Parameter] = (),
    kind: type[click.Command] | None = None,
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function, which gets the output files and the fields of a request; its docstring is the help.

    parts: classes with keys, a request first, and the files that the command may write, in the order of the help. A
    field without default that names no option is an argument; a later class may declare a field anew. Who may write
    a picture has the options of its look, too.
    left_out: fields that are for Python only.
    windowed: the outputs that `--trace-window` cuts.
    more: arguments and options that stand before those of the request.
    kind: the class of the command.
    """
    outputs = [each for each in parts if isinstance(each, Output)]
    pictures = [each.flag for each in outputs if each.verb == _DRAWING]
    parts += (Look,) if pictures else ()
    every = {key: each for part in parts if isinstance(part, type) for key, each in keys_of(part).items()}
    keys = {key: each for key, each in every.items() if key not in left_out and Callable not in each.kinds}
    made = {key: _parameter(each) for key, each in keys.items()}
    params = [*more]
    for part in parts:
        names = [key for key in keys_of(part) if key in made] if isinstance(part, type) else []
        params += [made[key] for key in names if made[key] not in params]
        params += [part.option] if isinstance(part, Output) else []
    params += [_window_option(windowed)] if windowed else []
    params += [click.Option(["--stamp"], is_flag=True, help=_STAMP)] if name in _STAMPED.split() else []

    def decorate(function: Callable[..., None]) -> click.Command:
        def run(window: Window | None = None, stamp: bool = False, **given: Any) -> None:
            look = Look(*(given.pop(each) for each in keys_of(Look))) if Look in parts else SCREEN
            files = Outputs({each: given.pop(each.name) for each in outputs}, window, look)
            files.stamp = stamp
            if pictures and look != SCREEN and not any(each.verb == _DRAWING for each in files.kinds):
                raise InputError(
                    Mistake("--style" if look.width is None else "--width", f"only with {listed(pictures)}")
                )
            if window is not None and not any(each in files.paths for each in windowed):
                raise InputError(Mistake("--trace-window", f"only with {listed(f'--{each}' for each in windowed)}"))
            files.check(given)
            try:
                function(files, **given)
            except InputError as error:
                raise InputError([_named(each, made, every) for each in error.mistakes]) from error

        text = inspect.cleandoc(function.__doc__ or "")
        return (kind or _Command)(name, params=params, callback=run, help=text)

    return decorate


class _Command(click.Command):
    """A command that leads from an option which it does not have to what does it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            if not (instead := self._instead(name.lstrip("-").replace("-", "_"))):
                raise
            raise click.NoSuchOption(name, f"No such option {name!r}: {instead}", ctx=ctx) from None

    def _instead(self, name: str) -> str:
        """What the user may have meant by an option: a picture, or a key of the scenario."""
        options = {each: getattr(param, "help", None) or "" for param in self.params for each in param.opts}
        pictures = [each for each, help in options.items() if ".png" in help]
        if name in ("plot", "picture", "draw") and pictures:
            return f"pictures are drawn by {listed(pictures)}."
        if not {"--set", "scenario"} <= options.keys() or f"--{name}".removesuffix("s") in options:
            return ""
        known = import_module("lstmsim.studies.known.run").list_known("keys")["keys"]
        paths = {row["name"].partition(" ")[2] for row in known}
        ways = {name: name, f"cores.{name}": f"chip.cores.0.{name}", f"jobs.{name}": f"jobs.0.{name}"}
        changes = [f"--set {at}=VALUE" for path, at in ways.items() if path in paths]
        return f"that is a key of the scenario, changed by {listed(changes)}." if changes else ""


def _named(mistake: Mistake, made: Mapping[str, click.Parameter], every: Mapping[str, Described]) -> Mistake:
    """The mistake as the command line has it; a field that a sentence names is known by its underscore.

    made, every: the parameters of the command, and all fields, of which some are for Python only.
    """

    def place(field: str) -> str:
        """The option of a field, or of an entry of it, that a mistake names; paths of keys in files stay."""
        if field == "window":
            return "--trace-window"
        name, blank, typed = field.partition(" ")
        if blank and name in ("folder", "overrides", "axes", "minimise") and name in made:
            return f"{made[name].opts[0]} {typed}"
        key, _, index = field.removeprefix("saturation: ").partition(".")
        named = f" {index}" if index and key in every and every[key].key.metavar == "NAME=VALUE" else ""
        if key not in every or not (index.isdecimal() or not index or named):
            return field
        if key == "jobs" and bool in every[key].kinds:
            return field
        return option.opts[0] + named if isinstance(option := made.get(key), click.Option) else key.upper()

    sentence = mistake.sentence
    for field in made:
        sentence = sentence.replace(field, place(field)) if "_" in field else sentence
    return Mistake(place(mistake.location), sentence)


def _parameter(each: Described) -> click.Parameter:
    """The argument or the option of a field."""
    key, kinds = each.key, each.kinds
    if each.default is MISSING and not key.flag:
        return click.Argument([each.name], type=click.Path())
    flag = key.flag or f"--{each.name.replace('_', '-')}"
    if bool in kinds:
        return _switch(flag, each)
    several = key.repeatable
    typed: Any = str
    if key.choices and not key.metavar:
        typed = click.Choice(key.choices)
    elif not several and key.read is None and kinds & {int, float}:
        bounded = int in kinds and (key.low, key.high) != (None, None)
        typed = click.IntRange(key.low, key.high) if bounded else int if int in kinds else float  # type: ignore[arg-type]
    default = None if each.default is MISSING or (not each.default and each.default != 0) else each.default
    default = ",".join(map(str, default)) if isinstance(default, tuple) else default
    extra: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    return click.Option(
        [flag, each.name],
        type=typed,
        metavar=key.metavar or None,
        multiple=several,
        **extra,
        required=each.default is MISSING,
        help=sentence_of(each, "; repeatable" if several else ""),
        callback=_reading(key.read, each.default) if key.read else None,
    )


def _switch(flag: str, each: Described) -> click.Option:
    """The option of a field that is true or false; with its opposite where it may be left to the study."""
    help = sentence_of(each)
    if each.default is None:
        return click.Option([f"{flag}/--no-{flag[2:]}", each.name], default=None, help=help)
    if each.default:
        return click.Option(
            [f"--no-{flag[2:]}", each.name], is_flag=True, callback=lambda _, __, off: not off, help=help
        )
    return click.Option([flag, each.name], is_flag=True, help=help)


def _window_option(windowed: Sequence[str]) -> click.Option:
    def parsed(text: str) -> Window:
        from lstmsim.analysis.timeline import parse_window

        return parse_window(text)

    help = f"Keep only cycles A to B, B excluded, in {listed((f'--{each}' for each in windowed), 'and')}."
    return click.Option(["--trace-window", "window"], metavar="A:B", help=help, callback=_reading(parsed))


def _reading(read: Callable[[Any], Any], default: Any = None) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def callback(_: click.Context, __: click.Parameter, text: Any) -> Any:
        try:
            return default if text is None else read(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return callback


@record
class Output:
    """A file that a command may write.

    name: the argument of the command.
    help: of its option.
    suffixes: how its name must end; a text names the module whose `SUFFIXES` they are.
    beside: gives the files that are written with it, by what they are.
    verb: what is done, in the status.
    """

    name: str
    help: str
    suffixes: tuple[str, ...] | str = ()
    beside: Callable[[str], Mapping[str, str]] | None = None
    verb: str = "writing"

    @property
    def flag(self) -> str:
        """The option."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def option(self) -> click.Option:
        """The option as click has it."""
        return click.Option([self.flag, self.name], metavar="FILE", help=self.help)


def json_output(content: str = "the result") -> Output:
    """The file for everything: `--json`."""
    return Output("json", f"Write {content} as JSON; - is standard output.")


def picture_output(name: str, help: str, beside: Callable[[str], Mapping[str, str]] | None = None) -> Output:
    """A picture."""
    return Output(name, f"{help}: .png, .svg or .pdf.", "lstmsim.report.pictures.figures", beside, _DRAWING)


def report_output() -> Output:
    """The page of a result: `--report`."""
    return Output("report", "Write the result as a page to explore in a browser: .html.", (".html",))


def trace_output(help: str) -> Output:
    """A file of what happened, with the views that its format may have: `--trace`."""
    return Output("trace", help, "lstmsim.analysis.files", _views_beside)


def numbers_beside(path: str) -> dict[str, str]:
    """The numbers of a picture."""
    return {"numbers": f"{os.path.splitext(path)[0]}.csv"}


def _views_beside(path: str) -> dict[str, str]:
    views: dict[str, str] = import_module("lstmsim.analysis.files").views_beside(path)
    return views


class Outputs:
    """The output files of a command: checked, written with the result, and named on standard error."""

    def __init__(self, given: Mapping[Output, str | None], window: Window | None = None, look: Look = SCREEN) -> None:
        self.window, self.look, self.stamp = window, look, False
        self.paths = {each.name: path for each, path in given.items() if path is not None}
        self._kinds = {each.name: each for each in given}
        self._beside: dict[str, Mapping[str, str]] = {}
        self._kept: set[str] = set()
        self._made: dict[str, object] = {}

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse files that cannot be written, that clash, or that the command reads; `given`: its other values."""
        every: dict[str, str | None] = {}
        for name, path in self.paths.items():
            kind = self._kinds[name]
            known = kind.suffixes
            if known:
                check_suffix(kind.flag, path, import_module(known).SUFFIXES if isinstance(known, str) else known)
            self._beside[name] = {} if kind.beside is None else kind.beside(path)
            every[kind.flag] = path
            every |= {f"{kind.flag}'s {what}": other for what, other in self._beside[name].items()}
        first, *others = [flag for flag, path in every.items() if path == "-"] or [""]
        if others:
            raise InputError(Mistake(f"{others[0]} -", f"standard output is taken by {first}; expected a file"))
        # a view that is there may have been changed by its reader
        self._kept = {
            path
            for each in self._beside.values()
            for what, path in each.items()
            if what.endswith(" view") and os.path.isfile(path)
        }
        check_outputs(every, inputs_of(given), [*self._kept])

    def write(self, result: Any, writers: Writers | None = None) -> None:
        """Write the files that were asked for; what refuses a trace is known before the first.

        result: gives the JSON (`to_dict`), the page (`to_page`) and the trace (`timeline`).
        writers: by name, what writes another file, or one of these in another way.
        """
        known: dict[str, Callable[[str], object]] = {
            "json": lambda path: write_json(path, result.to_dict()),
            "report": lambda path: write_text(path, result.to_page(*_called())),
            "trace": lambda path: import_module("lstmsim.analysis.files").save_trace(self.cut(result.timeline), path),
            **(writers or {}),
        }
        if "trace" in self.paths:
            import_module("lstmsim.analysis.files").refuse_trace(self.cut(result.timeline), self.paths["trace"])
        # JSON comes last: it is never refused, and others may be
        for name, path in sorted(self.paths.items(), key=lambda each: each[0] == "json"):
            with nullcontext() if path == "-" else status(f"{self._kinds[name].verb} {os.path.basename(path)}"):
                try:
                    self._made[name] = known[name](path)
                except LstmsimError:
                    self.name()
                    raise

    @property
    def kinds(self) -> list[Output]:
        """What was asked for."""
        return [self._kinds[name] for name in self.paths]

    def cut(self, timeline: Timeline) -> Timeline:
        """The part of a timeline that was asked for."""
        if self.window is None:
            return timeline
        from lstmsim.analysis.timeline import window

        return window(timeline, *self.window)

    def show(self, text: Callable[[], str], result: Any = None) -> None:
        """Print a text, and the stamps of a result if they are asked for, unless a file takes standard output."""
        if "-" in self.paths.values():
            return
        click.echo(text())
        for each in result.stamps if self.stamp else ():
            click.echo("\n".join(["", *folded(each.text, 2)]))

    def name(self) -> None:
        """Say on standard error what was written."""
        for name, path in self.paths.items():
            for each in (path, *self._beside.get(name, {}).values()) if name in self._made else ():
                if each != "-":
                    remark(f"{'kept' if each in self._kept else 'wrote'} {each}")
            say_caption(self._made.get(name))

    def finish(self, result: Any, writers: Writers | None = None, text: Callable[[], str] | None = None) -> None:
        """Write the files, print the text (the result's own unless given), and name the files."""
        self.write(result, writers)
        self.show(text or result.to_text, result)
        self.name()


def _called() -> tuple[str, str]:
    """The command with what it was given, in short as a title, and whole."""
    given = takewhile(lambda each: not each.startswith("-"), sys.argv[1:])
    return " ".join(["lstmsim", *map(os.path.basename, given)]), shlex.join(["lstmsim", *sys.argv[1:]])


def say_caption(picture: Any) -> None:
    """Say on standard error what a picture for a paper has no title for."""
    if getattr(picture, "caption", "") and picture.look.style == "paper":
        remark(f"caption: {picture.caption}")


def check_suffix(option: str, path: str | None, suffixes: Sequence[str]) -> None:
    """Raise `InputError` unless `path` (None: not asked for) ends in one of `suffixes`."""
    if path is not None and not path.lower().endswith(tuple(suffixes)):
        raise InputError(Mistake(_place(option, path), f"expected a file name that ends in {', '.join(suffixes)}"))


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str] = (), kept: Sequence[str] = ()) -> None:
    """Raise `InputError` with every output that cannot be written or would replace another file in use."""
    from lstmsim.base.files import identity_of, was_read

    mistakes = []
    # Inputs may be told by reading files, which is worth the time only if something is written.
    written = any(path not in (None, "-") for path in outputs.values())
    taken = {identity_of(path): "the input" for path in (inputs if written else ())}
    for option, path in outputs.items():
        if path is None:
            continue
        place = _place(option, path)
        if path == "-" or not path:
            if not path or sys.stdout is None:
                mistakes.append(Mistake(place, "standard output is closed" if path else "the name is empty"))
            continue
        if "\0" in path:
            mistakes.append(Mistake(place, "is not a path"))
            continue
        real = os.path.realpath(path)
        problem = None if path in kept else _problem(real)
        if problem:
            mistakes.append(Mistake(place, problem))
        # Devices (/dev/null, /dev/stdout) may take more than one output.
        if os.path.isfile(real) or not os.path.exists(real):
            same = identity_of(path)
            other = taken.get(same, "the input" if was_read(path) else None)
            if other is not None:
                mistakes.append(Mistake(place, f"is also {other}; expected another file"))
            taken.setdefault(same, f"the output of {option}")
    refuse(mistakes)


def inputs_of(given: Mapping[str, Any]) -> Iterator[str]:
    """List the files that a command reads: its scenario's, those that its other values name, and lstmsim's."""
    from lstmsim.studies.shared.files_read import files_read_by, files_that_come_along

    for name, changes in (("scenario", "overrides"), ("a", "overrides_a"), ("b", "overrides")):
        if given.get(name) is not None:
            yield from files_read_by(given[name], given[changes])
    yield from files_that_come_along()
    for value in given.values():
        for text in [value] if isinstance(value, str) else value if isinstance(value, tuple) else ():
            # a matrix is named by its file and a layer
            yield from (each for each in (text, str(text).rpartition(":")[0]) if _is_file(each))


def _is_file(name: object) -> bool:
    return isinstance(name, str) and "\0" not in name and os.path.isfile(name)


def _place(option: str, path: str) -> str:
    return f"{option} {path or repr(path)}"


def _problem(path: str) -> str | None:
    """Say why a file cannot be written under `path`, as far as that can be seen without writing."""
    if "\0" in path:
        return "is not a path"
    if os.path.isdir(path):
        return "is a folder, expected a file"
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    # What exists and is no plain file is written into, everything else is replaced.
    writable = path if os.path.exists(path) else folder
    return None if os.access(writable, os.W_OK) else f"no permission to write {writable}"


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """Write plain data as JSON."""
    import json

    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def write_table(path: str, rows: Iterable[Iterable[Any]]) -> None:
    """Write rows as CSV."""
    from lstmsim.base.csv_table import CsvWriter
    from lstmsim.base.files import whole_file

    with whole_file(path) as file:
        CsvWriter(file).writerows(rows)


def write_text(path: str, text: str) -> None:
    """Write a text, whole or not at all; to standard output if the path is `-`."""
    if path == "-":
        click.echo(text, nl=False)
        return
    from lstmsim.base.files import whole_file

    with whole_file(path) as file:
        file.write(text)


def chip_remarks(scenario: str, overrides: Sequence[str], chips: Sequence[str] = ()) -> None:
    """Say on standard error what the scenario's chip, and other chips, have to say about its jobs."""
    from lstmsim.files.scenario.requests import load_requests
    from lstmsim.studies.compare.run import chips_of

    own = load_requests(scenario, overrides, 1).scenario
    for chip in chips_of(own, chips):
        for text in replace(own, chip=chip).remarks:
            remark(f"{chip.name}: {text}" if chips else text)


def remark_uncounted(scenario: object, overrides: Sequence[str]) -> None:
    """Say on standard error that a job at a random rate, without a count, is simulated as one request."""
    # a pipe can be read only once
    if not isinstance(scenario, str) or not os.path.isfile(scenario):
        return
    # other scenarios do not pay for the import
    written = Path(scenario).read_text(encoding="utf-8", errors="replace") + " ".join(map(str, overrides))
    if not any(kind in written for kind in ("poisson", "bursty")):
        return
    if import_module("lstmsim.files.scenario.requests").uncounted(scenario, overrides):
        remark("a job at a random rate without `count` is one request: set `count`, or use `lstmsim serve`")


def remark(text: str) -> None:
    """Print a line on standard error."""
    click.echo(text, err=True)


@contextmanager
def terminal_line() -> Iterator[Callable[[str], None] | None]:
    """Give what shows a text on one line of a terminal while the block runs; None without a terminal."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield None
        return
    width = 0

    def show(text: str) -> None:
        nonlocal width
        stream.write("\r" + text.ljust(width))
        stream.flush()
        width = len(text)

    try:
        yield show
    finally:
        stream.write("\r" + " " * width + "\r")
        stream.flush()


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show a text while the block runs, on a terminal only; it is gone at the end."""
    with terminal_line() as line:
        if line is not None:
            line(f"{text} ...")
        yield


@contextmanager
def progress(text: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give something to call with (done, total) while the block runs, shown as percent; None without a terminal."""
    shown = -1

    def show(done: int, total: int) -> None:
        nonlocal shown
        percent = 100 * done // max(total, 1)
        if percent != shown and line is not None:
            shown = percent
            line(f"{text} {percent:3d} %")

    with terminal_line() as line:
        yield None if line is None else show
