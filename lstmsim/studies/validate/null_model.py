"""What a model must beat before it says anything about sizes: latency = start + k * steps, per cell, blind to size.

Fitted like the preset, on the same rows, by the least sum of squared relative errors; judged on the same held-out rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from lstmsim.files.tables.published import Measurement

__all__ = ["Judgement", "NullModel", "fit_null", "noise"]


@dataclass(frozen=True)
class NullModel:
    """Latencies from the number of steps alone.

    start_ms, per_step_ms: by cell, milliseconds.

    >>> round(NullModel({"lstm": 0.5}, {"lstm": 0.25}).latency_ms("lstm", 2), 6)
    1.0
    """

    start_ms: Mapping[str, float]
    per_step_ms: Mapping[str, float]

    def latency_ms(self, cell: str, steps: int) -> float:
        """Give the latency of a task of that cell, whatever its size."""
        return self.start_ms[cell] + self.per_step_ms[cell] * steps


def fit_null(rows: Sequence[Measurement]) -> NullModel:
    """Fit the null model with the least squares of relative errors.

    rows: published rows with a latency, at least one; of every cell at least two different numbers of steps.
    `ValueError` for other rows.

    >>> from lstmsim.files.tables.published import deepbench
    >>> from lstmsim.studies.validate.brainwave import DESIGN, FITTED
    >>> model = fit_null([row for row in deepbench() if row.design == DESIGN and row.task in FITTED])
    >>> round(250_000 * model.per_step_ms["lstm"]), round(250_000 * model.per_step_ms["gru"])
    (702, 644)
    """
    start, per_step = {}, {}
    if not rows:
        raise ValueError("at least one task is expected")
    for cell in dict.fromkeys(row.cell for row in rows):
        pairs = [
            (1 / row.latency_ms, row.steps / row.latency_ms) for row in rows if row.cell == cell and row.latency_ms
        ]
        # The sum of (a * start + b * k - 1)^2 is minimised by the normal equations of two unknowns.
        aa, ab, bb = (sum(x[i] * x[j] for x in pairs) for i, j in ((0, 0), (0, 1), (1, 1)))
        a, b = sum(x[0] for x in pairs), sum(x[1] for x in pairs)
        determinant = aa * bb - ab * ab
        if len({row.steps for row in rows if row.cell == cell}) < 2:
            raise ValueError(f"{cell}: tasks of at least two different numbers of steps are expected")
        start[cell], per_step[cell] = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    return NullModel(start, per_step)


def noise(rows: Sequence[Measurement]) -> tuple[float, str]:
    """Say how much the published latencies contradict that a larger model is not faster, and between which tasks.

    The result is the largest share by which the smaller of two tasks of one cell and equally many steps takes longer.
    Two models whose errors differ by less cannot be told apart.

    rows: published rows with a latency.

    >>> from lstmsim.files.tables.published import deepbench
    >>> error, why = noise([row for row in deepbench() if row.design == "Brainwave BW_S10"])
    >>> round(error, 3), why
    (0.041, 'lstm-512-25 is published as 4.1 % slower than lstm-1024-25')
    """
    worst, why = 0.0, "the published latencies contradict each other nowhere"
    for small, large in permutations(rows, 2):
        if (small.cell, small.steps) != (large.cell, large.steps) or small.hidden >= large.hidden:
            continue
        if small.latency_ms and large.latency_ms and small.latency_ms / large.latency_ms - 1 > worst:
            worst = small.latency_ms / large.latency_ms - 1
            why = f"{small.task} is published as {100 * worst:.1f} % slower than {large.task}"
    return worst, why


@dataclass(frozen=True)
class Judgement:
    """A simulated half of the rows beside the null model.

    errors, null_errors: relative, in the order of the rows.
    fitted: whether both models saw these rows.
    null_fitted: whether the null model alone saw them.
    noise: a share of the latency, below which a difference means nothing.
    why: where the noise comes from.

    >>> Judgement((0.01, -0.03), (0.02, 0.04), False, 0.04, "one row").evidence
    False
    """

    errors: tuple[float, ...]
    null_errors: tuple[float, ...]
    fitted: bool
    noise: float
    why: str
    null_fitted: bool = False

    @property
    def evidence(self) -> bool | None:
        """Whether the mean error is smaller than the null model's by more than the noise.

        None for rows that both models were fitted to, which cannot show it.
        """
        return None if self.fitted else self.mean(self.null_errors) - self.mean(self.errors) > self.noise

    @staticmethod
    def mean(errors: Sequence[float]) -> float:
        """Give the mean of the errors without their signs; 0 without any."""
        return sum(map(abs, errors)) / len(errors) if errors else 0.0

    @property
    def sentence(self) -> str:
        """Both models' errors and what follows."""
        own, null = (
            f"mean {100 * self.mean(each):.2f} %, worst {100 * max(map(abs, each), default=0.0):.2f} %"
            for each in (self.errors, self.null_errors)
        )
        words = {
            None: "both were fitted to these rows",
            True: f"better by more than the noise of {100 * self.noise:.1f} %: evidence of size dependence",
            False: f"not better by more than the noise ({self.why}): not evidence of size dependence",
        }
        saw = "; fitted to these rows" if self.null_fitted else ""
        blind = f"null model (start + k * steps for each cell, blind to size{saw}): {null}"
        return f"errors: {own}; {blind}; {words[self.evidence]}"
