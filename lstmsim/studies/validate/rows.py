"""The parts of a validation: published rows and claims with what was simulated for them, and the null model.

The null model, latency = start + k * steps per cell, is blind to size; whoever says anything of sizes must beat it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Literal, get_args

from lstmsim.files.published import Measurement
from lstmsim.report.results import Table


@dataclass(frozen=True)
class NullModel:
    """Latencies from the number of steps alone: milliseconds of start and step, by cell."""

    start_ms: Mapping[str, float]
    per_step_ms: Mapping[str, float]

    def latency_ms(self, cell: str, steps: int) -> float:
        """Give the latency of a task of that cell, whatever its size."""
        return self.start_ms[cell] + self.per_step_ms[cell] * steps


def fit_null(rows: Sequence[Measurement]) -> NullModel:
    """Fit the null model with the least squares of relative errors."""
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
    Two models whose errors differ by less cannot be distinguished.
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
    """A simulated half of the rows in comparison with the null model.

    errors, null_errors: relative, in the order of the rows.
    fitted: whether both models saw these rows.
    null_fitted: whether the null model alone saw them.
    noise: a share of the latency, below which a difference means nothing.
    why: where the noise comes from.
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
        """The null model's errors and what follows."""
        own, null = self.mean(self.errors), self.mean(self.null_errors)
        closer = "more accurate than the simulator" if null < own else f"not better by more than the noise ({self.why})"
        words = {
            None: "both were fitted to these rows",
            True: f"better by more than the noise of {100 * self.noise:.1f} %: evidence of size dependence",
            False: f"{closer}: not evidence of size dependence",
        }
        saw = "; fitted to these rows" if self.null_fitted else ""
        worst = max(map(abs, self.null_errors), default=0.0)
        blind = f"null model (start + k * steps for each cell, blind to size{saw})"
        return f"{blind}: mean error {100 * null:.2f} %, worst {100 * worst:.2f} %; {words[self.evidence]}"


#: `holds` and `fails` are judged. `not judged`: simulated, but the source does not state the conditions. `not
#: simulated`: of something that this simulator does not model.
Verdict = Literal["holds", "fails", "not judged", "not simulated"]


@dataclass(frozen=True)
class Row:
    """A published figure and the simulated one.

    group: the key of its group.
    name: the task or workload.
    quantity, unit: of both figures.
    published: above 0.
    simulated: rounded to as many digits as the source prints, where these are few.
    band: the relative error promised at most; 0 means equal.
    source: of the published figure.
    note: what to know about the published figure.
    derived: whether another row has the same fact in another unit (TOPS of cycles): shown and held to its band, but not
        counted.
    null: the figure of the null model, where there is one.
    factor: the ratio of both figures, either way, that is promised at most, in place of `band`; 0: `band` holds.
    """

    group: str
    name: str
    quantity: str
    unit: str
    published: float
    simulated: float
    band: float
    source: str
    note: str = ""
    derived: bool = False
    null: float | None = None
    factor: float = 0.0

    @property
    def error(self) -> float:
        """(simulated - published) / published."""
        return (self.simulated - self.published) / self.published

    @property
    def ok(self) -> bool:
        """Whether the error is inside the band, or the ratio inside the factor."""
        if self.factor:
            return self.published <= self.factor * self.simulated and self.simulated <= self.factor * self.published
        return abs(self.error) <= self.band

    @property
    def null_error(self) -> float | None:
        """(null model - published) / published; None without a null model."""
        return None if self.null is None else (self.null - self.published) / self.published

    @property
    def exact(self) -> bool:
        """Whether both figures are equal."""
        return self.simulated == self.published


@dataclass(frozen=True)
class Group:
    """Rows of one source for one chip preset.

    key, title: its name for programs and for readers.
    chip: the preset.
    rows: published and simulated figures.
    promised: how many counted rows are known, so that a lost row is noticed.
    judgement: these rows in comparison with a null model, where there is one.
    remarks: what to know about the simulated figures, and what was left out.
    """

    key: str
    title: str
    chip: str
    rows: tuple[Row, ...]
    promised: int
    judgement: Judgement | None = None
    remarks: tuple[str, ...] = ()

    @property
    def counted(self) -> tuple[Row, ...]:
        """The rows without those that say the same in another unit."""
        return tuple(row for row in self.rows if not row.derived)

    @property
    def exact(self) -> int:
        """How many counted rows are equal."""
        return sum(row.exact for row in self.counted)

    @property
    def within(self) -> int:
        """How many counted rows are inside their band."""
        return sum(row.ok for row in self.counted)

    @property
    def band(self) -> float:
        """The widest band of its rows, 0 without rows."""
        return max((row.band for row in self.rows), default=0.0)

    @property
    def factor(self) -> float:
        """The widest factor of its rows, 0 where bands hold."""
        return max((row.factor for row in self.rows), default=0.0)

    @property
    def _ratios(self) -> list[float]:
        return [row.simulated / row.published for row in self.counted]

    @property
    def geometric_mean_ratio(self) -> float:
        """The geometric mean of simulated / published, 1 without rows."""
        return float(prod(self._ratios) ** (1 / (len(self._ratios) or 1)))

    @property
    def mean_error(self) -> float:
        """The arithmetic mean of the counted rows' errors without their signs, 0 without rows."""
        return Judgement.mean([row.error for row in self.counted])

    @property
    def worst(self) -> Row | None:
        """The counted row with the largest error without its sign, the first of equal ones; None if all are exact."""
        worst = max(self.counted, key=lambda row: abs(row.error), default=None)
        return None if worst is None or worst.exact else worst

    @property
    def sources(self) -> tuple[str, ...]:
        """The different sources of its rows, in their order."""
        return tuple(dict.fromkeys(row.source for row in self.rows))

    @property
    def promise(self) -> str:
        """How far off a row may be, in words."""
        return f"a factor of {self.factor:g}" if self.factor else f"{100 * self.band:g} %"

    @property
    def kept(self) -> str:
        """How many rows keep the promise, in words."""
        unit = next((f" in {row.unit}" for row in self.counted if row.unit), "")
        exact = f"{self.exact} of {self.promised} exact{unit}"
        return f"{self.within} of {self.promised} within {self.promise}" if self.band or self.factor else exact

    @property
    def result(self) -> str:
        """How many rows keep the promise, the mean error and the worst one, in words."""
        if self.worst is None:
            return self.kept
        worst = f"worst {self.worst.name}, {100 * self.worst.error:+.2f} %"
        text = f"{self.kept}; mean error {100 * self.mean_error:.2f} %, {worst}"
        low, high = min(self._ratios), max(self._ratios)
        span = f"; simulated / published {low:.2f} to {high:.2f}, geometric mean {self.geometric_mean_ratio:.2f}"
        return text + span if self.factor else text

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for every row outside its band, and one if rows are lost."""
        failures = [_row_failure(row) for row in self.rows if not row.ok]
        if len(self.counted) < self.promised:
            lost = f"{len(self.counted)} rows, expected {self.promised}: published rows are missing"
            failures.append(f"{self.key}: {lost}")
        return tuple(failures)


@dataclass(frozen=True)
class Finding:
    """What was simulated for a claim.

    condition: what was assumed; for `not simulated` the reason.
    simulated: the simulated figures in words; empty for `not simulated`.
    """

    condition: str
    simulated: str
    verdict: Verdict


@dataclass(frozen=True)
class ClaimRow:
    """One claim of a source that prints no table: its name, topic and words, and the fields of its `Finding`."""

    key: str
    topic: str
    claim: str
    condition: str
    simulated: str
    verdict: Verdict
    source: str


#: What claims are about, in the order of the tables.
TOPICS = (
    "the patent's EP, VP and CAT",
    "throughput, threads, cores",
    "speed against other machines",
    "kernels of a GPU",
    "not simulated",
)


def topics_of(claims: Sequence[ClaimRow]) -> list[tuple[str, list[ClaimRow]]]:
    """List the topics that have claims, with these."""
    by_topic = [(topic, [row for row in claims if row.topic == topic]) for topic in TOPICS]
    return [(topic, rows) for topic, rows in by_topic if rows]


def counts_of(claims: Sequence[ClaimRow]) -> str:
    """Say how many claims have each verdict."""
    counts = {verdict: sum(row.verdict == verdict for row in claims) for verdict in get_args(Verdict)}
    words = {verdict: {"holds": "hold", "fails": "fail"}.get(verdict, verdict) for verdict in counts}
    return ", ".join(
        f"{count} {verdict if count == 1 else words[verdict]}" for verdict, count in counts.items() if count
    )


@dataclass(frozen=True)
class Validation(Table, forms="lstmsim.studies.validate.report"):
    """All comparisons by one engine: rows of published tables in groups, and a row for each claim."""

    engine: str
    groups: tuple[Group, ...]
    claims: tuple[ClaimRow, ...]

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for everything that is not as promised; empty if all is well."""
        failed = [each for each in self.claims if each.verdict == "fails"]
        claims = [f"{each.key}: {each.claim}: {each.simulated or each.condition}" for each in failed]
        return (*(sentence for group in self.groups for sentence in group.failures), *claims)


def _row_failure(row: Row) -> str:
    promised = "the same figure" if row.band == 0 else f"at most {100 * row.band:g} % of error"
    if row.factor:
        promised = f"a factor of at most {row.factor:g}"
    published = f"{row.quantity} published {row.published:.10g} {row.unit}"
    simulated = f"simulated {row.simulated:.10g} ({100 * row.error:+.3g} %)"
    return f"{row.group}: {row.name}: {published}, {simulated}; expected {promised}"
