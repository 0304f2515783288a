"""Every error that lstmsim raises on purpose, its one warning, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from lstmsim.base.records import record

#: After so many mistakes the rest of a file is not looked at.
MAX_MISTAKES = 100


class LstmsimError(Exception):
    """Base of all errors that lstmsim raises on purpose.

    >>> from lstmsim.base.errors import InputError, LstmsimError
    >>> issubclass(InputError, LstmsimError)
    True
    """


@record
class Mistake:
    """One thing wrong with what the user gave: where, and a sentence that says what was expected.

    alone: whether a value is wrong by itself, whatever stands elsewhere.

    >>> print(Mistake("chip.yaml:3:7: cores.0.ep", "must be at least 1, got 0"))
    chip.yaml:3:7: cores.0.ep: must be at least 1, got 0
    """

    location: str
    sentence: str
    alone: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.location}: {self.sentence}" if self.location else self.sentence


class InputError(LstmsimError):
    """The user's input is at fault; carries every mistake found, not only the first.

    >>> from lstmsim.base.errors import InputError, Mistake
    >>> error = InputError([Mistake("a.yaml:1:1: chip", "missing"), Mistake("a.yaml:2:1: job", "unknown key")])
    >>> print(error)
    a.yaml:1:1: chip: missing
    a.yaml:2:1: job: unknown key
    >>> print(InputError("no file called x.yaml"))
    no file called x.yaml
    """

    def __init__(self, mistakes: str | Mistake | list[Mistake]) -> None:
        if isinstance(mistakes, str):
            mistakes = [Mistake("", mistakes)]
        elif isinstance(mistakes, Mistake):
            mistakes = [mistakes]
        self.mistakes: tuple[Mistake, ...] = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


def refuse(*mistakes: Iterable[Mistake | None]) -> None:
    """Raise `InputError` with all the mistakes, if there are any; None is none.

    >>> refuse([None], [])
    >>> refuse([Mistake("seed", "must be at least 0, got -1")])
    Traceback (most recent call last):
    lstmsim.InputError: seed: must be at least 0, got -1
    """
    some = [each for several in mistakes for each in several if each is not None]
    if some:
        raise InputError(some)


class ProgramError(LstmsimError):
    """A program breaks a rule of `lstmsim.program`: a fault of the target that made it, not of the user."""


class ReplayError(LstmsimError):
    """A schedule cannot have computed the answer: something was used before it was there, twice, or never."""


class DeadlockError(LstmsimError):
    """Nothing can ever start again although tasks are unfinished; `waiting` has a sentence for each of them."""

    def __init__(self, cycle: int, waiting: tuple[str, ...]) -> None:
        self.cycle = cycle
        self.waiting = waiting
        super().__init__("\n  ".join([f"deadlock at cycle {cycle}: nothing can start any more", *waiting]))


class EngineWarning(UserWarning):
    """The fast engine is not there, so that everything takes longer; no number changes."""


# Users catch these as `lstmsim.InputError`; tracebacks call them so, too.
for _public in (LstmsimError, InputError, DeadlockError):
    _public.__module__ = "lstmsim"
