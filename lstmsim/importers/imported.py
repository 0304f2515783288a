"""The result of an import from any format: models, and what became of every operator of the file.

Products of matrices and filters are counted. An operator without such a product counts 0, however long it takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from lstmsim.base.wording import listed
from lstmsim.model.model import Model

if TYPE_CHECKING:
    from lstmsim.model.numerics.weights import Network


SIMULATED, DENSE, FOLDED, LEFT_OUT = "simulated", "dense layer", "folded", "left out"
#: What can become of an operator: a recurrent layer of the model; a dense layer; nothing, because it only moves or
#: prepares numbers; nothing, although it computes.
OUTCOMES = (SIMULATED, DENSE, FOLDED, LEFT_OUT)
#: Share of the multiply-accumulates whose absence needs a warning.
WARN_ABOVE = 0.1
_SHOWN_KINDS = 6
_CLOSE = 0.01
_LONGEST_NAME = 150


@dataclass(frozen=True)
class Operators:
    """All nodes of one operator type (`kind`, as its format calls it) that share one of `OUTCOMES`.

    `macs` are the multiply-accumulates of all these nodes in one run of the network; None, with a reason, if the
    file does not tell.
    """

    kind: str
    outcome: str
    count: int
    macs: int | None = 0
    reason: str = ""


@dataclass(frozen=True)
class OperatorTable:
    """The outcome of every operator of a network's file, by type and outcome, counted for one run.

    `steps`: time steps of the recurrent layers in that run, over all sequences of its batch; None if they differ.
    `assumed`: the assumption about sizes that the file leaves open, in words. `between`: least and greatest share left
    out over other values of these sizes.
    """

    groups: tuple[Operators, ...]
    steps: int | None = None
    assumed: str = ""
    between: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> int:
        """Multiply-accumulates of all operators whose number is known."""
        return sum(each.macs or 0 for each in self.groups)

    @property
    def unknown(self) -> tuple[Operators, ...]:
        """The operators whose multiply-accumulates are unknown."""
        return tuple(each for each in self.groups if each.macs is None)

    @property
    def left_out(self) -> float | None:
        """Share of the multiply-accumulates that is left out, 0 to 1; None if it is unknown."""
        return None if self.unknown or not self.known else self.at_least

    @property
    def at_least(self) -> float:
        """Least share that is left out: unknown counts are taken as 0. It is 0 if simulated work is unknown."""
        if not self.known or any(each.outcome != LEFT_OUT for each in self.unknown):
            return 0.0
        return sum(each.macs or 0 for each in self.groups if each.outcome == LEFT_OUT) / self.known

    def warning(self) -> str | None:
        """Warn the user in a line if more than a tenth of the work is left out, or if the share is unknown."""
        share = self.left_out
        least, most = self.between if self.between and share is not None else (self.at_least, self.at_least)
        heavy = [each for each in self.groups if each.outcome == LEFT_OUT and each.macs]
        names = listed([f"{each.count} {each.kind}" for each in heavy[:_SHOWN_KINDS]], "and")
        if most > WARN_ABOVE:
            amount = percent(most) if share is not None else f"at least {percent(most)}"
            if most - least > _CLOSE:
                amount = f"{percent(least)} to {percent(most)} (by the length of the run)"
            return f"warning: {amount} of the multiply-accumulates are left out: {names}"
        if share is None:
            reasons = listed(dict.fromkeys(each.reason for each in self.unknown if each.reason), "and")
            return f"warning: cannot tell what share of the multiply-accumulates is left out: {reasons}"
        return None

    def summary(self) -> str:
        """Sum up all operators in one sentence, for the model file."""
        parts = []
        for outcome in OUTCOMES:
            own = [each for each in self.groups if each.outcome == outcome]
            if not own:
                continue
            text = f"{outcome} {', '.join(f'{each.count} {each.kind}' for each in own)}"
            if outcome == FOLDED:
                text = f"{outcome} {sum(each.count for each in own)} that only move or prepare numbers"
            if outcome == LEFT_OUT:
                share = f"at least {percent(self.at_least)}" if self.at_least else "cannot tell what share"
                share = share if self.left_out is None else percent(self.left_out)
                text += f" ({share} of the multiply-accumulates)"
            parts.append(text)
        return f"Operators: {'; '.join(parts)}."

    def lines(self) -> list[str]:
        """Format the table: a line for each group that multiplies, and one line for the rest of each outcome."""
        per = "MACs per step" if self.steps else "MACs in a run"
        # groups in order of their work; groups without work are joined into one for each outcome
        shown = []
        for outcome in OUTCOMES:
            own = [each for each in self.groups if each.outcome == outcome]
            shown += sorted((each for each in own if each.macs), key=lambda each: -(each.macs or 0))
            shown += [each for each in own if each.macs is None]
            idle = sorted((each for each in own if each.macs == 0), key=lambda each: (-each.count, each.kind))
            if idle:
                more = len(idle) - _SHOWN_KINDS
                names = ", ".join(each.kind for each in idle[:_SHOWN_KINDS]) + (f" + {more} more" if more > 0 else "")
                shown.append(Operators(names, outcome, sum(each.count for each in idle)))
        rows = [("operator", "nodes", "became", per, "share"), *map(self._row, shown)]
        widths = [max(len(row[at]) for row in rows) for at in range(5)]
        signs = "<><>>"
        lines = [
            "  ".join(f"{cell:{sign}{width}}" for cell, sign, width in zip(row, signs, widths, strict=True)).rstrip()
            for row in rows
        ]
        return [*lines, *([f"counted for {self.assumed}"] if self.assumed else []), *self.notes]

    def _row(self, group: Operators) -> tuple[str, str, str, str, str]:
        share, amount = "", "0"
        if group.macs is None:
            amount = "cannot tell"
        elif group.macs:
            each = group.macs / self.steps if self.steps else group.macs
            amount = f"{each:,.0f}" if each >= 1 else "< 1"
            share = percent(group.macs / self.known) if not self.unknown else ""
        return group.kind, f"{group.count:,}", group.outcome, amount, share


def kinds_named(names: str) -> frozenset[str]:
    """Make a set of operator types from their names in one text."""
    return frozenset(names.split())


def percent(share: float) -> str:
    """Format a share (0 to 1) as text."""
    return "< 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """One stack of recurrent layers from a file or from memory.

    model: its shapes.
    nodes: the names of its layers in the file.
    source: the file and the layers in it, in words.
    notes: what to know about the model: what is left out, taken for granted or different here.
    network: the model with its weights; None if only shapes were asked for or could be read.
    files: the file, and the files that it names as its own, such as the data files of an ONNX network; no output may
        replace them. Empty for a network in memory.
    operators: what became of all operators of the file, not of this model alone; None if the file lists none.
    steps: how many steps the file runs the model for; None if the file does not say.
    """

    model: Model
    nodes: tuple[str, ...]
    source: str
    notes: tuple[str, ...] = ()
    network: Network | None = None
    files: tuple[str, ...] = ()
    operators: OperatorTable | None = None
    steps: int | None = None

    def comments(self) -> tuple[str, ...]:
        """Give the comments for a model file: what became of all operators, and the notes."""
        return (*([self.operators.summary()] if self.operators else []), *self.notes)


def model_stem(name: str) -> str:
    """Make a model's name from a file's name, as model files allow it."""
    text = "".join(letter if letter.isprintable() else "-" for letter in PurePath(name).stem).strip()
    return text[:_LONGEST_NAME].strip() or "network"


def model_names(stem: str, parts: Sequence[str]) -> list[str]:
    """Name the models of a file; all names differ."""
    if len(parts) == 1:
        return [stem]
    names: list[str] = []
    for number, part in enumerate(parts, 1):
        slug = re.sub(r"[^A-Za-z0-9_.]+", "-", part).strip("-.")[-40:].strip("-.")
        own = f"{stem}-{slug}" if slug else stem
        names.append(own if own not in names and slug else f"{own}-{number}")
    return names
