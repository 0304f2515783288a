"""The group of all commands: loads a command when it is named, and turns every error into a line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOSPC
from importlib import import_module
from typing import Any, cast

import click

from lstmsim import __version__
from lstmsim.base.errors import MAX_MISTAKES, EngineWarning, InputError, LstmsimError
from lstmsim.base.memory import memory_limit

#: The commands in the order of their help: the module of each below `lstmsim.cli`, and its line in the list, which is
#: shown without importing the command.
COMMANDS = {
    "simulate": ("simulate", "Simulate a scenario: how busy is the chip, and why not busier?"),
    "compare": ("compare", "Simulate the same jobs on several chips, side by side."),
    "diff": ("diff", "Compare two runs: what changed, and where every cycle between them went."),
    "validate": ("known", "Rerun every published figure that a model claims to reproduce."),
    "accuracy": ("networks", "Compare fixed point with floating point: what do 8 bits cost?"),
    "serve": ("serving", "Serve millions of requests: rates, latencies, queues, in little memory."),
    "saturate": ("serving", "Find the highest rate of requests at which latencies keep their bounds."),
    "load-latency": ("serving", "Measure latency against offered load, a curve for each policy or chip."),
    "fit": ("known", "Say whether a scenario's chip fits an FPGA, and what binds."),
    "sparse": ("kernels", "Simulate a product with a sparse matrix on a chip, and other ways to do it."),
    "gemm": ("kernels", "Plan threads for a matrix product on a multi-core chip."),
    "fuse": ("kernels", "Plan few kernels for the memory-intensive part of a network, on a chip."),
    "rtl": ("rtl", "Write the chip as Verilog, proved equal to the simulation."),
    "board": ("board", "Run such a design on a board, or on simulated pins, and compare."),
    "search": ("compare", "Search the best EP and VP of an array for a scenario's models."),
    "design": ("design", "Find the best chip of a space for a device, proved by bounds and simulation."),
    "sweep": ("sweep", "Simulate a whole design space: in parallel, and resumed where it stopped."),
    "merge": ("sweep", "Join the shards of a sweep."),
    "timeline": ("traces", "Draw a saved trace, all of it or a window."),
    "program": ("traces", "Run a program that was kept in a file, without its scenario."),
    "import": ("networks", "Turn a network's file into a model file and its weights."),
    "init": ("editors", "Write a scenario to begin with, and its schema for the editor."),
    "schema": ("editors", "Print the JSON schema of a kind of file, for editors."),
    "list": ("known", "Show models, chips, machines, devices, cells, graphs, policies, engines."),
}

_MISTAKE_LIMIT = 50


def command_of(name: str) -> click.Command:
    """Import a command, which is called `NAME_command` in its module."""
    module = import_module(f"lstmsim.cli.{COMMANDS[name][0]}")
    command: click.Command = getattr(module, f"{name.replace('-', '_')}_command")
    return command


class LazyGroup(click.Group):
    """The group of commands. A command is imported when it is asked for; its errors are explained here and nowhere
    else."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return command_of(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(COMMANDS)}."
            raise click.UsageError(f"No such command {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        # `--help` and `--version` of the group do their work here.
        with _guarded():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        from lstmsim.base.endings import cleaning_up
        from lstmsim.base.files import own_ledger

        with _guarded(), cleaning_up(), own_ledger(), _plain_warnings():
            result = super().invoke(ctx)
            # A reader that has gone or a full disk must show here, not while the interpreter shuts down.
            if sys.stdout is not None:
                sys.stdout.flush()
            return result


@contextmanager
def _guarded() -> Iterator[None]:
    """Turn whatever the block raises into a line and an exit code, except what click itself explains."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort, SystemExit):
        raise
    except BaseException as error:
        raise click.exceptions.Exit(_explain(error)) from None


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings about the engine as one line on standard error, without the line of code that they come from."""
    import warnings

    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if not issubclass(category, EngineWarning):
                others(message, category, *where)
                return
            # On a terminal a status may stand on the line.
            start = "\r" if sys.stderr is not None and sys.stderr.isatty() else ""
            click.echo(f"{start}warning: {message}", err=True)

        warnings.simplefilter("always", EngineWarning)
        warnings.showwarning = cast(Any, show)
        yield


def _explain(error: BaseException) -> int:
    """Say on standard error what went wrong; return the exit code."""
    if isinstance(error, BrokenPipeError):
        _abandon_stdout()
        return 1
    if os.environ.get("LSTMSIM_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    match error:
        case InputError():
            for mistake in error.mistakes[:_MISTAKE_LIMIT]:
                click.echo(str(mistake) if mistake.location else f"Error: {mistake}", err=True)
            if len(error.mistakes) > _MISTAKE_LIMIT:
                # Behind so many mistakes a file is not looked at.
                least = "at least " if len(error.mistakes) >= MAX_MISTAKES else ""
                click.echo(f"... and {least}{len(error.mistakes) - _MISTAKE_LIMIT} more mistakes", err=True)
            return 2
        case ValueError() if "embedded null" in str(error):
            # no shell can give one, a program that calls this one can
            click.echo("Error: a name holds a null character, which no path can hold", err=True)
            return 2
        case LstmsimError():
            click.echo(f"Error: {error}", err=True)
        case KeyboardInterrupt():
            click.echo("interrupted", err=True)
            return 130
        case MemoryError() if (size := getattr(error, "_total_size", 0)) > memory_limit():
            # numpy says how much it was asked for: the machine is not at fault
            click.echo(
                f"Error: the input needs {size / 1e9:,.1f} GB of memory at once, expected a smaller one", err=True
            )
            return 2
        case MemoryError():
            click.echo("Error: the memory of this machine is not enough for this", err=True)
        case OSError():
            _abandon_stdout()
            where = f"{error.filename}: " if error.filename else "standard output: " if error.errno == ENOSPC else ""
            click.echo(f"Error: {where}{error.strerror or error}", err=True)
        case _:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            click.echo(f"internal error: {text}; please report it (LSTMSIM_DEBUG=1 shows where it is)", err=True)
    return 1


def _abandon_stdout() -> None:
    """Let standard output lead nowhere, so that shutting down cannot fail once more on unwritten text."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno())  # type: ignore[union-attr]
        os.close(nowhere)


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        import platform

        click.echo(f"lstmsim {__version__} (Python {platform.python_version()}, {sys.platform} {platform.machine()})")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version."
)
def lstmsim() -> None:
    """Simulate recurrent-network accelerators cycle by cycle.

    Results go to standard output, remarks to standard error. Exit codes: 0 done, 2 the input is at fault, 1 anything
    else, 130 interrupted, 143 terminated (SIGTERM), 129 hangup (SIGHUP).

    A file is written whole, in place of an older one of that name. A file that the command reads is never replaced.
    `import --out` and `rtl --out` also keep what they did not write.
    """
